//! RPC calls to devices, and responses to waiting callers.

use std::fmt;

use async_trait::async_trait;
use fieldline_model::message::QueueMessage;
use fieldline_model::{DeviceId, TenantId};
use uuid::Uuid;

/// Metadata key of an RPC message for the run of the program that accepted the call.
pub const ORIGIN_RUN: &str = "originRun";

/// An RPC call to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRpcRequest {
    /// Identity; that of the REST call if there is one.
    pub id: Uuid,
    /// Tenant of the device.
    pub tenant: TenantId,
    /// The device.
    pub device: DeviceId,
    /// The method to call.
    pub method: String,
    /// Parameters: the text of a JSON value, or plain text.
    pub params: String,
    /// Whether no response is expected.
    pub oneway: bool,
    /// Whether the call is stored until the device can receive it, or it expires.
    pub persistent: bool,
    /// How often a persistent call is retried; the platform's default if absent.
    pub retries: Option<u32>,
    /// Expiry time, milliseconds.
    pub expires_ms: i64,
    /// Additional information from the caller, as text.
    pub additional_info: Option<String>,
    /// Server whose REST API a client called; the response is also sent there.
    pub rest_origin: Option<String>,
    /// Run of that server that accepted the call. The client waits in that run only.
    pub origin_run: Option<Uuid>,
}

/// The reason why there is no response from a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceRpcError {
    /// There is no such device.
    NotFound,
    /// The caller may not call it.
    Forbidden,
    /// The device was not connected until the call expired.
    NoActiveConnection,
    /// The device did not respond until the call expired.
    Timeout,
    /// An internal failure of the platform.
    Internal,
}

impl DeviceRpcError {
    /// Name in messages and in the REST API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::Forbidden => "FORBIDDEN",
            Self::NoActiveConnection => "NO_ACTIVE_CONNECTION",
            Self::Timeout => "TIMEOUT",
            Self::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for DeviceRpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for DeviceRpcError {}

/// Sends RPC calls to devices.
#[async_trait]
pub trait DeviceRpc: Send + Sync {
    /// Calls a device and waits for its response, at most until the call expires. The response is JSON text; a one-way
    /// call returns `None` as soon as it is sent.
    ///
    /// # Errors
    /// The reason why there is no response.
    async fn send(&self, request: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError>;

    /// Responds to a call that a device made over a session on a server, identified by the device's request number. If
    /// nobody waits any more, the response is dropped.
    fn answer(&self, service: &str, session: Uuid, request: i32, body: String);
}

/// Passes responses of rule chains to waiting REST API clients.
pub trait RestApiResponder: Send + Sync {
    /// Responds to a call of a tenant's client on the server that received it. The response is dropped if nobody waits
    /// any more, or if the call belongs to another tenant.
    fn answer(&self, service: &str, tenant: TenantId, request: Uuid, message: QueueMessage);
}

/// For programs without connected devices.
pub struct NoDeviceRpc;

#[async_trait]
impl DeviceRpc for NoDeviceRpc {
    async fn send(&self, _: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError> {
        Err(DeviceRpcError::NoActiveConnection)
    }

    fn answer(&self, _: &str, _: Uuid, _: i32, _: String) {}
}

/// For programs without REST clients.
pub struct NoRestApiResponder;

impl RestApiResponder for NoRestApiResponder {
    fn answer(&self, _: &str, _: TenantId, _: Uuid, _: QueueMessage) {}
}
