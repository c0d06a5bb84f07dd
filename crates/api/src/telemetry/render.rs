//! The JSON of responses, written directly into one string.

use fieldline_model::json::write_string;
use fieldline_model::kv::{KvValue, KvValueRef};
use fieldline_model::timeseries::{Attribute, DataPoint, LatestValue};

/// Whether values of series keep their JSON type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueTyping {
    /// Every value is a string, also booleans (`"true"`) and JSON.
    Strings,
    /// Values keep their JSON type.
    Strict,
}

/// A JSON object of series under construction: `{"key":[{"ts":1,"value":"x"},…],…}`. A series without a point is left
/// out.
#[derive(Debug)]
pub(super) struct SeriesObject {
    out: String,
    typing: ValueTyping,
    series: usize,
    points: usize,
}

impl SeriesObject {
    /// Creates an object without a series.
    pub(super) fn new(typing: ValueTyping) -> Self {
        Self {
            out: String::from("{"),
            typing,
            series: 0,
            points: 0,
        }
    }

    /// Adds points to a series, which must be a new one or the last one added to.
    pub(super) fn add(&mut self, key: &str, points: &[DataPoint]) {
        if points.is_empty() {
            return;
        }
        // Enough for numbers; the string grows for long texts.
        self.out.reserve(points.len() * 40);
        for point in points {
            self.begin_point(key, point.ts);
            match self.typing {
                ValueTyping::Strict => point.value.as_ref().write_json(&mut self.out),
                ValueTyping::Strings => write_as_string(&point.value, &mut self.out),
            }
            self.out.push('}');
        }
    }

    /// Adds a series with one point that has no value.
    pub(super) fn add_null(&mut self, key: &str, ts: i64) {
        self.begin_point(key, ts);
        self.out.push_str("null}");
    }

    /// Ends the current series: the next point begins another one.
    pub(super) fn end_series(&mut self) {
        if self.points > 0 {
            self.out.push(']');
            self.points = 0;
        }
    }

    /// Takes the text written so far.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Ends the object and returns the text not taken yet.
    pub(super) fn finish(mut self) -> String {
        self.close();
        self.out
    }

    /// Ends the object.
    pub(super) fn close(&mut self) {
        self.end_series();
        self.out.push('}');
    }

    /// Bytes written and not taken yet.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    fn begin_point(&mut self, key: &str, ts: i64) {
        if self.points == 0 {
            if self.series > 0 {
                self.out.push(',');
            }
            self.series += 1;
            write_string(key, &mut self.out);
            self.out.push_str(":[");
        } else {
            self.out.push(',');
        }
        self.points += 1;
        self.out.push_str("{\"ts\":");
        KvValueRef::Long(ts).write_json(&mut self.out);
        self.out.push_str(",\"value\":");
    }
}

fn write_as_string(value: &KvValue, out: &mut String) {
    match value.as_ref() {
        KvValueRef::Text(text) | KvValueRef::Json(text) => write_string(text, out),
        plain => {
            out.push('"');
            plain.write_json(out);
            out.push('"');
        }
    }
}

/// Renders latest values: all of them sorted by name, or the named ones in the given order. A named series without a
/// value is null, at the current time.
pub(super) fn latest(
    values: &[LatestValue],
    named: Option<&[String]>,
    typing: ValueTyping,
    now_ms: i64,
) -> String {
    let mut object = SeriesObject::new(typing);
    let Some(named) = named else {
        for value in values {
            object.add(&value.key, std::slice::from_ref(&value.point));
            object.end_series();
        }
        return object.finish();
    };
    for key in named {
        let found = values.binary_search_by(|value| value.key.as_str().cmp(key));
        match found.ok().and_then(|at| values.get(at)) {
            Some(value) => object.add(key, std::slice::from_ref(&value.point)),
            None => object.add_null(key, now_ms),
        }
        object.end_series();
    }
    object.finish()
}

/// Renders attributes: `[{"lastUpdateTs":1,"key":"k","value":true},…]`; values keep their JSON type.
pub(super) fn attributes<'a>(attributes: impl IntoIterator<Item = &'a Attribute>) -> String {
    let mut out = String::from("[");
    for attribute in attributes {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str("{\"lastUpdateTs\":");
        KvValueRef::Long(attribute.last_update_ts).write_json(&mut out);
        out.push_str(",\"key\":");
        write_string(&attribute.key, &mut out);
        out.push_str(",\"value\":");
        attribute.value.as_ref().write_json(&mut out);
        out.push('}');
    }
    out.push(']');
    out
}

/// Renders names: `["a","b"]`.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::from("[");
    for name in names {
        if out.len() > 1 {
            out.push(',');
        }
        write_string(name, &mut out);
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<DataPoint> {
        [
            KvValue::Bool(true),
            KvValue::Long(-3),
            KvValue::Double(25.0),
            KvValue::Text("a \"quoted\"\n".into()),
            KvValue::Json("{\"x\":[1]}".into()),
        ]
        .into_iter()
        .zip(1..)
        .map(|(value, ts)| DataPoint { ts, value })
        .collect()
    }

    #[test]
    fn values_are_strings_unless_types_are_asked_for() {
        let mut object = SeriesObject::new(ValueTyping::Strings);
        object.add("k", &points());
        assert_eq!(
            object.finish(),
            r#"{"k":[{"ts":1,"value":"true"},{"ts":2,"value":"-3"},{"ts":3,"value":"25.0"},{"ts":4,"value":"a \"quoted\"\n"},{"ts":5,"value":"{\"x\":[1]}"}]}"#
        );
        let mut object = SeriesObject::new(ValueTyping::Strict);
        object.add("k", &points());
        assert_eq!(
            object.finish(),
            r#"{"k":[{"ts":1,"value":true},{"ts":2,"value":-3},{"ts":3,"value":25.0},{"ts":4,"value":"a \"quoted\"\n"},{"ts":5,"value":{"x":[1]}}]}"#
        );
    }

    #[test]
    fn series_may_come_in_pieces_and_empty_ones_are_left_out() {
        let all = points();
        let (first, rest) = all.split_at(2);
        let mut object = SeriesObject::new(ValueTyping::Strict);
        object.add("empty", &[]);
        object.end_series();
        object.add("a", first);
        let mut text = object.take();
        object.add("a", &rest[..1]);
        object.end_series();
        object.add("b", first);
        text.push_str(&object.finish());
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["a"].as_array().unwrap().len(), 3);
        assert_eq!(parsed["b"][1], serde_json::json!({"ts": 2, "value": -3}));
        assert!(parsed.get("empty").is_none());
        assert_eq!(SeriesObject::new(ValueTyping::Strict).finish(), "{}");
    }

    #[test]
    fn a_named_series_without_a_value_is_null_now() {
        let values = [LatestValue {
            key: "b".into(),
            point: DataPoint {
                ts: 5,
                value: KvValue::Long(1),
            },
        }];
        let named = ["a".to_owned(), "b".to_owned()];
        assert_eq!(
            latest(&values, Some(&named), ValueTyping::Strings, 99),
            r#"{"a":[{"ts":99,"value":null}],"b":[{"ts":5,"value":"1"}]}"#
        );
        assert_eq!(
            latest(&values, None, ValueTyping::Strict, 99),
            r#"{"b":[{"ts":5,"value":1}]}"#
        );
    }

    #[test]
    fn attributes_keep_their_types() {
        let list = [
            Attribute {
                key: "on".into(),
                value: KvValue::Bool(true),
                last_update_ts: 7,
            },
            Attribute {
                key: "v\"".into(),
                value: KvValue::Text("1".into()),
                last_update_ts: 8,
            },
        ];
        assert_eq!(
            attributes(&list),
            r#"[{"lastUpdateTs":7,"key":"on","value":true},{"lastUpdateTs":8,"key":"v\"","value":"1"}]"#
        );
        assert_eq!(names(["a", "b"]), r#"["a","b"]"#);
    }
}
