//! What profiles of devices and of assets have in common.

use axum::Json;
use fieldline_core::ports::EntityProfile;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_entities::services::{ProfileService, Services};
use fieldline_model::entity::{AssetProfile, DeviceProfile, EntityDraft};
use fieldline_model::message::MsgType;
use fieldline_model::page::PageData;
use fieldline_model::{EntityId, EntityType};
use uuid::Uuid;

use super::{EntityInfo, EntitySubtype};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, parse_flag, parse_uuids};
use crate::state::ApiState;

/// A kind of profiles with its rules.
pub(super) trait ProfileKind: EntityProfile {
    /// Its service.
    fn service(services: &Services) -> &impl ProfileService<ManagedProfile = Self>;
}

impl ProfileKind for DeviceProfile {
    fn service(services: &Services) -> &impl ProfileService<ManagedProfile = Self> {
        &services.device_profiles
    }
}

impl ProfileKind for AssetProfile {
    fn service(services: &Services) -> &impl ProfileService<ManagedProfile = Self> {
        &services.asset_profiles
    }
}

/// Creates a profile, or updates it where it has an id.
pub(super) async fn save<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    profile: EntityDraft<P>,
) -> ApiResult<Json<P>> {
    if let Some(id) = profile.id {
        let id: EntityId = id.into();
        api.check(caller, id, AccessOperation::Write).await?;
    }
    let created = profile.id.is_none();
    let saved = P::service(&api.services).save(caller.tenant, profile).await?;
    let entity = saved.clone().into_entity();
    api.services.actions.push_saved(caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a profile that no entity has.
pub(super) async fn delete<P: ProfileKind>(api: &ApiState, caller: &Principal, id: Uuid) -> ApiResult<()> {
    let profile = api.load::<P>(caller, id, AccessOperation::Delete).await?;
    P::service(&api.services).delete(caller.tenant, &profile).await?;
    let (actions, entity) = (&api.services.actions, profile.into_entity());
    actions.push_entity(caller, MsgType::EntityDeleted, &entity).await;
    Ok(())
}

/// Makes a profile the default one.
pub(super) async fn set_default<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<P>> {
    api.load::<P>(caller, id, AccessOperation::Write).await?;
    let service = P::service(&api.services);
    Ok(Json(service.set_default(caller.tenant, P::typed(id)).await?))
}

/// A page of profiles.
pub(super) async fn list<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    page: PageParams,
) -> ApiResult<PageData<P>> {
    Ok(P::store(&api.entities).list(caller.tenant, &page.link()?).await?)
}

/// The short form of a profile.
pub(super) async fn info<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<P::ProfileInfo>> {
    let profile = api.load::<P>(caller, id, AccessOperation::Read).await?;
    Ok(Json(profile.into()))
}

/// The short form of the default profile.
pub(super) async fn default_info<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
) -> ApiResult<Json<P::ProfileInfo>> {
    let profile = P::store(&api.entities).default_profile(caller.tenant).await?;
    let profile = profile.ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))?;
    Ok(Json(profile.into()))
}

/// Those of the profiles of the ids in a parameter that the tenant has, in their short form and in the order of the ids.
pub(super) async fn infos_by_ids<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    (parameter, ids): (&str, Option<String>),
) -> ApiResult<Vec<P::ProfileInfo>> {
    let ids = parse_uuids(parameter, &ids.unwrap_or_default(), P::typed)?;
    let mut found = P::store(&api.entities).by_ids(caller.tenant, &ids).await?;
    found.sort_by_key(|profile| ids.iter().position(|id| *id == profile.id()));
    Ok(found.into_iter().map(P::ProfileInfo::from).collect())
}

/// Ids and names of the profiles, by name; only of those that an entity has, if `active_only` says so.
pub(super) async fn names<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    active_only: Option<String>,
) -> ApiResult<Json<Vec<EntityInfo>>> {
    let active_only = parse_flag(&active_only.unwrap_or_default()) == Ok(Some(true));
    let names = P::store(&api.entities).names(caller.tenant, active_only).await?;
    let mut infos: Vec<EntityInfo> = names
        .into_iter()
        .map(|(id, name)| EntityInfo { id: id.into(), name })
        .collect();
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(infos))
}

/// The types of the entities that have profiles of a kind: the names of the profiles.
pub(super) async fn types<P: ProfileKind>(
    api: &ApiState,
    caller: &Principal,
    entity_type: EntityType,
) -> ApiResult<Json<Vec<EntitySubtype>>> {
    let names = P::store(&api.entities).names(caller.tenant, false).await?;
    let mut types: Vec<EntitySubtype> = names
        .into_iter()
        .map(|(_, subtype)| EntitySubtype {
            tenant_id: caller.tenant,
            entity_type,
            subtype,
        })
        .collect();
    types.sort_by(|a, b| a.subtype.cmp(&b.subtype));
    Ok(Json(types))
}
