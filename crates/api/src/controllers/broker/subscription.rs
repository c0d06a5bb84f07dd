//! Subscriptions of the clients of the broker.

use axum::Json;
use fieldline_core::ports::{
    BrokerClientSubscription, BrokerShareGroup, BrokerSubscription, BrokerSubscriptionFilter,
};
use fieldline_model::page::PageData;
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::{admin_of, flags, present, required, small_numbers, type_name};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::controllers::Either;
use crate::endpoint::{ApiRoutes, S};
use crate::error::ApiResult;
use crate::extract::{JsonBody, PageParams, QueryParams, must_not_be_null};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.changes(routes!(replace), AuditRule::Nothing))
        .add(S.reads(routes!(list)))
        .add(S.reads(routes!(all)))
        .add(S.changes(routes!(clear_nodes), AuditRule::Nothing))
}

/// A quality of service.
#[allow(clippy::enum_variant_names, reason = "the names of the API")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum MqttQos {
    AtMostOnce,
    AtLeastOnce,
    ExactlyOnce,
}

impl MqttQos {
    const fn of(qos: u8) -> Self {
        match qos {
            0 => Self::AtMostOnce,
            1 => Self::AtLeastOnce,
            _ => Self::ExactlyOnce,
        }
    }
}

/// Options of a subscription.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
struct SubscriptionOptionsInfo {
    /// Whether it leaves out the client's own messages.
    no_local: bool,
    /// Whether messages keep the retain flag with which they were published.
    retain_as_publish: bool,
    /// Which retained messages it gets: 0 for all, 1 for all if it is new, 2 for none.
    retain_handling: u8,
}

/// A subscription of a client of the broker.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionInfo {
    /// The filter, with the share name if it is shared.
    topic_filter: String,
    /// The highest quality of service.
    qos: MqttQos,
    /// Its options.
    options: Option<SubscriptionOptionsInfo>,
    /// The subscription identifier.
    subscription_id: Option<u32>,
}

impl From<BrokerSubscription> for SubscriptionInfo {
    fn from(subscription: BrokerSubscription) -> Self {
        Self {
            topic_filter: subscription.filter.into(),
            qos: MqttQos::of(subscription.qos),
            options: Some(SubscriptionOptionsInfo {
                no_local: subscription.no_local,
                retain_as_publish: subscription.retain_as_published,
                retain_handling: subscription.retain_handling,
            }),
            subscription_id: subscription.id,
        }
    }
}

impl From<SubscriptionInfo> for BrokerSubscription {
    fn from(info: SubscriptionInfo) -> Self {
        let options = info.options.unwrap_or_default();
        Self {
            filter: info.topic_filter.into(),
            qos: info.qos as u8,
            no_local: options.no_local,
            retain_as_published: options.retain_as_publish,
            retain_handling: options.retain_handling,
            id: info.subscription_id,
        }
    }
}

/// All subscriptions of a client of the broker.
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClientSubscriptions {
    /// The client identifier.
    client_id: Option<String>,
    /// The subscriptions.
    subscriptions: Option<Vec<SubscriptionInfo>>,
}

/// Makes the subscriptions of a client of the MQTT broker those of the body: what is not there ends. The client need not
/// be connected. It is sent no retained messages for what is new.
#[utoipa::path(post, path = "/api/subscription", tag = "mqtt-broker", operation_id = "updateSubscriptions",
    request_body = ClientSubscriptions, responses((status = 200, body = ClientSubscriptions)))]
async fn replace(
    ApiCall { api, .. }: ApiCall,
    JsonBody(body): JsonBody<ClientSubscriptions>,
) -> ApiResult<Json<ClientSubscriptions>> {
    let admin = admin_of(&api)?;
    let client_id = body.client_id.ok_or_else(|| must_not_be_null("clientId"))?;
    let subscriptions = body
        .subscriptions
        .ok_or_else(|| must_not_be_null("subscriptions"))?;
    let wanted = subscriptions.iter().cloned().map(BrokerSubscription::from);
    admin.replace_subscriptions(&client_id, wanted.collect()).await?;
    Ok(Json(ClientSubscriptions {
        client_id: Some(client_id),
        subscriptions: Some(subscriptions),
    }))
}

/// When a subscription gets retained messages.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum RetainHandlingPolicy {
    SendAtSubscribe,
    SendAtSubscribeIfNotYetExists,
    DontSendAtSubscribe,
}

/// Options of a subscription.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct TopicSubscriptionOptions {
    /// Whether it leaves out the client's own messages.
    no_local: bool,
    /// Whether messages keep the retain flag with which they were published.
    retain_as_publish: bool,
    /// When it gets retained messages.
    retain_handling: RetainHandlingPolicy,
}

/// A subscription with its share name apart.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct TopicSubscription {
    /// The filter without the share name.
    topic_filter: String,
    /// The highest quality of service, 0 to 2.
    qos: u8,
    /// The share name; null if the subscription is not shared.
    share_name: Option<String>,
    /// Its options.
    options: TopicSubscriptionOptions,
    /// The subscription identifier; -1 if there is none.
    subscription_id: i64,
}

impl From<BrokerSubscription> for TopicSubscription {
    fn from(subscription: BrokerSubscription) -> Self {
        let filter = &*subscription.filter;
        let shared = filter.strip_prefix("$share/");
        let (share_name, topic_filter) = match shared.and_then(|shared| shared.split_once('/')) {
            Some((share_name, filter)) => (Some(share_name.to_owned()), filter.to_owned()),
            None => (None, filter.to_owned()),
        };
        Self {
            topic_filter,
            qos: subscription.qos,
            share_name,
            options: TopicSubscriptionOptions {
                no_local: subscription.no_local,
                retain_as_publish: subscription.retain_as_published,
                retain_handling: match subscription.retain_handling {
                    0 => RetainHandlingPolicy::SendAtSubscribe,
                    1 => RetainHandlingPolicy::SendAtSubscribeIfNotYetExists,
                    _ => RetainHandlingPolicy::DontSendAtSubscribe,
                },
            },
            subscription_id: subscription.id.map_or(-1, i64::from),
        }
    }
}

/// A member of a shared subscription.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClientSessionState {
    /// The client identifier.
    client_id: String,
    /// `DEVICE` or `APPLICATION`.
    client_type: &'static str,
    /// Whether the client is connected.
    connected: bool,
}

/// A shared subscription with its members of one kind.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct SharedSubscription {
    /// The share name.
    share_name: String,
    /// The filter.
    topic_filter: String,
    /// The members, 1000 at most.
    clients: Vec<ClientSessionState>,
}

impl From<BrokerShareGroup> for SharedSubscription {
    fn from(group: BrokerShareGroup) -> Self {
        let client_type = type_name(group.client_type);
        let members = group.members.into_iter();
        Self {
            share_name: group.share_name.into(),
            topic_filter: group.filter.into(),
            clients: members
                .map(|(client_id, connected)| ClientSessionState {
                    client_id: String::from(&*client_id),
                    client_type,
                    connected,
                })
                .collect(),
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct SubscriptionListParams {
    /// A client identifier.
    client_id: Option<String>,
    /// A part of the share name.
    share_name_search: Option<String>,
    /// A part of the identifier of a member.
    client_id_search: Option<String>,
}

/// Returns a page of the shared subscriptions of the MQTT broker, or with `clientId` all subscriptions of that client. A
/// text is looked for in filters.
#[utoipa::path(get, path = "/api/subscription", tag = "mqtt-broker", operation_id = "getSubscriptions",
    params(PageParams, SubscriptionListParams),
    responses((status = 200, body = inline(Either<Vec<TopicSubscription>, PageData<SharedSubscription>>))))]
async fn list(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<SubscriptionListParams>,
) -> ApiResult<Json<Either<Vec<TopicSubscription>, PageData<SharedSubscription>>>> {
    let admin = admin_of(&api)?;
    if params.client_id.is_some() {
        let client_id = required("clientId", params.client_id)?;
        let subscriptions = admin.subscriptions_of(&client_id).into_iter();
        return Ok(Json(Either::Left(
            subscriptions.map(TopicSubscription::from).collect(),
        )));
    }
    let (share_name, client_id) = (
        present(params.share_name_search),
        present(params.client_id_search),
    );
    let page = admin.share_groups(share_name, client_id, page.link()?).await?;
    Ok(Json(Either::Right(page.map(SharedSubscription::from))))
}

/// A subscription in a list of those of all clients.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClientSubscriptionInfo {
    /// The client identifier.
    client_id: String,
    /// The subscription.
    subscription: SubscriptionInfo,
}

impl From<BrokerClientSubscription> for ClientSubscriptionInfo {
    fn from(row: BrokerClientSubscription) -> Self {
        Self {
            client_id: String::from(&*row.client_id),
            subscription: row.subscription.into(),
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct SubscriptionFilterParams {
    /// A part of the client identifier.
    client_id: Option<String>,
    /// A part of the filter.
    topic_filter: Option<String>,
    /// A topic that the filter has to match; not in TBMQ.
    topic: Option<String>,
    /// Comma-joined qualities of service, 0 to 2.
    qos_list: Option<String>,
    /// `true` or `false`; all if both or none are given.
    no_local_list: Option<String>,
    /// `true` or `false`; all if both or none are given.
    retain_as_publish_list: Option<String>,
    /// Comma-joined numbers, 0 to 2.
    retain_handling_list: Option<String>,
    /// The subscription identifier.
    subscription_id: Option<u32>,
}

/// Returns a page of the subscriptions of all clients of the MQTT broker. A text is looked for in client identifiers.
#[utoipa::path(get, path = "/api/subscription/all", tag = "mqtt-broker", operation_id = "getAllClientSubscriptions",
    params(PageParams, SubscriptionFilterParams), responses((status = 200, body = PageData<ClientSubscriptionInfo>)))]
async fn all(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<SubscriptionFilterParams>,
) -> ApiResult<Json<PageData<ClientSubscriptionInfo>>> {
    let admin = admin_of(&api)?;
    let filter = BrokerSubscriptionFilter {
        client_id: present(params.client_id),
        filter: present(params.topic_filter),
        topic: present(params.topic),
        qos: small_numbers("qosList", params.qos_list.as_deref())?,
        no_local: flags("noLocalList", params.no_local_list.as_deref())?,
        retain_as_published: flags("retainAsPublishList", params.retain_as_publish_list.as_deref())?,
        retain_handling: small_numbers("retainHandlingList", params.retain_handling_list.as_deref())?,
        id: params.subscription_id,
    };
    let page = admin.subscriptions(filter, page.link()?).await?;
    Ok(Json(page.map(ClientSubscriptionInfo::from)))
}

/// Does nothing: what a subscription leaves behind in the MQTT broker goes with it.
#[utoipa::path(delete, path = "/api/subscription/topic-trie/clear", tag = "mqtt-broker",
    operation_id = "clearEmptySubscriptionNodes", responses((status = 200)))]
async fn clear_nodes(ApiCall { api, .. }: ApiCall) -> ApiResult<()> {
    admin_of(&api).map(|_| ())
}
