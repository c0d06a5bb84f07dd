//! Usage of a tenant compared with the limits of its profile.

use axum::Json;
use fieldline_core::ports::{AssetFilter, DeviceFilter, UserFilter};
use fieldline_core::usage::{UsageKey, usage_subject};
use fieldline_model::kv::KvValue;
use fieldline_model::page::PageLink;
use serde::Serialize;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(T.reads(routes!(usage)))
}

/// Number of entities and usage of this month, each with its limit; 0 for no limit.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct UsageInfo {
    devices: u64,
    max_devices: u64,
    assets: u64,
    max_assets: u64,
    customers: u64,
    max_customers: u64,
    users: u64,
    max_users: u64,
    dashboards: u64,
    max_dashboards: u64,
    edges: u64,
    max_edges: u64,
    transport_messages: u64,
    max_transport_messages: u64,
    js_executions: u64,
    tbel_executions: u64,
    max_js_executions: u64,
    max_tbel_executions: u64,
    emails: u64,
    max_emails: u64,
    sms: u64,
    max_sms: u64,
    sms_enabled: Option<bool>,
    alarms: u64,
    max_alarms: u64,
}

/// Returns the usage of the caller's tenant.
#[utoipa::path(get, path = "/api/usage", tag = "usage-info", operation_id = "getTenantUsageInfo",
    responses((status = 200, body = UsageInfo)))]
async fn usage(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<UsageInfo>> {
    let (tenant, stores) = (caller.tenant, &api.entities);
    let profile = stores.profile_of(tenant).await?;
    let profile = profile.ok_or_else(|| ApiError::not_found("Tenant is not found"))?;
    let latest = api.series.latest(usage_subject(tenant), None).await?;
    let used = |key: UsageKey| {
        let found = latest.iter().find(|latest| latest.key == key.count_key());
        match found.map(|latest| &latest.point.value) {
            Some(KvValue::Long(count)) => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        }
    };
    let one = PageLink::first(1);
    let devices = stores
        .devices
        .list(tenant, &DeviceFilter::default(), &one)
        .await?;
    let assets = stores.assets.list(tenant, &AssetFilter::default(), &one).await?;
    let customers = stores.customers.list(tenant, &one).await?;
    let users = stores.users.list(UserFilter::OfTenant(tenant), &one).await?;
    let max = |name: &str| profile.limit(name);
    Ok(Json(UsageInfo {
        devices: devices.total_elements,
        max_devices: max("maxDevices"),
        assets: assets.total_elements,
        max_assets: max("maxAssets"),
        customers: customers.total_elements,
        max_customers: max("maxCustomers"),
        users: users.total_elements,
        max_users: max("maxUsers"),
        dashboards: stores.dashboards.count(tenant).await?,
        max_dashboards: max("maxDashboards"),
        // The platform has no edges.
        edges: 0,
        max_edges: max("maxEdges"),
        transport_messages: used(UsageKey::TransportMessages),
        max_transport_messages: max("maxTransportMessages"),
        js_executions: used(UsageKey::JavaScriptExecutions),
        tbel_executions: used(UsageKey::TbelExecutions),
        max_js_executions: max("maxJSExecutions"),
        max_tbel_executions: max("maxTbelExecutions"),
        emails: used(UsageKey::Emails),
        max_emails: max("maxEmails"),
        sms: used(UsageKey::Sms),
        max_sms: max("maxSms"),
        sms_enabled: profile.setting("smsEnabled").and_then(serde_json::Value::as_bool),
        alarms: used(UsageKey::CreatedAlarms),
        max_alarms: max("maxCreatedAlarms"),
    }))
}
