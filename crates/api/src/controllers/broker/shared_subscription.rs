//! Shared subscriptions that programs announce for clients of the type APPLICATION, as TBMQ has them.

use axum::Json;
use fieldline_model::entity::ApplicationSharedSubscription;
use fieldline_model::page::PageData;
use serde::Deserialize;
use utoipa_axum::routes;

use super::{admin_of, required};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::controllers::Either;
use crate::endpoint::{ApiRoutes, S};
use crate::error::ApiResult;
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.changes(routes!(save), AuditRule::Nothing))
        .add(S.reads(routes!(list)))
        .add(S.reads(routes!(get)))
        .add(S.changes(routes!(delete), AuditRule::Nothing))
}

/// Announces a shared subscription of clients of the type APPLICATION to the MQTT broker, or renames the one with the given
/// id. Clients may join groups that nobody has announced.
#[utoipa::path(post, path = "/api/app/shared/subs", tag = "mqtt-broker", operation_id = "saveSharedSubscription",
    request_body = ApplicationSharedSubscription, responses((status = 200, body = ApplicationSharedSubscription)))]
async fn save(
    ApiCall { api, .. }: ApiCall,
    JsonBody(subscription): JsonBody<ApplicationSharedSubscription>,
) -> ApiResult<Json<ApplicationSharedSubscription>> {
    let admin = admin_of(&api)?;
    // That of one that exists cannot be changed, whatever the settings say of it by now.
    if subscription.id.is_nil() && !subscription.topic_filter.is_empty() {
        admin.check_filter(&subscription.topic_filter)?;
    }
    Ok(Json(api.services.shared_subscriptions.save(subscription).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct FilterParam {
    /// The topic filter.
    topic: Option<String>,
}

/// Returns a page of the announced shared subscriptions, or with `topic` that of this topic filter. A text is looked for in
/// names. Sorted by `createdTime`, `name`, `topicFilter` or `partitions`.
#[utoipa::path(get, path = "/api/app/shared/subs", tag = "mqtt-broker", operation_id = "getSharedSubscriptions",
    params(PageParams, FilterParam),
    responses((status = 200,
        body = inline(Either<ApplicationSharedSubscription, PageData<ApplicationSharedSubscription>>))))]
async fn list(
    ApiCall { api, .. }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<FilterParam>,
) -> ApiResult<Json<Either<ApplicationSharedSubscription, PageData<ApplicationSharedSubscription>>>> {
    admin_of(&api)?;
    let subscriptions = &api.services.shared_subscriptions;
    if params.topic.is_some() {
        let filter = required("topic", params.topic)?;
        return Ok(Json(Either::Left(subscriptions.by_filter(&filter).await?)));
    }
    Ok(Json(Either::Right(subscriptions.list(&page.link()?).await?)))
}

/// Returns an announced shared subscription.
#[utoipa::path(get, path = "/api/app/shared/subs/{sharedSubscriptionId}", tag = "mqtt-broker",
    operation_id = "getSharedSubscriptionById", params(("sharedSubscriptionId" = Uuid, Path)),
    responses((status = 200, body = ApplicationSharedSubscription)))]
async fn get(
    ApiCall { api, .. }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<ApplicationSharedSubscription>> {
    admin_of(&api)?;
    Ok(Json(api.services.shared_subscriptions.get(id).await?))
}

/// Deletes an announced shared subscription. Groups and their clients stay.
#[utoipa::path(delete, path = "/api/app/shared/subs/{sharedSubscriptionId}", tag = "mqtt-broker",
    operation_id = "deleteSharedSubscription", params(("sharedSubscriptionId" = Uuid, Path)),
    responses((status = 200)))]
async fn delete(ApiCall { api, .. }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    admin_of(&api)?;
    Ok(api.services.shared_subscriptions.delete(id).await?)
}
