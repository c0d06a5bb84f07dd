//! Retained messages of the broker.

use axum::Json;
use fieldline_core::ports::{BrokerRetainedFilter, BrokerRetainedMessage};
use fieldline_model::page::PageData;
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::{admin_of, period, present, required, small_numbers};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::controllers::Either;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, QueryParams};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(list)))
        .add(S.reads(routes!(filtered)))
        .add(S.changes(routes!(delete), AuditRule::Nothing))
        .add(S.changes(routes!(clear_nodes), AuditRule::Nothing))
}

/// A user property.
#[derive(Serialize, utoipa::ToSchema)]
struct MqttUserProperty {
    /// Its name.
    k: String,
    /// Its value.
    v: String,
}

/// User properties of a message.
#[derive(Serialize, utoipa::ToSchema)]
struct MqttUserProperties {
    /// The properties.
    props: Vec<MqttUserProperty>,
}

/// A retained message of the broker.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct RetainedMsg {
    /// The topic.
    topic: String,
    /// The payload; what is not UTF-8 is replaced.
    payload: String,
    /// The quality of service, 0 to 2.
    qos: u8,
    /// Time of the publication, milliseconds.
    created_time: i64,
    /// The user properties; null if there are none.
    user_properties: Option<MqttUserProperties>,
}

impl From<BrokerRetainedMessage> for RetainedMsg {
    fn from(message: BrokerRetainedMessage) -> Self {
        let properties = message.user_properties.into_iter();
        let props: Vec<_> = properties
            .map(|(name, value)| MqttUserProperty {
                k: name.into(),
                v: value.into(),
            })
            .collect();
        Self {
            topic: message.topic.into(),
            payload: String::from_utf8_lossy(&message.payload).into_owned(),
            qos: message.qos,
            created_time: message.created_ms,
            user_properties: (!props.is_empty()).then_some(MqttUserProperties { props }),
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct TopicParam {
    /// The topic.
    topic_name: Option<String>,
}

/// Returns a page of the retained messages of the MQTT broker, or with `topicName` that of a topic. A text is looked for
/// in topics.
#[utoipa::path(get, path = "/api/retained-msg", tag = "mqtt-broker", operation_id = "getRetainedMessages",
    params(PageParams, TopicParam),
    responses((status = 200, body = inline(Either<RetainedMsg, PageData<RetainedMsg>>))))]
async fn list(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(topic): QueryParams<TopicParam>,
) -> ApiResult<Json<Either<RetainedMsg, PageData<RetainedMsg>>>> {
    let admin = admin_of(&api)?;
    if topic.topic_name.is_some() {
        let topic = required("topicName", topic.topic_name)?;
        let message = admin.retained_message(&topic);
        let message = message.ok_or_else(ApiError::item_not_found)?;
        return Ok(Json(Either::Left(message.into())));
    }
    let page = admin
        .retained(BrokerRetainedFilter::default(), page.link()?)
        .await?;
    Ok(Json(Either::Right(page.map(RetainedMsg::from))))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RetainedFilterParams {
    /// First time of the publication, milliseconds; needs `endTime`.
    start_time: Option<i64>,
    /// Last time of the publication, milliseconds; needs `startTime`.
    end_time: Option<i64>,
    /// A part of the topic.
    topic_name: Option<String>,
    /// Comma-joined qualities of service, 0 to 2.
    qos_list: Option<String>,
    /// A part of the payload.
    payload: Option<String>,
}

/// Returns a page of those retained messages of the MQTT broker that pass a filter.
#[utoipa::path(get, path = "/api/retained-msg/v2", tag = "mqtt-broker", operation_id = "getRetainedMessagesV2",
    params(PageParams, RetainedFilterParams), responses((status = 200, body = PageData<RetainedMsg>)))]
async fn filtered(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<RetainedFilterParams>,
) -> ApiResult<Json<PageData<RetainedMsg>>> {
    let admin = admin_of(&api)?;
    let filter = BrokerRetainedFilter {
        topic: present(params.topic_name),
        payload: present(params.payload),
        qos: small_numbers("qosList", params.qos_list.as_deref())?,
        between_ms: period(params.start_time, params.end_time),
    };
    let page = admin.retained(filter, page.link()?).await?;
    Ok(Json(page.map(RetainedMsg::from)))
}

/// Deletes the retained message of a topic of the MQTT broker. Subscribers are told nothing.
#[utoipa::path(delete, path = "/api/retained-msg", tag = "mqtt-broker", operation_id = "deleteRetainedMessage",
    params(TopicParam), responses((status = 200)))]
async fn delete(ApiCall { api, .. }: ApiCall, QueryParams(topic): QueryParams<TopicParam>) -> ApiResult<()> {
    let admin = admin_of(&api)?;
    match admin
        .delete_retained(&required("topicName", topic.topic_name)?)
        .await?
    {
        true => Ok(()),
        false => Err(ApiError::item_not_found()),
    }
}

/// Does nothing: what a retained message leaves behind in the MQTT broker goes with it.
#[utoipa::path(delete, path = "/api/retained-msg/topic-trie/clear", tag = "mqtt-broker",
    operation_id = "clearEmptyRetainedMsgNodes", responses((status = 200)))]
async fn clear_nodes(ApiCall { api, .. }: ApiCall) -> ApiResult<()> {
    admin_of(&api).map(|_| ())
}
