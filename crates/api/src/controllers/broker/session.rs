//! Sessions of the clients of the broker.

use axum::Json;
use fieldline_core::ports::{
    BrokerClientType, BrokerCountOrder, BrokerSessionDetails, BrokerSessionFilter, BrokerSessionInfo,
};
use fieldline_model::page::PageData;
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;
use uuid::Uuid;

use super::subscription::SubscriptionInfo;
use super::{NODE, admin_of, flags, list_of, only, period, present, required, type_name};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::controllers::Either;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, QueryParams, parse_uuid};

/// What TBMQ says of something that it does not know.
const UNKNOWN: &str = "unknown";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(list)))
        .add(S.reads(routes!(filtered)))
        .add(S.reads(routes!(counts)))
        .add(S.reads(routes!(details)))
        .add(S.reads(routes!(queues)))
        .add(S.changes(routes!(remove), AuditRule::Nothing))
        .add(S.changes(routes!(disconnect), AuditRule::Nothing))
}

/// A session of a client of the broker. Times are milliseconds.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShortClientSession {
    /// The client identifier.
    id: String,
    /// The client identifier.
    client_id: String,
    /// `CONNECTED` or `DISCONNECTED`.
    connection_state: &'static str,
    /// `DEVICE` or `APPLICATION`.
    client_type: &'static str,
    /// The node that the client has connected to.
    node_id: &'static str,
    /// Id of the connection, or of the last one.
    session_id: Uuid,
    /// Number of subscriptions.
    subscriptions_count: usize,
    /// Time of the connection.
    connected_at: i64,
    /// End of the connection; 0 while the client is connected.
    disconnected_at: i64,
    /// Address of the client.
    client_ip_adr: String,
    /// Whether the client asked for a session without a past.
    clean_start: bool,
}

fn state_name(info: &BrokerSessionInfo) -> &'static str {
    match info.is_connected {
        true => "CONNECTED",
        false => "DISCONNECTED",
    }
}

fn address_of(info: &BrokerSessionInfo) -> String {
    info.address
        .map_or_else(|| UNKNOWN.to_owned(), |address| address.to_string())
}

impl From<BrokerSessionInfo> for ShortClientSession {
    fn from(info: BrokerSessionInfo) -> Self {
        Self {
            id: String::from(&*info.client_id),
            client_id: String::from(&*info.client_id),
            connection_state: state_name(&info),
            client_type: type_name(info.client_type),
            node_id: NODE,
            session_id: info.session_id,
            subscriptions_count: info.subscriptions,
            connected_at: info.connected_ms,
            disconnected_at: info.disconnected_ms,
            client_ip_adr: address_of(&info),
            clean_start: info.clean_start,
        }
    }
}

/// A session of a client of the broker with its subscriptions. Times are milliseconds.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct DetailedClientSession {
    /// The client identifier.
    id: String,
    /// The client identifier.
    client_id: String,
    /// Id of the connection, or of the last one.
    session_id: Uuid,
    /// `CONNECTED` or `DISCONNECTED`.
    connection_state: &'static str,
    /// `DEVICE` or `APPLICATION`.
    client_type: &'static str,
    /// The node that the client has connected to.
    node_id: &'static str,
    /// Whether the client asked for a session without a past.
    clean_start: bool,
    /// Seconds for which the session outlives its connection.
    session_expiry_interval: u32,
    /// End of the session; -1 while the client is connected.
    session_end_ts: i64,
    /// The subscriptions.
    subscriptions: Vec<SubscriptionInfo>,
    /// The keep-alive, seconds.
    keep_alive_seconds: u16,
    /// Time of the connection.
    connected_at: i64,
    /// End of the connection; 0 while the client is connected.
    disconnected_at: i64,
    /// Address of the client.
    client_ip_adr: String,
}

impl From<BrokerSessionDetails> for DetailedClientSession {
    fn from(details: BrokerSessionDetails) -> Self {
        let info = details.info;
        let subscriptions = details.subscriptions.into_iter();
        Self {
            id: String::from(&*info.client_id),
            client_id: String::from(&*info.client_id),
            session_id: info.session_id,
            connection_state: state_name(&info),
            client_type: type_name(info.client_type),
            node_id: NODE,
            clean_start: info.clean_start,
            session_expiry_interval: details.expiry_s,
            session_end_ts: details.ends_ms.unwrap_or(-1),
            subscriptions: subscriptions.map(SubscriptionInfo::from).collect(),
            keep_alive_seconds: details.keep_alive_s,
            connected_at: info.connected_ms,
            disconnected_at: info.disconnected_ms,
            client_ip_adr: address_of(&info),
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ClientParam {
    /// The client identifier.
    client_id: Option<String>,
}

/// Returns a page of the sessions of clients of the MQTT broker, or with `clientId` the session of that client with its
/// subscriptions. A text is looked for in client identifiers.
#[utoipa::path(get, path = "/api/client-session", tag = "mqtt-broker", operation_id = "getClientSessions",
    params(PageParams, ClientParam),
    responses((status = 200, body = inline(Either<DetailedClientSession, PageData<ShortClientSession>>))))]
async fn list(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(client): QueryParams<ClientParam>,
) -> ApiResult<Json<Either<DetailedClientSession, PageData<ShortClientSession>>>> {
    let admin = admin_of(&api)?;
    if client.client_id.is_some() {
        let client_id = required("clientId", client.client_id)?;
        let details = admin.session(&client_id).ok_or_else(ApiError::item_not_found)?;
        return Ok(Json(Either::Left(details.into())));
    }
    let page = admin
        .sessions(BrokerSessionFilter::default(), page.link()?)
        .await?;
    Ok(Json(Either::Right(page.map(ShortClientSession::from))))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct SessionFilterParams {
    /// First time of the connection, or of its end if the client is away, milliseconds; needs `endTime`.
    start_time: Option<i64>,
    /// Last time, milliseconds; needs `startTime`.
    end_time: Option<i64>,
    /// `CONNECTED` or `DISCONNECTED`; all if both or none are given.
    connected_status_list: Option<String>,
    /// `DEVICE` or `APPLICATION`; all if both or none are given.
    client_type_list: Option<String>,
    /// `true` or `false`; all if both or none are given.
    clean_start_list: Option<String>,
    /// Comma-joined nodes; there is one, `fieldline`.
    node_id_list: Option<String>,
    /// Number of subscriptions.
    subscriptions: Option<u32>,
    /// How to compare with that number: `EQUAL`, `NOT_EQUAL`, `GREATER`, `LESS`, `GREATER_OR_EQUAL` or `LESS_OR_EQUAL`.
    subscription_operation: Option<String>,
    /// A part of the address.
    client_ip_address: Option<String>,
}

impl SessionFilterParams {
    /// Returns the filter; `None` if no session can pass it.
    fn filter(self) -> ApiResult<Option<BrokerSessionFilter>> {
        let states = list_of(
            "connectedStatusList",
            self.connected_status_list.as_deref(),
            |text| match text {
                "CONNECTED" => Some(true),
                "DISCONNECTED" => Some(false),
                _ => None,
            },
        )?;
        let types = list_of(
            "clientTypeList",
            self.client_type_list.as_deref(),
            |text| match text {
                "DEVICE" => Some(Some(BrokerClientType::Device)),
                "APPLICATION" => Some(Some(BrokerClientType::Application)),
                // No client is one.
                "INTEGRATION" => Some(None),
                _ => None,
            },
        )?;
        let client_type = match only(&types) {
            Some(None) => return Ok(None),
            Some(one) => one,
            None => None,
        };
        let nodes = list_of("nodeIdList", self.node_id_list.as_deref(), |text| {
            Some(text == NODE)
        })?;
        if !nodes.is_empty() && !nodes.contains(&true) {
            return Ok(None);
        }
        let order = match present(self.subscription_operation).as_deref() {
            None | Some("EQUAL") => BrokerCountOrder::Equal,
            Some("NOT_EQUAL") => BrokerCountOrder::NotEqual,
            Some("GREATER") => BrokerCountOrder::Greater,
            Some("LESS") => BrokerCountOrder::Less,
            Some("GREATER_OR_EQUAL") => BrokerCountOrder::GreaterOrEqual,
            Some("LESS_OR_EQUAL") => BrokerCountOrder::LessOrEqual,
            Some(other) => {
                return Err(ApiError::bad_request(format!(
                    "Parameter 'subscriptionOperation' must not be '{other}'"
                )));
            }
        };
        Ok(Some(BrokerSessionFilter {
            is_connected: only(&states),
            client_type,
            clean_start: flags("cleanStartList", self.clean_start_list.as_deref())?,
            subscriptions: self.subscriptions.map(|count| (order, count as usize)),
            address: present(self.client_ip_address),
            between_ms: period(self.start_time, self.end_time),
        }))
    }
}

/// Returns a page of those sessions of clients of the MQTT broker that pass a filter.
#[utoipa::path(get, path = "/api/v2/client-session", tag = "mqtt-broker", operation_id = "getClientSessionsV2",
    params(PageParams, SessionFilterParams), responses((status = 200, body = PageData<ShortClientSession>)))]
async fn filtered(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<SessionFilterParams>,
) -> ApiResult<Json<PageData<ShortClientSession>>> {
    let admin = admin_of(&api)?;
    let link = page.link()?;
    let Some(filter) = params.filter()? else {
        return Ok(Json(PageData::new(Vec::new(), 0, &link)));
    };
    let page = admin.sessions(filter, link).await?;
    Ok(Json(page.map(ShortClientSession::from)))
}

/// Numbers of sessions.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClientSessionCounts {
    /// Those of clients that are connected.
    connected_count: u64,
    /// Those of clients that are away.
    disconnected_count: u64,
    /// All.
    total_count: u64,
}

/// Counts the sessions of clients of the MQTT broker.
#[utoipa::path(get, path = "/api/client-session/info", tag = "mqtt-broker", operation_id = "getClientSessionsStatsInfo",
    responses((status = 200, body = ClientSessionCounts)))]
async fn counts(ApiCall { api, .. }: ApiCall) -> ApiResult<Json<ClientSessionCounts>> {
    let counts = admin_of(&api)?.session_counts();
    Ok(Json(ClientSessionCounts {
        connected_count: counts.connected,
        disconnected_count: counts.disconnected,
        total_count: counts.connected + counts.disconnected,
    }))
}

/// How a client of the broker has connected.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClientConnectionDetails {
    /// Name of the credentials; always `unknown`.
    credentials_name: &'static str,
    /// Version of the protocol, such as `5.0`, or `unknown`.
    mqtt_version: &'static str,
    /// Kind of the credentials; always `unknown`.
    auth_provider: &'static str,
    /// The user name that the client has sent.
    username: Option<String>,
}

/// Returns how a client of the MQTT broker has connected.
#[utoipa::path(get, path = "/api/client-session/details", tag = "mqtt-broker", operation_id = "getClientSessionDetails",
    params(ClientParam), responses((status = 200, body = ClientConnectionDetails)))]
async fn details(
    ApiCall { api, .. }: ApiCall,
    QueryParams(client): QueryParams<ClientParam>,
) -> ApiResult<Json<ClientConnectionDetails>> {
    let admin = admin_of(&api)?;
    // As TBMQ: of a client that is not there, nothing is known.
    let session = admin.session(&required("clientId", client.client_id)?);
    let version = session.as_ref().and_then(|session| session.mqtt_version);
    Ok(Json(ClientConnectionDetails {
        credentials_name: UNKNOWN,
        mqtt_version: version.unwrap_or(UNKNOWN),
        auth_provider: UNKNOWN,
        username: session.and_then(|session| session.username).map(String::from),
    }))
}

/// The queue of a client of the broker.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClientQueue {
    /// The client identifier.
    client_id: String,
    /// `CONNECTED` or `DISCONNECTED`.
    connection_state: &'static str,
    /// `DEVICE` or `APPLICATION`.
    client_type: &'static str,
    /// Messages that wait for the client, or for its acknowledgement.
    queued_msgs: u64,
    /// Messages that were dropped for the client since the server or the session began.
    dropped_msgs: u64,
}

impl From<BrokerSessionInfo> for ClientQueue {
    fn from(info: BrokerSessionInfo) -> Self {
        Self {
            client_id: String::from(&*info.client_id),
            connection_state: state_name(&info),
            client_type: type_name(info.client_type),
            queued_msgs: info.queued,
            dropped_msgs: info.dropped,
        }
    }
}

/// Returns a page of the queues of clients of the MQTT broker. Besides the properties of sessions, it is sorted by
/// `queuedMsgs` and `droppedMsgs`.
#[utoipa::path(get, path = "/api/client-session/queues", tag = "mqtt-broker", operation_id = "getClientQueues",
    params(PageParams), responses((status = 200, body = PageData<ClientQueue>)))]
async fn queues(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<ClientQueue>>> {
    let admin = admin_of(&api)?;
    let page = admin
        .sessions(BrokerSessionFilter::default(), page.link()?)
        .await?;
    Ok(Json(page.map(ClientQueue::from)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct SessionParams {
    /// The client identifier.
    #[param(required = true, value_type = String)]
    client_id: Option<String>,
    /// Id of its connection, or of the last one.
    #[param(required = true, value_type = Uuid)]
    session_id: Option<String>,
}

impl SessionParams {
    fn ids(self) -> ApiResult<(String, Uuid)> {
        let client_id = required("clientId", self.client_id)?;
        let session_id = required("sessionId", self.session_id)?;
        Ok((client_id, parse_uuid(&session_id)?))
    }
}

/// Removes the session of a client of the MQTT broker that is away, with its subscriptions and its queue.
#[utoipa::path(delete, path = "/api/client-session/remove", tag = "mqtt-broker", operation_id = "removeClientSession",
    params(SessionParams), responses((status = 200)))]
async fn remove(
    ApiCall { api, .. }: ApiCall,
    QueryParams(params): QueryParams<SessionParams>,
) -> ApiResult<()> {
    let admin = admin_of(&api)?;
    let (client_id, session_id) = params.ids()?;
    Ok(admin.remove_session(&client_id, Some(session_id)).await?)
}

/// Ends the connection of a client of the MQTT broker; does nothing if it is away.
#[utoipa::path(delete, path = "/api/client-session/disconnect", tag = "mqtt-broker",
    operation_id = "disconnectClientSession", params(SessionParams), responses((status = 200)))]
async fn disconnect(
    ApiCall { api, .. }: ApiCall,
    QueryParams(params): QueryParams<SessionParams>,
) -> ApiResult<()> {
    let admin = admin_of(&api)?;
    let (client_id, session_id) = params.ids()?;
    Ok(admin.disconnect(&client_id, Some(session_id))?)
}
