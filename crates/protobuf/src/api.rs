//! The messages defined by the platform itself, with the field numbers of ThingsBoard's transport API.

use fieldline_model::json;
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::record::TelemetryWriter;
use fieldline_model::timeseries::Attribute;
use prost::{Enumeration, Message};

use crate::{MAX_MESSAGE_BYTES, MessageError};

/// Decodes one of the messages below.
///
/// # Errors
/// The bytes are not such a message, or there are too many.
pub fn read<M: Message + Default>(payload: &[u8]) -> Result<M, MessageError> {
    if payload.len() > MAX_MESSAGE_BYTES {
        return Err(MessageError::TooLarge);
    }
    Ok(M::decode(payload)?)
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum KeyValueType {
    /// True or false.
    Boolean = 0,
    /// A whole number.
    Long = 1,
    /// A floating-point number.
    Double = 2,
    /// Text.
    String = 3,
    /// JSON text.
    Json = 4,
}

/// A named value: of the value fields, only the one of its type counts.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValueProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Type.
    #[prost(enumeration = "KeyValueType", tag = "2")]
    pub r#type: i32,
    /// True or false.
    #[prost(bool, tag = "3")]
    pub bool_v: bool,
    /// A whole number.
    #[prost(int64, tag = "4")]
    pub long_v: i64,
    /// A floating-point number.
    #[prost(double, tag = "5")]
    pub double_v: f64,
    /// Text.
    #[prost(string, tag = "6")]
    pub string_v: String,
    /// JSON text.
    #[prost(string, tag = "7")]
    pub json_v: String,
}

/// A value with its time.
#[derive(Clone, PartialEq, Message)]
pub struct TsKvProto {
    /// Milliseconds.
    #[prost(int64, tag = "1")]
    pub ts: i64,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValueProto>,
}

/// Values of one time.
#[derive(Clone, PartialEq, Message)]
pub struct TsKvListProto {
    /// Milliseconds; 0 for now.
    #[prost(int64, tag = "1")]
    pub ts: i64,
    /// The values.
    #[prost(message, repeated, tag = "2")]
    pub kv: Vec<KeyValueProto>,
}

/// Telemetry of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct PostTelemetryMsg {
    /// One row per time.
    #[prost(message, repeated, tag = "1")]
    pub ts_kv_list: Vec<TsKvListProto>,
}

/// Attributes of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct PostAttributeMsg {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub kv: Vec<KeyValueProto>,
    /// Whether they are shared attributes, not client ones.
    #[prost(bool, tag = "2")]
    pub shared: bool,
}

/// A request for attributes; if both lists are empty, for all of them.
#[derive(Clone, PartialEq, Message)]
pub struct AttributesRequest {
    /// Client attributes, separated by commas.
    #[prost(string, tag = "1")]
    pub client_keys: String,
    /// Shared attributes, separated by commas.
    #[prost(string, tag = "2")]
    pub shared_keys: String,
}

/// The response to a request for attributes.
#[derive(Clone, PartialEq, Message)]
pub struct GetAttributeResponseMsg {
    /// The request number from the device.
    #[prost(int32, tag = "1")]
    pub request_id: i32,
    /// Client attributes.
    #[prost(message, repeated, tag = "2")]
    pub client_attribute_list: Vec<TsKvProto>,
    /// Shared attributes.
    #[prost(message, repeated, tag = "3")]
    pub shared_attribute_list: Vec<TsKvProto>,
    /// Whether the request named more than one.
    #[prost(bool, tag = "4")]
    pub is_multiple_attributes_request: bool,
}

/// Notification of changed shared attributes.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeUpdateNotificationMsg {
    /// New values.
    #[prost(message, repeated, tag = "1")]
    pub shared_updated: Vec<TsKvProto>,
    /// Names of deleted attributes.
    #[prost(string, repeated, tag = "2")]
    pub shared_deleted: Vec<String>,
}

/// An RPC call by a device.
#[derive(Clone, PartialEq, Message)]
pub struct RpcRequestProto {
    /// Name of the method.
    #[prost(string, tag = "1")]
    pub method: String,
    /// JSON text of the parameters.
    #[prost(string, tag = "2")]
    pub params: String,
}

/// The response to an RPC call by a device.
#[derive(Clone, PartialEq, Message)]
pub struct ToServerRpcResponseMsg {
    /// The request number from the device.
    #[prost(int32, tag = "1")]
    pub request_id: i32,
    /// The response.
    #[prost(string, tag = "2")]
    pub payload: String,
    /// The error, if there is no response.
    #[prost(string, tag = "3")]
    pub error: String,
}

/// An RPC call to a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct ToDeviceRpcRequestMsg {
    /// The request number for the response.
    #[prost(int32, tag = "1")]
    pub request_id: i32,
    /// Name of the method.
    #[prost(string, tag = "2")]
    pub method_name: String,
    /// JSON text of the parameters.
    #[prost(string, tag = "3")]
    pub params: String,
    /// Expiry time, milliseconds.
    #[prost(int64, tag = "4")]
    pub expiration_time: i64,
    /// Upper half of the call's id.
    #[prost(int64, tag = "5")]
    pub request_id_msb: i64,
    /// Lower half of the call's id.
    #[prost(int64, tag = "6")]
    pub request_id_lsb: i64,
    /// Whether no response is expected.
    #[prost(bool, tag = "7")]
    pub oneway: bool,
    /// Whether the call is stored until it is delivered.
    #[prost(bool, tag = "8")]
    pub persisted: bool,
}

/// Lets a customer claim the device. It contains a secret, hence no `Debug`.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ClaimDevice {
    /// The secret that the customer must know.
    #[prost(string, tag = "1")]
    pub secret_key: String,
    /// Duration, milliseconds; 0 for the default.
    #[prost(int64, tag = "2")]
    pub duration_ms: i64,
}

/// The connection or disconnection of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct ConnectMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Type of the device; empty for a disconnection.
    #[prost(string, tag = "2")]
    pub device_type: String,
}

/// Telemetry of one device.
#[derive(Clone, PartialEq, Message)]
pub struct TelemetryMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Its telemetry.
    #[prost(message, optional, tag = "3")]
    pub msg: Option<PostTelemetryMsg>,
}

/// Telemetry of devices behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayTelemetryMsg {
    /// One message per device.
    #[prost(message, repeated, tag = "1")]
    pub msg: Vec<TelemetryMsg>,
}

/// Attributes of one device.
#[derive(Clone, PartialEq, Message)]
pub struct AttributesMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Its attributes.
    #[prost(message, optional, tag = "2")]
    pub msg: Option<PostAttributeMsg>,
}

/// Attributes of devices behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributesMsg {
    /// One message per device.
    #[prost(message, repeated, tag = "1")]
    pub msg: Vec<AttributesMsg>,
}

/// Lets a customer claim one device.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ClaimDeviceMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// The secret and the duration.
    #[prost(message, optional, tag = "2")]
    pub claim_request: Option<ClaimDevice>,
}

/// Lets customers claim devices behind a gateway.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct GatewayClaimMsg {
    /// One message per device.
    #[prost(message, repeated, tag = "1")]
    pub msg: Vec<ClaimDeviceMsg>,
}

/// The response of a device behind a gateway to an RPC call.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayRpcResponseMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Number of the call.
    #[prost(int32, tag = "2")]
    pub id: i32,
    /// The response.
    #[prost(string, tag = "3")]
    pub data: String,
}

/// A request for attributes of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributesRequestMsg {
    /// Number of the request.
    #[prost(int32, tag = "1")]
    pub id: i32,
    /// Name of the device.
    #[prost(string, tag = "2")]
    pub device_name: String,
    /// Whether client attributes are requested, not shared ones.
    #[prost(bool, tag = "3")]
    pub client: bool,
    /// The names of the attributes.
    #[prost(string, repeated, tag = "4")]
    pub keys: Vec<String>,
}

/// The response to a request for attributes of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributeResponseMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// The attributes.
    #[prost(message, optional, tag = "2")]
    pub response_msg: Option<GetAttributeResponseMsg>,
}

/// Notification of changed shared attributes of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributeUpdateNotificationMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// The change.
    #[prost(message, optional, tag = "2")]
    pub notification_msg: Option<AttributeUpdateNotificationMsg>,
}

/// An RPC call to a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayDeviceRpcRequestMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// The call.
    #[prost(message, optional, tag = "2")]
    pub rpc_request_msg: Option<ToDeviceRpcRequestMsg>,
}

mod provisioning;

pub use provisioning::{
    CredentialsDataProto, CredentialsTypeProto, ProvisionDeviceCredentialsMsg, ProvisionDeviceRequestMsg,
    ProvisionDeviceResponseMsg, ResponseStatus, ValidateBasicMqttCredRequestMsg,
    ValidateDeviceTokenRequestMsg, ValidateDeviceX509CertRequestMsg,
};

impl KeyValueProto {
    /// Creates a named value.
    pub fn of(key: &str, value: KvValueRef<'_>) -> Self {
        let mut out = Self {
            key: key.to_owned(),
            r#type: value.type_code().into(),
            ..Self::default()
        };
        match value {
            KvValueRef::Bool(value) => out.bool_v = value,
            KvValueRef::Long(value) => out.long_v = value,
            KvValueRef::Double(value) => out.double_v = value,
            KvValueRef::Text(text) => out.string_v = text.to_owned(),
            KvValueRef::Json(text) => out.json_v = text.to_owned(),
        }
        out
    }

    /// Packs the value.
    ///
    /// # Errors
    /// The name is missing or invalid, or the value is invalid for its type.
    pub fn pack(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if self.key.trim().is_empty() {
            return Err(MessageError::Invalid("key is empty"));
        }
        if self.key.len() > kv::MAX_KEY_BYTES {
            return Err(MessageError::Invalid("key is too long"));
        }
        let json;
        let value = match KeyValueType::try_from(self.r#type) {
            Ok(KeyValueType::Boolean) => KvValueRef::Bool(self.bool_v),
            Ok(KeyValueType::Long) => KvValueRef::Long(self.long_v),
            Ok(KeyValueType::Double) if self.double_v.is_finite() => KvValueRef::Double(self.double_v),
            Ok(KeyValueType::Double) => return Err(MessageError::Invalid("number is not finite")),
            Ok(KeyValueType::String) => KvValueRef::Text(&self.string_v),
            Ok(KeyValueType::Json) => {
                json = json::compact(self.json_v.as_bytes())?;
                KvValueRef::Json(&json)
            }
            Err(_) => return Err(MessageError::Invalid("unknown type of a value")),
        };
        kv::pack(&self.key, value, out);
        Ok(())
    }
}

impl TsKvProto {
    /// Converts a stored attribute.
    pub fn of(attribute: &Attribute) -> Self {
        Self {
            ts: attribute.last_update_ts,
            kv: Some(KeyValueProto::of(&attribute.key, attribute.value.as_ref())),
        }
    }
}

impl PostTelemetryMsg {
    /// Writes the rows. `now` returns the time of rows without one.
    ///
    /// # Errors
    /// There are no rows, a row has no values, or a value is invalid. The writer then holds a part of the message.
    pub fn write(
        &self,
        mut now: impl FnMut() -> i64,
        out: &mut TelemetryWriter<'_>,
    ) -> Result<(), MessageError> {
        if self.ts_kv_list.is_empty() {
            return Err(MessageError::Invalid("there is no telemetry"));
        }
        for row in &self.ts_kv_list {
            if row.kv.is_empty() {
                return Err(MessageError::Invalid("there is no value"));
            }
            out.begin_row(match row.ts {
                0 => now(),
                ts => ts,
            });
            for value in &row.kv {
                value.pack(out.buffer())?;
                out.count_point();
            }
        }
        Ok(())
    }
}

impl PostAttributeMsg {
    /// Packs the values.
    ///
    /// # Errors
    /// There are no values, or one of them is invalid. `out` then holds a part of them.
    pub fn pack(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if self.kv.is_empty() {
            return Err(MessageError::Invalid("there is no value"));
        }
        self.kv.iter().try_for_each(|value| value.pack(out))
    }
}
