//! How requests show who asks: credentials and headers, and which of them are secrets.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::services::{ServiceError, ServiceResult};

/// Kinds of credentials, as rule nodes have them.
const KINDS: [&str; 3] = ["anonymous", "basic", "cert.PEM"];
/// Fields of credentials that are never shown, each with its other names.
const SECRETS: [&[&str]; 2] = [&["password", "privateKeyPassword"], &["privateKey"]];

/// Credentials of somebody who proves nothing.
pub(in crate::broker_access) fn anonymous() -> Value {
    json!({ "type": "anonymous" })
}

pub(in crate::broker_access) fn null_as_anonymous<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Value, D::Error> {
    let given = Option::<Value>::deserialize(deserializer)?;
    Ok(given.unwrap_or_else(anonymous))
}

/// Checks that credentials are of a kind that servers are shown.
pub(in crate::broker_access) fn check_credentials(credentials: &Value) -> ServiceResult<()> {
    let kind = credentials.get("type").and_then(Value::as_str);
    match kind.is_some_and(|kind| KINDS.contains(&kind)) {
        true => Ok(()),
        false => Err(ServiceError::invalid(format!(
            "Validation error: the type of credentials must be one of {}",
            KINDS.join(", ")
        ))),
    }
}

/// Checks that headers can be sent.
pub(in crate::broker_access) fn check_headers(headers: &BTreeMap<String, String>) -> ServiceResult<()> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let is_value = |value: &str| {
        value
            .bytes()
            .all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
    };
    match headers
        .iter()
        .find(|(name, value)| !is_name(name) || !is_value(value))
    {
        Some((name, _)) => Err(ServiceError::invalid(format!(
            "Validation error: the header '{name}' cannot be sent"
        ))),
        None => Ok(()),
    }
}

/// Whether the value of a header may be a secret, by its name.
fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password"]
        .iter()
        .any(|part| name.contains(part))
}

/// Takes the values out of headers that may be secret.
pub(in crate::broker_access) fn hide_headers(headers: &mut BTreeMap<String, String>) {
    for (name, value) in headers {
        if is_secret_header(name) {
            value.clear();
        }
    }
}

/// Takes the values of other headers where these have none and may be secret.
pub(in crate::broker_access) fn keep_headers(
    headers: &mut BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) {
    for (name, value) in headers {
        if value.is_empty()
            && is_secret_header(name)
            && let Some(kept) = before.get(name)
        {
            value.clone_from(kept);
        }
    }
}

fn is_given(secret: Option<&Value>) -> bool {
    secret
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty())
}

/// Takes the secrets of other credentials where these have none: people do not see them, and send what they see.
pub(in crate::broker_access) fn keep_secrets(credentials: &mut Value, before: &Value) {
    if credentials.get("type") != before.get("type") {
        return;
    }
    let Some(fields) = credentials.as_object_mut() else {
        return;
    };
    for names in SECRETS {
        if names.iter().any(|name| is_given(fields.get(*name))) {
            continue;
        }
        let kept = names.iter().find(|name| is_given(before.get(**name)));
        let Some((name, kept)) = kept.and_then(|name| Some((*name, before.get(*name)?))) else {
            continue;
        };
        // Both names together cannot be read.
        for name in names {
            fields.remove(*name);
        }
        fields.insert(name.to_owned(), kept.clone());
    }
}

/// Takes the secrets out of credentials.
pub(in crate::broker_access) fn hide_secrets(credentials: &mut Value) {
    if let Some(fields) = credentials.as_object_mut() {
        for name in SECRETS.into_iter().flatten() {
            fields.remove(*name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_stays_under_one_name() {
        let kept = |new: Value, before: Value| {
            let with_type = |mut fields: Value| {
                fields["type"] = json!("cert.PEM");
                fields
            };
            let mut credentials = with_type(new);
            keep_secrets(&mut credentials, &with_type(before));
            let fields = credentials.as_object_mut().expect("fields");
            fields.remove("type");
            credentials
        };
        let stored = json!({ "privateKey": "k", "privateKeyPassword": "old" });
        assert_eq!(kept(json!({}), stored.clone()), stored);
        assert_eq!(
            kept(json!({ "password": "", "privateKey": null }), stored.clone()),
            stored
        );
        assert_eq!(
            kept(json!({ "password": "new" }), stored),
            json!({ "password": "new", "privateKey": "k" })
        );
        let stored = json!({ "password": "old" });
        let new = json!({ "privateKeyPassword": "new" });
        assert_eq!(kept(new.clone(), stored), new);
    }
}
