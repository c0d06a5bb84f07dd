//! JavaScript of TBEL expressions.

use std::fmt::Write as _;

use super::{JsEmitter, LINE_END, LINE_START};
use crate::tbel::ast::{TbelExpr, TbelMapEntry};
use crate::tbel::names;

/// Wholes from here on are longs whatever their tag says.
const INT_LIMIT: f64 = 2_147_483_648.0;
/// Wholes beyond this are no exact numbers of JavaScript.
const EXACT_LIMIT: i128 = 1 << 53;

/// What is known of a value before it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StaticType {
    Any,
    Bool,
    /// A whole number of 32 bits.
    Int,
    Number,
    Text,
}

impl StaticType {
    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Number)
    }
}

#[derive(Debug, Clone)]
pub(super) struct JsExpression {
    pub(super) text: String,
    ty: StaticType,
    /// May be written twice: reading it costs little and does nothing.
    simple: bool,
    literal: bool,
}

impl JsExpression {
    fn new(text: impl Into<String>, ty: StaticType) -> Self {
        Self {
            text: text.into(),
            ty,
            simple: false,
            literal: false,
        }
    }

    fn literal(text: impl Into<String>, ty: StaticType) -> Self {
        Self {
            text: text.into(),
            ty,
            simple: true,
            literal: true,
        }
    }

    fn simple(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ty: StaticType::Any,
            simple: true,
            literal: false,
        }
    }
}

/// Longest code that is written twice instead of calling a function.
const MAX_SIMPLE: usize = 60;

/// A text as a JavaScript literal; control characters are escaped, which keeps the marks of lines apart.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

impl JsEmitter {
    pub(super) fn expr(&mut self, expr: &TbelExpr) -> JsExpression {
        match expr {
            TbelExpr::Int(digits) => int(digits),
            TbelExpr::Double(value) => double(*value),
            TbelExpr::Text(text) => JsExpression::literal(quoted(text), StaticType::Text),
            TbelExpr::Bool(value) => JsExpression::literal(value.to_string(), StaticType::Bool),
            TbelExpr::Null | TbelExpr::Empty => JsExpression::literal("(void 0)", StaticType::Any),
            TbelExpr::Name(name) => self.name(name),
            TbelExpr::Member { .. } | TbelExpr::Index { .. } | TbelExpr::Method { .. } => self.chain(expr).0,
            TbelExpr::Call { name, args } => self.call(name, args),
            TbelExpr::New { class, args } => self.new_object(class, args),
            TbelExpr::NewArray { element, lengths } => {
                let lengths = self.list(lengths);
                JsExpression::new(
                    format!("$array({},[{lengths}])", quoted(element)),
                    StaticType::Any,
                )
            }
            TbelExpr::ArrayOf { element, items } => {
                let items = self.list(items);
                JsExpression::new(
                    format!("$arrayOf({},[{items}])", quoted(element)),
                    StaticType::Any,
                )
            }
            TbelExpr::List(items) => {
                let items = self.list(items);
                JsExpression::new(format!("[{items}]"), StaticType::Any)
            }
            TbelExpr::Map(entries) => self.map(entries),
            TbelExpr::Unary { op, operand } => self.unary(op, operand),
            TbelExpr::Update { op, prefix, target } => {
                let target = self.target(target);
                let text = if *prefix {
                    format!("({op}{target})")
                } else {
                    format!("({target}{op})")
                };
                JsExpression::new(text, StaticType::Number)
            }
            TbelExpr::Binary { op, left, right } => self.binary_of(op, left, right),
            TbelExpr::Is { value, class } => {
                let value = self.expr(value).text;
                JsExpression::new(format!("$is({value},{})", quoted(class)), StaticType::Bool)
            }
            TbelExpr::IsDef(value) => match value.as_ref() {
                TbelExpr::Name(name) => JsExpression::literal(
                    (self.knows(name) || names::is_global(name)).to_string(),
                    StaticType::Bool,
                ),
                other => {
                    let value = self.expr(other).text;
                    JsExpression::new(format!("({value}!=null)"), StaticType::Bool)
                }
            },
            TbelExpr::Ternary { condition, yes, no } => {
                let condition = self.expr(condition).text;
                let (yes, no) = (self.expr(yes), self.expr(no));
                let ty = if yes.ty == no.ty { yes.ty } else { StaticType::Any };
                JsExpression::new(format!("({condition}?{}:{})", yes.text, no.text), ty)
            }
            TbelExpr::Assign { op, target, value } => self.assign(op, target, value),
            TbelExpr::Cast { class, value } => self.cast(class, value),
        }
    }

    fn list(&mut self, items: &[TbelExpr]) -> String {
        let items: Vec<String> = items.iter().map(|item| self.expr(item).text).collect();
        items.join(",")
    }

    fn map(&mut self, entries: &[TbelMapEntry]) -> JsExpression {
        let mut text = String::from("({");
        for TbelMapEntry { line, key, value } in entries {
            let value = self.expr(value).text;
            let _ = write!(text, "{LINE_START}{line}{LINE_END}");
            let _ = match key {
                // Without the brackets it would name the prototype.
                TbelExpr::Text(key) if key != "__proto__" => write!(text, "{}:{value},", quoted(key)),
                key => {
                    let key = self.expr(key).text;
                    write!(text, "[$key({key})]:{value},")
                }
            };
        }
        text.push_str("})");
        JsExpression::new(text, StaticType::Any)
    }

    fn name(&self, name: &str) -> JsExpression {
        if self.knows(name) {
            JsExpression::simple(names::variable(name))
        } else if names::CLASSES.contains(&name) {
            JsExpression::new(format!("$c_{name}"), StaticType::Any)
        } else {
            JsExpression::new(format!("$unknown({})", quoted(name)), StaticType::Any)
        }
    }

    fn call(&mut self, name: &str, args: &[TbelExpr]) -> JsExpression {
        let args = self.list(args);
        if self.knows(name) {
            JsExpression::new(format!("{}({args})", names::variable(name)), StaticType::Any)
        } else if names::HELPERS.contains(&name) {
            JsExpression::new(format!("$h_{name}({args})"), StaticType::Any)
        } else {
            JsExpression::new(format!("$noFunction({})", quoted(name)), StaticType::Any)
        }
    }

    fn new_object(&mut self, class: &str, args: &[TbelExpr]) -> JsExpression {
        let args = self.list(args);
        let maker = match class.strip_prefix("java.util.").unwrap_or(class) {
            "Date" => "new $Date",
            "Random" => "new $Random",
            "HashMap" | "LinkedHashMap" | "Map" => "$newMap",
            "ArrayList" | "List" => "$newList",
            "HashSet" | "LinkedHashSet" => "$newSet",
            "String" => "$newString",
            "Integer" => "$c_Integer.$_valueOf",
            "Long" => "$c_Long.$_valueOf",
            "Double" | "Float" => "$c_Double.$_valueOf",
            "Boolean" => "$c_Boolean.$_valueOf",
            _ => return JsExpression::new(format!("$noClass({})", quoted(class)), StaticType::Any),
        };
        JsExpression::new(format!("{maker}({args})"), StaticType::Any)
    }

    /// A chain of accesses; the flag says that a safe one came before, which covers what follows.
    fn chain(&mut self, expr: &TbelExpr) -> (JsExpression, bool) {
        match expr {
            TbelExpr::Member { object, name, safe } => {
                let (object, active) = self.chain(object);
                let active = active || *safe;
                let dot = if active { "?." } else { "." };
                let text = if is_plain(name) {
                    format!("{}{dot}{name}", object.text)
                } else {
                    format!(
                        "{}{}[{}]",
                        object.text,
                        if active { "?." } else { "" },
                        quoted(name)
                    )
                };
                let simple = object.simple && !object.literal && text.len() <= MAX_SIMPLE;
                (
                    JsExpression {
                        text,
                        ty: StaticType::Any,
                        simple,
                        literal: false,
                    },
                    active,
                )
            }
            TbelExpr::Index { object, index } => {
                let (object, active) = self.chain(object);
                let index = self.expr(index);
                let text = format!(
                    "{}{}[{}]",
                    object.text,
                    if active { "?." } else { "" },
                    index.text
                );
                let simple = object.simple && !object.literal && index.simple && text.len() <= MAX_SIMPLE;
                (
                    JsExpression {
                        text,
                        ty: StaticType::Any,
                        simple,
                        literal: false,
                    },
                    active,
                )
            }
            TbelExpr::Method {
                object,
                name,
                args,
                safe,
            } => {
                let (object, active) = self.chain(object);
                let active = active || *safe;
                let args = self.list(args);
                let dot = if active { "?." } else { "." };
                let method = if is_plain(name) { name.as_str() } else { "unknown" };
                (
                    JsExpression::new(format!("{}{dot}$_{method}({args})", object.text), StaticType::Any),
                    active,
                )
            }
            other => {
                let mut code = self.expr(other);
                if code.ty.is_number() && code.literal {
                    code.text = format!("({})", code.text);
                }
                (code, false)
            }
        }
    }

    fn unary(&mut self, op: &str, operand: &TbelExpr) -> JsExpression {
        let operand = self.expr(operand).text;
        match op {
            "!" => JsExpression::new(format!("(!{operand})"), StaticType::Bool),
            "-" => JsExpression::new(format!("$minus({operand})"), StaticType::Number),
            "~" => JsExpression::new(format!("$not({operand})"), StaticType::Number),
            _ => JsExpression::new(format!("$number({operand})"), StaticType::Number),
        }
    }

    /// What stands left of `=` or beside `++`; a safe access cannot.
    fn target(&mut self, target: &TbelExpr) -> String {
        match target {
            TbelExpr::Name(name) => names::variable(name),
            other => self.chain(other).0.text.replace("?.[", "[").replace("?.", "."),
        }
    }

    fn assign(&mut self, op: &'static str, target: &TbelExpr, value: &TbelExpr) -> JsExpression {
        if op.is_empty() {
            let target = self.target(target);
            let value = self.expr(value);
            return JsExpression::new(format!("({target}={})", value.text), value.ty);
        }
        let (before, place) = match target {
            TbelExpr::Name(name) => (String::new(), names::variable(name)),
            TbelExpr::Member { object, name, .. } => {
                let (before, object) = self.once(object);
                (
                    before,
                    if is_plain(name) {
                        format!("{object}.{name}")
                    } else {
                        format!("{object}[{}]", quoted(name))
                    },
                )
            }
            TbelExpr::Index { object, index } => {
                let (first, object) = self.once(object);
                let (second, index) = self.once(index);
                (format!("{first}{second}"), format!("{object}[{index}]"))
            }
            _ => (String::new(), "$t0".to_owned()),
        };
        let value = self.expr(value);
        let result = binary(op, JsExpression::simple(place.clone()), value);
        JsExpression::new(format!("({before}{place}={})", result.text), result.ty)
    }

    /// Code that may be written twice, and what has to be done before.
    fn once(&mut self, expr: &TbelExpr) -> (String, String) {
        let code = self.expr(expr);
        if code.simple {
            return (String::new(), code.text);
        }
        let name = self.temporary();
        (format!("{name}={},", code.text), name)
    }

    fn binary_of(&mut self, op: &'static str, left: &TbelExpr, right: &TbelExpr) -> JsExpression {
        if matches!(op, "==" | "!=") && (matches!(left, TbelExpr::Empty) || matches!(right, TbelExpr::Empty))
        {
            let value = if matches!(left, TbelExpr::Empty) {
                right
            } else {
                left
            };
            let value = self.expr(value).text;
            let not = if op == "!=" { "!" } else { "" };
            return JsExpression::new(format!("({not}$isEmpty({value}))"), StaticType::Bool);
        }
        if matches!(op, "==" | "!=") && (matches!(left, TbelExpr::Null) || matches!(right, TbelExpr::Null)) {
            let value = if matches!(left, TbelExpr::Null) {
                right
            } else {
                left
            };
            let value = self.expr(value).text;
            return JsExpression::new(format!("({value}{op}null)"), StaticType::Bool);
        }
        let left = self.expr(left);
        let right = self.expr(right);
        binary(op, left, right)
    }

    pub(super) fn cast(&mut self, class: &str, value: &TbelExpr) -> JsExpression {
        let value = self.expr(value);
        let (function, ty) = match class {
            "int" | "Integer" if value.ty == StaticType::Int => return value,
            "String" if value.ty == StaticType::Text => return value,
            "boolean" | "Boolean" if value.ty == StaticType::Bool => return value,
            "int" | "Integer" => ("$int", StaticType::Any),
            "long" | "Long" => ("$long", StaticType::Any),
            "double" | "Double" | "float" | "Float" => ("$double", StaticType::Any),
            "byte" | "Byte" => ("$byte", StaticType::Any),
            "short" | "Short" => ("$short", StaticType::Any),
            "char" | "Character" => ("$char", StaticType::Any),
            "boolean" | "Boolean" => ("$boolean", StaticType::Any),
            "String" => ("$string", StaticType::Any),
            _ => return value,
        };
        JsExpression::new(format!("{function}({})", value.text), ty)
    }
}

fn int(digits: &str) -> JsExpression {
    let value: i128 = digits.parse().unwrap_or_default();
    let text = if value < 0 {
        format!("({value})")
    } else {
        value.to_string()
    };
    if i32::try_from(value).is_ok() {
        JsExpression::literal(text, StaticType::Int)
    } else if value.abs() <= EXACT_LIMIT {
        JsExpression::literal(text, StaticType::Number)
    } else {
        JsExpression::new(format!("$literal(\"{value}\")"), StaticType::Number)
    }
}

fn double(value: f64) -> JsExpression {
    if !value.is_finite() {
        return JsExpression::literal("(1/0)", StaticType::Number);
    }
    let mut buffer = ryu_js::Buffer::new();
    let digits = buffer.format_finite(value);
    let text = if value < 0.0 {
        format!("({digits})")
    } else {
        digits.to_owned()
    };
    if value.fract() == 0.0 && value.abs() < INT_LIMIT {
        JsExpression::literal(format!("({text}*$1)"), StaticType::Number)
    } else {
        JsExpression::literal(text, StaticType::Number)
    }
}

fn binary(op: &'static str, left: JsExpression, right: JsExpression) -> JsExpression {
    let (l, r) = (&left.text, &right.text);
    match op {
        "+" => plus(&left, &right),
        "-" | "*" | "%" => JsExpression::new(format!("({l}{op}{r})"), StaticType::Number),
        "/" => JsExpression::new(format!("({l}/{r}*$1)"), StaticType::Number),
        "<" | ">" | "<=" | ">=" => JsExpression::new(format!("({l}{op}{r})"), StaticType::Bool),
        "==" | "!=" => equals(op, &left, &right),
        "&&" | "||" => {
            let ty = if left.ty == right.ty {
                left.ty
            } else {
                StaticType::Any
            };
            JsExpression::new(format!("({l}{op}{r})"), ty)
        }
        "or" => JsExpression::new(format!("$or({l},()=>({r}))"), StaticType::Any),
        "&" | "|" | "^" | "<<" | ">>" | ">>>" => bits(op, &left, &right),
        "**" => JsExpression::new(format!("$power({l},{r})"), StaticType::Number),
        "#" => JsExpression::new(
            format!("({}+{})", text_of(&left), text_of(&right)),
            StaticType::Text,
        ),
        "~=" => JsExpression::new(format!("$match({l},{r})"), StaticType::Bool),
        "contains" => JsExpression::new(format!("$contains({l},{r})"), StaticType::Bool),
        "soundslike" => JsExpression::new(format!("$soundsLike({l},{r})"), StaticType::Bool),
        _ => JsExpression::new(format!("$similarity({l},{r})"), StaticType::Number),
    }
}

fn text_of(code: &JsExpression) -> String {
    if code.ty == StaticType::Text {
        code.text.clone()
    } else {
        format!("$text({})", code.text)
    }
}

fn plus(left: &JsExpression, right: &JsExpression) -> JsExpression {
    let (l, r) = (&left.text, &right.text);
    if left.ty.is_number() && right.ty.is_number() {
        return JsExpression::new(format!("({l}+{r})"), StaticType::Number);
    }
    if left.ty == StaticType::Text || right.ty == StaticType::Text {
        return JsExpression::new(
            format!("({}+{})", text_of(left), text_of(right)),
            StaticType::Text,
        );
    }
    if !(left.simple && right.simple) {
        return JsExpression::new(format!("$add({l},{r})"), StaticType::Any);
    }
    let checks: Vec<String> = [left, right]
        .iter()
        .filter(|code| !code.ty.is_number())
        .map(|code| format!("typeof {}===\"number\"", code.text))
        .collect();
    JsExpression::new(
        format!("({}?{l}+{r}:$add({l},{r}))", checks.join("&&")),
        StaticType::Any,
    )
}

fn equals(op: &str, left: &JsExpression, right: &JsExpression) -> JsExpression {
    let (l, r) = (&left.text, &right.text);
    // Zero and blank texts are left out: JavaScript takes the one for the other.
    let blank = |code: &JsExpression| {
        matches!(code.text.as_str(), "0" | "(0*$1)") || code.text.trim_matches(['"', ' ']).is_empty()
    };
    let direct = |code: &JsExpression| code.literal && !blank(code);
    let bool = left.ty == StaticType::Bool || right.ty == StaticType::Bool;
    if (left.ty.is_number() && right.ty.is_number()) || (!bool && (direct(left) || direct(right))) {
        return JsExpression::new(format!("({l}{op}{r})"), StaticType::Bool);
    }
    let not = if op == "!=" { "!" } else { "" };
    if left.simple && right.simple {
        return JsExpression::new(format!("({not}({l}==={r}||$eq({l},{r})))"), StaticType::Bool);
    }
    JsExpression::new(format!("({not}$eq({l},{r}))"), StaticType::Bool)
}

fn bits(op: &'static str, left: &JsExpression, right: &JsExpression) -> JsExpression {
    let (l, r) = (&left.text, &right.text);
    let function = match op {
        "&" => "$and",
        "|" => "$or2",
        "^" => "$xor",
        "<<" => "$shl",
        ">>" => "$shr",
        _ => "$ushr",
    };
    let native = if op == ">>>" {
        format!("({l}>>>{r}|0)")
    } else {
        format!("({l}{op}{r})")
    };
    if left.ty == StaticType::Int && right.ty == StaticType::Int {
        return JsExpression::new(native, StaticType::Int);
    }
    // A mask that is an int and not negative makes even a long an int.
    let masked = op == "&" && (right.literal && right.ty == StaticType::Int && !r.starts_with('('));
    let ty = if masked {
        StaticType::Int
    } else {
        StaticType::Number
    };
    if !(left.simple && right.simple) {
        return JsExpression::new(format!("{function}({l},{r})"), ty);
    }
    let checks: Vec<String> = [left, right]
        .iter()
        .filter(|code| code.ty != StaticType::Int)
        .map(|code| format!("({0}|0)==={0}", code.text))
        .collect();
    JsExpression::new(
        format!("({}?{native}:{function}({l},{r}))", checks.join("&&")),
        ty,
    )
}
