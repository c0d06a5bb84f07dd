//! As much of JSON Schema as the schemas of nodes are made of.

use serde_json::{Map, Value};

/// Keywords that say nothing about values.
const WORDS: &[&str] = &[
    "$schema",
    "title",
    "description",
    "default",
    "examples",
    "x-editor",
    "x-language",
    "x-unit",
];

/// Where a value does not fit a schema, and why; `None` where it fits.
pub(super) fn misfit(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let Some(schema) = schema.as_object() else {
        return (schema != &Value::Bool(true)).then(|| format!("{path}: {schema} is no schema"));
    };
    schema
        .iter()
        .find_map(|(keyword, operand)| breach(schema, keyword, operand, value, path))
}

fn breach(
    schema: &Map<String, Value>,
    keyword: &str,
    operand: &Value,
    value: &Value,
    path: &str,
) -> Option<String> {
    let list = || operand.as_array().map_or(&[][..], Vec::as_slice);
    let number = |value: &Value| value.as_f64();
    let fits = match keyword {
        "type" => match operand {
            Value::Array(types) => types.iter().any(|one| is_of(one, value)),
            one => is_of(one, value),
        },
        "enum" => list().contains(value),
        "const" => operand == value,
        "minimum" => number(value).is_none_or(|value| number(operand).is_some_and(|least| value >= least)),
        "maximum" => number(value).is_none_or(|value| number(operand).is_some_and(|most| value <= most)),
        "maxLength" => value
            .as_str()
            .is_none_or(|text| operand.as_u64().is_some_and(|most| text.len() as u64 <= most)),
        "required" => value.as_object().is_none_or(|fields| {
            list()
                .iter()
                .all(|name| name.as_str().is_some_and(|it| fields.contains_key(it)))
        }),
        "oneOf" => {
            list()
                .iter()
                .filter(|one| misfit(one, value, path).is_none())
                .count()
                == 1
        }
        "anyOf" => list().iter().any(|one| misfit(one, value, path).is_none()),
        "items" => {
            let items = value.as_array().into_iter().flatten();
            return items
                .enumerate()
                .find_map(|(at, item)| misfit(operand, item, &format!("{path}[{at}]")));
        }
        "properties" => {
            let fields = value.as_object().into_iter().flatten();
            return fields
                .filter_map(|(name, field)| Some((name, field, operand.get(name)?)))
                .find_map(|(name, field, schema)| misfit(schema, field, &format!("{path}.{name}")));
        }
        "additionalProperties" => {
            let known = |name: &String| {
                schema
                    .get("properties")
                    .is_some_and(|all| all.get(name).is_some())
            };
            let fields = value.as_object().into_iter().flatten();
            return fields
                .filter(|(name, _)| !known(name))
                .find_map(|(name, field)| misfit(operand, field, &format!("{path}.{name}")));
        }
        word => {
            assert!(WORDS.contains(&word), "{path}: no form knows the keyword {word}");
            true
        }
    };
    (!fits).then(|| format!("{path}: {value} breaks {keyword} {operand}"))
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("null") => value.is_null(),
        _ => false,
    }
}
