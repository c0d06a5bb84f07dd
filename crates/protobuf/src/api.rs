//! The messages that the platform defines itself, with the field numbers of ThingsBoard's transport API.

use fieldline_model::json;
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::record::TelemetryWriter;
use fieldline_model::timeseries::Attribute;
use prost::{Enumeration, Message};

use crate::{MAX_MESSAGE_BYTES, MessageError};

/// Reads one of the messages below.
///
/// # Errors
/// The bytes are no such message, or too many.
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

/// A value with its name: of the values, that of its type counts.
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
    /// A row a time.
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

/// Asks for attributes; with neither list for all.
#[derive(Clone, PartialEq, Message)]
pub struct AttributesRequest {
    /// Client attributes, separated by commas.
    #[prost(string, tag = "1")]
    pub client_keys: String,
    /// Shared attributes, separated by commas.
    #[prost(string, tag = "2")]
    pub shared_keys: String,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub struct GetAttributeResponseMsg {
    /// The number that the device gave.
    #[prost(int32, tag = "1")]
    pub request_id: i32,
    /// Client attributes.
    #[prost(message, repeated, tag = "2")]
    pub client_attribute_list: Vec<TsKvProto>,
    /// Shared attributes.
    #[prost(message, repeated, tag = "3")]
    pub shared_attribute_list: Vec<TsKvProto>,
    /// Whether more than one was asked for by name.
    #[prost(bool, tag = "4")]
    pub is_multiple_attributes_request: bool,
}

/// Shared attributes have changed.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeUpdateNotificationMsg {
    /// New values.
    #[prost(message, repeated, tag = "1")]
    pub shared_updated: Vec<TsKvProto>,
    /// Names of those that are gone.
    #[prost(string, repeated, tag = "2")]
    pub shared_deleted: Vec<String>,
}

/// A call by a device.
#[derive(Clone, PartialEq, Message)]
pub struct RpcRequestProto {
    /// Name of the method.
    #[prost(string, tag = "1")]
    pub method: String,
    /// JSON text of the parameters.
    #[prost(string, tag = "2")]
    pub params: String,
}

/// The answer to a call by a device.
#[derive(Clone, PartialEq, Message)]
pub struct ToServerRpcResponseMsg {
    /// The number that the device gave.
    #[prost(int32, tag = "1")]
    pub request_id: i32,
    /// The answer.
    #[prost(string, tag = "2")]
    pub payload: String,
    /// Why there is none.
    #[prost(string, tag = "3")]
    pub error: String,
}

/// A call to a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct ToDeviceRpcRequestMsg {
    /// The number that it is answered with.
    #[prost(int32, tag = "1")]
    pub request_id: i32,
    /// Name of the method.
    #[prost(string, tag = "2")]
    pub method_name: String,
    /// JSON text of the parameters.
    #[prost(string, tag = "3")]
    pub params: String,
    /// Milliseconds.
    #[prost(int64, tag = "4")]
    pub expiration_time: i64,
    /// Upper half of its id.
    #[prost(int64, tag = "5")]
    pub request_id_msb: i64,
    /// Lower half of its id.
    #[prost(int64, tag = "6")]
    pub request_id_lsb: i64,
    /// No answer is expected.
    #[prost(bool, tag = "7")]
    pub oneway: bool,
    /// It is kept until it is delivered.
    #[prost(bool, tag = "8")]
    pub persisted: bool,
}

/// Lets a customer claim the device. It holds a secret, hence no text of it.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct ClaimDevice {
    /// What the customer has to know.
    #[prost(string, tag = "1")]
    pub secret_key: String,
    /// For how long, milliseconds; 0 for the usual time.
    #[prost(int64, tag = "2")]
    pub duration_ms: i64,
}

/// A device behind a gateway is there, or has gone.
#[derive(Clone, PartialEq, Message)]
pub struct ConnectMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Type of the device; not of one that has gone.
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
    /// A message a device.
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
    /// A message a device.
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
    /// How.
    #[prost(message, optional, tag = "2")]
    pub claim_request: Option<ClaimDevice>,
}

/// Lets customers claim devices behind a gateway.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub struct GatewayClaimMsg {
    /// A message a device.
    #[prost(message, repeated, tag = "1")]
    pub msg: Vec<ClaimDeviceMsg>,
}

/// What a device behind a gateway answers to a call.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayRpcResponseMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// Number of the call.
    #[prost(int32, tag = "2")]
    pub id: i32,
    /// The answer.
    #[prost(string, tag = "3")]
    pub data: String,
}

/// Asks for attributes of a device behind a gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributesRequestMsg {
    /// Number of the request.
    #[prost(int32, tag = "1")]
    pub id: i32,
    /// Name of the device.
    #[prost(string, tag = "2")]
    pub device_name: String,
    /// Client attributes, not shared ones.
    #[prost(bool, tag = "3")]
    pub client: bool,
    /// Their names.
    #[prost(string, repeated, tag = "4")]
    pub keys: Vec<String>,
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributeResponseMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// What it is answered.
    #[prost(message, optional, tag = "2")]
    pub response_msg: Option<GetAttributeResponseMsg>,
}

/// Shared attributes of a device behind a gateway have changed.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayAttributeUpdateNotificationMsg {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device_name: String,
    /// The change.
    #[prost(message, optional, tag = "2")]
    pub notification_msg: Option<AttributeUpdateNotificationMsg>,
}

/// A call to a device behind a gateway.
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
    /// A value with its name.
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

    /// Packs it.
    ///
    /// # Errors
    /// It has no name, or a wrong one, or is no value of its type.
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
    /// A stored attribute.
    pub fn of(attribute: &Attribute) -> Self {
        Self {
            ts: attribute.last_update_ts,
            kv: Some(KeyValueProto::of(&attribute.key, attribute.value.as_ref())),
        }
    }
}

impl PostTelemetryMsg {
    /// Writes its rows. `now` gives the time of those without one.
    ///
    /// # Errors
    /// It has no rows, a row has no values, or one of them is wrong. The writer holds a part of it then.
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
    /// Packs its values.
    ///
    /// # Errors
    /// There are none, or one of them is wrong. `out` holds a part of them then.
    pub fn pack(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if self.kv.is_empty() {
            return Err(MessageError::Invalid("there is no value"));
        }
        self.kv.iter().try_for_each(|value| value.pack(out))
    }
}
