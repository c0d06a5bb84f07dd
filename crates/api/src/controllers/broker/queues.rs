//! The queues of the broker and who consumes them, as TBMQ shows those of its Kafka.

use axum::Json;
use fieldline_core::ports::{BrokerConsumerGroup, BrokerQueueTopic};
use fieldline_model::page::{PageData, PageLink};
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use super::{admin_of, required};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, QueryParams};
use crate::state::ApiState;

/// Where the log of the broker is: in this program.
const LOG_ADDRESS: &str = "localhost";

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(cluster)))
        .add(S.reads(routes!(cluster_v2)))
        .add(S.reads(routes!(topics)))
        .add(S.reads(routes!(topics_v2)))
        .add(S.reads(routes!(groups)))
        .add(S.reads(routes!(groups_v2)))
        .add(S.changes(routes!(delete_group), AuditRule::Nothing))
}

/// A place where messages of the broker are stored.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct KafkaBroker {
    /// Its number, 0.
    broker_id: u32,
    /// Its address as the broker knows it.
    address: &'static str,
    /// Bytes of its files.
    broker_size: u64,
}

async fn places(api: &ApiState) -> ApiResult<Json<PageData<KafkaBroker>>> {
    let place = KafkaBroker {
        broker_id: 0,
        address: LOG_ADDRESS,
        broker_size: admin_of(api)?.disk_bytes().await?,
    };
    Ok(Json(PageData::new(vec![place], 1, &PageLink::first(1))))
}

/// Returns where messages of the MQTT broker are stored: in this program.
#[utoipa::path(get, path = "/api/app/cluster-info", tag = "mqtt-broker", operation_id = "getKafkaClusterInfo",
    responses((status = 200, body = PageData<KafkaBroker>)))]
async fn cluster(ApiCall { api, .. }: ApiCall) -> ApiResult<Json<PageData<KafkaBroker>>> {
    places(&api).await
}

/// Returns the same as `/api/app/cluster-info`.
#[utoipa::path(get, path = "/api/app/cluster-info/v2", tag = "mqtt-broker", operation_id = "getKafkaClusterInfoV2",
    responses((status = 200, body = PageData<KafkaBroker>)))]
async fn cluster_v2(ApiCall { api, .. }: ApiCall) -> ApiResult<Json<PageData<KafkaBroker>>> {
    places(&api).await
}

/// A queue of the broker.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct KafkaTopic {
    /// `tbmq.msg.app.` and the client identifier, or `broker`: the journal.
    name: String,
    /// Always 1.
    partitions: u32,
    /// Always 1.
    replication_factor: u32,
    /// Bytes of what is in it.
    size: u64,
}

impl From<BrokerQueueTopic> for KafkaTopic {
    fn from(topic: BrokerQueueTopic) -> Self {
        Self {
            name: topic.name,
            partitions: 1,
            replication_factor: 1,
            size: topic.bytes,
        }
    }
}

async fn page_of_topics(api: &ApiState, page: PageParams) -> ApiResult<Json<PageData<KafkaTopic>>> {
    let found = admin_of(api)?.queue_topics(page.link()?).await?;
    Ok(Json(found.map(KafkaTopic::from)))
}

/// Returns a page of the queues of the MQTT broker: of its clients of the type APPLICATION, and its journal. Sorted by
/// `name`, `partitions`, `replicationFactor` or `size`.
#[utoipa::path(get, path = "/api/app/kafka-topics", tag = "mqtt-broker", operation_id = "getKafkaTopics",
    params(PageParams), responses((status = 200, body = PageData<KafkaTopic>)))]
async fn topics(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<KafkaTopic>>> {
    page_of_topics(&api, page).await
}

/// Returns the same as `/api/app/kafka-topics`.
#[utoipa::path(get, path = "/api/app/kafka-topics/v2", tag = "mqtt-broker", operation_id = "getKafkaTopicsV2",
    params(PageParams), responses((status = 200, body = PageData<KafkaTopic>)))]
async fn topics_v2(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<KafkaTopic>>> {
    page_of_topics(&api, page).await
}

/// Who consumes a queue of the broker.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct KafkaConsumerGroup {
    /// `STABLE`, or `EMPTY` while the client is away.
    state: &'static str,
    /// `application-persisted-msg-consumer-group-` and the client identifier, or `broker`: what stores the journal.
    group_id: String,
    /// How many consume it now.
    members: u32,
    /// Messages that wait, or records of the journal that are yet to be stored.
    lag: u64,
}

impl From<BrokerConsumerGroup> for KafkaConsumerGroup {
    fn from(group: BrokerConsumerGroup) -> Self {
        Self {
            state: match group.members {
                0 => "EMPTY",
                _ => "STABLE",
            },
            group_id: group.name,
            members: group.members,
            lag: group.lag,
        }
    }
}

async fn page_of_groups(api: &ApiState, page: PageParams) -> ApiResult<Json<PageData<KafkaConsumerGroup>>> {
    let found = admin_of(api)?.consumer_groups(page.link()?).await?;
    Ok(Json(found.map(KafkaConsumerGroup::from)))
}

/// Returns a page of those who consume the queues of the MQTT broker. Sorted by `groupId`, `state`, `members` or `lag`.
#[utoipa::path(get, path = "/api/app/consumer-groups", tag = "mqtt-broker", operation_id = "getKafkaConsumerGroups",
    params(PageParams), responses((status = 200, body = PageData<KafkaConsumerGroup>)))]
async fn groups(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<KafkaConsumerGroup>>> {
    page_of_groups(&api, page).await
}

/// Returns the same as `/api/app/consumer-groups`.
#[utoipa::path(get, path = "/api/app/consumer-groups/v2", tag = "mqtt-broker",
    operation_id = "getKafkaConsumerGroupsV2", params(PageParams),
    responses((status = 200, body = PageData<KafkaConsumerGroup>)))]
async fn groups_v2(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<KafkaConsumerGroup>>> {
    page_of_groups(&api, page).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct GroupParam {
    /// The name of the group.
    #[param(required = true, value_type = String)]
    group_id: Option<String>,
}

/// Refuses to delete who consumes a queue of the MQTT broker: a client and its queue go together, with the session.
#[utoipa::path(delete, path = "/api/app/consumer-group", tag = "mqtt-broker", operation_id = "deleteKafkaConsumerGroup",
    params(GroupParam), responses((status = 200)))]
async fn delete_group(
    ApiCall { api, .. }: ApiCall,
    QueryParams(params): QueryParams<GroupParam>,
) -> ApiResult<()> {
    let admin = admin_of(&api)?;
    let name = required("groupId", params.group_id)?;
    let group = admin.consumer_group(&name).await?;
    let group = group.ok_or_else(ApiError::item_not_found)?;
    Err(ApiError::bad_request(match group.members {
        0 => "The group has its place in the queue of its client: remove the client's session instead",
        _ => "The group is not empty",
    }))
}
