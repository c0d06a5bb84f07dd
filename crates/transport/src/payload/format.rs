//! The payload formats of a device: JSON, or Protobuf by the schemas of its profile. Independent of the transport:
//! converts payloads to records, requests and answers, and back.

use fieldline_devices::directory::{DeviceHandle, DeviceSettings};
use fieldline_devices::downlink::{AttributeUpdate, ToDeviceRpc};
use fieldline_model::json::{self, JsonError};
use fieldline_model::kv;
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::{Attribute, AttributeScope};
use fieldline_protobuf::api::{
    self, AttributeUpdateNotificationMsg, AttributesRequest, ClaimDevice, GetAttributeResponseMsg,
    KeyValueProto, RpcRequestProto, ToServerRpcResponseMsg, TsKvProto,
};
use fieldline_protobuf::{MessageError, PayloadSchemas};
use prost::Message as _;
use serde::Deserialize;

use super::{DeviceAttributeRequest, RequestedAttributes};
use crate::TransportServices;

/// Why a payload was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PayloadError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Protobuf(#[from] MessageError),
    #[error("the device's profile has no Protobuf schemas")]
    NoSchema,
}

/// The format of a payload.
#[derive(Clone, Copy)]
pub(crate) enum PayloadFormat<'p> {
    Json,
    /// Protobuf by these schemas; without schemas, only messages that the platform defines can be read.
    Protobuf(Option<&'p PayloadSchemas>),
    /// Protobuf; a payload that is not valid Protobuf is read as JSON.
    Either(&'p PayloadSchemas),
}

impl<'p> PayloadFormat<'p> {
    /// The format a device sends, unless the request itself names one.
    pub(crate) fn uplink(payloads: Option<&'p PayloadSchemas>) -> Self {
        match payloads {
            None => Self::Json,
            Some(payloads) if payloads.json_too => Self::Either(payloads),
            Some(_) => Self::Protobuf(payloads),
        }
    }

    /// The format a device receives, unless it has asked for one.
    pub(crate) fn downlink(payloads: Option<&'p PayloadSchemas>) -> Self {
        match payloads {
            None => Self::Json,
            Some(_) => Self::Protobuf(payloads),
        }
    }

    /// The format in both directions over CoAP, where a payload that does not match the schemas is never read as JSON.
    pub(crate) fn over_coap(settings: &'p DeviceSettings) -> Self {
        Self::downlink(settings.coap_payloads.as_deref())
    }

    /// Reads a payload in this format.
    fn read<C, T>(
        self,
        context: &mut C,
        protobuf: impl FnOnce(&mut C, Option<&PayloadSchemas>) -> Result<T, PayloadError>,
        json: impl FnOnce(&mut C) -> Result<T, JsonError>,
    ) -> Result<T, PayloadError> {
        match self {
            Self::Json => Ok(json(context)?),
            Self::Protobuf(payloads) => protobuf(context, payloads),
            Self::Either(payloads) => match protobuf(context, Some(payloads)) {
                Ok(read) => Ok(read),
                Err(_) => Ok(json(context)?),
            },
        }
    }

    /// Adds a telemetry message to the batch. A message without data points adds nothing.
    pub(crate) fn telemetry(
        self,
        services: &TransportServices,
        device: &DeviceHandle,
        ttl_seconds: u32,
        payload: &[u8],
        batch: &mut RecordBatch,
    ) -> Result<(), PayloadError> {
        let protobuf = |batch: &mut RecordBatch, payloads: Option<&PayloadSchemas>| {
            let schema = &payloads.ok_or(PayloadError::NoSchema)?.telemetry;
            let now_ms = services.clock.now_ms();
            let mut record = batch.begin_telemetry(device.subject, now_ms, ttl_seconds);
            schema.telemetry(payload, &services.json, || device.times.next(now_ms), &mut record)?;
            record.finish();
            Ok(())
        };
        self.read(batch, protobuf, |batch| {
            super::telemetry(services, device, ttl_seconds, payload, batch)
        })
    }

    /// Adds a message with client attributes to the batch. A message without attributes adds nothing.
    pub(crate) fn attributes(
        self,
        services: &TransportServices,
        device: &DeviceHandle,
        payload: &[u8],
        batch: &mut RecordBatch,
    ) -> Result<(), PayloadError> {
        let protobuf = |batch: &mut RecordBatch, payloads: Option<&PayloadSchemas>| {
            let schema = &payloads.ok_or(PayloadError::NoSchema)?.attributes;
            let now_ms = services.clock.now_ms();
            let mut record = batch.begin_attributes(device.subject, now_ms, AttributeScope::Client);
            schema.attributes(payload, &services.json, record.buffer())?;
            record.finish();
            Ok(())
        };
        self.read(batch, protobuf, |batch| {
            super::attributes(services, device, payload, batch)
        })
    }

    /// Reads an attribute request of a device.
    pub(crate) fn attribute_request(self, payload: &[u8]) -> Result<DeviceAttributeRequest, PayloadError> {
        let protobuf = |(): &mut (), _: Option<&PayloadSchemas>| {
            let request: AttributesRequest = api::read(payload)?;
            let keys = |list: &str| {
                let keys = list.split(',').filter(|key| !key.is_empty());
                (!list.is_empty()).then(|| keys.map(str::to_owned).collect())
            };
            Ok(DeviceAttributeRequest {
                client_keys: keys(&request.client_keys),
                shared_keys: keys(&request.shared_keys),
            })
        };
        self.read(&mut (), protobuf, |()| DeviceAttributeRequest::parse(payload))
    }

    /// Reads an RPC request of a device.
    pub(crate) fn call(self, payload: &[u8]) -> Result<json::ClientRpcRequest, PayloadError> {
        let protobuf = |(): &mut (), _: Option<&PayloadSchemas>| {
            let call: RpcRequestProto = api::read(payload)?;
            if call.method.is_empty() {
                return Err(MessageError::Invalid("the call names no method").into());
            }
            Ok(json::ClientRpcRequest {
                method: call.method,
                params: as_json(call.params),
            })
        };
        self.read(&mut (), protobuf, |()| json::client_rpc(payload))
    }

    /// Reads a device's response to an RPC, as text.
    pub(crate) fn answer(self, payload: &[u8]) -> Result<String, PayloadError> {
        let protobuf = |(): &mut (), payloads: Option<&PayloadSchemas>| {
            let schema = &payloads.ok_or(PayloadError::NoSchema)?.answer;
            Ok(schema.to_json(payload)?)
        };
        self.read(&mut (), protobuf, |()| {
            Ok(String::from_utf8_lossy(payload).into_owned())
        })
    }

    /// Reads a claim request of a device.
    pub(crate) fn claim(self, payload: &[u8]) -> Result<json::ClaimPayload, PayloadError> {
        let protobuf = |(): &mut (), _: Option<&PayloadSchemas>| {
            let claim: ClaimDevice = api::read(payload)?;
            Ok(json::ClaimPayload {
                secret_key: claim.secret_key,
                duration_ms: claim.duration_ms,
            })
        };
        self.read(&mut (), protobuf, |()| json::claim(payload))
    }

    /// Encodes an update of shared attributes.
    pub(crate) fn update(self, update: &AttributeUpdate, now_ms: i64) -> Vec<u8> {
        match self {
            Self::Json => update.to_json().into_bytes(),
            Self::Protobuf(_) | Self::Either(_) => notification(update, now_ms).encode_to_vec(),
        }
    }

    /// Encodes the shared attributes of a device that begins to observe them.
    pub(crate) fn shared(self, shared: &[Attribute]) -> Vec<u8> {
        match self {
            Self::Json => {
                let mut out = String::new();
                super::write_object(shared, &mut out);
                out.into_bytes()
            }
            Self::Protobuf(_) | Self::Either(_) => {
                let message = AttributeUpdateNotificationMsg {
                    shared_updated: shared.iter().map(TsKvProto::of).collect(),
                    shared_deleted: Vec::new(),
                };
                message.encode_to_vec()
            }
        }
    }

    /// Encodes the response to an attribute request.
    pub(crate) fn found(
        self,
        number: i32,
        request: &DeviceAttributeRequest,
        found: &RequestedAttributes,
    ) -> Vec<u8> {
        match self {
            Self::Json => found.to_json().into_bytes(),
            Self::Protobuf(_) | Self::Either(_) => {
                let names = [&request.client_keys, &request.shared_keys];
                let names: usize = names.into_iter().flatten().map(Vec::len).sum();
                response(number, names, &found.client, &found.shared).encode_to_vec()
            }
        }
    }

    /// Encodes an RPC request to the device.
    ///
    /// # Errors
    /// The request does not fit the schema of the profile.
    pub(crate) fn device_call(self, call: &ToDeviceRpc) -> Result<Vec<u8>, PayloadError> {
        let payloads = match self {
            Self::Json => return Ok(call.to_json().into_bytes()),
            Self::Protobuf(payloads) => payloads.ok_or(PayloadError::NoSchema)?,
            Self::Either(payloads) => payloads,
        };
        Ok(payloads
            .call
            .encode_rpc(&call.method, call.number, &call.params)?)
    }

    /// Like [`Self::device_call`], for transports where only the body carries the number of the request.
    ///
    /// # Errors
    /// The request does not fit the schema of the profile.
    pub(crate) fn numbered_call(self, call: &ToDeviceRpc) -> Result<Vec<u8>, PayloadError> {
        match self {
            Self::Json => Ok(call.to_numbered_json().into_bytes()),
            // The schema has a field for the number.
            Self::Protobuf(_) | Self::Either(_) => self.device_call(call),
        }
    }

    /// Encodes the response to an RPC request of the device.
    pub(crate) fn platform_answer(self, number: i32, body: &str) -> Vec<u8> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct RpcErrorBody {
            error: String,
        }

        match self {
            Self::Json => body.as_bytes().to_vec(),
            Self::Protobuf(_) | Self::Either(_) => {
                let failure = serde_json::from_str::<RpcErrorBody>(body);
                let message = ToServerRpcResponseMsg {
                    request_id: number,
                    payload: body.to_owned(),
                    error: failure.map(|failure| failure.error).unwrap_or_default(),
                };
                message.encode_to_vec()
            }
        }
    }
}

/// Builds the message for an update of shared attributes.
pub(crate) fn notification(update: &AttributeUpdate, now_ms: i64) -> AttributeUpdateNotificationMsg {
    let (mut shared_updated, mut shared_deleted) = (Vec::new(), Vec::new());
    match update {
        AttributeUpdate::Saved(values) => {
            // This program packed the values; if one cannot be read back, the rest is left out.
            let values = kv::unpack(values).map_while(Result::ok);
            shared_updated.extend(values.map(|(key, value)| TsKvProto {
                ts: now_ms,
                kv: Some(KeyValueProto::of(key, value)),
            }));
        }
        AttributeUpdate::Deleted(keys) => shared_deleted.clone_from(keys),
    }
    AttributeUpdateNotificationMsg {
        shared_updated,
        shared_deleted,
    }
}

/// Builds the response to an attribute request that named `names` attributes.
pub(crate) fn response(
    number: i32,
    names: usize,
    client: &[Attribute],
    shared: &[Attribute],
) -> GetAttributeResponseMsg {
    GetAttributeResponseMsg {
        request_id: number,
        client_attribute_list: client.iter().map(TsKvProto::of).collect(),
        shared_attribute_list: shared.iter().map(TsKvProto::of).collect(),
        is_multiple_attributes_request: names > 1,
    }
}

/// Returns RPC parameters as JSON: valid JSON in compact form, any other text as a JSON string, and `{}` for none.
fn as_json(params: String) -> String {
    if params.trim().is_empty() {
        return "{}".to_owned();
    }
    match json::compact(params.as_bytes()) {
        Ok(strict) => strict,
        Err(_) => {
            let mut text = String::new();
            json::write_string(&params, &mut text);
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::{KvValue, KvValueRef};

    use super::*;

    fn payloads(json_too: bool) -> PayloadSchemas {
        let schema = "syntax = \"proto3\"; message A { optional string a = 1; }";
        let configuration = serde_json::json!({
            "transportPayloadType": "PROTOBUF",
            "deviceTelemetryProtoSchema": schema,
            "deviceAttributesProtoSchema": schema,
            "enableCompatibilityWithJsonPayloadFormat": json_too,
        });
        let compiled = PayloadSchemas::compile(&configuration).expect("valid schemas");
        compiled.expect("Protobuf")
    }

    #[test]
    fn json_is_taken_where_the_profile_lets_it() {
        let (both, strict) = (payloads(true), payloads(false));
        let json = br#"{"method":"m","params":[1]}"#;
        let expected = json::ClientRpcRequest {
            method: "m".to_owned(),
            params: "[1]".to_owned(),
        };
        let message = b"\x0a\x01m\x12\x05[ 1 ]";
        for format in [PayloadFormat::uplink(Some(&both)), PayloadFormat::Json] {
            assert_eq!(format.call(json).expect("a call"), expected);
        }
        for format in [
            PayloadFormat::uplink(Some(&both)),
            PayloadFormat::uplink(Some(&strict)),
            PayloadFormat::Protobuf(None),
        ] {
            assert_eq!(format.call(message).expect("a call"), expected);
        }
        assert!(PayloadFormat::uplink(Some(&strict)).call(json).is_err());
        assert!(PayloadFormat::Json.call(message).is_err());
        assert_eq!(
            PayloadFormat::uplink(Some(&both)).answer(b"[]").expect("JSON"),
            "[]"
        );
        assert_eq!(
            PayloadFormat::uplink(Some(&both))
                .answer(b"\x0a\x02ok")
                .expect("Protobuf"),
            r#"{"payload":"ok"}"#
        );
        assert!(matches!(
            PayloadFormat::Protobuf(None).answer(b""),
            Err(PayloadError::NoSchema)
        ));
    }

    #[test]
    fn parameters_that_are_no_json_are_text() {
        let params = |params: &str| {
            let call = RpcRequestProto {
                method: "m".to_owned(),
                params: params.to_owned(),
            };
            let call = PayloadFormat::Protobuf(None).call(&call.encode_to_vec());
            call.expect("a call").params
        };
        assert_eq!(params(""), "{}");
        assert_eq!(params("{a: 1}"), r#"{"a":1}"#);
        assert_eq!(params("[1"), r#""[1""#);
    }

    #[test]
    fn downlinks_carry_what_they_carry_in_json() {
        let format = PayloadFormat::Protobuf(None);
        let mut values = Vec::new();
        kv::pack("n", KvValueRef::Long(30), &mut values);
        kv::pack("j", KvValueRef::Json("{}"), &mut values);
        let bytes = format.update(&AttributeUpdate::Saved(values.into()), 5);
        let update: AttributeUpdateNotificationMsg = api::read(&bytes).expect("an update");
        let found: Vec<_> = update
            .shared_updated
            .iter()
            .map(|value| (value.ts, value.kv.clone()))
            .collect();
        let expected = [("n", KvValueRef::Long(30)), ("j", KvValueRef::Json("{}"))]
            .map(|(key, value)| (5, Some(KeyValueProto::of(key, value))));
        assert_eq!(found, expected);
        let bytes = format.update(&AttributeUpdate::Deleted(vec!["n".to_owned()]), 5);
        assert_eq!(bytes, b"\x12\x01n");

        let request = format.attribute_request(b"\x0a\x03a,b").expect("a request");
        assert_eq!(
            request.client_keys.as_deref(),
            Some(["a".to_owned(), "b".to_owned()].as_slice())
        );
        assert_eq!(request.shared_keys, None);
        let found = RequestedAttributes {
            client: vec![Attribute {
                key: "a".to_owned(),
                value: KvValue::Bool(true),
                last_update_ts: 9,
            }],
            shared: Vec::new(),
        };
        let bytes = format.found(7, &request, &found);
        let answer: GetAttributeResponseMsg = api::read(&bytes).expect("an answer");
        assert!(answer.request_id == 7 && answer.is_multiple_attributes_request);
        assert_eq!(answer.client_attribute_list[0].ts, 9);
        assert_eq!(
            PayloadFormat::Json.found(7, &request, &found),
            br#"{"client":{"a":true}}"#
        );

        let answer = |body: &str| -> ToServerRpcResponseMsg {
            api::read(&format.platform_answer(3, body)).expect("an answer")
        };
        assert_eq!(
            (answer("[1]").payload.as_str(), answer("[1]").error.as_str()),
            ("[1]", "")
        );
        assert_eq!(answer(r#"{"error":"timeout"}"#).error, "timeout");
    }
}
