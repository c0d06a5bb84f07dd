//! Common code of devices, assets and entity views: reading, lists, and assignment to customers.

use axum::Json;
use fieldline_core::ports::AssignableEntity;
use fieldline_entities::access::{AccessOperation, Principal, allows, title};
use fieldline_entities::services::AssignableRules;
use fieldline_model::entity::{Authority, Customer, EntityDraft};
use fieldline_model::page::PageData;
use fieldline_model::{CustomerId, EntityId};
use uuid::Uuid;

use super::Either;
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, parse_uuids};
use crate::state::ApiState;

/// The query parameters that filter a list of a kind.
pub(super) trait ListFilterParams<E: AssignableEntity> {
    /// Builds the filter, for a customer or for all.
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<E::AssignableFilter>;
}

/// Returns the parameter unless it is blank.
pub(super) fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Returns the entity with this id, with its extended fields.
pub(super) async fn info<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<E::AssignableInfo>> {
    api.load::<E>(caller, id, AccessOperation::Read).await?;
    let info = E::store(&api.entities).info(caller.tenant, E::typed(id)).await?;
    info.map(Json)
        .ok_or_else(|| ApiError::not_found(format!("{} with id [{id}] is not found", title(&E::TYPE))))
}

/// Checks that the caller may save this entity; customer users may change their entities, but not reassign them.
/// Returns the stored entity.
pub(super) async fn check_save<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    entity: &mut EntityDraft<E>,
) -> ApiResult<Option<E>> {
    let by_customer = caller.authority == Authority::CustomerUser;
    let Some(id) = entity.id else {
        return if by_customer {
            Err(ApiError::denied())
        } else {
            Ok(None)
        };
    };
    let id: EntityId = id.into();
    let stored = api.load::<E>(caller, id.id, AccessOperation::Write).await?;
    if by_customer {
        *entity.fields_mut().customer = stored.fields().customer;
    }
    Ok(Some(stored))
}

/// Deletes an entity, and notifies the rule engine.
pub(super) async fn delete<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<()> {
    let entity = api.load::<E>(caller, id, AccessOperation::Delete).await?;
    api.services
        .assignables::<E>()
        .delete(caller.tenant, E::typed(id))
        .await?;
    let actions = &api.services.actions;
    actions.push_deleted(caller, &entity.into_entity()).await;
    Ok(())
}

/// Assigns an entity to a customer.
pub(super) async fn assign<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    [customer, id]: [Uuid; 2],
) -> ApiResult<Json<E>> {
    let customer = api
        .load::<Customer>(caller, customer, AccessOperation::Read)
        .await?;
    api.load::<E>(caller, id, AccessOperation::AssignToCustomer)
        .await?;
    assign_to::<E>(api, caller, &customer, id).await
}

/// Assigns an entity to the public customer.
pub(super) async fn assign_to_public<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<E>> {
    api.load::<E>(caller, id, AccessOperation::AssignToCustomer)
        .await?;
    let public = api.services.customers.ensure_public(caller.tenant).await?;
    assign_to::<E>(api, caller, &public, id).await
}

async fn assign_to<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    customer: &Customer,
    id: Uuid,
) -> ApiResult<Json<E>> {
    let service = api.services.assignables::<E>();
    let to = customer.id;
    let assigned = service.assign(caller.tenant, E::typed(id), to).await?;
    let entity = assigned.clone().into_entity();
    api.services
        .actions
        .push_assigned(caller, &entity, customer)
        .await;
    Ok(Json(assigned))
}

/// Unassigns an entity from its customer.
pub(super) async fn unassign<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<E>> {
    let stored = api
        .load::<E>(caller, id, AccessOperation::UnassignFromCustomer)
        .await?;
    let customer = stored.fields().customer;
    if customer.is_null() {
        let kind = title(&E::TYPE);
        return Err(ApiError::bad_request(format!(
            "{kind} isn't assigned to any customer!"
        )));
    }
    let customer = api
        .load::<Customer>(caller, customer.0, AccessOperation::Read)
        .await?;
    let service = api.services.assignables::<E>();
    let taken = service
        .assign(caller.tenant, E::typed(id), CustomerId::NULL)
        .await?;
    let entity = taken.clone().into_entity();
    api.services
        .actions
        .push_unassigned(caller, &entity, &customer)
        .await;
    Ok(Json(taken))
}

/// Returns a page of entities of the tenant, or of a customer, with their extended fields.
pub(super) async fn infos<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    customer: Option<Uuid>,
    params: impl ListFilterParams<E>,
    page: PageParams,
) -> ApiResult<Json<PageData<E::AssignableInfo>>> {
    let customer = customer.map(CustomerId);
    if let Some(customer) = customer {
        api.check(caller, customer, AccessOperation::Read).await?;
    }
    let (filter, link) = (params.filter(customer)?, page.link()?);
    let store = E::store(&api.entities);
    Ok(Json(store.list(caller.tenant, &filter, &link).await?))
}

/// Returns a page of entities of the tenant, or the entity with the given name.
pub(super) async fn of_tenant<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    params: impl ListFilterParams<E>,
    page: PageParams,
    name: Option<String>,
) -> ApiResult<Json<Either<PageData<E>, E>>> {
    if let Some(name) = name {
        let Json(found) = by_name(api, caller, &name).await?;
        return Ok(Json(Either::Right(found)));
    }
    let Json(infos) = infos::<E>(api, caller, None, params, page).await?;
    Ok(Json(Either::Left(infos.map(E::of_info))))
}

/// Returns the entity with this name.
pub(super) async fn by_name<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    name: &str,
) -> ApiResult<Json<E>> {
    let found = E::store(&api.entities).by_name(caller.tenant, name).await?;
    found.map(Json).ok_or_else(ApiError::item_not_found)
}

/// Returns a page of entities of a customer.
pub(super) async fn of_customer<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    customer: Uuid,
    params: impl ListFilterParams<E>,
    page: PageParams,
) -> ApiResult<Json<PageData<E>>> {
    let Json(infos) = infos::<E>(api, caller, Some(customer), params, page).await?;
    Ok(Json(infos.map(E::of_info)))
}

/// Returns the entities with the ids of a parameter, as far as the caller may see them.
pub(super) async fn by_ids<E: AssignableRules>(
    api: &ApiState,
    caller: &Principal,
    parameter: &str,
    ids: Option<String>,
) -> ApiResult<Json<Vec<E>>> {
    let ids = parse_uuids(parameter, &ids.unwrap_or_default(), E::typed)?;
    let mut found = E::store(&api.entities).by_ids(caller.tenant, &ids).await?;
    found.retain(|entity| allows(caller, AccessOperation::Read, &entity.resource()));
    Ok(Json(found))
}

/// Makes the module `common` with the endpoints that every assignable kind has. `path` is the kind in paths; `id`,
/// `name` and `ids` are its parameters; `one` and `an` name an entity of it in the descriptions.
macro_rules! assignable_endpoints {
    (
        $entity:ident, $info:ident, $filter:ident, $tag:tt, path: $path:tt, id: $id:tt,
        name: $name:tt $name_doc:tt, ids: $ids:tt $by_ids:tt, one: $one:tt, an: $an:tt, delete: $delete:tt $(,)?
    ) => {
        mod common {
            use axum::Json;
            use fieldline_entities::access::AccessOperation;
            use fieldline_model::EntityType;
            use fieldline_model::page::PageData;
            use serde::Deserialize;
            use utoipa_axum::routes;

            use super::super::{Either, assignable};
            use super::{$entity, $filter, $info};
            use crate::audit::AuditRule;
            use crate::caller::ApiCall;
            use crate::endpoint::{ApiRoutes, T, TC};
            use crate::error::ApiResult;
            use crate::extract::{PageParams, PathIds, QueryParams, missing};

            const KIND: EntityType = EntityType::$entity;

            pub(super) fn routes() -> ApiRoutes {
                ApiRoutes::default()
                    .add(TC.reads(routes!(get)))
                    .add(TC.reads(routes!(info)))
                    .add(T.changes(routes!(delete), AuditRule::Delete(KIND)))
                    .add(T.changes(routes!(assign), AuditRule::Assign(KIND)))
                    .add(T.changes(routes!(assign_to_public), AuditRule::Assign(KIND)))
                    .add(T.changes(routes!(unassign), AuditRule::Unassign(KIND)))
                    .add(T.reads(routes!(of_tenant)))
                    .add(T.reads(routes!(infos_of_tenant)))
                    .add(T.reads(routes!(by_name)))
                    .add(TC.reads(routes!(of_customer)))
                    .add(TC.reads(routes!(infos_of_customer)))
                    .add(TC.reads(routes!(by_ids)))
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("get", stringify!($entity), "ById"),
                summary = concat!("The ", $one, " of an id."),
                params(($id = Uuid, Path)), responses((status = 200, body = $entity)))]
            async fn get(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<Json<$entity>> {
                Ok(Json(api.load(&caller, id, AccessOperation::Read).await?))
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "/info/{", $id, "}"), tag = $tag,
                operation_id = concat!("get", stringify!($entity), "InfoById"),
                summary = concat!("The ", $one, " of an id with what lists show beside it."),
                params(($id = Uuid, Path)), responses((status = 200, body = $info)))]
            async fn info(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<Json<$info>> {
                assignable::info::<$entity>(&api, &caller, id).await
            }

            #[utoipa::path(delete, path = concat!("/api/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("delete", stringify!($entity)), summary = $delete,
                params(($id = Uuid, Path)), responses((status = 200)))]
            async fn delete(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<()> {
                assignable::delete::<$entity>(&api, &caller, id).await
            }

            #[utoipa::path(post, path = concat!("/api/customer/{customerId}/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("assign", stringify!($entity), "ToCustomer"),
                summary = concat!("Assigns ", $an, " to a customer."),
                params(("customerId" = Uuid, Path), ($id = Uuid, Path)),
                responses((status = 200, body = $entity)))]
            async fn assign(
                ApiCall { api, caller }: ApiCall,
                PathIds(ids): PathIds<2>,
            ) -> ApiResult<Json<$entity>> {
                assignable::assign(&api, &caller, ids).await
            }

            #[utoipa::path(post, path = concat!("/api/customer/public/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("assign", stringify!($entity), "ToPublicCustomer"),
                summary = concat!("Assigns ", $an, " to the public customer."),
                params(($id = Uuid, Path)), responses((status = 200, body = $entity)))]
            async fn assign_to_public(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<Json<$entity>> {
                assignable::assign_to_public(&api, &caller, id).await
            }

            #[utoipa::path(delete, path = concat!("/api/customer/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("unassign", stringify!($entity), "FromCustomer"),
                summary = concat!("Takes ", $an, " back from its customer."),
                params(($id = Uuid, Path)), responses((status = 200, body = $entity)))]
            async fn unassign(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<Json<$entity>> {
                assignable::unassign(&api, &caller, id).await
            }

            #[derive(Deserialize, utoipa::IntoParams)]
            #[into_params(parameter_in = Query)]
            struct NameParams {
                #[doc = $name_doc]
                #[serde(rename = $name)]
                name: Option<String>,
            }

            #[utoipa::path(get, path = concat!("/api/tenant/", $path, "s"), tag = $tag,
                operation_id = concat!("getTenant", stringify!($entity), "s"),
                summary = concat!(
                    "A page of ", $one, "s of the tenant, or with `", $name, "` the ", $one, " of that name."
                ),
                params(PageParams, $filter, NameParams), responses((status = 200, body = PageData<$entity>)))]
            async fn of_tenant(
                ApiCall { api, caller }: ApiCall,
                QueryParams(page): QueryParams<PageParams>,
                QueryParams(params): QueryParams<$filter>,
                QueryParams(name): QueryParams<NameParams>,
            ) -> ApiResult<Json<Either<PageData<$entity>, $entity>>> {
                assignable::of_tenant(&api, &caller, params, page, name.name).await
            }

            #[utoipa::path(get, path = concat!("/api/tenant/", $path, "Infos"), tag = $tag,
                operation_id = concat!("getTenant", stringify!($entity), "Infos"),
                summary = concat!("A page of ", $one, "s of the tenant with what lists show beside them."),
                params(PageParams, $filter), responses((status = 200, body = PageData<$info>)))]
            async fn infos_of_tenant(
                ApiCall { api, caller }: ApiCall,
                QueryParams(page): QueryParams<PageParams>,
                QueryParams(params): QueryParams<$filter>,
            ) -> ApiResult<Json<PageData<$info>>> {
                assignable::infos::<$entity>(&api, &caller, None, params, page).await
            }

            #[utoipa::path(get, path = concat!("/api/tenant/", $path), tag = $tag,
                operation_id = concat!("getTenant", stringify!($entity), "ByName"),
                summary = concat!("The ", $one, " of a name."),
                params(NameParams), responses((status = 200, body = $entity)))]
            async fn by_name(
                ApiCall { api, caller }: ApiCall,
                QueryParams(name): QueryParams<NameParams>,
            ) -> ApiResult<Json<$entity>> {
                let name = name.name.ok_or_else(|| missing($name))?;
                assignable::by_name(&api, &caller, &name).await
            }

            #[utoipa::path(get, path = concat!("/api/customer/{customerId}/", $path, "Infos"), tag = $tag,
                operation_id = concat!("getCustomer", stringify!($entity), "Infos"),
                summary = concat!("A page of ", $one, "s of a customer with what lists show beside them."),
                params(("customerId" = Uuid, Path), PageParams, $filter),
                responses((status = 200, body = PageData<$info>)))]
            async fn infos_of_customer(
                ApiCall { api, caller }: ApiCall,
                PathIds([customer]): PathIds<1>,
                QueryParams(page): QueryParams<PageParams>,
                QueryParams(params): QueryParams<$filter>,
            ) -> ApiResult<Json<PageData<$info>>> {
                assignable::infos::<$entity>(&api, &caller, Some(customer), params, page).await
            }

            #[utoipa::path(get, path = concat!("/api/customer/{customerId}/", $path, "s"), tag = $tag,
                operation_id = concat!("getCustomer", stringify!($entity), "s"),
                summary = concat!("A page of ", $one, "s of a customer."),
                params(("customerId" = Uuid, Path), PageParams, $filter),
                responses((status = 200, body = PageData<$entity>)))]
            async fn of_customer(
                ApiCall { api, caller }: ApiCall,
                PathIds([customer]): PathIds<1>,
                QueryParams(page): QueryParams<PageParams>,
                QueryParams(params): QueryParams<$filter>,
            ) -> ApiResult<Json<PageData<$entity>>> {
                assignable::of_customer(&api, &caller, customer, params, page).await
            }

            #[derive(Deserialize, utoipa::IntoParams)]
            #[into_params(parameter_in = Query)]
            pub(super) struct IdsParams {
                /// Comma-joined ids.
                #[serde(rename = $ids)]
                ids: Option<String>,
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "s"), tag = $tag, operation_id = $by_ids,
                summary = concat!("Those of the ", $one, "s that the caller may see."),
                params(IdsParams), responses((status = 200, body = Vec<$entity>)))]
            pub(super) async fn by_ids(
                ApiCall { api, caller }: ApiCall,
                QueryParams(ids): QueryParams<IdsParams>,
            ) -> ApiResult<Json<Vec<$entity>>> {
                assignable::by_ids(&api, &caller, $ids, ids.ids).await
            }
        }
    };
}
pub(super) use assignable_endpoints;
