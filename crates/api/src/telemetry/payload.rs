//! Bodies that save telemetry and attributes: the same formats that devices send, with stricter rules.
//!
//! API clients get an error where a device does not: for a null, for a body without a value, for a name that is blank,
//! too long, or would run as markup in a browser that shows it.

use fieldline_core::ports::{TelemetryRow, TelemetrySaveStrategy};
use fieldline_model::EntityKey;
use fieldline_model::json::{self, JsonRules, NullPolicy};
use fieldline_model::kv::{CorruptData, unpack, write_object};
use fieldline_model::record::{JournalRecord, RecordBatch, RecordBody, rows, split};

use serde_json::value::RawValue;

use super::params::BadInput;

/// Longest name, in UTF-16 code units as clients count them.
const MAX_NAME_UNITS: usize = 255;

fn rules(type_cast: bool) -> JsonRules {
    JsonRules {
        type_cast,
        nulls: NullPolicy::Reject,
        ..JsonRules::default()
    }
}

/// Points to save, encoded as journal records.
#[derive(Debug)]
pub(super) struct PointBatch(RecordBatch);

impl PointBatch {
    /// Parses a body; `now` returns the timestamp of values without one.
    pub(super) fn parse(
        body: &[u8],
        subject: EntityKey,
        received_ms: i64,
        ttl_seconds: u32,
        type_cast: bool,
        now: impl FnOnce() -> i64,
    ) -> Result<Self, BadInput> {
        let mut batch = RecordBatch::new();
        let mut writer = batch.begin_telemetry(subject, received_ms, ttl_seconds);
        json::telemetry(body, &rules(type_cast), now, &mut writer)
            .map_err(|error| BadInput(format!("Invalid JSON body: {error}")))?;
        if writer.finish() == 0 {
            return Err(BadInput::new("The request body holds no time series data"));
        }
        let points = Self(batch);
        for row in points.rows().map_err(inconsistent)? {
            check_names(row.values)?;
        }
        Ok(points)
    }

    /// Decodes the points into rows for the store.
    pub(super) fn rows(&self) -> Result<Vec<TelemetryRow<'_>>, CorruptData> {
        let mut all = Vec::new();
        for record in split(self.0.as_bytes()) {
            let record = JournalRecord::decode(record?)?;
            let RecordBody::Telemetry {
                ttl_seconds,
                rows: bytes,
            } = record.body
            else {
                continue;
            };
            for row in rows(bytes) {
                let row = row?;
                all.push(TelemetryRow {
                    strategy: TelemetrySaveStrategy::ALL,
                    subject: record.subject,
                    ts: row.ts,
                    ttl_seconds,
                    values: row.values,
                });
            }
        }
        Ok(all)
    }
}

/// Renders packed key-values as a JSON object.
pub(super) fn object(values: &[u8]) -> Result<Box<RawValue>, CorruptData> {
    let mut text = String::with_capacity(values.len() * 2);
    write_object(values, &mut text)?;
    raw(text)
}

/// Renders rows as a JSON list of `{"ts", "values"}`.
pub(super) fn list(rows: &[TelemetryRow<'_>]) -> Result<Box<RawValue>, CorruptData> {
    let mut text = String::from("[");
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str("{\"ts\":");
        text.push_str(&row.ts.to_string());
        text.push_str(",\"values\":");
        write_object(row.values, &mut text)?;
        text.push('}');
    }
    text.push(']');
    raw(text)
}

fn raw(text: String) -> Result<Box<RawValue>, CorruptData> {
    RawValue::from_string(text).map_err(|_| CorruptData("values that make no JSON"))
}

/// Parses a body of attributes into packed key-values.
pub(super) fn attributes(body: &[u8], type_cast: bool) -> Result<Vec<u8>, BadInput> {
    let mut values = Vec::new();
    let count = json::attributes(body, &rules(type_cast), &mut values)
        .map_err(|error| BadInput(format!("Invalid JSON body: {error}")))?;
    if count == 0 {
        return Err(BadInput::new("The request body holds no attributes"));
    }
    check_names(&values)?;
    Ok(values)
}

fn check_names(values: &[u8]) -> Result<(), BadInput> {
    for item in unpack(values) {
        let (name, _) = item.map_err(inconsistent)?;
        if name.trim().is_empty() {
            return Err(BadInput::new("Key cannot be blank"));
        }
        if name.encode_utf16().count() > MAX_NAME_UNITS {
            return Err(BadInput(format!(
                "Key is longer than {MAX_NAME_UNITS} characters"
            )));
        }
        if is_markup(name) {
            return Err(BadInput::new("Key is malformed"));
        }
    }
    Ok(())
}

/// Values packed by the parser always unpack; if they did not, an error would be better than a panic.
fn inconsistent(error: CorruptData) -> BadInput {
    BadInput(error.to_string())
}

/// Whether a text contains a tag or a template expression, which pages would run that show names unescaped.
fn is_markup(text: &str) -> bool {
    let is_template = text.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}"));
    let has_tag = || {
        text.match_indices('<').any(|(at, _)| {
            let rest = text.get(at + 1..).unwrap_or_default();
            rest.starts_with(|next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'))
                && rest.contains('>')
        })
    };
    is_template || has_tag()
}

/// Parses the time-to-live in a path, seconds; 0 or less means the default (`None`).
pub(super) fn ttl(text: &str) -> Result<Option<u32>, BadInput> {
    let seconds: i64 = text
        .trim()
        .parse()
        .map_err(|_| BadInput(format!("Invalid time to live '{text}'")))?;
    Ok((seconds > 0).then(|| u32::try_from(seconds).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::KvValueRef;
    use fieldline_model::{DeviceId, TenantId};

    use super::*;

    fn parse(body: &str) -> Result<Vec<(i64, String, String)>, BadInput> {
        let subject = EntityKey::device(TenantId::NULL, DeviceId::NULL);
        let points = PointBatch::parse(body.as_bytes(), subject, 5, 60, true, || 77)?;
        let mut all = Vec::new();
        for row in points.rows().unwrap() {
            assert_eq!((row.subject, row.ttl_seconds), (subject, 60));
            for item in unpack(row.values) {
                let (name, value) = item.unwrap();
                all.push((row.ts, name.to_owned(), value.to_value().to_text()));
            }
        }
        Ok(all)
    }

    #[test]
    fn every_form_of_telemetry_is_understood() {
        let point = |ts: i64, name: &str, text: &str| (ts, name.to_owned(), text.to_owned());
        for (body, points) in [
            (
                r#"{"a":1,"b":"x"}"#,
                vec![point(77, "a", "1"), point(77, "b", "x")],
            ),
            (r#"{"ts":9,"values":{"a":true}}"#, vec![point(9, "a", "true")]),
            (
                r#"{"ts":9,"a":1}"#,
                vec![point(77, "ts", "9"), point(77, "a", "1")],
            ),
            (
                r#"[{"a":1.5},{"ts":3,"values":{"a":{"b":[1]}}},{"c":2}]"#,
                vec![
                    point(77, "a", "1.5"),
                    point(3, "a", r#"{"b":[1]}"#),
                    point(77, "c", "2"),
                ],
            ),
            ("{a:1}", vec![point(77, "a", "1")]),
        ] {
            assert_eq!(parse(body).unwrap(), points, "{body}");
        }
    }

    #[test]
    fn people_get_an_error_where_devices_are_forgiven() {
        let long = format!(r#"{{"{}":1}}"#, "ä".repeat(MAX_NAME_UNITS + 1));
        for body in [
            "",
            "{",
            "null",
            "5",
            "[1]",
            "{}",
            "[]",
            r#"{"a":null}"#,
            r#"{"a":1,"b":null}"#,
            r#"{"":1}"#,
            r#"{" ":1}"#,
            r#"{"<b onclick=x>y</b>":1}"#,
            r#"{"{{constructor}}":1}"#,
            &long,
        ] {
            assert!(parse(body).is_err(), "{body}");
            assert!(attributes(body.as_bytes(), true).is_err(), "{body}");
        }
        assert!(attributes(br#"[{"a":1}]"#, true).is_err());
        assert!(parse(&format!(r#"{{"{}":1}}"#, "ä".repeat(MAX_NAME_UNITS))).is_ok());
    }

    #[test]
    fn comparisons_in_names_are_no_markup() {
        for (text, markup) in [
            ("a<b", false),
            ("a < b > c", false),
            ("<b>", true),
            ("</p>", true),
            ("{{x", false),
        ] {
            assert_eq!(is_markup(text), markup, "{text}");
        }
    }

    #[test]
    fn attributes_are_packed() {
        let values = attributes(br#"{"on":true,"n":"12"}"#, true).unwrap();
        let unpacked: Vec<_> = unpack(&values).map(Result::unwrap).collect();
        assert_eq!(
            unpacked,
            [("on", KvValueRef::Bool(true)), ("n", KvValueRef::Long(12))]
        );
    }

    #[test]
    fn a_time_to_live_of_nothing_is_the_default() {
        assert_eq!(ttl("0"), Ok(None));
        assert_eq!(ttl("-1"), Ok(None));
        assert_eq!(ttl("60"), Ok(Some(60)));
        assert_eq!(ttl("99999999999999"), Ok(Some(u32::MAX)));
        assert!(ttl("soon").is_err());
    }
}
