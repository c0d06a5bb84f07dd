//! What the transport configuration of a device profile may say.

use fieldline_model::entity::DeviceProfile;
use fieldline_protobuf::PayloadSchemas;
use serde_json::Value;

use crate::services::{ServiceError, ServiceResult};

const TOPICS: [&str; 3] = [
    "deviceTelemetryTopic",
    "deviceAttributesTopic",
    "deviceAttributesSubscribeTopic",
];
/// Longest topic filter of MQTT, bytes.
const MAX_FILTER_BYTES: usize = u16::MAX as usize;

/// Refuses topics that no message can match, and wrong schemas.
pub(super) fn check(profile: &DeviceProfile) -> ServiceResult<()> {
    for name in TOPICS {
        let problem = match profile.transport_setting(name) {
            None | Some(Value::Null) => continue,
            Some(Value::String(filter)) => filter_problem(filter),
            Some(_) => Some("it is no text"),
        };
        if let Some(problem) = problem {
            return Err(ServiceError::invalid(format!(
                "[Transport Configuration] invalid {name} provided! The topic filter cannot be used: {problem}!"
            )));
        }
    }
    let Some(configuration) = profile.payload_configuration() else {
        return Ok(());
    };
    PayloadSchemas::compile(configuration)
        .map(drop)
        .map_err(|error| ServiceError::invalid(error.to_string()))
}

/// What is wrong with a topic filter; a blank one stands for the default.
fn filter_problem(filter: &str) -> Option<&'static str> {
    if filter.len() > MAX_FILTER_BYTES {
        return Some("it exceeds 65,535 bytes");
    }
    if filter.contains('\0') {
        return Some("it holds U+0000");
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        match level {
            "#" if levels.peek().is_some() => return Some("'#' is not its last level"),
            "#" | "+" => {}
            name if name.contains(['+', '#']) => return Some("a wildcard does not fill its level"),
            _ => {}
        }
    }
    None
}
