//! What a TBEL program consists of.

/// Place in the source, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SourcePosition {
    pub(super) line: u32,
    pub(super) column: u32,
}

#[derive(Debug, Clone)]
pub(super) enum TbelExpr {
    /// A whole number; decimal digits.
    Int(String),
    /// A number with a point, an exponent or a suffix that makes it a double.
    Double(f64),
    Text(String),
    Bool(bool),
    Null,
    Empty,
    Name(String),
    Member {
        object: Box<TbelExpr>,
        name: String,
        safe: bool,
    },
    Index {
        object: Box<TbelExpr>,
        index: Box<TbelExpr>,
    },
    /// A helper or a function of the script.
    Call {
        name: String,
        args: Vec<TbelExpr>,
    },
    Method {
        object: Box<TbelExpr>,
        name: String,
        args: Vec<TbelExpr>,
        safe: bool,
    },
    New {
        class: String,
        args: Vec<TbelExpr>,
    },
    NewArray {
        element: String,
        lengths: Vec<TbelExpr>,
    },
    /// `new int[] {1, 2}`
    ArrayOf {
        element: String,
        items: Vec<TbelExpr>,
    },
    List(Vec<TbelExpr>),
    Map(Vec<TbelMapEntry>),
    Unary {
        op: &'static str,
        operand: Box<TbelExpr>,
    },
    /// `++` and `--`
    Update {
        op: &'static str,
        prefix: bool,
        target: Box<TbelExpr>,
    },
    Binary {
        op: &'static str,
        left: Box<TbelExpr>,
        right: Box<TbelExpr>,
    },
    Is {
        value: Box<TbelExpr>,
        class: String,
    },
    IsDef(Box<TbelExpr>),
    Ternary {
        condition: Box<TbelExpr>,
        yes: Box<TbelExpr>,
        no: Box<TbelExpr>,
    },
    /// `op` is empty for a plain assignment.
    Assign {
        op: &'static str,
        target: Box<TbelExpr>,
        value: Box<TbelExpr>,
    },
    Cast {
        class: String,
        value: Box<TbelExpr>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct TbelMapEntry {
    pub(super) line: u32,
    pub(super) key: TbelExpr,
    pub(super) value: TbelExpr,
}

#[derive(Debug, Clone)]
pub(super) struct VariableDeclaration {
    /// The type, unless it is `var`.
    pub(super) class: Option<String>,
    pub(super) name: String,
    pub(super) value: Option<TbelExpr>,
}

#[derive(Debug, Clone)]
pub(super) struct SwitchCase {
    /// `None` is the default.
    pub(super) value: Option<TbelExpr>,
    pub(super) body: Vec<TbelStmt>,
}

#[derive(Debug, Clone)]
pub(super) struct FunctionDeclaration {
    pub(super) name: String,
    pub(super) params: Vec<String>,
    pub(super) body: Vec<TbelStmt>,
}

#[derive(Debug, Clone)]
pub(super) struct TbelStmt {
    pub(super) pos: SourcePosition,
    pub(super) kind: StatementKind,
}

#[derive(Debug, Clone)]
pub(super) enum StatementKind {
    Expr(TbelExpr),
    Var(Vec<VariableDeclaration>),
    If {
        condition: TbelExpr,
        yes: Vec<TbelStmt>,
        no: Option<Vec<TbelStmt>>,
    },
    /// `until` negates the condition.
    While {
        condition: TbelExpr,
        until: bool,
        body: Vec<TbelStmt>,
    },
    Do {
        body: Vec<TbelStmt>,
        condition: TbelExpr,
        until: bool,
    },
    For {
        init: Option<Box<TbelStmt>>,
        condition: Option<TbelExpr>,
        step: Vec<TbelExpr>,
        body: Vec<TbelStmt>,
    },
    ForEach {
        name: String,
        items: TbelExpr,
        body: Vec<TbelStmt>,
    },
    Switch {
        value: TbelExpr,
        cases: Vec<SwitchCase>,
    },
    Return(Option<TbelExpr>),
    Break,
    Continue,
    Function(FunctionDeclaration),
}
