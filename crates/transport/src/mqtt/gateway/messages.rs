//! The messages that gateways publish.

use fieldline_core::ports::StoreResult;
use fieldline_devices::directory::DeviceHandle;
use fieldline_model::json::{self, lenient};
use fieldline_model::timeseries::Attribute;
use fieldline_protobuf::api::{GatewayAttributeResponseMsg, PostAttributeMsg, PostTelemetryMsg};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{GatewayError, scope};
use crate::{TransportServices, payload};

/// The payload of one device.
pub(super) enum GatewayBody<M> {
    /// JSON text.
    Json(Box<RawValue>),
    Protobuf(M),
}

/// A message of a gateway.
pub(super) enum GatewayCommand {
    /// A device is connected, with its type.
    Connect(String, Option<String>),
    Disconnect(String),
    Telemetry(Vec<(String, GatewayBody<PostTelemetryMsg>)>),
    Attributes(Vec<(String, GatewayBody<PostAttributeMsg>)>),
    Request(GatewayAttributeRequest),
    Answer(GatewayRpcAnswer),
    Claim(Vec<(String, json::ClaimPayload)>),
}

#[derive(Deserialize)]
struct GatewayConnect {
    #[serde(deserialize_with = "lenient::text")]
    device: String,
    #[serde(rename = "type", default, deserialize_with = "lenient::optional_text")]
    device_type: Option<String>,
}

/// A request for attributes of a device.
pub(super) struct GatewayAttributeRequest {
    pub(super) id: i32,
    pub(super) device: String,
    /// Whether client attributes are requested; otherwise shared ones.
    pub(super) client: bool,
    /// The requested keys; empty for all.
    pub(super) keys: Vec<String>,
}

#[derive(Deserialize)]
struct JsonAttributeRequest {
    #[serde(deserialize_with = "lenient::whole")]
    id: i32,
    #[serde(deserialize_with = "lenient::text")]
    device: String,
    #[serde(default, deserialize_with = "lenient::flag")]
    client: bool,
    key: Option<AttributeNames>,
    keys: Option<AttributeNames>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AttributeNames {
    One(String),
    Some(Vec<String>),
}

/// A device's response to an RPC.
pub(super) struct GatewayRpcAnswer {
    pub(super) device: String,
    pub(super) id: i32,
    pub(super) data: String,
}

#[derive(Deserialize)]
struct JsonRpcAnswer {
    #[serde(deserialize_with = "lenient::text")]
    device: String,
    #[serde(deserialize_with = "lenient::whole")]
    id: i32,
    data: Box<RawValue>,
}

impl GatewayCommand {
    /// Parses a message by its topic, given without `v1/gateway`.
    pub(super) fn parse(topic: &str, payload: &[u8]) -> Result<Self, GatewayError> {
        Ok(match topic {
            "/connect" => {
                let connect: GatewayConnect = read(payload)?;
                Self::Connect(named(connect.device)?, connect.device_type)
            }
            "/disconnect" => Self::Disconnect(read::<GatewayConnect>(payload)?.device),
            "/telemetry" => {
                let devices = entries(payload, '[')?.into_iter();
                Self::Telemetry(
                    devices
                        .map(|(name, body)| (name, GatewayBody::Json(body)))
                        .collect(),
                )
            }
            "/attributes" => {
                let devices = entries(payload, '{')?.into_iter();
                Self::Attributes(
                    devices
                        .map(|(name, body)| (name, GatewayBody::Json(body)))
                        .collect(),
                )
            }
            "/attributes/request" => Self::Request(read::<JsonAttributeRequest>(payload)?.into()),
            "/rpc" => {
                let JsonRpcAnswer { device, id, data } = read(payload)?;
                let data = data.get().to_owned();
                Self::Answer(GatewayRpcAnswer { device, id, data })
            }
            "/claim" => {
                let devices = entries(payload, '{')?.into_iter();
                let devices = devices.map(|(name, body)| Ok((name, json::claim(body.get().as_bytes())?)));
                Self::Claim(devices.collect::<Result<_, GatewayError>>()?)
            }
            _ => return Err(GatewayError::UnknownTopic),
        })
    }
}

pub(super) fn named(name: String) -> Result<String, GatewayError> {
    if name.is_empty() {
        return Err(GatewayError::Malformed("the device has no name".to_owned()));
    }
    Ok(name)
}

fn read<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, GatewayError> {
    Ok(json::read(payload, "expected `device`, and what belongs to it")?)
}

/// Reads the entries by device whose value begins with `first`. Other entries are dropped, as servers of this API do,
/// but at least one must remain.
fn entries(payload: &[u8], first: char) -> Result<Vec<(String, Box<RawValue>)>, GatewayError> {
    let mut devices = json::entries(payload)?;
    devices.retain(|(_, body)| body.get().starts_with(first));
    some(devices)
}

/// Checks that there is at least one device, and that each has a name.
pub(super) fn some<T>(
    entries: impl IntoIterator<Item = (String, T)>,
) -> Result<Vec<(String, T)>, GatewayError> {
    let entries: Vec<_> = entries.into_iter().collect();
    if entries.is_empty() {
        return Err(GatewayError::Malformed("there is no device".to_owned()));
    }
    if entries.iter().any(|(name, _)| name.is_empty()) {
        return Err(GatewayError::Malformed("a device has no name".to_owned()));
    }
    Ok(entries)
}

impl From<JsonAttributeRequest> for GatewayAttributeRequest {
    fn from(request: JsonAttributeRequest) -> Self {
        let mut keys: Vec<String> = Vec::new();
        for asked in [request.key, request.keys].into_iter().flatten() {
            match asked {
                AttributeNames::One(key) => keys.push(key),
                AttributeNames::Some(several) => keys.extend(several),
            }
        }
        Self {
            id: request.id,
            device: request.device,
            client: request.client,
            keys,
        }
    }
}

impl GatewayAttributeRequest {
    /// Reads the requested attributes from the store.
    pub(super) async fn find(
        &mut self,
        services: &TransportServices,
        device: &DeviceHandle,
    ) -> StoreResult<Vec<Attribute>> {
        self.keys.retain(|key| !key.is_empty());
        let asked = (!self.keys.is_empty()).then_some(self.keys.as_slice());
        services
            .attributes
            .get(device.subject, scope(self.client), asked)
            .await
    }

    /// Returns `{"id", "device", "value"}` if one attribute was requested, else `values` in place of `value`; neither
    /// if nothing was found.
    pub(super) fn json_answer(&self, found: &[Attribute]) -> String {
        let mut out = format!("{{\"id\":{},\"device\":", self.id);
        json::write_string(&self.device, &mut out);
        match found {
            [] => {}
            [attribute] if self.keys.len() == 1 => {
                out.push_str(",\"value\":");
                attribute.value.as_ref().write_json(&mut out);
            }
            _ => {
                out.push_str(",\"values\":");
                payload::write_object(found, &mut out);
            }
        }
        out.push('}');
        out
    }

    /// Returns the response as a Protobuf message.
    pub(super) fn message(&self, found: &[Attribute]) -> GatewayAttributeResponseMsg {
        let (client, shared): (&[_], &[_]) = if self.client { (found, &[]) } else { (&[], found) };
        GatewayAttributeResponseMsg {
            device_name: self.device.clone(),
            response_msg: Some(payload::response(self.id, self.keys.len(), client, shared)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(topic: &str, payload: &str) -> Option<GatewayCommand> {
        GatewayCommand::parse(topic, payload.as_bytes()).ok()
    }

    #[test]
    fn messages_are_read_as_leniently_as_those_of_devices() {
        let Some(GatewayCommand::Telemetry(devices)) = parse("/telemetry", "{A: [{t:1}], B: 5, 'C': []}")
        else {
            panic!("it is telemetry");
        };
        let bodies: Vec<_> = devices
            .iter()
            .map(|(name, body)| match body {
                GatewayBody::Json(body) => (name.as_str(), body.get()),
                GatewayBody::Protobuf(_) => panic!("it is JSON"),
            })
            .collect();
        assert_eq!(bodies, [("A", r#"[{"t":1}]"#), ("C", "[]")]);
        assert!(matches!(
            parse("/connect", r#"{"device":"A","type":"meter"}"#),
            Some(GatewayCommand::Connect(name, Some(kind))) if name == "A" && kind == "meter"
        ));
        assert!(matches!(
            parse("/rpc", r#"{"device":"A","id":7,"data":{"ok":true}}"#),
            Some(GatewayCommand::Answer(answer)) if answer.id == 7 && answer.data == r#"{"ok":true}"#
        ));
        assert!(matches!(
            parse("/rpc", r#"{device:12,id:"7",data:5}"#),
            Some(GatewayCommand::Answer(answer)) if answer.id == 7 && answer.device == "12"
        ));
        assert!(matches!(
            parse("/attributes", r#"{"A":{"x":1},"B":5}"#),
            Some(GatewayCommand::Attributes(devices)) if devices.len() == 1
        ));
        for (topic, wrong) in [
            ("/connect", "{}"),
            ("/connect", r#"{"device":""}"#),
            ("/telemetry", "{}"),
            ("/telemetry", "[]"),
            ("/telemetry", r#"{"A":{"t":1}}"#),
            ("/attributes", ""),
            ("/attributes", r#"{"A":5}"#),
            ("/claim", r#"{"A":[]}"#),
            ("/rpc", r#"{"device":"A"}"#),
            ("/attributes/request", r#"{"device":"A"}"#),
        ] {
            assert!(parse(topic, wrong).is_none(), "{topic} {wrong}");
        }
    }
}
