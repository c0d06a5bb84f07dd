//! System information for clients: version, features and limits.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use fieldline_core::ports::DashboardFilter;
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_entities::access::Principal;
use fieldline_entities::services::longest_debug_minutes;
use fieldline_model::entity::calculated_field::CalculatedFieldLimits;
use fieldline_model::entity::{Authority, TenantProfile, UserSettingsType};
use fieldline_model::page::PageLink;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa_axum::routes;
use uuid::Uuid;

use super::dashboard::MAX_DATAPOINTS;
use super::user::base_url;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S, STC};
use crate::error::ApiResult;
use crate::state::{ApiState, SharedApi};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Most dashboards that are named to somebody who sees nothing else.
const MAX_ALLOWED_DASHBOARDS: u32 = 100;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(info)))
        .add(STC.reads(routes!(params)))
        .add(STC.reads(routes!(help_base_url)))
        .add(S.reads(routes!(updates)))
        .add(S.reads(routes!(machine)))
}

#[derive(Serialize, utoipa::ToSchema)]
struct SystemVersion {
    version: &'static str,
    artifact: &'static str,
    name: &'static str,
    /// Edition whose API this is; clients of ThingsBoard hide what other editions have.
    #[serde(rename = "type")]
    edition: &'static str,
}

/// Returns name and version of the program.
#[utoipa::path(get, path = "/api/system/info", tag = "system-info", operation_id = "getSystemVersionInfo",
    responses((status = 200, body = SystemVersion)))]
async fn info() -> Json<SystemVersion> {
    Json(SystemVersion {
        version: VERSION,
        artifact: "fieldline",
        name: "Fieldline",
        edition: "CE",
    })
}

/// Features and limits that the caller's client needs.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct SystemParams {
    user_token_access_enabled: bool,
    edges_support_enabled: bool,
    has_repository: bool,
    /// Whether this server has a map of its own, at `/api/map/tiles.pmtiles`.
    has_map_file: bool,
    /// Whether the publish/subscribe broker runs.
    has_mqtt_broker: bool,
    tbel_enabled: bool,
    persist_device_state_to_telemetry: bool,
    mobile_qr_enabled: bool,
    user_settings: Value,
    max_datapoints_limit: u64,
    max_resource_size: u64,
    max_debug_mode_duration_minutes: u64,
    max_arguments_per_c_f: u64,
    max_data_points_per_rolling_arg: u64,
    max_relation_level_per_cf_argument: u64,
    max_related_entities_to_return_per_cf_argument: u64,
    min_allowed_scheduled_update_interval_in_sec_for_c_f: u64,
    min_allowed_deduplication_interval_in_sec_for_c_f: u64,
    min_allowed_aggregation_interval_in_sec_for_c_f: u64,
    intermediate_aggregation_interval_in_sec_for_c_f: u64,
    /// Dashboards that a client which shows nothing else may open; others are not restricted.
    allowed_dashboard_ids: Vec<Uuid>,
    nulls_order_strategy: &'static str,
    edqs_enabled: bool,
}

/// Returns the features and limits that the caller's client needs at its start.
#[utoipa::path(get, path = "/api/system/params", tag = "system-info", operation_id = "getSystemParams",
    responses((status = 200, body = SystemParams)))]
async fn params(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<SystemParams>> {
    let settings = &api.services.user_settings;
    let mut user_settings = settings.get(caller.user, UserSettingsType::General).await?;
    if let Some(fields) = user_settings.as_object_mut() {
        fields.entry("openedMenuSections").or_insert_with(|| json!([]));
    }
    let profile: Option<TenantProfile> = api.entities.profile_of(caller.tenant).await?;
    let fields = profile
        .as_ref()
        .map_or_else(CalculatedFieldLimits::default, CalculatedFieldLimits::of);
    let limit = |name: &str| profile.as_ref().map_or(0, |profile| profile.limit(name));
    let by_customer = caller.authority == Authority::CustomerUser;
    Ok(Json(SystemParams {
        user_token_access_enabled: api.options.user_token_access && !by_customer,
        edges_support_enabled: false,
        has_repository: false,
        has_map_file: api.map_file.is_some(),
        has_mqtt_broker: api.broker_admin.get().is_some(),
        tbel_enabled: caller.authority == Authority::TenantAdmin,
        persist_device_state_to_telemetry: false,
        mobile_qr_enabled: false,
        user_settings,
        max_datapoints_limit: MAX_DATAPOINTS,
        max_resource_size: limit("maxResourceSize"),
        max_debug_mode_duration_minutes: longest_debug_minutes(profile.as_ref()),
        max_arguments_per_c_f: fields.max_arguments,
        max_data_points_per_rolling_arg: fields.max_rolling_points,
        max_relation_level_per_cf_argument: fields.max_relation_levels,
        max_related_entities_to_return_per_cf_argument: fields.max_related_entities,
        min_allowed_scheduled_update_interval_in_sec_for_c_f: fields.min_scheduled_update_interval_sec,
        min_allowed_deduplication_interval_in_sec_for_c_f: fields.min_deduplication_interval_sec,
        min_allowed_aggregation_interval_in_sec_for_c_f: fields.min_aggregation_interval_sec,
        intermediate_aggregation_interval_in_sec_for_c_f: fields.intermediate_aggregation_interval_sec,
        allowed_dashboard_ids: allowed_dashboards(&api, &caller).await?,
        nulls_order_strategy: "default",
        edqs_enabled: false,
    }))
}

/// The dashboards of somebody whose client shows one dashboard alone, without a menu; none for all others.
async fn allowed_dashboards(api: &ApiState, caller: &Principal) -> ApiResult<Vec<Uuid>> {
    if caller.authority == Authority::SysAdmin {
        return Ok(Vec::new());
    }
    let user = api.entities.users.get(caller.tenant, caller.user).await?;
    let info = user.and_then(|user| user.additional_info).unwrap_or_default();
    let is_alone = info.get("defaultDashboardFullscreen").and_then(Value::as_bool) == Some(true);
    let has_default = info.get("defaultDashboardId").is_some_and(Value::is_string);
    if !is_alone || !has_default {
        return Ok(Vec::new());
    }
    let filter = DashboardFilter {
        customer: (caller.authority == Authority::CustomerUser).then_some(caller.customer),
        mobile: false,
    };
    let link = PageLink::first(MAX_ALLOWED_DASHBOARDS);
    let page = api
        .entities
        .dashboards
        .list(caller.tenant, &filter, &link)
        .await?;
    Ok(page.data.into_iter().map(|info| info.id.0).collect())
}

/// Returns the address that a client puts before the paths of its help pages: those of this server.
#[utoipa::path(get, path = "/api/uiSettings/helpBaseUrl", tag = "ui-settings", operation_id = "getHelpBaseUrl",
    responses((status = 200, body = String, content_type = "text/plain")))]
async fn help_base_url(ApiCall { api, .. }: ApiCall, headers: HeaderMap) -> ApiResult<String> {
    base_url(&api, &headers).await
}

/// Result of an update check.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateMessage {
    update_available: bool,
    current_version: &'static str,
    latest_version: &'static str,
}

/// Returns whether there is a newer version. The program asks no other server, so its own version is always the latest.
#[utoipa::path(get, path = "/api/admin/updates", tag = "admin", operation_id = "checkUpdates",
    responses((status = 200, body = UpdateMessage)))]
async fn updates() -> Json<UpdateMessage> {
    Json(UpdateMessage {
        update_available: false,
        current_version: VERSION,
        latest_version: VERSION,
    })
}

/// The program and the machine it runs on.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct SystemInfo {
    /// Always `true`: there is one process.
    monolith: bool,
    system_data: Vec<SystemInfoData>,
}

/// Load of a machine. Unknown figures are null.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct SystemInfoData {
    service_id: &'static str,
    service_type: &'static str,
    /// Load of all processors, percent.
    cpu_usage: Option<u64>,
    /// Processors that the program may use.
    cpu_count: Option<u64>,
    /// Memory in use, percent.
    memory_usage: Option<u64>,
    /// Memory that the program may use, bytes.
    total_memory: Option<u64>,
    /// Used space of the file system with the data, percent.
    disc_usage: Option<u64>,
    /// Size of the file system with the data, bytes.
    total_disc_space: Option<u64>,
}

/// Returns the services and the load of their machine.
#[utoipa::path(get, path = "/api/admin/systemInfo", tag = "admin", operation_id = "getSystemInfo",
    responses((status = 200, body = SystemInfo)))]
async fn machine(State(api): State<SharedApi>) -> Json<SystemInfo> {
    let figures = api.system_info.figures().await;
    let this = SystemInfoData {
        service_id: SERVICE_ID,
        service_type: "MONOLITH",
        cpu_usage: figures.cpu_usage,
        cpu_count: figures.cpu_count,
        memory_usage: figures.memory_usage,
        total_memory: figures.total_memory,
        disc_usage: figures.disk_usage,
        total_disc_space: figures.total_disk,
    };
    Json(SystemInfo {
        monolith: true,
        system_data: vec![this],
    })
}
