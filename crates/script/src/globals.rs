//! The realms' globals, and the text around a script's body.

use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Exception, Function, Object, Value};

use crate::implicit;
use crate::script::ScriptLang;
use crate::values::{self, ValueDialect};
use crate::zones;

/// Name of the file that frames of scripts show.
pub(crate) const SCRIPT_FILE: &str = "<script>";

const REALM: &str = include_str!("js/realm.js");

/// What a translated script needs to be compiled, but not run.
pub(crate) const CHECK_TBEL: &str = "globalThis.$wrap = (make) => make(1);";

/// The library of TBEL: one function of the host's functions, in parts.
const TBEL: &str = concat!(
    "(function (native) { 'use strict';\n",
    include_str!("js/tbel/core.js"),
    include_str!("js/tbel/collections.js"),
    include_str!("js/tbel/text.js"),
    include_str!("js/tbel/bytes.js"),
    include_str!("js/tbel/locales.js"),
    include_str!("js/tbel/date.js"),
    include_str!("js/tbel/rolling.js"),
    "})"
);

/// Prepares a fresh realm; returns the functions the host calls.
pub(crate) fn prepare<'js>(ctx: &Ctx<'js>, dialect: &Rc<ValueDialect>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    if dialect.lang == ScriptLang::Tbel {
        natives(ctx, dialect, &native)?;
        let library: Function<'js> = ctx.eval_with_options(TBEL, options("<library>"))?;
        library.call::<_, ()>((native.clone(),))?;
    }
    let close: Function<'js> = ctx.eval_with_options(REALM, options("<realm>"))?;
    close.call((native,))
}

fn options(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(file.to_owned());
    options
}

/// What the library cannot do in JavaScript.
fn natives<'js>(ctx: &Ctx<'js>, dialect: &Rc<ValueDialect>, native: &Object<'js>) -> rquickjs::Result<()> {
    let function = |name: &str, function: Function<'js>| native.set(name, function);
    // Whether QuickJS keeps a number as a double, though it may be whole.
    function(
        "isDouble",
        Function::new(ctx.clone(), |value: Value<'js>| value.is_float())?,
    )?;
    let remembers = Rc::clone(dialect);
    let literal = move |digits: String| -> f64 {
        let value: i128 = digits.parse().unwrap_or_default();
        remembers.exact.remember(value)
    };
    function("literal", Function::new(ctx.clone(), literal)?)?;
    let remembered = Rc::clone(dialect);
    let exact = move |number: f64| remembered.exact.restore(number).map(|value| value.to_string());
    function("exact", Function::new(ctx.clone(), exact)?)?;
    let reads = Rc::clone(dialect);
    let parse = move |ctx: Ctx<'js>, text: String| {
        values::parse(&ctx, &reads, &text).map_err(|error| match error {
            values::ValueParseError::Engine(error) => error,
            values::ValueParseError::Json(message) => {
                Exception::throw_message(&ctx, &format!("not valid JSON: {message}"))
            }
        })
    };
    function("parse", Function::new(ctx.clone(), parse)?)?;
    function(
        "zoneOffset",
        Function::new(ctx.clone(), |zone: String, ms: f64| zones::offset(&zone, ms))?,
    )?;
    function(
        "localOffset",
        Function::new(ctx.clone(), |zone: String, ms: f64| {
            zones::local_offset(&zone, ms)
        })?,
    )?;
    function(
        "zoneName",
        Function::new(ctx.clone(), |zone: String, ms: f64| {
            zones::abbreviation(&zone, ms)
        })?,
    )
}

/// The expression that makes the function of a JavaScript body.
pub(crate) fn javascript(params_list: &[&str], body: &str) -> String {
    let params = params_list.join(",");
    let implicit = implicit::names(params_list, body);
    if implicit.is_empty() {
        return format!("Object.freeze(({{script({params}){{\n{body}\n}}}}).script)");
    }
    let implicit = implicit.join(",");
    format!(
        "Object.freeze(({{script({params}){{var {implicit};return (function({params}){{\n{body}\n}})({params});}}}}).script)"
    )
}

/// What an engine's message means to somebody who wrote TBEL.
pub(crate) fn explain_message(message: &str) -> String {
    let property = |message: &str| -> Option<String> {
        let name = message.split('\'').nth(1)?;
        let name = name.strip_prefix("$_").unwrap_or(name);
        let doing = if message.contains("set property") {
            "set"
        } else {
            "read"
        };
        Some(format!("cannot {doing} {name:?} of null"))
    };
    if message.starts_with("cannot read property") || message.starts_with("cannot set property") {
        return property(message).unwrap_or_else(|| message.to_owned());
    }
    if message == "not a function" {
        return "unable to resolve method: the value has no such method".to_owned();
    }
    if message == "object is not extensible" {
        return "index out of bounds for the array, or the collection is unmodifiable".to_owned();
    }
    message.replace("$_", "").replace("$h_", "").replace("$c_", "")
}
