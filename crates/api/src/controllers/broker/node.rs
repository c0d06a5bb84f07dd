//! The node of the broker: its settings, its listeners and the load of its machine.

use axum::Json;
use fieldline_core::ports::{BrokerListenerPorts, MqttCredentialsFilter};
use fieldline_entities::broker_access::AuthProviderType;
use fieldline_model::entity::MqttCredentialsType;
use fieldline_model::page::{PageData, PageLink};
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::{NODE, admin_of, required};
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::QueryParams;
use crate::state::ApiState;

/// Minutes between the points of the history of statistics.
const STATISTICS_MINUTES: u32 = 1;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(config)))
        .add(S.reads(routes!(nodes)))
        .add(S.reads(routes!(services)))
        .add(S.reads(routes!(listener_port)))
}

/// How the broker is set up. What it does not listen on has the port 0.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct BrokerConfig {
    /// Whether clients are asked for client identifier, user name and password.
    basic_auth_enabled: bool,
    /// Whether clients are let in by certificates.
    x509_auth_enabled: bool,
    /// Whether clients may prove that they know a password.
    scram_auth_enabled: bool,
    /// Whether clients are let in by tokens.
    jwt_auth_enabled: bool,
    /// Whether a server is asked.
    http_auth_enabled: bool,
    /// Port without TLS.
    tcp_port: u16,
    /// Port with TLS.
    tls_port: u16,
    /// Port of WebSocket.
    ws_port: u16,
    /// Port of WebSocket with TLS.
    wss_port: u16,
    /// Whether it listens without TLS.
    tcp_listener_enabled: bool,
    /// Whether it listens with TLS.
    tls_listener_enabled: bool,
    /// Whether it listens for WebSocket.
    ws_listener_enabled: bool,
    /// Whether it listens for WebSocket with TLS.
    wss_listener_enabled: bool,
    /// Largest packet without the fixed header, bytes; the same for all listeners.
    tcp_max_payload_size: u64,
    /// The same.
    tls_max_payload_size: u64,
    /// The same.
    ws_max_payload_size: u64,
    /// The same.
    wss_max_payload_size: u64,
    /// Whether there are credentials of the type `MQTT_BASIC`.
    exists_basic_credentials: bool,
    /// Whether there are credentials of the type `X_509`.
    exists_x509_credentials: bool,
    /// Whether there are credentials of the type `SCRAM`.
    exists_scram_credentials: bool,
    /// Always `false`: a queue ends with its session.
    allow_kafka_topic_deletion: bool,
    /// Minutes between the points of the history of statistics.
    stats_collection_interval: u32,
}

async fn has_credentials(api: &ApiState, kind: MqttCredentialsType) -> ApiResult<bool> {
    let filter = MqttCredentialsFilter {
        credentials_types: vec![kind],
        ..MqttCredentialsFilter::default()
    };
    let access = &api.services.broker_access;
    let found = access.list(&filter, &PageLink::first(1)).await?;
    Ok(found.total_elements > 0)
}

/// Returns how the MQTT broker is set up. Providers count as enabled only if clients need credentials for the broker.
#[utoipa::path(get, path = "/api/app/config", tag = "mqtt-broker", operation_id = "getBrokerConfig",
    responses((status = 200, body = BrokerConfig)))]
async fn config(ApiCall { api, .. }: ApiCall) -> ApiResult<Json<BrokerConfig>> {
    let node = admin_of(&api)?.node();
    let all = AuthProviderType::ALL.len() as u32;
    let providers = api
        .services
        .broker_access
        .providers(&PageLink::first(all))
        .await?;
    let is_enabled = |kind: AuthProviderType| {
        let mut providers = providers.data.iter();
        node.asks_providers && providers.any(|provider| provider.enabled && provider.kind == kind)
    };
    let BrokerListenerPorts {
        tcp,
        tls,
        websocket,
        websocket_tls,
    } = node.ports;
    Ok(Json(BrokerConfig {
        basic_auth_enabled: is_enabled(AuthProviderType::MqttBasic),
        x509_auth_enabled: is_enabled(AuthProviderType::X509),
        scram_auth_enabled: is_enabled(AuthProviderType::Scram),
        jwt_auth_enabled: is_enabled(AuthProviderType::Jwt),
        http_auth_enabled: is_enabled(AuthProviderType::Http),
        tcp_port: tcp.unwrap_or_default(),
        tls_port: tls.unwrap_or_default(),
        ws_port: websocket.unwrap_or_default(),
        wss_port: websocket_tls.unwrap_or_default(),
        tcp_listener_enabled: tcp.is_some(),
        tls_listener_enabled: tls.is_some(),
        ws_listener_enabled: websocket.is_some(),
        wss_listener_enabled: websocket_tls.is_some(),
        tcp_max_payload_size: node.max_packet,
        tls_max_payload_size: node.max_packet,
        ws_max_payload_size: node.max_packet,
        wss_max_payload_size: node.max_packet,
        exists_basic_credentials: has_credentials(&api, MqttCredentialsType::MqttBasic).await?,
        exists_x509_credentials: has_credentials(&api, MqttCredentialsType::X509).await?,
        exists_scram_credentials: has_credentials(&api, MqttCredentialsType::Scram).await?,
        allow_kafka_topic_deletion: false,
        stats_collection_interval: STATISTICS_MINUTES,
    }))
}

/// Returns the names of the nodes of the MQTT broker: there is one.
#[utoipa::path(get, path = "/api/app/brokers", tag = "mqtt-broker", operation_id = "getBrokerServiceIds",
    responses((status = 200, body = Vec<String>)))]
async fn nodes(ApiCall { api, .. }: ApiCall) -> ApiResult<Json<[&'static str; 1]>> {
    admin_of(&api)?;
    Ok(Json([NODE]))
}

/// The load of the machine of a node. Unknown figures are null.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct BrokerServiceInfo {
    /// The name of the node.
    service_id: &'static str,
    /// `TBMQ`: the node is a broker.
    service_type: &'static str,
    /// When the figures were measured, milliseconds; 0 if none is known.
    last_update_time: i64,
    /// Load of all processors, percent.
    cpu_usage: Option<u64>,
    /// Processors that the program may use.
    cpu_count: Option<u64>,
    /// Memory in use, percent.
    memory_usage: Option<u64>,
    /// Memory that the program may use, bytes.
    total_memory: Option<u64>,
    /// Used space of the file system with the data, percent.
    disk_usage: Option<u64>,
    /// Size of the file system with the data, bytes.
    total_disk_space: Option<u64>,
    /// `ACTIVE`, or `OUTDATED` if no figure is known.
    status: &'static str,
    /// Whether any figure is known.
    data_present: bool,
}

/// Returns the load of the machine of each node of the MQTT broker, measured now.
#[utoipa::path(get, path = "/api/app/service/info", tag = "mqtt-broker", operation_id = "getBrokerServiceInfos",
    responses((status = 200, body = PageData<BrokerServiceInfo>)))]
async fn services(ApiCall { api, .. }: ApiCall) -> ApiResult<Json<PageData<BrokerServiceInfo>>> {
    admin_of(&api)?;
    let figures = api.system_info.figures().await;
    let known = [
        figures.cpu_usage,
        figures.cpu_count,
        figures.memory_usage,
        figures.total_memory,
        figures.disk_usage,
        figures.total_disk,
    ];
    let is_known = known.iter().any(Option::is_some);
    let info = BrokerServiceInfo {
        service_id: NODE,
        service_type: "TBMQ",
        last_update_time: if is_known { api.clock.now_ms() } else { 0 },
        cpu_usage: figures.cpu_usage,
        cpu_count: figures.cpu_count,
        memory_usage: figures.memory_usage,
        total_memory: figures.total_memory,
        disk_usage: figures.disk_usage,
        total_disk_space: figures.total_disk,
        status: if is_known { "ACTIVE" } else { "OUTDATED" },
        data_present: is_known,
    };
    Ok(Json(PageData::new(vec![info], 1, &PageLink::first(1))))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ListenerParam {
    /// `MQTT`, `MQTTS`, `WS` or `WSS`, in any case.
    #[param(required = true, value_type = String)]
    listener_name: Option<String>,
}

/// Returns the port of a listener of the MQTT broker, if there is such a one.
#[utoipa::path(get, path = "/api/app/listener/port", tag = "mqtt-broker", operation_id = "getListenerPort",
    params(ListenerParam), responses((status = 200, body = u16, content_type = "application/json")))]
async fn listener_port(
    ApiCall { api, .. }: ApiCall,
    QueryParams(params): QueryParams<ListenerParam>,
) -> ApiResult<Json<u16>> {
    let BrokerListenerPorts {
        tcp,
        tls,
        websocket,
        websocket_tls,
    } = admin_of(&api)?.node().ports;
    let name = required("listenerName", params.listener_name)?;
    let port = match name.to_ascii_uppercase().as_str() {
        "MQTT" => tcp,
        "MQTTS" => tls,
        "WS" => websocket,
        "WSS" => websocket_tls,
        _ => {
            return Err(ApiError::bad_request(
                "Parameter 'listenerName' must be MQTT, MQTTS, WS or WSS!",
            ));
        }
    };
    let absent = || ApiError::not_found(format!("The MQTT broker has no listener '{name}'"));
    Ok(Json(port.ok_or_else(absent)?))
}
