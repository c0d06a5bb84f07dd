//! Many entities in one transaction, of which those that cannot be stored are left out.

use std::collections::HashMap;

use async_trait::async_trait;
use fieldline_core::ports::{AssetImportRow, DeviceImportRow, ImportStore, StoreErrorKind, StoreResult};
use fieldline_model::TenantId;
use fieldline_model::entity::{Asset, Device};
use uuid::Uuid;

use super::database::{Changes, Database};
use super::query::{Owner, unreadable};
use super::record::{self, Record};

/// An entity to be created or changed, with what is stored along with it.
pub(super) trait Import: Sync {
    /// The entity.
    type Entity: Record + Sync;

    /// See [`Import::Entity`].
    fn entity(&self) -> &Self::Entity;
    /// Whether it is new.
    fn creates(&self) -> bool;
    /// Stores what goes along with these, in the transaction of their own.
    fn attach(rows: &[Self], changes: &mut Changes) -> impl Future<Output = StoreResult<()>> + Send
    where
        Self: Sized;
}

/// Devices and assets in a database.
pub(super) struct Imports(pub(super) Database);

#[async_trait]
impl ImportStore for Imports {
    async fn devices_named(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Device>> {
        record::by_names(&self.0, Owner::Tenant(tenant.0), names).await
    }

    async fn assets_named(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Asset>> {
        record::by_names(&self.0, Owner::Tenant(tenant.0), names).await
    }

    async fn devices(&self, rows: Vec<DeviceImportRow>) -> StoreResult<Vec<StoreResult<Device>>> {
        all(&self.0, &rows).await
    }

    async fn assets(&self, rows: Vec<AssetImportRow>) -> StoreResult<Vec<StoreResult<Asset>>> {
        all(&self.0, &rows).await
    }
}

/// Stores all that can be stored; an answer for each, in their order. Fails as a whole where the database does.
async fn all<I: Import>(database: &Database, rows: &[I]) -> StoreResult<Vec<StoreResult<I::Entity>>> {
    let mut answers: Vec<Option<StoreResult<I::Entity>>> = rows.iter().map(|_| None).collect();
    // Where one of several cannot be stored, each half is tried on its own.
    let mut left = vec![(0, rows)];
    while let Some((start, some)) = left.pop() {
        match attempt(database, some).await {
            Ok(stored) => {
                for (answer, entity) in answers.iter_mut().skip(start).zip(stored) {
                    *answer = Some(Ok(entity));
                }
            }
            Err(error) if !is_about_one(error.kind()) => return Err(error),
            Err(error) if some.len() == 1 => {
                if let Some(answer) = answers.get_mut(start) {
                    *answer = Some(Err(error));
                }
            }
            Err(_) => {
                let (first, second) = some.split_at(some.len() / 2);
                left.push((start, first));
                left.push((start + first.len(), second));
            }
        }
    }
    answers
        .into_iter()
        .map(|answer| answer.ok_or_else(|| unreadable("an entity was not answered")))
        .collect()
}

/// Whether such an error says something about one of the entities, and not about the database.
const fn is_about_one(kind: StoreErrorKind) -> bool {
    matches!(
        kind,
        StoreErrorKind::Conflict
            | StoreErrorKind::Invalid
            | StoreErrorKind::NotFound
            | StoreErrorKind::VersionConflict
    )
}

/// Stores all of them or none.
async fn attempt<I: Import>(database: &Database, rows: &[I]) -> StoreResult<Vec<I::Entity>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut changes = database.begin().await?;
    let new: Vec<&I::Entity> = rows
        .iter()
        .filter(|row| row.creates())
        .map(Import::entity)
        .collect();
    let mut stored: HashMap<Option<Uuid>, I::Entity> = HashMap::with_capacity(rows.len());
    for entity in record::insert_all(&mut changes, &new).await? {
        stored.insert(entity.key().id, entity);
    }
    for row in rows.iter().filter(|row| !row.creates()) {
        let changed = record::update_within(&mut changes, row.entity()).await?;
        let changed = changed.ok_or_else(|| record::not_found(I::Entity::NAME))?;
        stored.insert(changed.key().id, changed);
    }
    I::attach(rows, &mut changes).await?;
    changes.commit().await?;
    rows.iter()
        .map(|row| {
            let found = stored.remove(&row.entity().key().id);
            found.ok_or_else(|| unreadable("a saved row was not returned"))
        })
        .collect()
}
