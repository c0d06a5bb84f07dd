//! JSON text and values of scripts, in both directions.

use std::cell::RefCell;
use std::fmt;

use rquickjs::{Array, Ctx, Object, Value};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::script::ScriptLang;

/// Numbers of a script are exact up to here.
const EXACT: u64 = 1 << 53;
/// Longs remembered a call; more of them lose their last digits.
const MAX_REMEMBERED: usize = 64;

/// Longs of the arguments that a number of a script cannot hold: where the number comes back untouched, its
/// digits do too.
#[derive(Debug, Default)]
pub(crate) struct ExactLongs(RefCell<Vec<(u64, i128)>>);

impl ExactLongs {
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// The number that stands for a long. Of two longs that are the same number, the second gets a neighbour.
    pub(crate) fn remember(&self, value: i128) -> f64 {
        let mut all = self.0.borrow_mut();
        let mut number = value as f64;
        while let Some((_, other)) = all.iter().find(|(bits, _)| *bits == number.to_bits()) {
            if *other == value {
                return number;
            }
            number = number.next_down();
        }
        if all.len() < MAX_REMEMBERED {
            all.push((number.to_bits(), value));
        }
        number
    }

    /// The long that became this number.
    pub(crate) fn restore(&self, number: f64) -> Option<i128> {
        let all = self.0.borrow();
        all.iter()
            .find(|(bits, _)| *bits == number.to_bits())
            .map(|(_, value)| *value)
    }
}

/// How numbers and nulls of a realm are to be taken.
#[derive(Debug)]
pub(crate) struct ValueDialect {
    pub(crate) lang: ScriptLang,
    pub(crate) exact: ExactLongs,
}

impl ValueDialect {
    pub(crate) fn new(lang: ScriptLang) -> Self {
        Self {
            lang,
            exact: ExactLongs::default(),
        }
    }

    /// Null; TBEL does not tell it from a value that is not there.
    pub(crate) fn null<'js>(&self, ctx: &Ctx<'js>) -> Value<'js> {
        match self.lang {
            ScriptLang::JavaScript => Value::new_null(ctx.clone()),
            ScriptLang::Tbel => Value::new_undefined(ctx.clone()),
        }
    }
}

/// A whole number as a value.
pub(crate) fn long<'js>(ctx: &Ctx<'js>, dialect: &ValueDialect, value: i64) -> Value<'js> {
    match i32::try_from(value) {
        Ok(value) => Value::new_int(ctx.clone(), value),
        Err(_) => {
            let exact = value.unsigned_abs() <= EXACT;
            let number = if exact {
                value as f64
            } else {
                dialect.exact.remember(value.into())
            };
            Value::new_float(ctx.clone(), number)
        }
    }
}

/// A double as a value. `Value::new_float` makes an int of one that is whole; the engine's own JSON does not.
pub(crate) fn double<'js>(
    ctx: &Ctx<'js>,
    dialect: &ValueDialect,
    value: f64,
) -> rquickjs::Result<Value<'js>> {
    if dialect.lang == ScriptLang::Tbel && value.fract() == 0.0 && value.abs() < f64::from(i32::MAX) {
        return ctx.json_parse(format!("{value:.1}"));
    }
    Ok(Value::new_float(ctx.clone(), value))
}

/// Why a JSON text became no value.
#[derive(Debug)]
pub(crate) enum ValueParseError {
    Engine(rquickjs::Error),
    Json(String),
}

/// Parses JSON text.
pub(crate) fn parse<'js>(
    ctx: &Ctx<'js>,
    dialect: &ValueDialect,
    text: &str,
) -> Result<Value<'js>, ValueParseError> {
    let failed = RefCell::new(None);
    let seed = ValueSeed {
        ctx,
        dialect,
        failed: &failed,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| match failed.into_inner() {
        Some(error) => ValueParseError::Engine(error),
        None => ValueParseError::Json(error.to_string()),
    })
}

#[derive(Clone, Copy)]
struct ValueSeed<'a, 'js> {
    ctx: &'a Ctx<'js>,
    dialect: &'a ValueDialect,
    /// An error of the engine, which serde's error type cannot carry.
    failed: &'a RefCell<Option<rquickjs::Error>>,
}

impl<'js> ValueSeed<'_, 'js> {
    fn engine<T, E: serde::de::Error>(&self, result: rquickjs::Result<T>) -> Result<T, E> {
        result.map_err(|error| {
            *self.failed.borrow_mut() = Some(error);
            E::custom("engine")
        })
    }
}

impl<'de, 'js> DeserializeSeed<'de> for ValueSeed<'_, 'js> {
    type Value = Value<'js>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

struct KeySeed<'a, 'js>(ValueSeed<'a, 'js>);

impl<'de, 'js> DeserializeSeed<'de> for KeySeed<'_, 'js> {
    type Value = rquickjs::Atom<'js>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'js> Visitor<'_> for KeySeed<'_, 'js> {
    type Value = rquickjs::Atom<'js>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.0.engine(rquickjs::Atom::from_str(self.0.ctx.clone(), text))
    }
}

impl<'de, 'js> Visitor<'de> for ValueSeed<'_, 'js> {
    type Value = Value<'js>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::new_bool(self.ctx.clone(), value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(long(self.ctx, self.dialect, value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => {
                let number = self.dialect.exact.remember(value.into());
                Ok(Value::new_float(self.ctx.clone(), number))
            }
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
        self.engine(double(self.ctx, self.dialect, value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self
            .engine(rquickjs::String::from_str(self.ctx.clone(), text))?
            .into_value())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(self.dialect.null(self.ctx))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let array = self.engine(Array::new(self.ctx.clone()))?;
        let mut at = 0;
        while let Some(item) = items.next_element_seed(self)? {
            self.engine(array.set(at, item))?;
            at += 1;
        }
        Ok(array.into_value())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let object = self.engine(Object::new(self.ctx.clone()))?;
        while let Some(key) = entries.next_key_seed(KeySeed(self))? {
            let value = entries.next_value_seed(self)?;
            // A map of TBEL has no nulls.
            if value.is_undefined() {
                continue;
            }
            self.engine(object.set(key, value))?;
        }
        Ok(object.into_value())
    }
}

/// A JSON value as a script's value.
pub(crate) fn from_json<'js>(
    ctx: &Ctx<'js>,
    dialect: &ValueDialect,
    json: &serde_json::Value,
) -> rquickjs::Result<Value<'js>> {
    Ok(match json {
        serde_json::Value::Null => dialect.null(ctx),
        serde_json::Value::Bool(value) => Value::new_bool(ctx.clone(), *value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(value) => long(ctx, dialect, value),
            None => {
                if let Some(value) = number.as_f64().filter(|_| number.is_f64()) {
                    return double(ctx, dialect, value);
                }
                let exact = number.as_u64().map(|value| dialect.exact.remember(value.into()));
                let number = exact.unwrap_or(f64::NAN);
                Value::new_float(ctx.clone(), number)
            }
        },
        serde_json::Value::String(text) => rquickjs::String::from_str(ctx.clone(), text)?.into_value(),
        serde_json::Value::Array(items) => {
            let array = Array::new(ctx.clone())?;
            for (at, item) in items.iter().enumerate() {
                array.set(at, from_json(ctx, dialect, item)?)?;
            }
            array.into_value()
        }
        serde_json::Value::Object(entries) => {
            let object = Object::new(ctx.clone())?;
            for (key, value) in entries {
                if value.is_null() && dialect.lang == ScriptLang::Tbel {
                    continue;
                }
                object.set(key.as_str(), from_json(ctx, dialect, value)?)?;
            }
            object.into_value()
        }
    })
}

/// About how long a JSON value is as text.
pub(crate) fn json_size(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::Null | serde_json::Value::Bool(_) => 5,
        serde_json::Value::Number(_) => 8,
        serde_json::Value::String(text) => text.len() + 2,
        serde_json::Value::Array(items) => items.iter().map(|item| json_size(item) + 1).sum::<usize>() + 2,
        serde_json::Value::Object(entries) => {
            entries
                .iter()
                .map(|(key, value)| key.len() + json_size(value) + 4)
                .sum::<usize>()
                + 2
        }
    }
}
