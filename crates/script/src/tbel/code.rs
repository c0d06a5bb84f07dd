//! JavaScript of TBEL expressions.

use std::fmt::Write as _;

use super::{Emitter, LINE_END, LINE_START};
use crate::tbel::ast::{Entry, Expr};
use crate::tbel::names;

/// Wholes from here on are longs whatever their tag says.
const INT_LIMIT: f64 = 2_147_483_648.0;
/// Wholes beyond this are no exact numbers of JavaScript.
const EXACT_LIMIT: i128 = 1 << 53;

/// What is known of a value before it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ty {
    Any,
    Bool,
    /// A whole number of 32 bits.
    Int,
    Number,
    Text,
}

impl Ty {
    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Number)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) text: String,
    ty: Ty,
    /// May be written twice: reading it costs little and does nothing.
    simple: bool,
    literal: bool,
}

impl Code {
    fn new(text: impl Into<String>, ty: Ty) -> Self {
        Self {
            text: text.into(),
            ty,
            simple: false,
            literal: false,
        }
    }

    fn literal(text: impl Into<String>, ty: Ty) -> Self {
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
            ty: Ty::Any,
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

impl Emitter {
    pub(super) fn expr(&mut self, expr: &Expr) -> Code {
        match expr {
            Expr::Int(digits) => int(digits),
            Expr::Double(value) => double(*value),
            Expr::Text(text) => Code::literal(quoted(text), Ty::Text),
            Expr::Bool(value) => Code::literal(value.to_string(), Ty::Bool),
            Expr::Null | Expr::Empty => Code::literal("(void 0)", Ty::Any),
            Expr::Name(name) => self.name(name),
            Expr::Member { .. } | Expr::Index { .. } | Expr::Method { .. } => self.chain(expr).0,
            Expr::Call { name, args } => self.call(name, args),
            Expr::New { class, args } => self.new_object(class, args),
            Expr::NewArray { element, lengths } => {
                let lengths = self.list(lengths);
                Code::new(format!("$array({},[{lengths}])", quoted(element)), Ty::Any)
            }
            Expr::ArrayOf { element, items } => {
                let items = self.list(items);
                Code::new(format!("$arrayOf({},[{items}])", quoted(element)), Ty::Any)
            }
            Expr::List(items) => {
                let items = self.list(items);
                Code::new(format!("[{items}]"), Ty::Any)
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Unary { op, operand } => self.unary(op, operand),
            Expr::Update { op, prefix, target } => {
                let target = self.target(target);
                let text = if *prefix {
                    format!("({op}{target})")
                } else {
                    format!("({target}{op})")
                };
                Code::new(text, Ty::Number)
            }
            Expr::Binary { op, left, right } => self.binary_of(op, left, right),
            Expr::Is { value, class } => {
                let value = self.expr(value).text;
                Code::new(format!("$is({value},{})", quoted(class)), Ty::Bool)
            }
            Expr::IsDef(value) => match value.as_ref() {
                Expr::Name(name) => {
                    Code::literal((self.knows(name) || names::is_global(name)).to_string(), Ty::Bool)
                }
                other => {
                    let value = self.expr(other).text;
                    Code::new(format!("({value}!=null)"), Ty::Bool)
                }
            },
            Expr::Ternary { condition, yes, no } => {
                let condition = self.expr(condition).text;
                let (yes, no) = (self.expr(yes), self.expr(no));
                let ty = if yes.ty == no.ty { yes.ty } else { Ty::Any };
                Code::new(format!("({condition}?{}:{})", yes.text, no.text), ty)
            }
            Expr::Assign { op, target, value } => self.assign(op, target, value),
            Expr::Cast { class, value } => self.cast(class, value),
        }
    }

    fn list(&mut self, items: &[Expr]) -> String {
        let items: Vec<String> = items.iter().map(|item| self.expr(item).text).collect();
        items.join(",")
    }

    fn map(&mut self, entries: &[Entry]) -> Code {
        let mut text = String::from("({");
        for Entry { line, key, value } in entries {
            let value = self.expr(value).text;
            let _ = write!(text, "{LINE_START}{line}{LINE_END}");
            let _ = match key {
                // Without the brackets it would name the prototype.
                Expr::Text(key) if key != "__proto__" => write!(text, "{}:{value},", quoted(key)),
                key => {
                    let key = self.expr(key).text;
                    write!(text, "[$key({key})]:{value},")
                }
            };
        }
        text.push_str("})");
        Code::new(text, Ty::Any)
    }

    fn name(&self, name: &str) -> Code {
        if self.knows(name) {
            Code::simple(names::variable(name))
        } else if names::CLASSES.contains(&name) {
            Code::new(format!("$c_{name}"), Ty::Any)
        } else {
            Code::new(format!("$unknown({})", quoted(name)), Ty::Any)
        }
    }

    fn call(&mut self, name: &str, args: &[Expr]) -> Code {
        let args = self.list(args);
        if self.knows(name) {
            Code::new(format!("{}({args})", names::variable(name)), Ty::Any)
        } else if names::HELPERS.contains(&name) {
            Code::new(format!("$h_{name}({args})"), Ty::Any)
        } else {
            Code::new(format!("$noFunction({})", quoted(name)), Ty::Any)
        }
    }

    fn new_object(&mut self, class: &str, args: &[Expr]) -> Code {
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
            _ => return Code::new(format!("$noClass({})", quoted(class)), Ty::Any),
        };
        Code::new(format!("{maker}({args})"), Ty::Any)
    }

    /// A chain of accesses; the flag says that a safe one came before, which covers what follows.
    fn chain(&mut self, expr: &Expr) -> (Code, bool) {
        match expr {
            Expr::Member { object, name, safe } => {
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
                    Code {
                        text,
                        ty: Ty::Any,
                        simple,
                        literal: false,
                    },
                    active,
                )
            }
            Expr::Index { object, index } => {
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
                    Code {
                        text,
                        ty: Ty::Any,
                        simple,
                        literal: false,
                    },
                    active,
                )
            }
            Expr::Method {
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
                    Code::new(format!("{}{dot}$_{method}({args})", object.text), Ty::Any),
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

    fn unary(&mut self, op: &str, operand: &Expr) -> Code {
        let operand = self.expr(operand).text;
        match op {
            "!" => Code::new(format!("(!{operand})"), Ty::Bool),
            "-" => Code::new(format!("$minus({operand})"), Ty::Number),
            "~" => Code::new(format!("$not({operand})"), Ty::Number),
            _ => Code::new(format!("$number({operand})"), Ty::Number),
        }
    }

    /// What stands left of `=` or beside `++`; a safe access cannot.
    fn target(&mut self, target: &Expr) -> String {
        match target {
            Expr::Name(name) => names::variable(name),
            other => self.chain(other).0.text.replace("?.[", "[").replace("?.", "."),
        }
    }

    fn assign(&mut self, op: &'static str, target: &Expr, value: &Expr) -> Code {
        if op.is_empty() {
            let target = self.target(target);
            let value = self.expr(value);
            return Code::new(format!("({target}={})", value.text), value.ty);
        }
        let (before, place) = match target {
            Expr::Name(name) => (String::new(), names::variable(name)),
            Expr::Member { object, name, .. } => {
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
            Expr::Index { object, index } => {
                let (first, object) = self.once(object);
                let (second, index) = self.once(index);
                (format!("{first}{second}"), format!("{object}[{index}]"))
            }
            _ => (String::new(), "$t0".to_owned()),
        };
        let value = self.expr(value);
        let result = binary(op, Code::simple(place.clone()), value);
        Code::new(format!("({before}{place}={})", result.text), result.ty)
    }

    /// Code that may be written twice, and what has to be done before.
    fn once(&mut self, expr: &Expr) -> (String, String) {
        let code = self.expr(expr);
        if code.simple {
            return (String::new(), code.text);
        }
        let name = self.temporary();
        (format!("{name}={},", code.text), name)
    }

    fn binary_of(&mut self, op: &'static str, left: &Expr, right: &Expr) -> Code {
        if matches!(op, "==" | "!=") && (matches!(left, Expr::Empty) || matches!(right, Expr::Empty)) {
            let value = if matches!(left, Expr::Empty) { right } else { left };
            let value = self.expr(value).text;
            let not = if op == "!=" { "!" } else { "" };
            return Code::new(format!("({not}$isEmpty({value}))"), Ty::Bool);
        }
        if matches!(op, "==" | "!=") && (matches!(left, Expr::Null) || matches!(right, Expr::Null)) {
            let value = if matches!(left, Expr::Null) { right } else { left };
            let value = self.expr(value).text;
            return Code::new(format!("({value}{op}null)"), Ty::Bool);
        }
        let left = self.expr(left);
        let right = self.expr(right);
        binary(op, left, right)
    }

    pub(super) fn cast(&mut self, class: &str, value: &Expr) -> Code {
        let value = self.expr(value);
        let (function, ty) = match class {
            "int" | "Integer" if value.ty == Ty::Int => return value,
            "String" if value.ty == Ty::Text => return value,
            "boolean" | "Boolean" if value.ty == Ty::Bool => return value,
            "int" | "Integer" => ("$int", Ty::Any),
            "long" | "Long" => ("$long", Ty::Any),
            "double" | "Double" | "float" | "Float" => ("$double", Ty::Any),
            "byte" | "Byte" => ("$byte", Ty::Any),
            "short" | "Short" => ("$short", Ty::Any),
            "char" | "Character" => ("$char", Ty::Any),
            "boolean" | "Boolean" => ("$boolean", Ty::Any),
            "String" => ("$string", Ty::Any),
            _ => return value,
        };
        Code::new(format!("{function}({})", value.text), ty)
    }
}

fn int(digits: &str) -> Code {
    let value: i128 = digits.parse().unwrap_or_default();
    let text = if value < 0 {
        format!("({value})")
    } else {
        value.to_string()
    };
    if i32::try_from(value).is_ok() {
        Code::literal(text, Ty::Int)
    } else if value.abs() <= EXACT_LIMIT {
        Code::literal(text, Ty::Number)
    } else {
        Code::new(format!("$literal(\"{value}\")"), Ty::Number)
    }
}

fn double(value: f64) -> Code {
    if !value.is_finite() {
        return Code::literal("(1/0)", Ty::Number);
    }
    let mut buffer = ryu_js::Buffer::new();
    let digits = buffer.format_finite(value);
    let text = if value < 0.0 {
        format!("({digits})")
    } else {
        digits.to_owned()
    };
    if value.fract() == 0.0 && value.abs() < INT_LIMIT {
        Code::literal(format!("({text}*$1)"), Ty::Number)
    } else {
        Code::literal(text, Ty::Number)
    }
}

fn binary(op: &'static str, left: Code, right: Code) -> Code {
    let (l, r) = (&left.text, &right.text);
    match op {
        "+" => plus(&left, &right),
        "-" | "*" | "%" => Code::new(format!("({l}{op}{r})"), Ty::Number),
        "/" => Code::new(format!("({l}/{r}*$1)"), Ty::Number),
        "<" | ">" | "<=" | ">=" => Code::new(format!("({l}{op}{r})"), Ty::Bool),
        "==" | "!=" => equals(op, &left, &right),
        "&&" | "||" => {
            let ty = if left.ty == right.ty { left.ty } else { Ty::Any };
            Code::new(format!("({l}{op}{r})"), ty)
        }
        "or" => Code::new(format!("$or({l},()=>({r}))"), Ty::Any),
        "&" | "|" | "^" | "<<" | ">>" | ">>>" => bits(op, &left, &right),
        "**" => Code::new(format!("$power({l},{r})"), Ty::Number),
        "#" => Code::new(format!("({}+{})", text_of(&left), text_of(&right)), Ty::Text),
        "~=" => Code::new(format!("$match({l},{r})"), Ty::Bool),
        "contains" => Code::new(format!("$contains({l},{r})"), Ty::Bool),
        "soundslike" => Code::new(format!("$soundsLike({l},{r})"), Ty::Bool),
        _ => Code::new(format!("$similarity({l},{r})"), Ty::Number),
    }
}

fn text_of(code: &Code) -> String {
    if code.ty == Ty::Text {
        code.text.clone()
    } else {
        format!("$text({})", code.text)
    }
}

fn plus(left: &Code, right: &Code) -> Code {
    let (l, r) = (&left.text, &right.text);
    if left.ty.is_number() && right.ty.is_number() {
        return Code::new(format!("({l}+{r})"), Ty::Number);
    }
    if left.ty == Ty::Text || right.ty == Ty::Text {
        return Code::new(format!("({}+{})", text_of(left), text_of(right)), Ty::Text);
    }
    if !(left.simple && right.simple) {
        return Code::new(format!("$add({l},{r})"), Ty::Any);
    }
    let checks: Vec<String> = [left, right]
        .iter()
        .filter(|code| !code.ty.is_number())
        .map(|code| format!("typeof {}===\"number\"", code.text))
        .collect();
    Code::new(format!("({}?{l}+{r}:$add({l},{r}))", checks.join("&&")), Ty::Any)
}

fn equals(op: &str, left: &Code, right: &Code) -> Code {
    let (l, r) = (&left.text, &right.text);
    // Zero and blank texts are left out: JavaScript takes the one for the other.
    let blank = |code: &Code| {
        matches!(code.text.as_str(), "0" | "(0*$1)") || code.text.trim_matches(['"', ' ']).is_empty()
    };
    let direct = |code: &Code| code.literal && !blank(code);
    let bool = left.ty == Ty::Bool || right.ty == Ty::Bool;
    if (left.ty.is_number() && right.ty.is_number()) || (!bool && (direct(left) || direct(right))) {
        return Code::new(format!("({l}{op}{r})"), Ty::Bool);
    }
    let not = if op == "!=" { "!" } else { "" };
    if left.simple && right.simple {
        return Code::new(format!("({not}({l}==={r}||$eq({l},{r})))"), Ty::Bool);
    }
    Code::new(format!("({not}$eq({l},{r}))"), Ty::Bool)
}

fn bits(op: &'static str, left: &Code, right: &Code) -> Code {
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
    if left.ty == Ty::Int && right.ty == Ty::Int {
        return Code::new(native, Ty::Int);
    }
    // A mask that is an int and not negative makes even a long an int.
    let masked = op == "&" && (right.literal && right.ty == Ty::Int && !r.starts_with('('));
    let ty = if masked { Ty::Int } else { Ty::Number };
    if !(left.simple && right.simple) {
        return Code::new(format!("{function}({l},{r})"), ty);
    }
    let checks: Vec<String> = [left, right]
        .iter()
        .filter(|code| code.ty != Ty::Int)
        .map(|code| format!("({0}|0)==={0}", code.text))
        .collect();
    Code::new(
        format!("({}?{native}:{function}({l},{r}))", checks.join("&&")),
        ty,
    )
}
