//! Calls to devices that are kept until the device has taken them, or they expire.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::message::MsgType;
use crate::{DeviceId, RpcId, TenantId};

/// How it stands with a persistent call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RpcStatus {
    /// It waits for the device.
    Queued,
    /// It was written to the device's connection.
    Sent,
    /// The device has taken it.
    Delivered,
    /// The device has answered.
    Successful,
    /// The device has not acknowledged it in time; it is sent again.
    Timeout,
    /// Its time was over first.
    Expired,
    /// It could not be sent.
    Failed,
    /// Somebody has deleted it.
    Deleted,
}

impl RpcStatus {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Successful,
        Self::Timeout,
        Self::Expired,
        Self::Failed,
        Self::Deleted,
    ];
    /// Those in which a call still waits for something.
    pub const OPEN: [Self; 4] = [Self::Queued, Self::Sent, Self::Delivered, Self::Timeout];

    /// The name, such as `QUEUED`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Successful => "SUCCESSFUL",
            Self::Timeout => "TIMEOUT",
            Self::Expired => "EXPIRED",
            Self::Failed => "FAILED",
            Self::Deleted => "DELETED",
        }
    }

    /// The status of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// The message that tells the rule engine of it.
    pub const fn message(self) -> MsgType {
        match self {
            Self::Queued => MsgType::RpcQueued,
            Self::Sent => MsgType::RpcSent,
            Self::Delivered => MsgType::RpcDelivered,
            Self::Successful => MsgType::RpcSuccessful,
            Self::Timeout => MsgType::RpcTimeout,
            Self::Expired => MsgType::RpcExpired,
            Self::Failed => MsgType::RpcFailed,
            Self::Deleted => MsgType::RpcDeleted,
        }
    }
}

/// What the device shall do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct RpcBody {
    /// Name of the method.
    pub method: String,
    /// JSON text of the parameters.
    pub params: String,
}

/// A call as it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RpcRequest {
    /// Identity; that of the persistent call.
    pub id: Uuid,
    /// The tenant.
    pub tenant_id: TenantId,
    /// The device.
    pub device_id: DeviceId,
    /// No answer is expected.
    pub oneway: bool,
    /// When it expires, milliseconds.
    pub expiration_time: i64,
    /// What the device shall do.
    pub body: RpcBody,
    /// It is kept.
    pub persisted: bool,
    /// How often it is sent again.
    pub retries: Option<u32>,
    /// What the caller has added, as text.
    pub additional_info: Option<String>,
}

/// A persistent call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rpc {
    /// Identity.
    pub id: RpcId,
    /// When it was made, milliseconds.
    pub created_time: i64,
    /// The tenant.
    pub tenant_id: TenantId,
    /// The device.
    pub device_id: DeviceId,
    /// When it expires, milliseconds.
    pub expiration_time: i64,
    /// The call as it came.
    pub request: RpcRequest,
    /// What the device has answered, or why it could not be sent.
    pub response: Option<Value>,
    /// How it stands with it.
    pub status: RpcStatus,
    /// What the caller has added.
    pub additional_info: Option<Value>,
    /// The number that the device answers it with.
    #[serde(skip)]
    pub number: i32,
}
