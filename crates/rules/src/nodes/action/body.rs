//! Bodies of messages as packed key-values.

use std::borrow::Cow;
use std::ops::Deref;

use bytes::Bytes;
use fieldline_model::json::{self, JsonRules};
use fieldline_model::record::{self, JournalRecord, RecordBatch, RecordBody};
use fieldline_model::{EntityKey, TenantId};

use crate::message::MessageBody;
use crate::node::NodeError;

/// Key-values by their times. The usual single row costs no allocation.
pub(super) enum KeyValueRows {
    One([(i64, Bytes); 1]),
    Many(Vec<(i64, Bytes)>),
}

impl Deref for KeyValueRows {
    type Target = [(i64, Bytes)];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::One(row) => row,
            Self::Many(rows) => rows,
        }
    }
}

fn text(data: &MessageBody) -> Cow<'_, str> {
    data.to_text()
}

/// The rows of a telemetry body: an object of values, an object with `ts` and `values`, or an array of both. What has no
/// time of its own gets `ts`. Nothing where the body holds no value.
pub(super) fn telemetry(data: &MessageBody, ts: i64) -> Result<KeyValueRows, NodeError> {
    if let MessageBody::Packed(bytes) = data
        && !bytes.is_empty()
    {
        return Ok(KeyValueRows::One([(ts, bytes.clone())]));
    }
    let mut rows = Vec::new();
    let mut batch = RecordBatch::new();
    // The record is only a vessel: nobody reads whose it is.
    let nobody = EntityKey {
        tenant: TenantId::NULL,
        entity: TenantId::NULL.into(),
    };
    let mut writer = batch.begin_telemetry(nobody, ts, 0);
    json::telemetry(text(data).as_bytes(), &JsonRules::default(), || ts, &mut writer)
        .map_err(|error| NodeError::new(format!("the body is no telemetry: {error}")))?;
    if writer.finish() == 0 {
        return Ok(KeyValueRows::Many(rows));
    }
    let bytes = Bytes::copy_from_slice(batch.as_bytes());
    let corrupt = |error| NodeError::new(format!("the body is no telemetry: {error}"));
    for record in record::split(&bytes) {
        let record = JournalRecord::decode(record.map_err(corrupt)?).map_err(corrupt)?;
        let RecordBody::Telemetry { rows: packed, .. } = record.body else {
            continue;
        };
        for row in record::rows(packed) {
            let row = row.map_err(corrupt)?;
            rows.push((row.ts, bytes.slice_ref(row.values)));
        }
    }
    Ok(KeyValueRows::Many(rows))
}

/// The key-values of an attributes body, empty where it holds none.
pub(super) fn attributes(data: &MessageBody) -> Result<Bytes, NodeError> {
    if let MessageBody::Packed(bytes) = data {
        return Ok(bytes.clone());
    }
    let mut packed = Vec::new();
    json::attributes(text(data).as_bytes(), &JsonRules::default(), &mut packed)
        .map_err(|error| NodeError::new(format!("the body holds no attributes: {error}")))?;
    Ok(packed.into())
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::{KvValueRef, unpack};
    use serde_json::json;

    use super::*;

    fn values(packed: &[u8]) -> Vec<(&str, KvValueRef<'_>)> {
        unpack(packed).map(Result::unwrap).collect()
    }

    #[test]
    fn what_a_device_sent_is_handed_on_without_a_copy() {
        let mut packed = Vec::new();
        fieldline_model::kv::pack("t", KvValueRef::Long(1), &mut packed);
        let bytes = Bytes::from(packed);
        let rows = telemetry(&MessageBody::Packed(bytes.clone()), 7).unwrap();
        assert_eq!((rows[0].0, rows[0].1.as_ptr()), (7, bytes.as_ptr()));
        assert_eq!(
            attributes(&MessageBody::Packed(bytes.clone())).unwrap().as_ptr(),
            bytes.as_ptr()
        );
    }

    #[test]
    fn every_form_of_telemetry_is_read() {
        let plain = telemetry(
            &MessageBody::json(json!({ "a": 25.0, "b": "7", "c": null, "d": {"e": 1} })),
            9,
        )
        .unwrap();
        assert_eq!(plain[0].0, 9);
        assert_eq!(
            values(&plain[0].1),
            [
                ("a", KvValueRef::Double(25.0)),
                ("b", KvValueRef::Long(7)),
                ("d", KvValueRef::Json("{\"e\":1}"))
            ]
        );
        let many = telemetry(
            &MessageBody::text("[{\"ts\":1,\"values\":{\"a\":1}},{\"a\":true}]"),
            9,
        )
        .unwrap();
        let times: Vec<_> = many
            .iter()
            .map(|(ts, packed)| (*ts, values(packed)[0].1))
            .collect();
        assert_eq!(times, [(1, KvValueRef::Long(1)), (9, KvValueRef::Bool(true))]);
        for empty in ["{}", "[]", "{\"ts\":1,\"values\":{}}"] {
            assert!(
                telemetry(&MessageBody::text(empty), 9).unwrap().is_empty(),
                "{empty}"
            );
        }
        for wrong in ["", "1", "[1]", "{\"ts\":"] {
            assert!(telemetry(&MessageBody::text(wrong), 9).is_err(), "{wrong}");
        }
        assert!(attributes(&MessageBody::text("[]")).is_err());
        assert!(attributes(&MessageBody::text("{}")).unwrap().is_empty());
    }
}
