//! Values of scripts as JSON text.

use std::fmt::Write as _;

use rquickjs::{Array, Ctx, Function, Object, Type, Value};

use crate::engine::{CallFailure, RealmFunctions};
use crate::error::ScriptError;
use crate::script::ScriptLang;
use crate::values::ValueDialect;

/// Objects within objects; deeper ones are taken for a cycle.
const MAX_DEPTH: usize = 256;
/// Whole doubles below this are written with a point, as Java does; larger ones are most likely longs.
const LARGEST_INT: f64 = 2_147_483_648.0;

/// The text of a string value.
pub(crate) fn text<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
) -> Result<String, CallFailure> {
    let Some(string) = value.as_string() else {
        return Ok(String::new());
    };
    match string.to_string() {
        Err(rquickjs::Error::Utf8(_)) => Ok(hooks.well_formed(ctx, string)?),
        other => Ok(other?),
    }
}

/// The text of a key.
pub(crate) fn key<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    key: &rquickjs::Atom<'js>,
) -> Result<String, CallFailure> {
    match key.to_string() {
        Err(rquickjs::Error::Utf8(_)) => Ok(hooks.well_formed(ctx, &key.to_js_string()?)?),
        other => Ok(other?),
    }
}

/// A value as people read it: a text as it is, anything else as JSON.
pub(crate) fn display<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
    max: usize,
) -> Result<String, CallFailure> {
    if value.is_string() {
        text(ctx, hooks, value)
    } else {
        stringify(ctx, hooks, value, max)
    }
}

/// A value as JSON text; what JSON cannot say is null.
pub(crate) fn stringify<'js>(
    ctx: &Ctx<'js>,
    hooks: &RealmFunctions,
    value: &Value<'js>,
    max: usize,
) -> Result<String, CallFailure> {
    if hooks.dialect.lang == ScriptLang::JavaScript && hooks.dialect.exact.is_empty() {
        let json = hooks.stringify(ctx, value.clone())?;
        return match json.is_string() {
            true => text(ctx, hooks, &json),
            false => Ok("null".to_owned()),
        };
    }
    let mut writer = ScriptJsonWriter {
        ctx,
        hooks,
        out: String::with_capacity(128),
        max,
        depth: 0,
    };
    writer.value(value)?;
    Ok(writer.out)
}

struct ScriptJsonWriter<'a, 'js> {
    ctx: &'a Ctx<'js>,
    hooks: &'a RealmFunctions,
    out: String,
    max: usize,
    depth: usize,
}

impl<'js> ScriptJsonWriter<'_, 'js> {
    fn value(&mut self, value: &Value<'js>) -> Result<(), CallFailure> {
        match value.type_of() {
            Type::Bool => self.out.push_str(if value.as_bool() == Some(true) {
                "true"
            } else {
                "false"
            }),
            Type::Int => {
                let _ = write!(self.out, "{}", value.as_int().unwrap_or_default());
            }
            Type::Float => self.number(value.as_float().unwrap_or_default()),
            Type::String => {
                let text = text(self.ctx, self.hooks, value)?;
                self.string(&text);
            }
            Type::Array => {
                if let Some(array) = value.as_array() {
                    self.nested(|writer| writer.array(array))?;
                }
            }
            Type::Object | Type::Exception => {
                if let Some(object) = value.as_object() {
                    self.nested(|writer| writer.object(object))?;
                }
            }
            _ => self.out.push_str("null"),
        }
        // A result too long is found while it grows, not after it took the memory.
        if self.out.len() / 4 > self.max {
            return Err(ScriptError::ResultTooLarge { limit: self.max }.into());
        }
        Ok(())
    }

    fn nested(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), CallFailure>,
    ) -> Result<(), CallFailure> {
        if self.depth == MAX_DEPTH {
            return Err(ScriptError::runtime("the result is nested too deeply or contains itself").into());
        }
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn number(&mut self, value: f64) {
        if !value.is_finite() {
            // TBEL's JSON has NaN as text, as Java's mapper writes it; JSON itself has no word for it.
            match self.hooks.dialect.lang {
                ScriptLang::Tbel if value.is_nan() => self.out.push_str("\"NaN\""),
                ScriptLang::Tbel => self.out.push_str(if value > 0.0 {
                    "\"Infinity\""
                } else {
                    "\"-Infinity\""
                }),
                ScriptLang::JavaScript => self.out.push_str("null"),
            }
            return;
        }
        number(&self.hooks.dialect, value, &mut self.out);
    }

    fn string(&mut self, text: &str) {
        quote(text, &mut self.out);
    }

    fn array(&mut self, array: &Array<'js>) -> Result<(), CallFailure> {
        if array.len() > self.max {
            return Err(ScriptError::ResultTooLarge { limit: self.max }.into());
        }
        self.out.push('[');
        for (at, item) in array.iter::<Value<'js>>().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.value(&item?)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, object: &Object<'js>) -> Result<(), CallFailure> {
        let to_json: Value<'js> = object.get("toJSON")?;
        if let Some(function) = to_json.as_function() {
            let plain: Value<'js> = call_method(self.ctx, function, object)?;
            return self.value(&plain);
        }
        self.out.push('{');
        let mut first = true;
        for entry in object.props::<rquickjs::Atom<'js>, Value<'js>>() {
            let (name, value) = entry?;
            if value.is_function() || value.is_undefined() {
                continue;
            }
            if !first {
                self.out.push(',');
            }
            first = false;
            let name = key(self.ctx, self.hooks, &name)?;
            self.string(&name);
            self.out.push(':');
            self.value(&value)?;
        }
        self.out.push('}');
        Ok(())
    }
}

fn call_method<'js>(
    ctx: &Ctx<'js>,
    function: &Function<'js>,
    this: &Object<'js>,
) -> rquickjs::Result<Value<'js>> {
    let mut args = rquickjs::function::Args::new(ctx.clone(), 0);
    args.this(this.clone())?;
    function.call_arg(args)
}

/// Writes a number: a long that came through untouched with all its digits, in TBEL a whole double as one.
fn number(dialect: &ValueDialect, value: f64, out: &mut String) {
    if value.fract() != 0.0 || value.abs() >= 1e21 {
        let mut buffer = ryu_js::Buffer::new();
        out.push_str(buffer.format_finite(value));
        return;
    }
    if let Some(exact) = dialect.exact.restore(value) {
        let _ = write!(out, "{exact}");
    } else if dialect.lang == ScriptLang::Tbel && value.abs() < LARGEST_INT {
        let _ = write!(out, "{value:.1}");
    } else {
        let _ = write!(out, "{value:.0}");
    }
}

/// Writes a text as a JSON string.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            0..=31 => "",
            _ => continue,
        };
        out.push_str(&text[start..at]);
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        start = at + 1;
    }
    out.push_str(&text[start..]);
    out.push('"');
}
