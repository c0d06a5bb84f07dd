//! Expressions of TBEL.

use super::Parser;
use crate::error::SyntaxError;
use crate::tbel::ast::{Entry, Expr};
use crate::tbel::lexer::Token;
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

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Expr, SyntaxError> {
        self.deeper(|parser| {
            let pos = parser.pos();
            let target = parser.ternary()?;
            let Token::Op(found) = parser.token() else {
                return Ok(target);
            };
            let Some((_, op)) = ASSIGNMENTS.iter().find(|(text, _)| text == found) else {
                return Ok(target);
            };
            if !matches!(target, Expr::Name(_) | Expr::Member { .. } | Expr::Index { .. }) {
                return parser.error_at(pos, "this cannot be assigned to");
            }
            parser.next();
            let height = parser.height;
            let value = parser.expression()?;
            parser.higher(height)?;
            Ok(Expr::Assign {
                op,
                target: Box::new(target),
                value: Box::new(value),
            })
        })
    }

    /// The value of a case, whose colon is not that of a condition.
    pub(super) fn ternary_free(&mut self) -> Result<Expr, SyntaxError> {
        self.binary(1)
    }

    fn ternary(&mut self) -> Result<Expr, SyntaxError> {
        let condition = self.binary(1)?;
        let height = self.height;
        if self.eat("?:") {
            let no = self.expression()?;
            self.higher(height)?;
            return Ok(Expr::Binary {
                op: "or",
                left: Box::new(condition),
                right: Box::new(no),
            });
        }
        if !self.eat("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.higher(height)?;
        let height = self.height;
        self.expect(":")?;
        let no = self.expression()?;
        self.higher(height)?;
        Ok(Expr::Ternary {
            condition: Box::new(condition),
            yes: Box::new(yes),
            no: Box::new(no),
        })
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        let text = match self.token() {
            Token::Op(op) => *op,
            Token::Name(name) => name.as_str(),
            _ => return None,
        };
        BINARY
            .iter()
            .find(|(found, ..)| *found == text)
            .map(|(_, op, binds)| (*op, *binds))
    }

    fn binary(&mut self, least: u8) -> Result<Expr, SyntaxError> {
        let mut left = self.unary()?;
        while let Some((op, binds)) = self.operator() {
            if binds < least {
                break;
            }
            let height = self.height;
            self.next();
            if op == "is" {
                let class = self.class_name()?;
                self.higher(height)?;
                left = Expr::Is {
                    value: Box::new(left),
                    class,
                };
                continue;
            }
            let right = self.deeper(|parser| parser.binary(binds + 1))?;
            self.higher(height)?;
            left = Expr::Binary {
                op,
                left: Box::new(left),
                right: Box::new(right),
            };
        }
        Ok(left)
    }

    fn class_name(&mut self) -> Result<String, SyntaxError> {
        let pos = self.pos();
        let Token::Name(mut name) = self.next() else {
            return self.error_at(pos, "expected a type");
        };
        while self.is(".") {
            self.next();
            match self.next() {
                Token::Name(part) => {
                    name.push('.');
                    name.push_str(&part);
                }
                _ => return self.error("expected a name"),
            }
        }
        Ok(name)
    }

    fn unary(&mut self) -> Result<Expr, SyntaxError> {
        self.deeper(Self::unary_kind)
    }

    fn unary_kind(&mut self) -> Result<Expr, SyntaxError> {
        let op = match self.token() {
            Token::Op(op @ ("!" | "-" | "+" | "~" | "++" | "--")) => *op,
            Token::Name(name) if name == "isdef" => {
                self.next();
                return Ok(Expr::IsDef(Box::new(self.unary()?)));
            }
            _ => return self.postfix(),
        };
        let pos = self.pos();
        self.next();
        let operand = self.unary()?;
        if matches!(op, "++" | "--") {
            if !matches!(operand, Expr::Name(_) | Expr::Member { .. } | Expr::Index { .. }) {
                return self.error_at(pos, "this cannot be changed");
            }
            return Ok(Expr::Update {
                op,
                prefix: true,
                target: Box::new(operand),
            });
        }
        Ok(match (op, operand) {
            ("-", Expr::Int(digits)) => Expr::Int(match digits.strip_prefix('-') {
                Some(digits) => digits.to_owned(),
                None => format!("-{digits}"),
            }),
            ("-", Expr::Double(value)) => Expr::Double(-value),
            ("+", operand @ (Expr::Int(_) | Expr::Double(_))) => operand,
            (op, operand) => Expr::Unary {
                op,
                operand: Box::new(operand),
            },
        })
    }

    fn postfix(&mut self) -> Result<Expr, SyntaxError> {
        let mut value = self.primary()?;
        loop {
            let height = self.height;
            let safe = self.is(".?") || self.is("?.");
            if safe || self.is(".") {
                self.next();
                let pos = self.pos();
                let Token::Name(name) = self.next() else {
                    return self.error_at(pos, "expected a name after '.'");
                };
                let object = Box::new(value);
                value = if self.is("(") {
                    Expr::Method {
                        object,
                        name,
                        args: self.arguments()?,
                        safe,
                    }
                } else {
                    Expr::Member { object, name, safe }
                };
            } else if self.is("[") {
                self.next();
                let index = self.expression()?;
                self.expect("]")?;
                value = Expr::Index {
                    object: Box::new(value),
                    index: Box::new(index),
                };
            } else if (self.is("++") || self.is("--")) && !self.tokens[self.at].first {
                if !matches!(value, Expr::Name(_) | Expr::Member { .. } | Expr::Index { .. }) {
                    return self.error("this cannot be changed");
                }
                let op = if self.is("++") { "++" } else { "--" };
                self.next();
                value = Expr::Update {
                    op,
                    prefix: false,
                    target: Box::new(value),
                };
            } else {
                return Ok(value);
            }
            self.higher(height)?;
        }
    }

    /// After a part was parsed: the tree is one higher than it and than the part before it.
    fn higher(&mut self, other: usize) -> Result<(), SyntaxError> {
        self.height = self.height.max(other) + 1;
        if self.height > MAX_HEIGHT {
            self.error("the expression is too long")
        } else {
            Ok(())
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, SyntaxError> {
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

    fn primary(&mut self) -> Result<Expr, SyntaxError> {
        let pos = self.pos();
        self.height = 1;
        match self.token().clone() {
            Token::Int(digits) => {
                self.next();
                Ok(Expr::Int(digits))
            }
            Token::Double(value) => {
                self.next();
                Ok(Expr::Double(value))
            }
            Token::Text(text) => {
                self.next();
                Ok(Expr::Text(text))
            }
            Token::Op("(") => self.parenthesis(),
            Token::Op("[") => self.collection("]"),
            Token::Op("{") => self.collection("}"),
            Token::Name(name) => {
                self.next();
                match name.as_str() {
                    "true" => Ok(Expr::Bool(true)),
                    "false" => Ok(Expr::Bool(false)),
                    "null" | "nil" => Ok(Expr::Null),
                    "empty" if !self.is("(") => Ok(Expr::Empty),
                    "new" => self.new_expression(),
                    _ if self.is("(") => Ok(Expr::Call {
                        name,
                        args: self.arguments()?,
                    }),
                    _ if names::is_reserved(&name) => self.error_at(pos, format!("unexpected {name:?}")),
                    _ => Ok(Expr::Name(name)),
                }
            }
            _ => {
                let found = self.found();
                self.error_at(pos, format!("expected a value but found {found}"))
            }
        }
    }

    fn parenthesis(&mut self) -> Result<Expr, SyntaxError> {
        if let (Token::Name(class), Token::Op(")")) = (self.ahead(1).clone(), self.ahead(2)) {
            let operand = match self.ahead(3) {
                Token::Name(name) => {
                    !names::is_reserved(name) || matches!(name.as_str(), "true" | "false" | "new")
                }
                Token::Int(_) | Token::Double(_) | Token::Text(_) => true,
                Token::Op(op) => matches!(*op, "(" | "-" | "~"),
                Token::End => false,
            };
            if operand && names::is_type(&class) {
                self.next();
                self.next();
                self.next();
                let value = Box::new(self.unary()?);
                return Ok(Expr::Cast { class, value });
            }
        }
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        Ok(value)
    }

    /// A list or a map, in brackets or braces.
    fn collection(&mut self, close: &'static str) -> Result<Expr, SyntaxError> {
        let open = self.pos();
        self.next();
        if self.eat(close) {
            return Ok(if close == "}" {
                Expr::Map(Vec::new())
            } else {
                Expr::List(Vec::new())
            });
        }
        if self.is(":") && *self.ahead(1) == Token::Op(close) {
            self.next();
            self.next();
            return Ok(Expr::Map(Vec::new()));
        }
        let mut items = Vec::new();
        let mut entries = Vec::new();
        let mut height = 0;
        while !self.is(close) {
            let line = self.pos().line;
            let keyed = matches!(self.token(), Token::Name(_) | Token::Text(_) | Token::Int(_))
                && *self.ahead(1) == Token::Op(":");
            if keyed {
                let key = match self.next() {
                    Token::Name(name) | Token::Text(name) => Expr::Text(name),
                    Token::Int(digits) => Expr::Text(digits),
                    _ => return self.error("expected a key"),
                };
                self.next();
                entries.push(Entry {
                    line,
                    key,
                    value: self.expression()?,
                });
            } else {
                let value = self.expression()?;
                if self.eat(":") {
                    height = height.max(self.height);
                    entries.push(Entry {
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
        self.higher(0)?;
        match (items.is_empty(), entries.is_empty()) {
            (_, true) => Ok(Expr::List(items)),
            (true, false) => Ok(Expr::Map(entries)),
            (false, false) => self.error_at(open, "a map has a key before each value"),
        }
    }

    fn new_expression(&mut self) -> Result<Expr, SyntaxError> {
        let class = self.class_name()?;
        if self.is("(") {
            return Ok(Expr::New {
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
                Expr::List(items) => Ok(Expr::ArrayOf {
                    element: class,
                    items,
                }),
                Expr::Map(entries) if entries.is_empty() => Ok(Expr::ArrayOf {
                    element: class,
                    items: Vec::new(),
                }),
                _ => self.error("an array has no keys"),
            };
        }
        if lengths.is_empty() || lengths.len() > 3 || dimensions > 3 {
            return self.error("an array needs one to three lengths");
        }
        Ok(Expr::NewArray {
            element: class,
            lengths,
        })
    }
}
