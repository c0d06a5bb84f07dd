//! The keys of the configuration, derived from the JSON schema of its types.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

/// One key of the configuration.
#[derive(Debug, Clone)]
pub(super) struct ConfigKey {
    /// Path in the file, such as `mqtt.listen`.
    pub(super) path: String,
    /// Documentation of the key.
    pub(super) doc: String,
    /// Name of its environment variable.
    pub(super) env: String,
    /// How a text is parsed into its value.
    pub(super) shape: ConfigValueKind,
}

/// How the text of an environment variable is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigValueKind {
    Text,
    Integer,
    Float,
    Boolean,
    /// Comma-separated texts.
    List,
}

/// All keys, in the order of the types.
pub(super) fn keys() -> Vec<ConfigKey> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut keys = Vec::new();
    collect(schema.as_value(), "", &mut keys);
    keys
}

fn collect(schema: &Value, prefix: &str, keys: &mut Vec<ConfigKey>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        if property.get("properties").is_some() {
            collect(property, &path, keys);
            continue;
        }
        let doc = property
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        keys.push(ConfigKey {
            env: format!("FIELDLINE_{}", path.to_uppercase().replace(['.', '-'], "_")),
            doc: format!("{doc}{}", choices(property)),
            shape: shape(property),
            path,
        });
    }
}

fn shape(property: &Value) -> ConfigValueKind {
    let has = |name: &str| match property.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    };
    match () {
        () if has("integer") => ConfigValueKind::Integer,
        () if has("number") => ConfigValueKind::Float,
        () if has("boolean") => ConfigValueKind::Boolean,
        () if has("array") => ConfigValueKind::List,
        () => ConfigValueKind::Text,
    }
}

/// Lists the values that an enumeration allows.
fn choices(property: &Value) -> String {
    let plain = property
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let described = property
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| one.get("const"));
    let names: Vec<_> = plain.chain(described).filter_map(Value::as_str).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" One of: {}.", names.join(", "))
    }
}
