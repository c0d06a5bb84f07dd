//! A decoder by reflection, with which the decoder by plan must agree byte for byte: for tests, fuzzing and speed
//! comparisons.
//!
//! It builds a tree of each message. In one respect it is more lenient than a decoder should be: it ignores the wire
//! type of a map.

mod decode;
mod text;

use fieldline_model::json::JsonRules;
use fieldline_model::record::{RecordBatch, TelemetryWriter};
use fieldline_model::{DeviceId, EntityKey, TenantId};

use crate::wire::WRONG_MAP;
use crate::{MessageError, ProtobufSchema};

pub use decode::{attributes, telemetry, to_json};

/// Decodes a message in all ways with both decoders.
///
/// # Errors
/// The decoders disagree; the text has both results.
pub fn check_agreement(schema: &ProtobufSchema, payload: &[u8]) -> Result<(), String> {
    let rules = JsonRules::default();
    compare(
        packed(|out| schema.attributes(payload, &rules, out)),
        packed(|out| attributes(schema, payload, &rules, out)),
    )?;
    compare(
        row(|out| schema.telemetry(payload, &rules, || 77, out)),
        row(|out| telemetry(schema, payload, &rules, || 77, out)),
    )?;
    compare(schema.to_json(payload), to_json(schema, payload))
}

fn packed(
    pack: impl FnOnce(&mut Vec<u8>) -> Result<u32, MessageError>,
) -> Result<(u32, Vec<u8>), MessageError> {
    let mut out = Vec::new();
    pack(&mut out).map(|count| (count, out))
}

fn row(
    write: impl FnOnce(&mut TelemetryWriter<'_>) -> Result<(), MessageError>,
) -> Result<Vec<u8>, MessageError> {
    let subject = EntityKey::device(TenantId::NULL, DeviceId::default());
    let mut batch = RecordBatch::new();
    let mut writer = batch.begin_telemetry(subject, 0, 0);
    write(&mut writer)?;
    writer.finish();
    Ok(batch.as_bytes().to_vec())
}

fn compare<T: PartialEq + std::fmt::Debug>(
    plan: Result<T, MessageError>,
    reflection: Result<T, MessageError>,
) -> Result<(), String> {
    let same = match (&plan, &reflection) {
        (Ok(plan), Ok(reflection)) => plan == reflection,
        (Err(MessageError::Malformed(error)), _) if *error == WRONG_MAP => true,
        (Err(MessageError::Malformed(_)), Err(MessageError::Unreadable(_))) => true,
        (Err(plan), Err(reflection)) => plan.to_string() == reflection.to_string(),
        _ => false,
    };
    if same {
        return Ok(());
    }
    Err(format!("{plan:?} by the plan, {reflection:?} by reflection"))
}
