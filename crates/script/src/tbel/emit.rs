//! JavaScript of TBEL statements; expressions are in `code`.
//!
//! QuickJS keeps whether a number is an int32 or a double, and its `+`, `-` and `*` keep a double a double even if
//! its value is whole. The output writes a whole double as `25.0`, as TBEL does. `$1` is the double 1; multiplying
//! by it makes an int a double, where TBEL has a double: whole literals with a point, and quotients.

#[path = "code.rs"]
mod code;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::ast::{FunctionDeclaration, StatementKind, TbelExpr, TbelStmt};
use super::names;
use super::scope::ScopeNames;

/// Around the number of the source line at which what follows has to stand.
const LINE_START: char = '\u{1}';
const LINE_END: char = '\u{2}';

#[derive(Default)]
struct JsEmitter {
    out: String,
    /// Names of the functions around, outermost first.
    scopes: Vec<BTreeSet<String>>,
    /// Temporary variables of the function that is emitted.
    temporaries: u32,
}

/// The expression that makes the function.
pub(super) fn program(params: &[&str], body: &[TbelStmt]) -> String {
    let mut emitter = JsEmitter::default();
    let params: Vec<String> = params.iter().map(|&name| name.to_owned()).collect();
    let (list, variables, code) = emitter.function_parts(&params, body);
    let text = format!("$wrap(($1) => ({{script({list}){{\"use strict\";{variables}\n{code}\n}}}}).script)");
    place_lines(&text)
}

/// Turns the marks of lines into line ends.
fn place_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut line = 0;
    let mut rest = text;
    while let Some(at) = rest.find([LINE_START, '\n']) {
        out.push_str(&rest[..at]);
        if rest[at..].starts_with('\n') {
            out.push('\n');
            line += 1;
            rest = &rest[at + 1..];
            continue;
        }
        let Some(end) = rest[at..].find(LINE_END) else {
            break;
        };
        let wanted: u32 = rest[at + 1..at + end].parse().unwrap_or(0);
        while line < wanted {
            out.push('\n');
            line += 1;
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

impl JsEmitter {
    fn knows(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
    }

    /// Parameters, declarations and statements of a function.
    fn function_parts(&mut self, params: &[String], body: &[TbelStmt]) -> (String, String, String) {
        let found = ScopeNames::of(body);
        let mut locals = found.declared;
        locals.extend(found.assigned.into_iter().filter(|name| !self.knows(name)));
        let mut scope: BTreeSet<String> = locals.clone();
        scope.extend(params.iter().cloned());
        scope.extend(found.functions.iter().cloned());
        self.scopes.push(scope);
        let outer = std::mem::take(&mut self.out);
        let outer_temporaries = std::mem::take(&mut self.temporaries);
        self.body(body, true);
        let code = std::mem::replace(&mut self.out, outer);
        let temporaries = std::mem::replace(&mut self.temporaries, outer_temporaries);
        self.scopes.pop();
        let given: BTreeSet<&String> = params.iter().collect();
        let mut variables: Vec<String> = locals
            .iter()
            .filter(|name| !given.contains(name) && !found.functions.contains(*name))
            .map(|name| names::variable(name))
            .collect();
        variables.extend((1..=temporaries).map(|n| format!("$t{n}")));
        let list: Vec<String> = params.iter().map(|name| names::variable(name)).collect();
        let declared = if variables.is_empty() {
            String::new()
        } else {
            format!("var {};", variables.join(","))
        };
        (list.join(","), declared, code)
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("$t{}", self.temporaries)
    }

    /// Statements; with `tail` the value of the last one is the function's.
    fn body(&mut self, body: &[TbelStmt], tail: bool) {
        let last = body
            .iter()
            .rposition(|stmt| !matches!(stmt.kind, StatementKind::Function(_)));
        for (at, stmt) in body.iter().enumerate() {
            self.stmt(stmt, tail && Some(at) == last);
        }
    }

    fn block(&mut self, body: &[TbelStmt], tail: bool) {
        self.out.push('{');
        self.body(body, tail);
        self.out.push('}');
    }

    fn line(&mut self, line: u32) {
        let _ = write!(self.out, "{LINE_START}{line}{LINE_END}");
    }

    fn stmt(&mut self, stmt: &TbelStmt, tail: bool) {
        self.line(stmt.pos.line);
        match &stmt.kind {
            StatementKind::Expr(value) => {
                let code = self.expr(value).text;
                let _ = write!(self.out, "{}{code};", if tail { "return " } else { "" });
            }
            StatementKind::Var(all) => self.variables(all, tail),
            StatementKind::If { condition, yes, no } => {
                let condition = self.expr(condition).text;
                let _ = write!(self.out, "if({condition})");
                self.block(yes, tail);
                if let Some(no) = no {
                    self.out.push_str("else");
                    self.block(no, tail);
                }
            }
            StatementKind::While {
                condition,
                until,
                body,
            } => {
                let condition = self.expr(condition).text;
                let not = if *until { "!" } else { "" };
                let _ = write!(self.out, "while({not}({condition}))");
                self.block(body, false);
            }
            StatementKind::Do {
                body,
                condition,
                until,
            } => {
                self.out.push_str("do");
                self.block(body, false);
                let condition = self.expr(condition).text;
                let not = if *until { "!" } else { "" };
                let _ = write!(self.out, "while({not}({condition}));");
            }
            StatementKind::For {
                init,
                condition,
                step,
                body,
            } => {
                self.out.push_str("for(");
                self.for_init(init.as_deref());
                let condition = condition
                    .as_ref()
                    .map(|value| self.expr(value).text)
                    .unwrap_or_default();
                let step: Vec<String> = step.iter().map(|value| self.expr(value).text).collect();
                let _ = write!(self.out, ";{condition};{})", step.join(","));
                self.block(body, false);
            }
            StatementKind::ForEach { name, items, body } => {
                let items = self.expr(items).text;
                let _ = write!(self.out, "for({} of $iter({items}))", names::variable(name));
                self.block(body, false);
            }
            StatementKind::Switch { value, cases } => {
                let subject = self.temporary();
                let value = self.expr(value).text;
                let _ = write!(self.out, "{subject}={value};switch(true){{");
                for case in cases {
                    match &case.value {
                        Some(value) => {
                            let value = self.expr(value).text;
                            let _ = write!(self.out, "case $eq({subject},{value}):");
                        }
                        None => self.out.push_str("default:"),
                    }
                    self.body(&case.body, false);
                }
                self.out.push('}');
            }
            StatementKind::Return(value) => {
                let code = value
                    .as_ref()
                    .map(|value| self.expr(value).text)
                    .unwrap_or_default();
                let _ = write!(self.out, "return {code};");
            }
            StatementKind::Break => self.out.push_str("break;"),
            StatementKind::Continue => self.out.push_str("continue;"),
            StatementKind::Function(function) => self.function(function),
        }
    }

    fn variables(&mut self, all: &[super::ast::VariableDeclaration], tail: bool) {
        for (at, declared) in all.iter().enumerate() {
            let value = self.declared_value(declared.class.as_deref(), declared.value.as_ref());
            let before = if tail && at + 1 == all.len() {
                "return "
            } else {
                ""
            };
            let _ = write!(self.out, "{before}{}={value};", names::variable(&declared.name));
        }
    }

    fn for_init(&mut self, init: Option<&TbelStmt>) {
        match init.map(|init| &init.kind) {
            Some(StatementKind::Expr(value)) => {
                let code = self.expr(value).text;
                self.out.push_str(&code);
            }
            Some(StatementKind::Var(all)) => {
                let parts: Vec<String> = all
                    .iter()
                    .map(|declared| {
                        let value = self.declared_value(declared.class.as_deref(), declared.value.as_ref());
                        format!("{}={value}", names::variable(&declared.name))
                    })
                    .collect();
                self.out.push_str(&parts.join(","));
            }
            _ => {}
        }
    }

    fn declared_value(&mut self, class: Option<&str>, value: Option<&TbelExpr>) -> String {
        let Some(value) = value else {
            return "void 0".to_owned();
        };
        match class {
            Some(class) => self.cast(class, value).text,
            None => self.expr(value).text,
        }
    }

    fn function(&mut self, function: &FunctionDeclaration) {
        let (list, variables, code) = self.function_parts(&function.params, &function.body);
        let name = names::variable(&function.name);
        let _ = write!(self.out, "function {name}({list}){{{variables}{code}}}");
    }
}
