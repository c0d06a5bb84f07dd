//! The names that ThingsBoard gives to status codes and headers.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::outcome::MetadataEntries;

/// The name of a status as a constant: `NOT_FOUND`. The number, if nobody has named it.
pub(super) fn name(status: StatusCode) -> String {
    if status == StatusCode::IM_A_TEAPOT {
        return "I_AM_A_TEAPOT".to_owned();
    }
    match status.canonical_reason() {
        Some(reason) => reason
            .chars()
            .filter(|&character| character != '\'')
            .map(|character| {
                if matches!(character, ' ' | '-') {
                    '_'
                } else {
                    character.to_ascii_uppercase()
                }
            })
            .collect(),
        None => status.as_str().to_owned(),
    }
}

/// The words of a status: `Not Found`.
pub(super) fn reason(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or_default()
}

/// Adds each header as servers usually write it; several values of one name make a JSON array.
pub(super) fn add_headers(headers: &HeaderMap, metadata: &mut MetadataEntries) {
    for name in headers.keys() {
        let values: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let value = match values.as_slice() {
            [only] => only.clone().into_owned(),
            several => serde_json::json!(several).to_string(),
        };
        metadata.push((usual_spelling(name.as_str()), value));
    }
}

/// HTTP does not distinguish the case of names, but scripts do: they look for `Content-Type`.
fn usual_spelling(name: &str) -> String {
    match name {
        "etag" => return "ETag".to_owned(),
        "www-authenticate" => return "WWW-Authenticate".to_owned(),
        "te" => return "TE".to_owned(),
        _ => {}
    }
    let mut start = true;
    name.chars()
        .map(|character| {
            let spelled = if start {
                character.to_ascii_uppercase()
            } else {
                character
            };
            start = character == '-';
            spelled
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_names_of_constants() {
        for (code, expected) in [
            (200, "OK"),
            (404, "NOT_FOUND"),
            (418, "I_AM_A_TEAPOT"),
            (207, "MULTI_STATUS"),
            (599, "599"),
        ] {
            assert_eq!(StatusCode::from_u16(code).map(name).unwrap(), expected);
        }
    }
}
