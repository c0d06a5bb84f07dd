//! What devices, assets and entity views have in common: reading, lists, and whose they are.

use axum::Json;
use fieldline_core::ports::AssignableEntity;
use fieldline_entities::access::{AccessOperation, Principal, allows, title};
use fieldline_entities::services::{AssignableService, Services};
use fieldline_model::entity::{Asset, Authority, Customer, Device, EntityDraft, EntityView};
use fieldline_model::message::MsgType;
use fieldline_model::page::PageData;
use fieldline_model::{CustomerId, EntityId};
use uuid::Uuid;

use super::Either;
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, missing, parse_uuids};
use crate::state::ApiState;

/// A kind of entities that customers may have, with its rules.
pub(super) trait AssignableKind: AssignableEntity {
    /// Its service.
    fn service(services: &Services) -> &impl AssignableService<ManagedEntity = Self>;
}

impl AssignableKind for Device {
    fn service(services: &Services) -> &impl AssignableService<ManagedEntity = Self> {
        &services.devices
    }
}

impl AssignableKind for Asset {
    fn service(services: &Services) -> &impl AssignableService<ManagedEntity = Self> {
        &services.assets
    }
}

impl AssignableKind for EntityView {
    fn service(services: &Services) -> &impl AssignableService<ManagedEntity = Self> {
        &services.entity_views
    }
}

/// The query parameters that narrow a list of a kind.
pub(super) trait ListFilterParams<E: AssignableEntity> {
    /// What they ask for, of a customer or of all.
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<E::AssignableFilter>;
}

/// A parameter that has a text in it.
pub(super) fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// The entity of an id with what lists show beside it.
pub(super) async fn info<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<E::AssignableInfo>> {
    api.load::<E>(caller, id, AccessOperation::Read).await?;
    let info = E::store(&api.entities).info(caller.tenant, E::typed(id)).await?;
    info.map(Json)
        .ok_or_else(|| ApiError::not_found(format!("{} with id [{id}] is not found", title(&E::TYPE))))
}

/// Whether the caller may save this entity; customer users may change theirs, but not hand them over. Returns what is
/// stored of it.
pub(super) async fn check_save<E: AssignableKind>(
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

/// Deletes an entity, and tells the rule engine.
pub(super) async fn delete<E: AssignableKind>(api: &ApiState, caller: &Principal, id: Uuid) -> ApiResult<()> {
    let entity = api.load::<E>(caller, id, AccessOperation::Delete).await?;
    E::service(&api.services)
        .delete(caller.tenant, E::typed(id))
        .await?;
    let actions = &api.services.actions;
    actions
        .push_entity(caller, MsgType::EntityDeleted, &entity.into_entity())
        .await;
    Ok(())
}

/// Assigns an entity to a customer.
pub(super) async fn assign<E: AssignableKind>(
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
pub(super) async fn assign_to_public<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<E>> {
    api.load::<E>(caller, id, AccessOperation::AssignToCustomer)
        .await?;
    let public = api.services.customers.ensure_public(caller.tenant).await?;
    assign_to::<E>(api, caller, &public, id).await
}

async fn assign_to<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    customer: &Customer,
    id: Uuid,
) -> ApiResult<Json<E>> {
    let service = E::service(&api.services);
    let to = customer.id;
    let assigned = service.assign(caller.tenant, E::typed(id), to).await?;
    let entity = assigned.clone().into_entity();
    api.services
        .actions
        .push_assigned(caller, &entity, customer)
        .await;
    Ok(Json(assigned))
}

/// Takes an entity back from its customer.
pub(super) async fn unassign<E: AssignableKind>(
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
    let service = E::service(&api.services);
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

/// A page of entities of the tenant with what lists show beside them.
pub(super) async fn infos_of_tenant<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    params: impl ListFilterParams<E>,
    page: PageParams,
) -> ApiResult<Json<PageData<E::AssignableInfo>>> {
    let (filter, link) = (params.filter(None)?, page.link()?);
    let store = E::store(&api.entities);
    Ok(Json(store.list(caller.tenant, &filter, &link).await?))
}

/// A page of entities of the tenant, or the one of a name that is given.
pub(super) async fn of_tenant<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    params: impl ListFilterParams<E>,
    page: PageParams,
    (parameter, name): (&str, Option<String>),
) -> ApiResult<Json<Either<PageData<E>, E>>> {
    if name.is_some() {
        let Json(found) = by_name(api, caller, (parameter, name)).await?;
        return Ok(Json(Either::Right(found)));
    }
    let Json(infos) = infos_of_tenant::<E>(api, caller, params, page).await?;
    Ok(Json(Either::Left(infos.map(E::of_info))))
}

/// The entity of the name in a parameter.
pub(super) async fn by_name<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    (parameter, name): (&str, Option<String>),
) -> ApiResult<Json<E>> {
    let name = name.ok_or_else(|| missing(parameter))?;
    let found = E::store(&api.entities).by_name(caller.tenant, &name).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))
}

/// A page of entities of a customer with what lists show beside them.
pub(super) async fn infos_of_customer<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    customer: Uuid,
    params: impl ListFilterParams<E>,
    page: PageParams,
) -> ApiResult<Json<PageData<E::AssignableInfo>>> {
    let customer = CustomerId(customer);
    api.check(caller, customer, AccessOperation::Read).await?;
    let (filter, link) = (params.filter(Some(customer))?, page.link()?);
    let store = E::store(&api.entities);
    Ok(Json(store.list(caller.tenant, &filter, &link).await?))
}

/// A page of entities of a customer.
pub(super) async fn of_customer<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    customer: Uuid,
    params: impl ListFilterParams<E>,
    page: PageParams,
) -> ApiResult<Json<PageData<E>>> {
    let Json(infos) = infos_of_customer::<E>(api, caller, customer, params, page).await?;
    Ok(Json(infos.map(E::of_info)))
}

/// Those of the entities of the ids in a parameter that the caller may see.
pub(super) async fn by_ids<E: AssignableKind>(
    api: &ApiState,
    caller: &Principal,
    (parameter, ids): (&str, Option<String>),
) -> ApiResult<Json<Vec<E>>> {
    let ids = parse_uuids(parameter, &ids.unwrap_or_default(), E::typed)?;
    let mut found = E::store(&api.entities).by_ids(caller.tenant, &ids).await?;
    found.retain(|entity| allows(caller, AccessOperation::Read, &entity.resource()));
    Ok(Json(found))
}
