//! Scripts of nodes: which of the configured ones counts, and messages as their arguments.

use fieldline_core::usage::{Feature, UsageKey};
use fieldline_model::kv::{ValueRef, unpack};
use fieldline_model::message::{Metadata, MsgType};
use fieldline_script::{Arg, Host, Lang, ObjectBuilder, Parts, Script, ScriptError};
use serde_json::Value;

use crate::message::{Data, Meta, Msg};
use crate::node::{ConfigError, Ctx, NodeConfig, NodeError, Step};

/// Parameters of the scripts of most nodes.
pub(crate) const PARAMS: &[&str] = &["msg", "metadata", "msgType"];

/// The script of a configuration: the one in the field of its `scriptLang`. TBEL counts where a language is not named and
/// there is a TBEL script.
///
/// # Errors
/// The language is unknown, a script is no text, or that of the language is empty or does not compile.
pub(crate) fn compile(
    config: &NodeConfig<'_>,
    js_field: &str,
    tbel_field: &str,
    params: &[&str],
) -> Result<Script, ConfigError> {
    let text = |field: &str| match config.value.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(ConfigError::new(field, "must be a text")),
    };
    let (js, tbel) = (text(js_field)?, text(tbel_field)?);
    let lang = match config.value.get("scriptLang").filter(|lang| !lang.is_null()) {
        Some(lang) => match lang.as_str() {
            Some("TBEL") => Lang::Tbel,
            Some("JS") => Lang::JavaScript,
            _ => return Err(ConfigError::new("scriptLang", "must be TBEL or JS")),
        },
        None if js.trim().is_empty() && !tbel.trim().is_empty() => Lang::Tbel,
        None => Lang::JavaScript,
    };
    let (field, body) = match lang {
        Lang::Tbel => (tbel_field, tbel),
        Lang::JavaScript => (js_field, js),
    };
    if body.trim().is_empty() {
        return Err(ConfigError::new(field, "the script must not be empty"));
    }
    Script::new(lang, params, body).map_err(|error| ConfigError::new(field, error.to_string()))
}

impl From<ScriptError> for NodeError {
    fn from(error: ScriptError) -> Self {
        Self::new(error.to_string())
    }
}

/// Makes arguments of a message: body, metadata and type. Packed bodies and the metadata of devices become objects of the
/// script without a detour by text.
pub(crate) fn with_args<R>(msg: &Msg, call: impl FnOnce(&[Arg<'_>]) -> R) -> R {
    let fields = |object: &mut ObjectBuilder<'_, '_>| {
        if let Data::Packed(bytes) = &msg.data {
            put_packed(bytes, object);
        }
    };
    let body = match &msg.data {
        Data::Packed(_) => Arg::Object(&fields),
        Data::Text(text) => Arg::Json(text),
        Data::Json(value) => Arg::Value(value),
    };
    let entries = |object: &mut ObjectBuilder<'_, '_>| {
        if let Meta::Device { device, ts } = &msg.meta {
            object.text("deviceName", &device.name);
            object.text("deviceType", &device.profile_name);
            match ts {
                Some(ts) => object.text("ts", &ts.to_string()),
                None => object.text("notifyDevice", "false"),
            }
        }
    };
    let metadata = match &msg.meta {
        Meta::Device { .. } => Arg::Object(&entries),
        Meta::Own(metadata) => Arg::Map(metadata.entries()),
    };
    call(&[body, metadata, Arg::Text(msg.kind.name())])
}

fn put_packed(bytes: &[u8], object: &mut ObjectBuilder<'_, '_>) {
    for (key, value) in unpack(bytes).filter_map(Result::ok) {
        match value {
            ValueRef::Bool(value) => object.bool(key, value),
            ValueRef::Long(value) => object.long(key, value),
            ValueRef::Double(value) => object.double(key, value),
            ValueRef::Text(value) => object.text(key, value),
            ValueRef::Json(value) => object.json(key, value),
        }
    }
}

/// What a call of a script is counted as.
pub(crate) fn usage_of(script: &Script) -> (Feature, UsageKey) {
    match script.lang() {
        Lang::Tbel => (Feature::Tbel, UsageKey::TbelExecutions),
        Lang::JavaScript => (Feature::JavaScript, UsageKey::JavaScriptExecutions),
    }
}

/// A tenant has used up its calls of scripts.
pub(crate) const USED_UP: &str = "Script execution is disabled due to API limits!";

/// Counts a call, if the tenant may make one.
fn charge(ctx: &mut Ctx<'_>, script: &Script) -> Result<(), NodeError> {
    let (feature, key) = usage_of(script);
    if !ctx.may_use(feature) {
        return Err(NodeError::new(USED_UP));
    }
    ctx.count(key, 1);
    Ok(())
}

/// Has a script called on a message, on a thread for scripts: `call` does so with its arguments, `then` goes on with what
/// came of it. The message fails where the tenant may make no call, and where the script fails.
pub(crate) fn run<R>(
    ctx: &mut Ctx<'_>,
    script: &Script,
    msg: Msg,
    call: impl FnOnce(&mut Host, &Script, &[Arg<'_>]) -> Result<R, ScriptError> + Send + 'static,
    then: impl FnOnce(Msg, R) -> Step + Send + 'static,
) -> Step {
    run_with(ctx, script, (msg, None), call, then)
}

/// The same with an entry of the metadata that only the script sees.
pub(crate) fn run_with<R>(
    ctx: &mut Ctx<'_>,
    script: &Script,
    (msg, entry): (Msg, Option<(&'static str, String)>),
    call: impl FnOnce(&mut Host, &Script, &[Arg<'_>]) -> Result<R, ScriptError> + Send + 'static,
    then: impl FnOnce(Msg, R) -> Step + Send + 'static,
) -> Step {
    if let Err(error) = charge(ctx, script) {
        return Step::Fail(msg, error);
    }
    let more = entry.as_ref().map_or(0, |(_, text)| text.len());
    let packed = match &msg.data {
        Data::Packed(bytes) => bytes.len(),
        Data::Text(_) | Data::Json(_) => 0,
    };
    let bytes = more + packed + with_args(&msg, |args| args.iter().map(Arg::size).sum::<usize>());
    let script = script.clone();
    Step::call(msg, bytes, move |host, msg| {
        let called = match entry {
            None => with_args(&msg, |args| call(host, &script, args)),
            Some((key, text)) => {
                let mut shown = msg.clone();
                shown.meta.set(key, text);
                with_args(&shown, |args| call(host, &script, args))
            }
        };
        match called {
            Ok(made) => then(msg, made),
            Err(error) => Step::Fail(msg, error.into()),
        }
    })
}

/// Replaces what a script returned; what it left out stays.
pub(crate) fn put(parts: Parts, msg: &mut Msg) {
    if let Some(body) = parts.msg {
        msg.data = Data::text(body);
    }
    if let Some(metadata) = parts.metadata {
        msg.meta = metadata.into_iter().collect::<Metadata>().into();
    }
    if let Some(kind) = parts.msg_type.filter(|kind| kind != msg.kind.name()) {
        msg.kind = MsgType::from(kind.as_str());
    }
}
