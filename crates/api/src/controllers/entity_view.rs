//! Entity views: lists, and assignment to customers.

use axum::Json;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::EntityViewFilter;
use fieldline_entities::access::Principal;
use fieldline_model::entity::{Authority, EntityDraft, EntityView, EntityViewInfo};
use fieldline_model::{CustomerId, EntityType};
use serde::Deserialize;
use utoipa_axum::routes;

use self::common::IdsParams;
use super::EntitySubtype;
use super::assignable::{self, ListFilterParams, assignable_endpoints, present};
use super::conflict::ConflictParams;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, QueryParams};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    common::routes()
        .add(TC.changes(routes!(save), AuditRule::Save(EntityType::EntityView)))
        .add(TC.reads(routes!(by_ids_listed)))
        .add(TC.reads(routes!(types)))
}

assignable_endpoints! {
    EntityView, EntityViewInfo, ViewFilterParams, "entity-view", path: "entityView", id: "entityViewId",
    name: "entityViewName" "Name of the entity view.", ids: "entityViewIds" "getEntityViewsByIdsV1",
    one: "entity view", an: "an entity view",
    delete: "Deletes an entity view with its relations and alarms.",
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ViewFilterParams {
    /// Only entity views of this type.
    #[serde(rename = "type")]
    view_type: Option<String>,
}

impl ListFilterParams<EntityView> for ViewFilterParams {
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<EntityViewFilter> {
        let view_type = present(self.view_type);
        Ok(EntityViewFilter {
            customer,
            view_type,
            entity: None,
        })
    }
}

/// Checks that the caller may save this entity view; customer users may rename theirs, but not change the data it
/// shows.
async fn check_save(api: &ApiState, caller: &Principal, view: &mut EntityDraft<EntityView>) -> ApiResult<()> {
    let stored = assignable::check_save(api, caller, view).await?;
    if let Some(stored) = stored.filter(|_| caller.authority == Authority::CustomerUser) {
        if view.entity_id != stored.entity_id {
            return Err(ApiError::denied());
        }
        view.keys = stored.keys;
        view.start_time_ms = stored.start_time_ms;
        view.end_time_ms = stored.end_time_ms;
    }
    Ok(())
}

/// Creates an entity view, or updates it if it has an id.
#[utoipa::path(post, path = "/api/entityView", tag = "entity-view",
    operation_id = "saveEntityView", params(ConflictParams),
    request_body = EntityView, responses((status = 200, body = EntityView)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(mut view): JsonBody<EntityDraft<EntityView>>,
) -> ApiResult<Json<EntityView>> {
    check_save(&api, &caller, &mut view).await?;
    let created = view.id.is_none();
    let names = names.policy()?;
    let views = api.services.assignables::<EntityView>();
    let saved = views.save(caller.tenant, view, &names).await?;
    let entity = AnyEntity::EntityView(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Returns those of the entity views that the caller may see.
#[utoipa::path(get, path = "/api/entityViews/list", tag = "entity-view",
    operation_id = "getEntityViewsByIds", params(IdsParams),
    responses((status = 200, body = Vec<EntityView>)))]
async fn by_ids_listed(call: ApiCall, ids: QueryParams<IdsParams>) -> ApiResult<Json<Vec<EntityView>>> {
    common::by_ids(call, ids).await
}

/// Returns the types of the tenant's entity views.
#[utoipa::path(get, path = "/api/entityView/types", tag = "entity-view", operation_id = "getEntityViewTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<Vec<EntitySubtype>>> {
    let types = api.entities.entity_views.types(caller.tenant).await?;
    let types = types.into_iter().map(|subtype| EntitySubtype {
        tenant_id: caller.tenant,
        entity_type: EntityType::EntityView,
        subtype,
    });
    Ok(Json(types.collect()))
}
