//! Calls to devices as messages of the rule engine, which hands them on; and those that the platform makes by itself: a gateway is
//! told when a device that came through it is renamed or deleted.

use fieldline_model::entity::Device;
use fieldline_model::message::{Message, Metadata, MsgType};
use fieldline_model::{CustomerId, DeviceId, new_uuid};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Context;
use crate::logging::LogGate;
use crate::ports::{DeviceRpcRequest, StoreResult};

static GATE: LogGate = LogGate::new(2);

/// Where a device says through which gateway it came last.
pub(super) const LAST_GATEWAY: &str = "lastConnectedGateway";
const RENAMED: &str = "gateway_device_renamed";
const DELETED: &str = "gateway_device_deleted";
/// How long a gateway that is away is waited for, and how often it is told again.
const PATIENCE_MS: i64 = 24 * 60 * 60 * 1_000;
const RETRIES: u32 = 3;

/// The message that asks for a call.
pub(super) fn message(device: &Device, call: &DeviceRpcRequest, customer: CustomerId, now: i64) -> Message {
    let mut metadata = Metadata::from_iter([
        ("requestUUID", call.id.to_string()),
        ("originServiceId", call.rest_origin.clone().unwrap_or_default()),
        ("expirationTime", call.expires_ms.to_string()),
        ("oneway", call.oneway.to_string()),
        ("persistent", call.persistent.to_string()),
    ]);
    if let Some(retries) = call.retries {
        metadata.set("retries", retries.to_string());
    }
    metadata.set("deviceName", device.name.as_str());
    metadata.set("deviceType", device.device_type.as_str());
    let body = json!({
        "method": call.method, "params": call.params, "additionalInfo": call.additional_info,
    });
    Message {
        customer: Some(customer).filter(|customer| !customer.is_null()),
        ..Message::new(
            MsgType::RpcFromServer,
            call.device.into(),
            now,
            metadata,
            body.to_string(),
        )
    }
}

/// Tells the gateway of a device that it has another name now.
pub(super) async fn tell_renamed(context: &Context, before: &str, device: &Device) {
    if before != device.name {
        tell(context, device, RENAMED, &json!({ before: device.name })).await;
    }
}

/// Tells the gateway of a device that it is no more.
pub(super) async fn tell_deleted(context: &Context, device: &Device) {
    tell(context, device, DELETED, &json!(device.name)).await;
}

/// What is told is done already: nothing is undone where the gateway cannot be told.
async fn tell(context: &Context, device: &Device, method: &str, params: &Value) {
    let told = match gateway_of(context, device).await {
        Ok(Some(gateway)) => {
            let now = context.now();
            let call = DeviceRpcRequest {
                id: new_uuid(),
                tenant: device.tenant_id,
                device: gateway.id.unwrap_or_default(),
                method: method.to_owned(),
                params: params.to_string(),
                oneway: true,
                persistent: true,
                retries: Some(RETRIES),
                expires_ms: now + PATIENCE_MS,
                additional_info: None,
                rest_origin: None,
            };
            let message = message(&gateway, &call, CustomerId::NULL, now);
            context.rule_engine.push(device.tenant_id, message).await
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = told
        && let Some(suppressed) = GATE.open()
    {
        tracing::warn!(device = ?device.id, method, %error, suppressed, "could not tell a gateway about its device");
    }
}

/// The gateway through which a device came last, if it is still there.
async fn gateway_of(context: &Context, device: &Device) -> StoreResult<Option<Device>> {
    let info = device.additional_info.as_ref();
    let named = info.and_then(|info| info.get(LAST_GATEWAY)?.as_str());
    let Some(id) = named.and_then(|id| Uuid::parse_str(id).ok()) else {
        return Ok(None);
    };
    let gateway = context.stores.devices.get(device.tenant_id, DeviceId(id)).await?;
    Ok(gateway.filter(|gateway| gateway.id != device.id))
}
