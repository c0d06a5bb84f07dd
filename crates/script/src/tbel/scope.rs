//! Which variables a function has.
//!
//! A name that is assigned without being declared belongs to the nearest function around that knows it, otherwise
//! to the function that assigns it.

use std::collections::BTreeSet;

use super::ast::{StatementKind, TbelExpr, TbelStmt};

/// Names that a body declares, assigns and defines as functions; bodies of functions within it not included.
#[derive(Debug, Default)]
pub(super) struct ScopeNames {
    pub(super) declared: BTreeSet<String>,
    pub(super) assigned: BTreeSet<String>,
    pub(super) functions: BTreeSet<String>,
}

impl ScopeNames {
    pub(super) fn of(body: &[TbelStmt]) -> Self {
        let mut found = Self::default();
        found.all(body);
        found
    }

    fn all(&mut self, body: &[TbelStmt]) {
        for stmt in body {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &TbelStmt) {
        match &stmt.kind {
            StatementKind::Expr(value) => self.expr(value),
            StatementKind::Var(all) => {
                for declared in all {
                    self.declared.insert(declared.name.clone());
                    declared.value.iter().for_each(|value| self.expr(value));
                }
            }
            StatementKind::If { condition, yes, no } => {
                self.expr(condition);
                self.all(yes);
                no.iter().for_each(|no| self.all(no));
            }
            StatementKind::While { condition, body, .. } | StatementKind::Do { body, condition, .. } => {
                self.expr(condition);
                self.all(body);
            }
            StatementKind::For {
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
            StatementKind::ForEach { name, items, body } => {
                self.declared.insert(name.clone());
                self.expr(items);
                self.all(body);
            }
            StatementKind::Switch { value, cases } => {
                self.expr(value);
                for case in cases {
                    case.value.iter().for_each(|value| self.expr(value));
                    self.all(&case.body);
                }
            }
            StatementKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StatementKind::Break | StatementKind::Continue => {}
            StatementKind::Function(function) => {
                self.functions.insert(function.name.clone());
            }
        }
    }

    fn target(&mut self, target: &TbelExpr) {
        if let TbelExpr::Name(name) = target {
            self.assigned.insert(name.clone());
        } else {
            self.expr(target);
        }
    }

    fn expr(&mut self, expr: &TbelExpr) {
        match expr {
            TbelExpr::Int(_)
            | TbelExpr::Double(_)
            | TbelExpr::Text(_)
            | TbelExpr::Bool(_)
            | TbelExpr::Null
            | TbelExpr::Empty
            | TbelExpr::Name(_) => {}
            TbelExpr::Member { object: value, .. }
            | TbelExpr::Unary { operand: value, .. }
            | TbelExpr::Is { value, .. }
            | TbelExpr::IsDef(value)
            | TbelExpr::Cast { value, .. } => self.expr(value),
            TbelExpr::Index {
                object: left,
                index: right,
            }
            | TbelExpr::Binary { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            TbelExpr::Call { args: all, .. }
            | TbelExpr::New { args: all, .. }
            | TbelExpr::NewArray { lengths: all, .. }
            | TbelExpr::ArrayOf { items: all, .. }
            | TbelExpr::List(all) => all.iter().for_each(|value| self.expr(value)),
            TbelExpr::Method { object, args, .. } => {
                self.expr(object);
                args.iter().for_each(|value| self.expr(value));
            }
            TbelExpr::Map(entries) => {
                for entry in entries {
                    self.expr(&entry.key);
                    self.expr(&entry.value);
                }
            }
            TbelExpr::Update { target, .. } => self.target(target),
            TbelExpr::Ternary { condition, yes, no } => {
                self.expr(condition);
                self.expr(yes);
                self.expr(no);
            }
            TbelExpr::Assign { target, value, .. } => {
                self.target(target);
                self.expr(value);
            }
        }
    }
}
