//! Expressions of TBEL.

use super::TbelParser;
use crate::error::SyntaxError;
use crate::tbel::ast::{TbelExpr, TbelMapEntry};
use crate::tbel::lexer::TbelToken;
use crate::tbel::names;

/// How high the tree of an expression may be; it is walked recursively.
const MAX_HEIGHT: usize = 400;

const ASSIGNMENTS: &[(&str, &str)] = &[
    ("=", ""),
    ("+=", "+"),
    ("-=", "-"),
    ("*=", "*"),
    ("/=", "/"),
    ("%=", "%"),
    ("**=", "**"),
    ("&=", "&"),
    ("|=", "|"),
    ("^=", "^"),
    ("<<=", "<<"),
    (">>=", ">>"),
    (">>>=", ">>>"),
];

/// Operators, what they are called in the tree, and how strongly they bind.
const BINARY: &[(&str, &str, u8)] = &[
    ("or", "or", 1),
    ("||", "||", 1),
    ("and", "&&", 2),
    ("&&", "&&", 2),
    ("|", "|", 3),
    ("^", "^", 4),
    ("&", "&", 5),
    ("==", "==", 6),
    ("===", "==", 6),
    ("!=", "!=", 6),
    ("!==", "!=", 6),
    ("~=", "~=", 6),
    ("contains", "contains", 6),
    ("soundslike", "soundslike", 6),
    ("strsim", "strsim", 6),
    ("is", "is", 7),
    ("instanceof", "is", 7),
    ("<", "<", 7),
    (">", ">", 7),
    ("<=", "<=", 7),
    (">=", ">=", 7),
    ("<<", "<<", 8),
    (">>", ">>", 8),
    (">>>", ">>>", 8),
    ("+", "+", 9),
    ("-", "-", 9),
    ("#", "#", 9),
    ("*", "*", 10),
    ("/", "/", 10),
    ("%", "%", 10),
    ("**", "**", 11),
];

impl TbelParser {
    pub(super) fn expression(&mut self) -> Result<TbelExpr, SyntaxError> {
        self.parse_nested(|parser| {
            let pos = parser.pos();
            let target = parser.ternary()?;
            let TbelToken::Op(found) = parser.token() else {
                return Ok(target);
            };
            let Some((_, op)) = ASSIGNMENTS.iter().find(|(text, _)| text == found) else {
                return Ok(target);
            };
            if !matches!(
                target,
                TbelExpr::Name(_) | TbelExpr::Member { .. } | TbelExpr::Index { .. }
            ) {
                return parser.error_at(pos, "this cannot be assigned to");
            }
            parser.next();
            let height = parser.height;
            let value = parser.expression()?;
            parser.raise_height(height)?;
            Ok(TbelExpr::Assign {
                op,
                target: Box::new(target),
                value: Box::new(value),
            })
        })
    }

    /// The value of a case, whose colon is not that of a condition.
    pub(super) fn ternary_free(&mut self) -> Result<TbelExpr, SyntaxError> {
        self.binary(1)
    }

    fn ternary(&mut self) -> Result<TbelExpr, SyntaxError> {
        let condition = self.binary(1)?;
        let height = self.height;
        if self.eat("?:") {
            let no = self.expression()?;
            self.raise_height(height)?;
            return Ok(TbelExpr::Binary {
                op: "or",
                left: Box::new(condition),
                right: Box::new(no),
            });
        }
        if !self.eat("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.raise_height(height)?;
        let height = self.height;
        self.expect(":")?;
        let no = self.expression()?;
        self.raise_height(height)?;
        Ok(TbelExpr::Ternary {
            condition: Box::new(condition),
            yes: Box::new(yes),
            no: Box::new(no),
        })
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        let text = match self.token() {
            TbelToken::Op(op) => *op,
            TbelToken::Name(name) => name.as_str(),
            _ => return None,
        };
        BINARY
            .iter()
            .find(|(found, ..)| *found == text)
            .map(|(_, op, binds)| (*op, *binds))
    }

    fn binary(&mut self, least: u8) -> Result<TbelExpr, SyntaxError> {
        let mut left = self.unary()?;
        while let Some((op, binds)) = self.operator() {
            if binds < least {
                break;
            }
            let height = self.height;
            self.next();
            if op == "is" {
                let class = self.class_name()?;
                self.raise_height(height)?;
                left = TbelExpr::Is {
                    value: Box::new(left),
                    class,
                };
                continue;
            }
            let right = self.parse_nested(|parser| parser.binary(binds + 1))?;
            self.raise_height(height)?;
            left = TbelExpr::Binary {
                op,
                left: Box::new(left),
                right: Box::new(right),
            };
        }
        Ok(left)
    }

    fn class_name(&mut self) -> Result<String, SyntaxError> {
        let pos = self.pos();
        let TbelToken::Name(mut name) = self.next() else {
            return self.error_at(pos, "expected a type");
        };
        while self.is(".") {
            self.next();
            match self.next() {
                TbelToken::Name(part) => {
                    name.push('.');
                    name.push_str(&part);
                }
                _ => return self.error("expected a name"),
            }
        }
        Ok(name)
    }

    fn unary(&mut self) -> Result<TbelExpr, SyntaxError> {
        self.parse_nested(Self::unary_kind)
    }

    fn unary_kind(&mut self) -> Result<TbelExpr, SyntaxError> {
        let op = match self.token() {
            TbelToken::Op(op @ ("!" | "-" | "+" | "~" | "++" | "--")) => *op,
            TbelToken::Name(name) if name == "isdef" => {
                self.next();
                return Ok(TbelExpr::IsDef(Box::new(self.unary()?)));
            }
            _ => return self.postfix(),
        };
        let pos = self.pos();
        self.next();
        let operand = self.unary()?;
        if matches!(op, "++" | "--") {
            if !matches!(
                operand,
                TbelExpr::Name(_) | TbelExpr::Member { .. } | TbelExpr::Index { .. }
            ) {
                return self.error_at(pos, "this cannot be changed");
            }
            return Ok(TbelExpr::Update {
                op,
                prefix: true,
                target: Box::new(operand),
            });
        }
        Ok(match (op, operand) {
            ("-", TbelExpr::Int(digits)) => TbelExpr::Int(match digits.strip_prefix('-') {
                Some(digits) => digits.to_owned(),
                None => format!("-{digits}"),
            }),
            ("-", TbelExpr::Double(value)) => TbelExpr::Double(-value),
            ("+", operand @ (TbelExpr::Int(_) | TbelExpr::Double(_))) => operand,
            (op, operand) => TbelExpr::Unary {
                op,
                operand: Box::new(operand),
            },
        })
    }

    fn postfix(&mut self) -> Result<TbelExpr, SyntaxError> {
        let mut value = self.primary()?;
        loop {
            let height = self.height;
            let safe = self.is(".?") || self.is("?.");
            if safe || self.is(".") {
                self.next();
                let pos = self.pos();
                let TbelToken::Name(name) = self.next() else {
                    return self.error_at(pos, "expected a name after '.'");
                };
                let object = Box::new(value);
                value = if self.is("(") {
                    TbelExpr::Method {
                        object,
                        name,
                        args: self.arguments()?,
                        safe,
                    }
                } else {
                    TbelExpr::Member { object, name, safe }
                };
            } else if self.is("[") {
                self.next();
                let index = self.expression()?;
                self.expect("]")?;
                value = TbelExpr::Index {
                    object: Box::new(value),
                    index: Box::new(index),
                };
            } else if (self.is("++") || self.is("--")) && !self.tokens[self.at].first {
                if !matches!(
                    value,
                    TbelExpr::Name(_) | TbelExpr::Member { .. } | TbelExpr::Index { .. }
                ) {
                    return self.error("this cannot be changed");
                }
                let op = if self.is("++") { "++" } else { "--" };
                self.next();
                value = TbelExpr::Update {
                    op,
                    prefix: false,
                    target: Box::new(value),
                };
            } else {
                return Ok(value);
            }
            self.raise_height(height)?;
        }
    }

    /// After a part was parsed: the tree is one higher than it and than the part before it.
    fn raise_height(&mut self, other: usize) -> Result<(), SyntaxError> {
        self.height = self.height.max(other) + 1;
        if self.height > MAX_HEIGHT {
            self.error("the expression is too long")
        } else {
            Ok(())
        }
    }

    fn arguments(&mut self) -> Result<Vec<TbelExpr>, SyntaxError> {
        self.expect("(")?;
        let mut args = Vec::new();
        let mut height = 0;
        while !self.is(")") {
            args.push(self.expression()?);
            height = height.max(self.height);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        self.height = height;
        Ok(args)
    }

    fn primary(&mut self) -> Result<TbelExpr, SyntaxError> {
        let pos = self.pos();
        self.height = 1;
        match self.token().clone() {
            TbelToken::Int(digits) => {
                self.next();
                Ok(TbelExpr::Int(digits))
            }
            TbelToken::Double(value) => {
                self.next();
                Ok(TbelExpr::Double(value))
            }
            TbelToken::Text(text) => {
                self.next();
                Ok(TbelExpr::Text(text))
            }
            TbelToken::Op("(") => self.parenthesis(),
            TbelToken::Op("[") => self.collection("]"),
            TbelToken::Op("{") => self.collection("}"),
            TbelToken::Name(name) => {
                self.next();
                match name.as_str() {
                    "true" => Ok(TbelExpr::Bool(true)),
                    "false" => Ok(TbelExpr::Bool(false)),
                    "null" | "nil" => Ok(TbelExpr::Null),
                    "empty" if !self.is("(") => Ok(TbelExpr::Empty),
                    "new" => self.new_expression(),
                    _ if self.is("(") => Ok(TbelExpr::Call {
                        name,
                        args: self.arguments()?,
                    }),
                    _ if names::is_reserved(&name) => self.error_at(pos, format!("unexpected {name:?}")),
                    _ => Ok(TbelExpr::Name(name)),
                }
            }
            _ => {
                let found = self.found();
                self.error_at(pos, format!("expected a value but found {found}"))
            }
        }
    }

    fn parenthesis(&mut self) -> Result<TbelExpr, SyntaxError> {
        if let (TbelToken::Name(class), TbelToken::Op(")")) = (self.ahead(1).clone(), self.ahead(2)) {
            let operand = match self.ahead(3) {
                TbelToken::Name(name) => {
                    !names::is_reserved(name) || matches!(name.as_str(), "true" | "false" | "new")
                }
                TbelToken::Int(_) | TbelToken::Double(_) | TbelToken::Text(_) => true,
                TbelToken::Op(op) => matches!(*op, "(" | "-" | "~"),
                TbelToken::End => false,
            };
            if operand && names::is_type(&class) {
                self.next();
                self.next();
                self.next();
                let value = Box::new(self.unary()?);
                return Ok(TbelExpr::Cast { class, value });
            }
        }
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        Ok(value)
    }

    /// A list or a map, in brackets or braces.
    fn collection(&mut self, close: &'static str) -> Result<TbelExpr, SyntaxError> {
        let open = self.pos();
        self.next();
        if self.eat(close) {
            return Ok(if close == "}" {
                TbelExpr::Map(Vec::new())
            } else {
                TbelExpr::List(Vec::new())
            });
        }
        if self.is(":") && *self.ahead(1) == TbelToken::Op(close) {
            self.next();
            self.next();
            return Ok(TbelExpr::Map(Vec::new()));
        }
        let mut items = Vec::new();
        let mut entries = Vec::new();
        let mut height = 0;
        while !self.is(close) {
            let line = self.pos().line;
            let keyed = matches!(
                self.token(),
                TbelToken::Name(_) | TbelToken::Text(_) | TbelToken::Int(_)
            ) && *self.ahead(1) == TbelToken::Op(":");
            if keyed {
                let key = match self.next() {
                    TbelToken::Name(name) | TbelToken::Text(name) => TbelExpr::Text(name),
                    TbelToken::Int(digits) => TbelExpr::Text(digits),
                    _ => return self.error("expected a key"),
                };
                self.next();
                entries.push(TbelMapEntry {
                    line,
                    key,
                    value: self.expression()?,
                });
            } else {
                let value = self.expression()?;
                if self.eat(":") {
                    height = height.max(self.height);
                    entries.push(TbelMapEntry {
                        line,
                        key: value,
                        value: self.expression()?,
                    });
                } else {
                    items.push(value);
                }
            }
            height = height.max(self.height);
            while close == "}" && self.eat(";") {}
            if !self.eat(",") {
                break;
            }
        }
        if !self.eat(close) {
            let what = if close == "}" { "{ ... }" } else { "[ ... ]" };
            return self.error_at(open, format!("unbalanced braces {what}"));
        }
        self.height = height;
        self.raise_height(0)?;
        match (items.is_empty(), entries.is_empty()) {
            (_, true) => Ok(TbelExpr::List(items)),
            (true, false) => Ok(TbelExpr::Map(entries)),
            (false, false) => self.error_at(open, "a map has a key before each value"),
        }
    }

    fn new_expression(&mut self) -> Result<TbelExpr, SyntaxError> {
        let class = self.class_name()?;
        if self.is("(") {
            return Ok(TbelExpr::New {
                class,
                args: self.arguments()?,
            });
        }
        if !self.is("[") {
            let found = self.found();
            return self.error(format!("expected '(' or '[' after new {class} but found {found}"));
        }
        let mut lengths = Vec::new();
        let mut dimensions = 0;
        while self.eat("[") {
            dimensions += 1;
            if !self.is("]") {
                lengths.push(self.expression()?);
            }
            self.expect("]")?;
        }
        if self.is("{") && lengths.is_empty() {
            return match self.collection("}")? {
                TbelExpr::List(items) => Ok(TbelExpr::ArrayOf {
                    element: class,
                    items,
                }),
                TbelExpr::Map(entries) if entries.is_empty() => Ok(TbelExpr::ArrayOf {
                    element: class,
                    items: Vec::new(),
                }),
                _ => self.error("an array has no keys"),
            };
        }
        if lengths.is_empty() || lengths.len() > 3 || dimensions > 3 {
            return self.error("an array needs one to three lengths");
        }
        Ok(TbelExpr::NewArray {
            element: class,
            lengths,
        })
    }
}
