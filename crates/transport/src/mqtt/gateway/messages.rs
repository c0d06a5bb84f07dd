//! What gateways publish.

use fieldline_core::devices::DeviceHandle;
use fieldline_core::ports::StoreResult;
use fieldline_model::json;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Problem, scope};
use crate::Services;

/// JSON text of one device.
pub(super) type Body = Box<RawValue>;

/// A message of a gateway.
pub(super) enum Message {
    /// A device is there, of that type.
    Connect(String, Option<String>),
    Disconnect(String),
    Telemetry(Vec<(String, Body)>),
    Attributes(Vec<(String, Body)>),
    Request(Request),
    Answer(Answer),
    Claim(Vec<(String, Body)>),
}

#[derive(Deserialize)]
struct Connect {
    device: String,
    #[serde(rename = "type")]
    device_type: Option<String>,
}

/// Asks for attributes of a device.
#[derive(Deserialize)]
pub(super) struct Request {
    id: i32,
    pub(super) device: String,
    /// Client attributes; otherwise shared ones.
    #[serde(default)]
    client: bool,
    key: Option<Keys>,
    keys: Option<Keys>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Keys {
    One(String),
    Some(Vec<String>),
}

/// What a device has answered to a call.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) device: String,
    pub(super) id: i32,
    pub(super) data: Body,
}

impl Message {
    /// Reads what was published on a topic, given behind `v1/gateway`.
    pub(super) fn parse(topic: &str, payload: &[u8]) -> Result<Self, Problem> {
        Ok(match topic {
            "/connect" => {
                let connect: Connect = read(payload)?;
                Self::Connect(named(connect.device)?, connect.device_type)
            }
            "/disconnect" => Self::Disconnect(read::<Connect>(payload)?.device),
            "/telemetry" => {
                let mut devices = entries(payload)?;
                // What is no list is left out, as servers of this API do.
                devices.retain(|(_, body)| body.get().starts_with('['));
                Self::Telemetry(devices)
            }
            "/attributes" => Self::Attributes(entries(payload)?),
            "/attributes/request" => Self::Request(read(payload)?),
            "/rpc" => Self::Answer(read(payload)?),
            "/claim" => Self::Claim(entries(payload)?),
            _ => return Err(Problem::UnknownTopic),
        })
    }
}

fn named(name: String) -> Result<String, Problem> {
    if name.is_empty() {
        return Err(Problem::Malformed("the device has no name".to_owned()));
    }
    Ok(name)
}

fn read<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, Problem> {
    Ok(json::read(payload, "expected `device`, and what belongs to it")?)
}

fn entries(payload: &[u8]) -> Result<Vec<(String, Body)>, Problem> {
    let entries = json::entries(payload)?;
    if entries.is_empty() {
        return Err(Problem::Malformed("there is no device".to_owned()));
    }
    if entries.iter().any(|(name, _)| name.is_empty()) {
        return Err(Problem::Malformed("a device has no name".to_owned()));
    }
    Ok(entries)
}

impl Request {
    /// `{"id", "device", "value"}` where one attribute was asked for, else with `values`.
    pub(super) async fn answer(&self, services: &Services, device: &DeviceHandle) -> StoreResult<String> {
        let mut keys: Vec<String> = Vec::new();
        for asked in [&self.key, &self.keys].into_iter().flatten() {
            match asked {
                Keys::One(key) => keys.push(key.clone()),
                Keys::Some(several) => keys.extend(several.iter().cloned()),
            }
        }
        keys.retain(|key| !key.is_empty());
        let asked = (!keys.is_empty()).then_some(keys.as_slice());
        let found = services
            .attributes
            .get(device.subject, scope(self.client), asked)
            .await?;
        let mut out = format!("{{\"id\":{},\"device\":", self.id);
        json::write_string(&self.device, &mut out);
        if keys.len() == 1 {
            if let Some(attribute) = found.first() {
                out.push_str(",\"value\":");
                attribute.value.as_ref().write_json(&mut out);
            }
        } else {
            out.push_str(",\"values\":");
            crate::payload::write_object(&found, &mut out);
        }
        out.push('}');
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(topic: &str, payload: &str) -> Option<Message> {
        Message::parse(topic, payload.as_bytes()).ok()
    }

    #[test]
    fn messages_are_read_as_leniently_as_those_of_devices() {
        let Some(Message::Telemetry(devices)) = parse("/telemetry", "{A: [{t:1}], B: 5, 'C': []}") else {
            panic!("it is telemetry");
        };
        let bodies: Vec<_> = devices
            .iter()
            .map(|(name, body)| (name.as_str(), body.get()))
            .collect();
        assert_eq!(bodies, [("A", r#"[{"t":1}]"#), ("C", "[]")]);
        assert!(matches!(
            parse("/connect", r#"{"device":"A","type":"meter"}"#),
            Some(Message::Connect(name, Some(kind))) if name == "A" && kind == "meter"
        ));
        assert!(matches!(
            parse("/rpc", r#"{"device":"A","id":7,"data":{"ok":true}}"#),
            Some(Message::Answer(answer)) if answer.id == 7 && answer.data.get() == r#"{"ok":true}"#
        ));
        for (topic, wrong) in [
            ("/connect", "{}"),
            ("/connect", r#"{"device":""}"#),
            ("/telemetry", "{}"),
            ("/telemetry", "[]"),
            ("/attributes", ""),
            ("/rpc", r#"{"device":"A"}"#),
            ("/attributes/request", r#"{"device":"A"}"#),
        ] {
            assert!(parse(topic, wrong).is_none(), "{topic} {wrong}");
        }
    }
}
