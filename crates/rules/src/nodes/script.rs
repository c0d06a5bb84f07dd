//! Scripts of nodes: which of the configured ones counts, and messages as their arguments.

use fieldline_core::usage::{ApiFeature, UsageKey};
use fieldline_model::kv::{KvValueRef, unpack};
use fieldline_model::message::{MetadataMap, MsgType};
use fieldline_script::{
    ObjectBuilder, Script, ScriptArg, ScriptError, ScriptHost, ScriptLang, TransformedMessage,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::config_schema;
use crate::message::{MessageBody, MessageMetadata, RuleMessage};
use crate::node::{NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};

/// Parameters of the scripts of most nodes.
pub(crate) const PARAMS: &[&str] = &["msg", "metadata", "msgType"];

/// The part of a configuration that holds a script in two languages, one of which counts.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ScriptConfig {
    #[serde(deserialize_with = "language")]
    #[schemars(schema_with = "language_schema", title = "Language")]
    script_lang: Option<ScriptLang>,
    #[serde(deserialize_with = "script_text")]
    #[schemars(title = "JavaScript", extend("x-editor" = "script", "x-language" = "JS"))]
    js_script: String,
    #[serde(deserialize_with = "script_text")]
    #[schemars(title = "TBEL", extend("x-editor" = "script", "x-language" = "TBEL"))]
    tbel_script: String,
}

/// The same where the script makes details of alarms.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DetailsScriptConfig {
    #[serde(deserialize_with = "language")]
    #[schemars(schema_with = "language_schema", title = "Language")]
    script_lang: Option<ScriptLang>,
    #[serde(deserialize_with = "script_text")]
    #[schemars(title = "Details in JavaScript", extend("x-editor" = "script", "x-language" = "JS"))]
    alarm_details_build_js: String,
    #[serde(deserialize_with = "script_text")]
    #[schemars(title = "Details in TBEL", extend("x-editor" = "script", "x-language" = "TBEL"))]
    alarm_details_build_tbel: String,
}

/// The script of a configuration that counts.
pub(crate) struct ScriptSource {
    lang: ScriptLang,
    field: &'static str,
    body: String,
}

impl From<ScriptConfig> for ScriptSource {
    fn from(config: ScriptConfig) -> Self {
        let js = ("jsScript", config.js_script);
        Self::choose(config.script_lang, js, ("tbelScript", config.tbel_script))
    }
}

impl From<DetailsScriptConfig> for ScriptSource {
    fn from(config: DetailsScriptConfig) -> Self {
        let js = ("alarmDetailsBuildJs", config.alarm_details_build_js);
        let tbel = ("alarmDetailsBuildTbel", config.alarm_details_build_tbel);
        Self::choose(config.script_lang, js, tbel)
    }
}

impl ScriptSource {
    /// The script that counts of a configuration: the one in the field of its `scriptLang`. TBEL counts where a language is
    /// not named and there is a TBEL script only.
    ///
    /// # Errors
    /// The language is unknown, or a script is no text.
    pub(crate) fn read<C: DeserializeOwned + Into<Self>>(
        config: &NodeInitContext<'_>,
    ) -> Result<Self, NodeConfigError> {
        Ok(config.parse::<C>()?.into())
    }

    fn choose(named: Option<ScriptLang>, js: (&'static str, String), tbel: (&'static str, String)) -> Self {
        let only_tbel = js.1.trim().is_empty() && !tbel.1.trim().is_empty();
        let lang = match named {
            Some(lang) => lang,
            None if only_tbel => ScriptLang::Tbel,
            None => ScriptLang::JavaScript,
        };
        let (field, body) = match lang {
            ScriptLang::Tbel => tbel,
            ScriptLang::JavaScript => js,
        };
        Self { lang, field, body }
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        &self.body
    }

    /// Compiles it.
    ///
    /// # Errors
    /// It is empty or does not compile.
    pub(crate) fn compile(&self, params: &[&str]) -> Result<Script, NodeConfigError> {
        if self.body.trim().is_empty() {
            return Err(NodeConfigError::new(self.field, "the script must not be empty"));
        }
        Script::new(self.lang, params, &self.body)
            .map_err(|error| NodeConfigError::new(self.field, error.to_string()))
    }
}

/// The script of a configuration, compiled; see [`ScriptSource::read`] and [`ScriptSource::compile`].
///
/// # Errors
/// The language is unknown, a script is no text, or that of the language is empty or does not compile.
pub(crate) fn compile<C: DeserializeOwned + Into<ScriptSource>>(
    config: &NodeInitContext<'_>,
    params: &[&str],
) -> Result<Script, NodeConfigError> {
    ScriptSource::read::<C>(config)?.compile(params)
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ScriptLang>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(name) if name == "TBEL" => Ok(Some(ScriptLang::Tbel)),
        Value::String(name) if name == "JS" => Ok(Some(ScriptLang::JavaScript)),
        _ => Err(D::Error::custom("must be TBEL or JS")),
    }
}

fn language_schema(_: &mut SchemaGenerator) -> Schema {
    config_schema::choice(["TBEL", "JS"])
}

fn script_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text),
        _ => Err(D::Error::custom("must be a text")),
    }
}

impl From<ScriptError> for NodeError {
    fn from(error: ScriptError) -> Self {
        Self::new(error.to_string())
    }
}

/// Makes arguments of a message: body, metadata and type. Packed bodies and the metadata of devices become objects of the
/// script without a detour by text.
pub(crate) fn with_args<R>(msg: &RuleMessage, call: impl FnOnce(&[ScriptArg<'_>]) -> R) -> R {
    let fields = |object: &mut ObjectBuilder<'_, '_>| {
        if let MessageBody::Packed(bytes) = &msg.data {
            put_packed(bytes, object);
        }
    };
    let body = match &msg.data {
        MessageBody::Packed(_) => ScriptArg::Object(&fields),
        MessageBody::Text(text) => ScriptArg::Json(text),
        MessageBody::Json(value) => ScriptArg::Value(value),
    };
    let entries = |object: &mut ObjectBuilder<'_, '_>| {
        if let MessageMetadata::Device { device, ts } = &msg.meta {
            object.text("deviceName", &device.name);
            object.text("deviceType", &device.profile_name);
            match ts {
                Some(ts) => object.text("ts", &ts.to_string()),
                None => object.text("notifyDevice", "false"),
            }
        }
    };
    let metadata = match &msg.meta {
        MessageMetadata::Device { .. } => ScriptArg::Object(&entries),
        MessageMetadata::Own(metadata) => ScriptArg::Map(metadata.entries()),
    };
    call(&[body, metadata, ScriptArg::Text(msg.kind.name())])
}

fn put_packed(bytes: &[u8], object: &mut ObjectBuilder<'_, '_>) {
    for (key, value) in unpack(bytes).filter_map(Result::ok) {
        match value {
            KvValueRef::Bool(value) => object.bool(key, value),
            KvValueRef::Long(value) => object.long(key, value),
            KvValueRef::Double(value) => object.double(key, value),
            KvValueRef::Text(value) => object.text(key, value),
            KvValueRef::Json(value) => object.json(key, value),
        }
    }
}

/// What a call of a script is counted as.
pub(crate) fn usage_of(script: &Script) -> (ApiFeature, UsageKey) {
    match script.lang() {
        ScriptLang::Tbel => (ApiFeature::Tbel, UsageKey::TbelExecutions),
        ScriptLang::JavaScript => (ApiFeature::JavaScript, UsageKey::JavaScriptExecutions),
    }
}

/// A tenant has used up its calls of scripts.
pub(crate) const SCRIPTS_DISABLED: &str = "Script execution is disabled due to API limits!";

/// Counts a call, if the tenant may make one.
fn charge(ctx: &mut NodeContext<'_>, script: &Script) -> Result<(), NodeError> {
    let (feature, key) = usage_of(script);
    if !ctx.may_use(feature) {
        return Err(NodeError::new(SCRIPTS_DISABLED));
    }
    ctx.count(key, 1);
    Ok(())
}

/// Has a script called on a message, on a thread for scripts: `call` does so with its arguments, `then` goes on with what
/// came of it. The message fails where the tenant may make no call, and where the script fails.
pub(crate) fn run<R>(
    ctx: &mut NodeContext<'_>,
    script: &Script,
    msg: RuleMessage,
    call: impl FnOnce(&mut ScriptHost, &Script, &[ScriptArg<'_>]) -> Result<R, ScriptError> + Send + 'static,
    then: impl FnOnce(RuleMessage, R) -> NodeResult + Send + 'static,
) -> NodeResult {
    run_with(ctx, script, msg, None, call, then)
}

/// The same with an entry of the metadata that only the script sees.
pub(crate) fn run_with<R>(
    ctx: &mut NodeContext<'_>,
    script: &Script,
    msg: RuleMessage,
    entry: Option<(&'static str, String)>,
    call: impl FnOnce(&mut ScriptHost, &Script, &[ScriptArg<'_>]) -> Result<R, ScriptError> + Send + 'static,
    then: impl FnOnce(RuleMessage, R) -> NodeResult + Send + 'static,
) -> NodeResult {
    if let Err(error) = charge(ctx, script) {
        return NodeResult::Fail(msg, error);
    }
    let more = entry.as_ref().map_or(0, |(_, text)| text.len());
    let packed = match &msg.data {
        MessageBody::Packed(bytes) => bytes.len(),
        MessageBody::Text(_) | MessageBody::Json(_) => 0,
    };
    let bytes = more + packed + with_args(&msg, |args| args.iter().map(ScriptArg::size).sum::<usize>());
    let script = script.clone();
    NodeResult::call(msg, bytes, move |host, msg| {
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
            Err(error) => NodeResult::Fail(msg, error.into()),
        }
    })
}

/// Replaces what a script returned; what it left out stays.
pub(crate) fn put(parts: TransformedMessage, msg: &mut RuleMessage) {
    if let Some(body) = parts.msg {
        msg.data = MessageBody::text(body);
    }
    if let Some(metadata) = parts.metadata {
        msg.meta = metadata.into_iter().collect::<MetadataMap>().into();
    }
    if let Some(kind) = parts.msg_type.filter(|kind| kind != msg.kind.name()) {
        msg.kind = MsgType::from(kind.as_str());
    }
}
