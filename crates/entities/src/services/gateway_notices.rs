//! Gateways are told what becomes of the devices behind them.
//!
//! A notice is a persistent call without an answer that goes through the rule chains like any other call, so that a gateway
//! which is away hears of it when it comes back.

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{DeviceRpcRequest, StoreResult};
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, TenantId, new_uuid};
use serde_json::{Map, Value, json};

use super::onboarding::LAST_GATEWAY;
use super::{ServiceContext, actions};

static GATE: LogGate = LogGate::new(2);
/// How long a gateway may be away and still be told, milliseconds.
const NOTICE_TTL_MS: i64 = 24 * 60 * 60 * 1_000;
/// How often a notice is sent again that is not acknowledged.
const RETRIES: u32 = 3;

/// Tells the gateway, if there is one and the name is another.
pub(super) async fn notify_renamed(context: &ServiceContext, old: &Device, saved: &Device) {
    if old.name == saved.name {
        return;
    }
    let gateway = gateway_of(saved).or_else(|| gateway_of(old));
    let names = Map::from_iter([(old.name.clone(), json!(saved.name))]);
    notify_gateway(
        context,
        saved.tenant_id,
        gateway,
        "gateway_device_renamed",
        names.into(),
    )
    .await;
}

/// Tells the gateway, if there is one, that its tenant has the device no longer.
pub(super) async fn notify_deleted(context: &ServiceContext, device: &Device) {
    let name = json!(device.name);
    notify_gateway(
        context,
        device.tenant_id,
        gateway_of(device),
        "gateway_device_deleted",
        name,
    )
    .await;
}

/// The gateway that the device came through last, by what the device says.
fn gateway_of(device: &Device) -> Option<DeviceId> {
    let id = device.additional_info.as_ref()?.get(LAST_GATEWAY)?.as_str()?;
    id.parse().ok().map(DeviceId)
}

async fn notify_gateway(
    context: &ServiceContext,
    tenant: TenantId,
    gateway: Option<DeviceId>,
    method: &str,
    params: Value,
) {
    let Some(gateway) = gateway else { return };
    if let Err(error) = push(context, tenant, gateway, method, &params).await
        && let Some(suppressed) = GATE.open()
    {
        tracing::warn!(%gateway, method, %error, suppressed, "could not tell a gateway about a device behind it");
    }
}

async fn push(
    context: &ServiceContext,
    tenant: TenantId,
    gateway: DeviceId,
    method: &str,
    params: &Value,
) -> StoreResult<()> {
    // Anybody who may save a device may write there which gateway it came through.
    let found = context.stores.devices.get(tenant, gateway).await?;
    let Some(gateway) = found.filter(Device::is_gateway) else {
        return Ok(());
    };
    let call = DeviceRpcRequest {
        id: new_uuid(),
        tenant,
        device: gateway.id,
        method: method.to_owned(),
        params: params.to_string(),
        oneway: true,
        persistent: true,
        retries: Some(RETRIES),
        expires_ms: context.now().saturating_add(NOTICE_TTL_MS),
        additional_info: None,
        rest_origin: Some(SERVICE_ID.to_owned()),
        origin_run: None,
    };
    actions::push_device_rpc(context, None, &gateway, &call).await
}
