//! What a server is sent of a client: a template, with what the client says in the places of its names.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The names in a template, and what a client says for them.
pub(super) type ClientFields<'a> = [(&'static str, &'a str); 4];

/// A body, ready to be filled in.
pub(super) enum BodyTemplate {
    /// In JSON, what a client says can only become part of a text.
    Json(Value),
    /// In a form, what a client says can only become part of a field.
    Form(String),
    Text(String),
}

/// What a body is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentType {
    Json,
    Form,
    Other,
}

impl ContentType {
    /// The one of a header.
    pub(super) fn named(header: &str) -> Self {
        let name = header.split(';').next().unwrap_or_default().trim();
        match name.to_ascii_lowercase().as_str() {
            "application/x-www-form-urlencoded" => Self::Form,
            "application/json" | "text/json" => Self::Json,
            other if other.ends_with("+json") => Self::Json,
            _ => Self::Other,
        }
    }
}

impl BodyTemplate {
    /// Reads the template of a body.
    ///
    /// # Errors
    /// It is said to be JSON, and is none: what a client says could become more than a text.
    pub(super) fn of_body(text: &str, content_type: ContentType) -> Result<Self, &'static str> {
        match (content_type, serde_json::from_str(text)) {
            (ContentType::Form, _) => Ok(Self::Form(text.to_owned())),
            (_, Ok(value)) => Ok(Self::Json(value)),
            (ContentType::Other, Err(_)) => Ok(Self::Text(text.to_owned())),
            (ContentType::Json, Err(_)) => {
                Err("requestBody must be JSON, as its Content-Type says, with ${...} inside of texts")
            }
        }
    }

    /// Reads the template of the parameters of a query.
    ///
    /// # Errors
    /// There are none: the server would not know whom it is asked about.
    pub(super) fn of_query(text: &str) -> Result<Self, &'static str> {
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) if !fields.is_empty() => Ok(Self::Json(Value::Object(fields))),
            _ => Err(
                "requestBody must be a JSON object with fields, which become the query of a method without a body",
            ),
        }
    }

    /// Whether a name is in it.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Json(value) => value.to_string().contains(name),
            Self::Form(text) | Self::Text(text) => text.contains(name),
        }
    }

    pub(super) fn filled_in(&self, fields: &ClientFields<'_>) -> String {
        match self {
            Self::Json(value) => json_with(value, fields).to_string(),
            Self::Text(text) => text_with(text, fields),
            Self::Form(text) => {
                let encoded = fields.map(|(name, value)| (name, percent_encoded(value)));
                let encoded = encoded.each_ref().map(|(name, value)| (*name, value.as_str()));
                text_with(text, &encoded)
            }
        }
    }

    /// The fields of the body as parameters of a query.
    pub(super) fn query(&self, fields: &ClientFields<'_>) -> Vec<(String, String)> {
        let Self::Json(Value::Object(template)) = self else {
            return Vec::new();
        };
        let parameters = template.iter().map(|(name, value)| {
            let value = match value {
                Value::String(text) => text_with(text, fields),
                other => other.to_string(),
            };
            (name.clone(), value)
        });
        parameters.collect()
    }
}

/// Encodes all bytes that may mean something in a form.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Puts fields into a text; what they say is not looked through again.
fn text_with(text: &str, fields: &ClientFields<'_>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        match fields.iter().find(|(name, _)| from.starts_with(name)) {
            Some((name, value)) => {
                filled.push_str(value);
                rest = from.get(name.len()..).unwrap_or_default();
            }
            None => {
                filled.push_str("${");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    filled.push_str(rest);
    filled
}

fn json_with(value: &Value, fields: &ClientFields<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(text_with(text, fields)),
        Value::Array(values) => values.iter().map(|value| json_with(value, fields)).collect(),
        Value::Object(values) => Value::Object(
            values
                .iter()
                .map(|(name, value)| (name.clone(), json_with(value, fields)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(user: &'a str, password: &'a str) -> ClientFields<'a> {
        [
            ("${clientId}", "c"),
            ("${username}", user),
            ("${password}", password),
            ("${commonName}", ""),
        ]
    }

    #[test]
    fn what_a_client_says_becomes_no_more_than_a_text() {
        let said = fields(r#"a","admin":"x&y=${password}"#, "p w+é");
        let body = |text, content_type| BodyTemplate::of_body(text, content_type).expect("a template");
        let template = r#"{"user":"=${username}","n":1}"#;
        let json = body(template, ContentType::Json);
        let filled: Value = serde_json::from_str(&json.filled_in(&said)).expect("JSON");
        assert_eq!(filled["user"], format!("={}", said[1].1));
        assert_eq!(filled["n"], 1);
        let query = BodyTemplate::of_query(template).expect("a template").query(&said);
        assert!(query.contains(&("n".to_owned(), "1".to_owned())), "{query:?}");
        let form = body(
            "u=${username}&p=${password}&c=${clientId}&${x}",
            ContentType::Form,
        );
        assert_eq!(
            form.filled_in(&said),
            "u=a%22%2C%22admin%22%3A%22x%26y%3D%24%7Bpassword%7D&p=p%20w%2B%C3%A9&c=c&${x}"
        );
        let text = body("${username} ${", ContentType::Other);
        assert_eq!(text.filled_in(&fields("${password}", "p")), "${password} ${");
        assert!(text.has("${username}") && !text.has("${password}"));
        assert!(json.has("${username}") && form.has("${clientId}") && !form.has("${commonName}"));
    }
}
