//! Common code of device profiles and asset profiles.

use axum::Json;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_entities::services::ProfileRules;
use fieldline_model::entity::EntityDraft;
use fieldline_model::page::PageData;
use fieldline_model::{EntityId, EntityType};
use uuid::Uuid;

use super::{EntityInfo, EntitySubtype};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, parse_flag, parse_uuids};
use crate::state::ApiState;

/// Creates a profile, or updates it if it has an id.
pub(super) async fn save<P: ProfileRules>(
    api: &ApiState,
    caller: &Principal,
    profile: EntityDraft<P>,
) -> ApiResult<Json<P>> {
    if let Some(id) = profile.id {
        let id: EntityId = id.into();
        api.check(caller, id, AccessOperation::Write).await?;
    }
    let created = profile.id.is_none();
    let saved = api.services.profiles::<P>().save(caller.tenant, profile).await?;
    let entity = saved.clone().into_entity();
    api.services.actions.push_saved(caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a profile that no entity uses.
pub(super) async fn delete<P: ProfileRules>(api: &ApiState, caller: &Principal, id: Uuid) -> ApiResult<()> {
    let profile = api.load::<P>(caller, id, AccessOperation::Delete).await?;
    api.services
        .profiles::<P>()
        .delete(caller.tenant, &profile)
        .await?;
    let (actions, entity) = (&api.services.actions, profile.into_entity());
    actions.push_deleted(caller, &entity).await;
    Ok(())
}

/// Makes a profile the default one.
pub(super) async fn set_default<P: ProfileRules>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<P>> {
    api.load::<P>(caller, id, AccessOperation::Write).await?;
    let service = api.services.profiles::<P>();
    Ok(Json(service.set_default(caller.tenant, P::typed(id)).await?))
}

/// Returns a page of profiles.
pub(super) async fn list<P: ProfileRules>(
    api: &ApiState,
    caller: &Principal,
    page: PageParams,
) -> ApiResult<PageData<P>> {
    Ok(P::store(&api.entities).list(caller.tenant, &page.link()?).await?)
}

/// Returns the short form of a profile.
pub(super) async fn info<P: ProfileRules>(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
) -> ApiResult<Json<P::ProfileInfo>> {
    let profile = api.load::<P>(caller, id, AccessOperation::Read).await?;
    Ok(Json(profile.into()))
}

/// Returns the short form of the default profile.
pub(super) async fn default_info<P: ProfileRules>(
    api: &ApiState,
    caller: &Principal,
) -> ApiResult<Json<P::ProfileInfo>> {
    let profile = P::store(&api.entities).default_profile(caller.tenant).await?;
    let profile = profile.ok_or_else(ApiError::item_not_found)?;
    Ok(Json(profile.into()))
}

/// Returns the short forms of the profiles with the ids in a parameter that the tenant has, in the order of the ids.
pub(super) async fn infos_by_ids<P: ProfileRules>(
    api: &ApiState,
    caller: &Principal,
    parameter: &str,
    ids: Option<String>,
) -> ApiResult<Vec<P::ProfileInfo>> {
    let ids = parse_uuids(parameter, &ids.unwrap_or_default(), P::typed)?;
    let mut found = P::store(&api.entities).by_ids(caller.tenant, &ids).await?;
    found.sort_by_key(|profile| ids.iter().position(|id| *id == profile.id()));
    Ok(found.into_iter().map(P::ProfileInfo::from).collect())
}

/// Returns ids and names of the profiles, sorted by name; with `active_only` only of those that an entity uses.
pub(super) async fn names<P: ProfileRules>(
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

/// Returns the types of the entities that have this kind of profile: the names of the profiles.
pub(super) async fn types<P: ProfileRules>(
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

/// Makes the module `common` with the endpoints that both kinds of profiles have. `params` is the type with the
/// parameter `ids`; `one` and `an` name a profile in the descriptions, and `user` the kind of entity that uses one.
macro_rules! profile_endpoints {
    (
        $profile:ident, $info:ident, params: $params:ident, $tag:tt, path: $path:tt, id: $id:tt, ids: $ids:tt,
        one: $one:tt, an: $an:tt, user: $user:tt, active_only: $active_only:tt $(,)?
    ) => {
        mod common {
            use axum::Json;
            use axum::response::{IntoResponse as _, Response};
            use fieldline_entities::access::AccessOperation;
            use fieldline_model::EntityType;
            use fieldline_model::entity::EntityDraft;
            use fieldline_model::page::PageData;
            use serde::Deserialize;
            use utoipa_axum::routes;

            use super::super::{EntityInfo, profile};
            use super::{$info, $params, $profile};
            use crate::audit::AuditRule;
            use crate::caller::ApiCall;
            use crate::endpoint::{ApiRoutes, T, TC};
            use crate::error::ApiResult;
            use crate::extract::{JsonBody, PageParams, PathIds, QueryParams};
            use crate::resources::InlineParams;

            const KIND: EntityType = EntityType::$profile;

            pub(super) fn routes() -> ApiRoutes {
                ApiRoutes::default()
                    .add(T.reads(routes!(get)))
                    .add(T.changes(routes!(save), AuditRule::Save(KIND)))
                    .add(T.changes(routes!(delete), AuditRule::Delete(KIND)))
                    .add(T.changes(routes!(set_default), AuditRule::Nothing))
                    .add(T.reads(routes!(list)))
                    .add(TC.reads(routes!(info)))
                    .add(TC.reads(routes!(default_info)))
                    .add(T.reads(routes!(infos_by_ids)))
                    .add(TC.reads(routes!(names)))
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("get", stringify!($profile), "ById"),
                summary = concat!("The ", $one, " of an id."),
                params(($id = Uuid, Path), InlineParams), responses((status = 200, body = $profile)))]
            async fn get(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
                QueryParams(params): QueryParams<InlineParams>,
            ) -> ApiResult<Response> {
                let mut found = api.load::<$profile>(&caller, id, AccessOperation::Read).await?;
                let share = params.apply(&api, &caller, &mut found.image).await?;
                let answer = Json(found).into_response();
                drop(share);
                Ok(answer)
            }

            #[utoipa::path(post, path = concat!("/api/", $path), tag = $tag,
                operation_id = concat!("save", stringify!($profile)),
                summary = concat!("Creates ", $an, ", or updates it where it has an id."),
                request_body = $profile, responses((status = 200, body = $profile)))]
            async fn save(
                ApiCall { api, caller }: ApiCall,
                JsonBody(profile): JsonBody<EntityDraft<$profile>>,
            ) -> ApiResult<Json<$profile>> {
                profile::save(&api, &caller, profile).await
            }

            #[utoipa::path(delete, path = concat!("/api/", $path, "/{", $id, "}"), tag = $tag,
                operation_id = concat!("delete", stringify!($profile)),
                summary = concat!("Deletes ", $an, " that no ", $user, " has."),
                params(($id = Uuid, Path)), responses((status = 200)))]
            async fn delete(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<()> {
                profile::delete::<$profile>(&api, &caller, id).await
            }

            #[utoipa::path(post, path = concat!("/api/", $path, "/{", $id, "}/default"), tag = $tag,
                operation_id = concat!("setDefault", stringify!($profile)),
                summary = concat!("Makes ", $an, " the default one."),
                params(($id = Uuid, Path)), responses((status = 200, body = $profile)))]
            async fn set_default(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<Json<$profile>> {
                profile::set_default(&api, &caller, id).await
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "s"), tag = $tag,
                operation_id = concat!("get", stringify!($profile), "s"), summary = concat!("A page of ", $one, "s."),
                params(PageParams), responses((status = 200, body = PageData<$profile>)))]
            async fn list(
                ApiCall { api, caller }: ApiCall,
                QueryParams(page): QueryParams<PageParams>,
            ) -> ApiResult<Json<PageData<$profile>>> {
                profile::list(&api, &caller, page).await.map(Json)
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "Info/{", $id, "}"), tag = $tag,
                operation_id = concat!("get", stringify!($profile), "InfoById"),
                summary = concat!("The short form of ", $an, "."),
                params(($id = Uuid, Path)), responses((status = 200, body = $info)))]
            async fn info(
                ApiCall { api, caller }: ApiCall,
                PathIds([id]): PathIds<1>,
            ) -> ApiResult<Json<$info>> {
                profile::info::<$profile>(&api, &caller, id).await
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "Info/default"), tag = $tag,
                operation_id = concat!("getDefault", stringify!($profile), "Info"),
                summary = concat!("The short form of the default ", $one, "."),
                responses((status = 200, body = $info)))]
            async fn default_info(
                ApiCall { api, caller }: ApiCall,
            ) -> ApiResult<Json<$info>> {
                profile::default_info::<$profile>(&api, &caller).await
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "Infos/list"), tag = $tag,
                operation_id = concat!("get", stringify!($profile), "InfosByIds"),
                summary = concat!("Those of the ", $one, "s that the tenant has, in their short form."),
                params($params), responses((status = 200, body = Vec<$info>)))]
            async fn infos_by_ids(
                ApiCall { api, caller }: ApiCall,
                QueryParams(params): QueryParams<$params>,
            ) -> ApiResult<Json<Vec<$info>>> {
                let infos = profile::infos_by_ids::<$profile>(&api, &caller, $ids, params.ids);
                Ok(Json(infos.await?))
            }

            #[derive(Deserialize, utoipa::IntoParams)]
            #[into_params(parameter_in = Query)]
            #[serde(rename_all = "camelCase")]
            struct NamesParams {
                #[doc = $active_only]
                #[param(value_type = Option<bool>)]
                active_only: Option<String>,
            }

            #[utoipa::path(get, path = concat!("/api/", $path, "/names"), tag = $tag,
                operation_id = concat!("get", stringify!($profile), "Names"),
                summary = concat!("Ids and names of the ", $one, "s, by name."),
                params(NamesParams), responses((status = 200, body = Vec<EntityInfo>)))]
            async fn names(
                ApiCall { api, caller }: ApiCall,
                QueryParams(params): QueryParams<NamesParams>,
            ) -> ApiResult<Json<Vec<EntityInfo>>> {
                profile::names::<$profile>(&api, &caller, params.active_only).await
            }
        }
    };
}
pub(super) use profile_endpoints;
