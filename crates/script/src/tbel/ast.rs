//! What a TBEL program consists of.

/// Place in the source, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pos {
    pub(super) line: u32,
    pub(super) column: u32,
}

#[derive(Debug, Clone)]
pub(super) enum Expr {
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
        object: Box<Expr>,
        name: String,
        safe: bool,
    },
    Index {
        object: Box<Expr>,
        index: Box<Expr>,
    },
    /// A helper or a function of the script.
    Call {
        name: String,
        args: Vec<Expr>,
    },
    Method {
        object: Box<Expr>,
        name: String,
        args: Vec<Expr>,
        safe: bool,
    },
    New {
        class: String,
        args: Vec<Expr>,
    },
    NewArray {
        element: String,
        lengths: Vec<Expr>,
    },
    /// `new int[] {1, 2}`
    ArrayOf {
        element: String,
        items: Vec<Expr>,
    },
    List(Vec<Expr>),
    Map(Vec<Entry>),
    Unary {
        op: &'static str,
        operand: Box<Expr>,
    },
    /// `++` and `--`
    Update {
        op: &'static str,
        prefix: bool,
        target: Box<Expr>,
    },
    Binary {
        op: &'static str,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Is {
        value: Box<Expr>,
        class: String,
    },
    IsDef(Box<Expr>),
    Ternary {
        condition: Box<Expr>,
        yes: Box<Expr>,
        no: Box<Expr>,
    },
    /// `op` is empty for a plain assignment.
    Assign {
        op: &'static str,
        target: Box<Expr>,
        value: Box<Expr>,
    },
    Cast {
        class: String,
        value: Box<Expr>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) line: u32,
    pub(super) key: Expr,
    pub(super) value: Expr,
}

#[derive(Debug, Clone)]
pub(super) struct Declared {
    /// The type, unless it is `var`.
    pub(super) class: Option<String>,
    pub(super) name: String,
    pub(super) value: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    /// `None` is the default.
    pub(super) value: Option<Expr>,
    pub(super) body: Vec<Stmt>,
}

#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) params: Vec<String>,
    pub(super) body: Vec<Stmt>,
}

#[derive(Debug, Clone)]
pub(super) struct Stmt {
    pub(super) pos: Pos,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Expr(Expr),
    Var(Vec<Declared>),
    If {
        condition: Expr,
        yes: Vec<Stmt>,
        no: Option<Vec<Stmt>>,
    },
    /// `until` negates the condition.
    While {
        condition: Expr,
        until: bool,
        body: Vec<Stmt>,
    },
    Do {
        body: Vec<Stmt>,
        condition: Expr,
        until: bool,
    },
    For {
        init: Option<Box<Stmt>>,
        condition: Option<Expr>,
        step: Vec<Expr>,
        body: Vec<Stmt>,
    },
    ForEach {
        name: String,
        items: Expr,
        body: Vec<Stmt>,
    },
    Switch {
        value: Expr,
        cases: Vec<Case>,
    },
    Return(Option<Expr>),
    Break,
    Continue,
    Function(Function),
}
