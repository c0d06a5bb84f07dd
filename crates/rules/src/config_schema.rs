//! JSON Schemas of what nodes are configured with, made of the very types that read it. Editors make their forms of them.
//!
//! Schemas are of the draft 2020-12, with hints for forms: `x-editor` says what a value is chosen or written with,
//! `x-language` what language a script is in, `x-unit` what a number counts. Unknown fields are permitted, as they are read.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// What nodes have whose configuration is empty.
#[derive(JsonSchema)]
pub(crate) struct NoConfiguration {}

/// The schema of a configuration.
pub(crate) fn of<C: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<C>().to_value();
    tidy(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        // Names and words for those who read the code.
        root.shift_remove("title");
        root.shift_remove("description");
    }
    schema
}

/// The schema of a configuration that two types read, each its fields.
pub(crate) fn of_both<A: JsonSchema, B: JsonSchema>() -> Value {
    let mut schema = of::<A>();
    let more = of::<B>();
    if let (Some(all), Value::Object(more)) = (schema.as_object_mut(), more) {
        for (keyword, value) in more {
            match (all.get_mut(&keyword), value) {
                (Some(Value::Object(fields)), Value::Object(others)) => fields.extend(others),
                (Some(Value::Array(names)), Value::Array(others)) => names.extend(others),
                (Some(_), _) => {}
                (None, value) => {
                    all.insert(keyword, value);
                }
            }
        }
    }
    schema
}

/// The schema of a connector's configuration, in which `null` reads as missing.
pub(crate) fn of_connector<C: JsonSchema>() -> Value {
    let mut schema = of::<C>();
    permit_nulls(&mut schema);
    schema
}

/// Brings a schema into the few forms that editors have to know: choices are an `enum`, variants a `oneOf` of objects.
fn tidy(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(tidy),
        Value::Object(schema) => {
            schema.values_mut().for_each(tidy);
            // How many bits a number has says nothing to people.
            if schema
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| {
                    format.starts_with("int") || format.starts_with("uint") || format == "double"
                })
            {
                schema.shift_remove("format");
            }
            merge_null(schema);
            merge_choices(schema);
        }
        _ => {}
    }
}

/// `anyOf` of variants and of nothing becomes one list of variants.
fn merge_null(schema: &mut Map<String, Value>) {
    let Some([variants, null]) = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) else {
        return;
    };
    if null.get("type").and_then(Value::as_str) != Some("null") {
        return;
    }
    let Some(mut variants) = variants.as_object().cloned() else {
        return;
    };
    if let Some(Value::Array(list)) = variants.get_mut("oneOf") {
        list.push(null.clone());
        schema.shift_remove("anyOf");
        for (keyword, value) in variants {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// A `oneOf` of single values becomes an `enum`.
fn merge_choices(schema: &mut Map<String, Value>) {
    let choices = |one: &Value| {
        let known = one.get("const").map(|one| vec![one.clone()]);
        let null = || (one.get("type").and_then(Value::as_str) == Some("null")).then(|| vec![Value::Null]);
        known
            .or_else(|| one.get("enum").and_then(Value::as_array).cloned())
            .or_else(null)
    };
    let Some(list) = schema.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let Some(values) = list.iter().map(choices).collect::<Option<Vec<_>>>() else {
        return;
    };
    let values = values.concat();
    schema.shift_remove("oneOf");
    let kind = match values.contains(&Value::Null) {
        true => serde_json::json!(["string", "null"]),
        false => "string".into(),
    };
    schema.insert("type".to_owned(), kind);
    schema.insert("enum".to_owned(), values.into());
}

fn permit_nulls(schema: &mut Value) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        permit_nulls(field);
        permit_null(field);
    }
    let variants = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    variants.into_iter().flatten().for_each(permit_nulls);
}

fn permit_null(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    // The tag of a variant is always there.
    if schema.contains_key("const") {
        return;
    }
    if let Some(kind) = schema.get_mut("type") {
        match kind {
            Value::String(name) if name != "null" => *kind = serde_json::json!([name, "null"]),
            Value::Array(names) if !names.contains(&"null".into()) => names.push("null".into()),
            _ => return,
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let null = serde_json::json!({ "type": "null" });
    if let Some(Value::Array(variants)) = schema.get_mut("oneOf")
        && !variants.contains(&null)
    {
        variants.push(null);
    }
}

/// One of some names, or nothing.
pub(crate) fn choice<'a>(names: impl IntoIterator<Item = &'a str>) -> Schema {
    let mut values: Vec<Value> = names.into_iter().map(Value::from).collect();
    values.push(Value::Null);
    json_schema!({ "type": ["string", "null"], "enum": values })
}

/// An object of texts, or nothing.
pub(crate) fn text_pairs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"], "additionalProperties": { "type": "string" }, "x-editor": "map" })
}

/// A scope of attributes.
pub(crate) fn attribute_scope(_: &mut SchemaGenerator) -> Schema {
    let scopes = fieldline_model::timeseries::AttributeScope::ALL;
    let mut schema = choice(scopes.into_iter().rev().map(|scope| scope.name()));
    schema.insert(
        "description".to_owned(),
        "That of the server where nothing is chosen.".into(),
    );
    schema
}
