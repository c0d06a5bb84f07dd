//! Arguments of a call.

use rquickjs::{Array, Ctx, Object, Value};

use crate::engine::RealmFunctions;
use crate::values;

/// An argument. Borrows everything; what it holds becomes a value of the script at the call.
#[derive(Clone, Copy)]
pub enum ScriptArg<'a> {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Long(i64),
    /// A number.
    Double(f64),
    /// A text.
    Text(&'a str),
    /// JSON text that is parsed to a value.
    Json(&'a str),
    /// A JSON value.
    Value(&'a serde_json::Value),
    /// Names with texts, as metadata has them.
    Map(&'a [(String, String)]),
    /// An object that a closure fills.
    Object(&'a dyn Fn(&mut ObjectBuilder<'_, '_>)),
    /// A value of a calculated field with its time: `{ts, value}`.
    Single {
        /// Time of the value, milliseconds.
        ts: i64,
        /// The value.
        value: &'a ScriptArg<'a>,
    },
    /// Values of a calculated field within a window of time.
    Rolling {
        /// Start of the window, milliseconds.
        start_ts: i64,
        /// End of the window, milliseconds.
        end_ts: i64,
        /// Time and value of each point, oldest first.
        values: &'a [(i64, f64)],
    },
    /// What a calculated field gives as `ctx`: `{args, latestTs}`.
    Context {
        /// Arguments by name.
        args: &'a [(&'a str, ScriptArg<'a>)],
        /// Time of the newest argument, milliseconds.
        latest_ts: i64,
    },
}

/// Objects that were built cost this much of the argument limit beside their texts; as in ThingsBoard.
const OBJECT_SIZE: usize = 32;

impl ScriptArg<'_> {
    /// Characters that count towards the limit of arguments; a closure's object counts when it is built.
    pub fn size(&self) -> usize {
        match self {
            Self::Null => 4,
            Self::Bool(_) => 5,
            Self::Long(_) | Self::Double(_) => 8,
            Self::Text(text) | Self::Json(text) => chars(text),
            Self::Value(value) => values::json_size(value),
            Self::Map(entries) => {
                entries
                    .iter()
                    .map(|(key, value)| chars(key) + chars(value) + 6)
                    .sum::<usize>()
                    + 2
            }
            Self::Object(_) => 2,
            Self::Single { value, .. } => OBJECT_SIZE + value.size(),
            Self::Rolling { values, .. } => 12 + values.len() * OBJECT_SIZE,
            Self::Context { args, .. } => OBJECT_SIZE + args.iter().map(|(_, arg)| arg.size()).sum::<usize>(),
        }
    }

    pub(crate) fn build<'js>(
        &self,
        ctx: &Ctx<'js>,
        hooks: &RealmFunctions,
    ) -> Result<Value<'js>, ArgBuildError> {
        let ctx_of = || ctx.clone();
        Ok(match self {
            Self::Null => hooks.dialect.null(ctx),
            Self::Bool(value) => Value::new_bool(ctx_of(), *value),
            Self::Long(value) => values::long(ctx, &hooks.dialect, *value),
            Self::Double(value) => values::double(ctx, &hooks.dialect, *value)?,
            Self::Text(text) => rquickjs::String::from_str(ctx_of(), text)?.into_value(),
            Self::Json(text) => values::parse(ctx, &hooks.dialect, text).map_err(ArgBuildError::from)?,
            Self::Value(value) => values::from_json(ctx, &hooks.dialect, value)?,
            Self::Map(entries) => {
                let object = Object::new(ctx_of())?;
                for (key, value) in *entries {
                    object.set(key.as_str(), value.as_str())?;
                }
                object.into_value()
            }
            Self::Object(fill) => {
                let mut builder = ObjectBuilder::new(ctx, hooks)?;
                fill(&mut builder);
                builder.finish()?
            }
            Self::Single { ts, value } => hooks.single(
                ctx,
                values::long(ctx, &hooks.dialect, *ts),
                value.build(ctx, hooks)?,
            )?,
            Self::Rolling {
                start_ts,
                end_ts,
                values,
            } => {
                let times = Array::new(ctx_of())?;
                let numbers = Array::new(ctx_of())?;
                for (at, (ts, value)) in values.iter().enumerate() {
                    times.set(at, values::long(ctx, &hooks.dialect, *ts))?;
                    numbers.set(at, values::double(ctx, &hooks.dialect, *value)?)?;
                }
                let window = (
                    values::long(ctx, &hooks.dialect, *start_ts),
                    values::long(ctx, &hooks.dialect, *end_ts),
                );
                hooks.rolling(ctx, window, times, numbers)?
            }
            Self::Context { args, latest_ts } => {
                let all = Object::new(ctx_of())?;
                for (name, arg) in *args {
                    all.set(*name, arg.build(ctx, hooks)?)?;
                }
                let object = Object::new(ctx_of())?;
                object.set("args", all)?;
                object.set("latestTs", values::long(ctx, &hooks.dialect, *latest_ts))?;
                object.into_value()
            }
        })
    }
}

/// UTF-16 units would be exact; bytes are counted first because they are never fewer.
fn chars(text: &str) -> usize {
    if text.len() < 1024 {
        text.len()
    } else {
        text.chars().count()
    }
}

/// Fills an object argument without a detour by JSON text.
pub struct ObjectBuilder<'js, 'h> {
    object: Object<'js>,
    hooks: &'h RealmFunctions,
    error: Option<ArgBuildError>,
}

/// Why an argument could not be made.
#[derive(Debug)]
pub(crate) enum ArgBuildError {
    /// The engine refused, as when memory is used up.
    Engine(rquickjs::Error),
    /// The JSON text is none.
    Json(String),
}

impl From<rquickjs::Error> for ArgBuildError {
    fn from(error: rquickjs::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<values::ValueParseError> for ArgBuildError {
    fn from(error: values::ValueParseError) -> Self {
        match error {
            values::ValueParseError::Engine(error) => Self::Engine(error),
            values::ValueParseError::Json(message) => Self::Json(message),
        }
    }
}

impl<'js, 'h> ObjectBuilder<'js, 'h> {
    fn new(ctx: &Ctx<'js>, hooks: &'h RealmFunctions) -> Result<Self, ArgBuildError> {
        Ok(Self {
            object: Object::new(ctx.clone())?,
            hooks,
            error: None,
        })
    }

    fn finish(self) -> Result<Value<'js>, ArgBuildError> {
        match self.error {
            None => Ok(self.object.into_value()),
            Some(error) => Err(error),
        }
    }

    fn set(&mut self, key: &str, value: Result<Value<'js>, ArgBuildError>) {
        let done = value.and_then(|value| Ok(self.object.set(key, value)?));
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }

    /// Sets a key to any argument.
    pub fn arg(&mut self, key: &str, arg: ScriptArg<'_>) {
        let value = arg.build(self.object.ctx(), self.hooks);
        self.set(key, value);
    }

    /// Sets a key to true or false.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.arg(key, ScriptArg::Bool(value));
    }

    /// Sets a key to a whole number.
    pub fn long(&mut self, key: &str, value: i64) {
        self.arg(key, ScriptArg::Long(value));
    }

    /// Sets a key to a number.
    pub fn double(&mut self, key: &str, value: f64) {
        self.arg(key, ScriptArg::Double(value));
    }

    /// Sets a key to a text.
    pub fn text(&mut self, key: &str, value: &str) {
        self.arg(key, ScriptArg::Text(value));
    }

    /// Sets a key to what JSON text says; text that is no JSON fails the call.
    pub fn json(&mut self, key: &str, text: &str) {
        self.arg(key, ScriptArg::Json(text));
    }

    /// Sets a key to null.
    pub fn null(&mut self, key: &str) {
        self.arg(key, ScriptArg::Null);
    }

    /// Sets a key to an object that `fill` fills.
    pub fn object(&mut self, key: &str, fill: &dyn Fn(&mut ObjectBuilder<'_, '_>)) {
        self.arg(key, ScriptArg::Object(fill));
    }
}
