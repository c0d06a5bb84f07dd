//! Statements of TBEL; expressions are in `expressions`.

#[path = "expressions.rs"]
mod expressions;

use std::collections::HashSet;

use super::ast::{
    FunctionDeclaration, SourcePosition, StatementKind, SwitchCase, TbelExpr, TbelStmt, VariableDeclaration,
};
use super::lexer::{SpannedToken, TbelToken};
use super::names;
use crate::error::SyntaxError;

/// Blocks and expressions within each other.
const MAX_DEPTH: usize = 100;

pub(super) struct TbelParser {
    tokens: Vec<SpannedToken>,
    at: usize,
    depth: usize,
    /// Height of the tree of the last expression parsed.
    height: usize,
}

/// Parses a program.
pub(super) fn parse(tokens: Vec<SpannedToken>) -> Result<Vec<TbelStmt>, SyntaxError> {
    let mut parser = TbelParser {
        tokens,
        at: 0,
        depth: 0,
        height: 0,
    };
    let mut program = Vec::new();
    while *parser.token() != TbelToken::End {
        if parser.is("}") {
            return parser.error("unbalanced braces: there is no block to close");
        }
        parser.statement(&mut program)?;
    }
    Ok(program)
}

impl TbelParser {
    fn token(&self) -> &TbelToken {
        &self.tokens[self.at].token
    }

    fn ahead(&self, by: usize) -> &TbelToken {
        &self.tokens[(self.at + by).min(self.tokens.len() - 1)].token
    }

    fn pos(&self) -> SourcePosition {
        self.tokens[self.at].pos
    }

    fn next(&mut self) -> TbelToken {
        let token = self.token().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn is(&self, op: &str) -> bool {
        matches!(self.token(), TbelToken::Op(found) if *found == op)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.token(), TbelToken::Name(found) if found == name)
    }

    fn eat(&mut self, op: &str) -> bool {
        let found = self.is(op);
        if found {
            self.next();
        }
        found
    }

    fn eat_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, op: &str) -> Result<(), SyntaxError> {
        if self.eat(op) {
            return Ok(());
        }
        let found = self.found();
        self.error(format!("expected {op:?} but found {found}"))
    }

    fn found(&self) -> String {
        match self.token() {
            TbelToken::Name(name) => format!("{name:?}"),
            TbelToken::Int(digits) => digits.clone(),
            TbelToken::Double(value) => value.to_string(),
            TbelToken::Text(_) => "a text".to_owned(),
            TbelToken::Op(op) => format!("{op:?}"),
            TbelToken::End => "the end of the script".to_owned(),
        }
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, SyntaxError> {
        self.error_at(self.pos(), message)
    }

    fn error_at<T>(&self, pos: SourcePosition, message: impl Into<String>) -> Result<T, SyntaxError> {
        Err(SyntaxError {
            line: pos.line,
            column: pos.column,
            message: message.into(),
        })
    }

    fn parse_nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth == MAX_DEPTH {
            return self.error("the script is nested too deeply");
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn variable_name(&mut self) -> Result<String, SyntaxError> {
        let pos = self.pos();
        match self.next() {
            TbelToken::Name(name) if !names::is_reserved(&name) => Ok(name),
            TbelToken::Name(name) => self.error_at(pos, format!("{name:?} is a reserved word")),
            _ => self.error_at(pos, "expected a name"),
        }
    }

    fn statement(&mut self, out: &mut Vec<TbelStmt>) -> Result<(), SyntaxError> {
        if self.eat(";") {
            return Ok(());
        }
        let pos = self.pos();
        let kind = self.parse_nested(Self::statement_kind)?;
        out.push(TbelStmt { pos, kind });
        Ok(())
    }

    fn statement_kind(&mut self) -> Result<StatementKind, SyntaxError> {
        let word = match self.token() {
            TbelToken::Name(name) => name.clone(),
            _ => String::new(),
        };
        match word.as_str() {
            "if" => self.if_statement(),
            "while" | "until" if !self.assigns_next() => {
                self.next();
                let condition = self.condition()?;
                Ok(StatementKind::While {
                    condition,
                    until: word == "until",
                    body: self.body()?,
                })
            }
            "do" => self.do_statement(),
            "for" | "foreach" => self.for_statement(),
            "switch" => self.switch_statement(),
            "return" => self.return_statement(),
            "break" | "continue" => {
                self.next();
                self.end_statement()?;
                Ok(if word == "break" {
                    StatementKind::Break
                } else {
                    StatementKind::Continue
                })
            }
            "function" | "def" if matches!(self.ahead(1), TbelToken::Name(_)) => self.function(),
            "import" if matches!(self.ahead(1), TbelToken::Name(_)) => self.error("import is forbidden"),
            "case" | "default" => self.error(format!("{word} without switch")),
            "var" => {
                self.next();
                let declared = self.declarations(None)?;
                self.end_statement()?;
                Ok(StatementKind::Var(declared))
            }
            _ if self.typed_declaration() => {
                let class = self.type_name()?;
                let declared = self.declarations(Some(&class))?;
                self.end_statement()?;
                Ok(StatementKind::Var(declared))
            }
            _ => {
                let value = self.expression()?;
                self.end_statement()?;
                Ok(StatementKind::Expr(value))
            }
        }
    }

    fn assigns_next(&self) -> bool {
        matches!(self.ahead(1), TbelToken::Op("="))
    }

    /// Whether `Type name` or `Type[] name` stands here.
    fn typed_declaration(&self) -> bool {
        let TbelToken::Name(class) = self.token() else {
            return false;
        };
        if !names::is_type(class) {
            return false;
        }
        match (self.ahead(1), self.ahead(2), self.ahead(3)) {
            (TbelToken::Name(name), ..) => !names::is_reserved(name),
            (TbelToken::Op("["), TbelToken::Op("]"), TbelToken::Name(_)) => true,
            _ => false,
        }
    }

    fn type_name(&mut self) -> Result<String, SyntaxError> {
        let TbelToken::Name(mut class) = self.next() else {
            return self.error("expected a type");
        };
        while self.is("[") && *self.ahead(1) == TbelToken::Op("]") {
            self.next();
            self.next();
            class.push_str("[]");
        }
        Ok(class)
    }

    fn declarations(&mut self, class: Option<&str>) -> Result<Vec<VariableDeclaration>, SyntaxError> {
        let mut all = Vec::new();
        loop {
            let name = self.variable_name()?;
            let value = if self.eat("=") {
                Some(self.expression()?)
            } else {
                None
            };
            all.push(VariableDeclaration {
                class: class.map(str::to_owned),
                name,
                value,
            });
            if !self.eat(",") {
                return Ok(all);
            }
        }
    }

    /// A statement ends with a semicolon, its line, its block or the script.
    fn end_statement(&mut self) -> Result<(), SyntaxError> {
        if self.eat(";") || self.is("}") || *self.token() == TbelToken::End || self.tokens[self.at].first {
            return Ok(());
        }
        let found = self.found();
        self.error(format!("unterminated statement: expected ';' before {found}"))
    }

    fn condition(&mut self) -> Result<TbelExpr, SyntaxError> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn block(&mut self) -> Result<Vec<TbelStmt>, SyntaxError> {
        let open = self.pos();
        self.expect("{")?;
        let mut body = Vec::new();
        while !self.is("}") {
            if *self.token() == TbelToken::End {
                return self.error_at(open, "unbalanced braces: the block is not closed");
            }
            self.statement(&mut body)?;
        }
        self.next();
        Ok(body)
    }

    fn body(&mut self) -> Result<Vec<TbelStmt>, SyntaxError> {
        if self.is("{") {
            return self.block();
        }
        let mut body = Vec::new();
        self.statement(&mut body)?;
        Ok(body)
    }

    fn if_statement(&mut self) -> Result<StatementKind, SyntaxError> {
        self.next();
        let condition = self.condition()?;
        let yes = self.body()?;
        let no = if self.eat_name("else") {
            Some(self.body()?)
        } else {
            None
        };
        Ok(StatementKind::If { condition, yes, no })
    }

    fn do_statement(&mut self) -> Result<StatementKind, SyntaxError> {
        self.next();
        let body = self.block()?;
        let until = self.is_name("until");
        if !until && !self.is_name("while") {
            return self.error("expected 'while' or 'until' after the block of do");
        }
        self.next();
        let condition = self.condition()?;
        self.end_statement()?;
        Ok(StatementKind::Do {
            body,
            condition,
            until,
        })
    }

    fn for_statement(&mut self) -> Result<StatementKind, SyntaxError> {
        self.next();
        self.expect("(")?;
        let pos = self.pos();
        if let Some(name) = self.each_name()? {
            let items = self.expression()?;
            self.expect(")")?;
            return Ok(StatementKind::ForEach {
                name,
                items,
                body: self.body()?,
            });
        }
        let init = if self.is(";") {
            None
        } else if self.eat_name("var") {
            Some(StatementKind::Var(self.declarations(None)?))
        } else if self.typed_declaration() {
            let class = self.type_name()?;
            Some(StatementKind::Var(self.declarations(Some(&class))?))
        } else {
            Some(StatementKind::Expr(self.expression()?))
        };
        self.expect(";")?;
        let condition = if self.is(";") {
            None
        } else {
            Some(self.expression()?)
        };
        self.expect(";")?;
        let mut step = Vec::new();
        while !self.is(")") {
            step.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        let init = init.map(|kind| Box::new(TbelStmt { pos, kind }));
        Ok(StatementKind::For {
            init,
            condition,
            step,
            body: self.body()?,
        })
    }

    /// The variable of `(name : items)`, with `var` or a type before it or not.
    fn each_name(&mut self) -> Result<Option<String>, SyntaxError> {
        let TbelToken::Name(_) = self.token() else {
            return Ok(None);
        };
        if *self.ahead(1) == TbelToken::Op(":") {
            let name = self.variable_name()?;
            self.next();
            return Ok(Some(name));
        }
        if matches!(self.ahead(1), TbelToken::Name(_)) && *self.ahead(2) == TbelToken::Op(":") {
            self.next();
            let name = self.variable_name()?;
            self.next();
            return Ok(Some(name));
        }
        Ok(None)
    }

    fn switch_statement(&mut self) -> Result<StatementKind, SyntaxError> {
        self.next();
        let value = self.condition()?;
        self.expect("{")?;
        let mut cases: Vec<SwitchCase> = Vec::new();
        while !self.eat("}") {
            let value = if self.eat_name("case") {
                Some(self.ternary_free()?)
            } else if self.eat_name("default") {
                if cases.iter().any(|case| case.value.is_none()) {
                    return self.error("switch has two defaults");
                }
                None
            } else {
                let found = self.found();
                return self.error(format!(
                    "expected case, default or the end of switch but found {found}"
                ));
            };
            self.expect(":")?;
            let mut body = Vec::new();
            while !self.is("}") && !self.is_name("case") && !self.is_name("default") {
                if *self.token() == TbelToken::End {
                    return self.error("unbalanced braces: switch is not closed");
                }
                self.statement(&mut body)?;
            }
            cases.push(SwitchCase { value, body });
        }
        Ok(StatementKind::Switch { value, cases })
    }

    fn return_statement(&mut self) -> Result<StatementKind, SyntaxError> {
        self.next();
        let value = if self.is(";") || self.is("}") || *self.token() == TbelToken::End {
            None
        } else {
            Some(self.expression()?)
        };
        self.end_statement()?;
        Ok(StatementKind::Return(value))
    }

    fn function(&mut self) -> Result<StatementKind, SyntaxError> {
        self.next();
        let name = self.variable_name()?;
        self.expect("(")?;
        let (mut params, mut known) = (Vec::new(), HashSet::new());
        while !self.is(")") {
            if self.typed_declaration() {
                self.type_name()?;
            }
            let param = self.variable_name()?;
            if !known.insert(param.clone()) {
                return self.error(format!("two parameters are named {param:?}"));
            }
            params.push(param);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        let body = self.block()?;
        Ok(StatementKind::Function(FunctionDeclaration {
            name,
            params,
            body,
        }))
    }
}
