//! Calls to devices, and answers to callers that wait for one.

use std::fmt;

use async_trait::async_trait;
use fieldline_model::message::QueueMessage;
use fieldline_model::{DeviceId, TenantId};
use uuid::Uuid;

/// Where the message of a call says which run of the program has taken it, in the metadata.
pub const ORIGIN_RUN: &str = "originRun";

/// A call to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRpcRequest {
    /// Identity; that of the REST call where it comes from one.
    pub id: Uuid,
    /// Tenant of the device.
    pub tenant: TenantId,
    /// The device.
    pub device: DeviceId,
    /// What it shall do.
    pub method: String,
    /// Parameters: the text of a JSON value, or plain text.
    pub params: String,
    /// No answer is expected.
    pub oneway: bool,
    /// It is kept until the device can take it, or it expires.
    pub persistent: bool,
    /// How often a persistent one is sent again; the default of the platform where absent.
    pub retries: Option<u32>,
    /// When it expires, milliseconds.
    pub expires_ms: i64,
    /// What the caller has added, as text.
    pub additional_info: Option<String>,
    /// Server whose REST API a client called; the answer goes to it as well.
    pub rest_origin: Option<String>,
    /// Run of that server which took the call. The client waits in that run alone.
    pub origin_run: Option<Uuid>,
}

/// Why a device gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceRpcError {
    /// There is no such device.
    NotFound,
    /// The caller may not call it.
    Forbidden,
    /// It was not connected until the call expired.
    NoActiveConnection,
    /// It did not answer until the call expired.
    Timeout,
    /// The platform failed.
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

/// Calls devices.
#[async_trait]
pub trait DeviceRpc: Send + Sync {
    /// Calls a device and waits for its answer, at most until the call expires. The answer is JSON text; a call without
    /// answer gives `None` as soon as it is sent.
    ///
    /// # Errors
    /// Why there is no answer.
    async fn send(&self, request: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError>;

    /// Answers a call that a device made: on a server, over a session there, with the number that the device gave it. An
    /// answer that nobody waits for any more is dropped.
    fn answer(&self, service: &str, session: Uuid, request: i32, body: String);
}

/// Clients of the REST API that wait for what a rule chain answers.
pub trait RestApiResponder: Send + Sync {
    /// Answers a call of a tenant's client, on the server that it came to. An answer that nobody waits for any more is
    /// dropped, and so is one to a call of another tenant.
    fn answer(&self, service: &str, tenant: TenantId, request: Uuid, message: QueueMessage);
}

/// Of a program that no device is connected to.
pub struct NoDeviceRpc;

#[async_trait]
impl DeviceRpc for NoDeviceRpc {
    async fn send(&self, _: DeviceRpcRequest) -> Result<Option<String>, DeviceRpcError> {
        Err(DeviceRpcError::NoActiveConnection)
    }

    fn answer(&self, _: &str, _: Uuid, _: i32, _: String) {}
}

/// Of a program that no client calls.
pub struct NoRestApiResponder;

impl RestApiResponder for NoRestApiResponder {
    fn answer(&self, _: &str, _: TenantId, _: Uuid, _: QueueMessage) {}
}
