//! Which variables a function has.
//!
//! A name that is assigned without being declared belongs to the nearest function around that knows it, otherwise
//! to the function that assigns it.

use std::collections::BTreeSet;

use super::ast::{Expr, Kind, Stmt};

/// Names that a body declares, assigns and defines as functions; bodies of functions within it not included.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) declared: BTreeSet<String>,
    pub(super) assigned: BTreeSet<String>,
    pub(super) functions: BTreeSet<String>,
}

impl Found {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut found = Self::default();
        found.all(body);
        found
    }

    fn all(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            Kind::Expr(value) => self.expr(value),
            Kind::Var(all) => {
                for declared in all {
                    self.declared.insert(declared.name.clone());
                    declared.value.iter().for_each(|value| self.expr(value));
                }
            }
            Kind::If { condition, yes, no } => {
                self.expr(condition);
                self.all(yes);
                no.iter().for_each(|no| self.all(no));
            }
            Kind::While { condition, body, .. } | Kind::Do { body, condition, .. } => {
                self.expr(condition);
                self.all(body);
            }
            Kind::For {
                init,
                condition,
                step,
                body,
            } => {
                init.iter().for_each(|init| self.stmt(init));
                condition.iter().for_each(|condition| self.expr(condition));
                step.iter().for_each(|step| self.expr(step));
                self.all(body);
            }
            Kind::ForEach { name, items, body } => {
                self.declared.insert(name.clone());
                self.expr(items);
                self.all(body);
            }
            Kind::Switch { value, cases } => {
                self.expr(value);
                for case in cases {
                    case.value.iter().for_each(|value| self.expr(value));
                    self.all(&case.body);
                }
            }
            Kind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            Kind::Break | Kind::Continue => {}
            Kind::Function(function) => {
                self.functions.insert(function.name.clone());
            }
        }
    }

    fn target(&mut self, target: &Expr) {
        if let Expr::Name(name) = target {
            self.assigned.insert(name.clone());
        } else {
            self.expr(target);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Int(_)
            | Expr::Double(_)
            | Expr::Text(_)
            | Expr::Bool(_)
            | Expr::Null
            | Expr::Empty
            | Expr::Name(_) => {}
            Expr::Member { object: value, .. }
            | Expr::Unary { operand: value, .. }
            | Expr::Is { value, .. }
            | Expr::IsDef(value)
            | Expr::Cast { value, .. } => self.expr(value),
            Expr::Index {
                object: left,
                index: right,
            }
            | Expr::Binary { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            Expr::Call { args: all, .. }
            | Expr::New { args: all, .. }
            | Expr::NewArray { lengths: all, .. }
            | Expr::ArrayOf { items: all, .. }
            | Expr::List(all) => all.iter().for_each(|value| self.expr(value)),
            Expr::Method { object, args, .. } => {
                self.expr(object);
                args.iter().for_each(|value| self.expr(value));
            }
            Expr::Map(entries) => {
                for entry in entries {
                    self.expr(&entry.key);
                    self.expr(&entry.value);
                }
            }
            Expr::Update { target, .. } => self.target(target),
            Expr::Ternary { condition, yes, no } => {
                self.expr(condition);
                self.expr(yes);
                self.expr(no);
            }
            Expr::Assign { target, value, .. } => {
                self.target(target);
                self.expr(value);
            }
        }
    }
}
