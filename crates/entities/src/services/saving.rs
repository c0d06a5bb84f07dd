//! Saving what somebody wants to have stored: as a new entity, or as another form of a stored one.

use fieldline_core::any_entity::EntityKind;
use fieldline_core::ports::{EntityStore, StoreResult, TenantEntityStore};
use fieldline_model::entity::{EntityDraft, StoredEntity};
use fieldline_model::{TenantId, new_uuid};
use uuid::Uuid;

use super::{ServiceContext, ServiceError, ServiceResult};
use crate::access::noun;

/// What is stored of an entity that somebody wants to have saved; `None` where it is new.
pub(super) async fn stored<E: EntityKind, S: TenantEntityStore<E> + ?Sized>(
    store: &S,
    tenant: TenantId,
    draft: &EntityDraft<E>,
) -> ServiceResult<Option<E>> {
    let Some(id) = draft.id else { return Ok(None) };
    let old = store.get(tenant, id).await?;
    old.ok_or_else(|| not_there(E::TYPE)).map(Some)
}

/// The answer where there is nothing to be updated.
pub(super) fn not_there(kind: fieldline_model::EntityType) -> ServiceError {
    ServiceError::invalid(format!("Can't update non existing {}!", noun(kind)))
}

/// Saves an entity with the id and creation time of what is stored of it, or where it is new, with new ones.
pub(super) async fn save<E: StoredEntity<Id: From<Uuid>>, S: EntityStore<E> + ?Sized>(
    context: &ServiceContext,
    store: &S,
    draft: EntityDraft<E>,
    old: Option<&E>,
) -> StoreResult<E> {
    match old {
        Some(old) => store.update(draft.into_update(old)).await,
        None => {
            store
                .insert(draft.into_new(new_uuid().into(), context.now()))
                .await
        }
    }
}
