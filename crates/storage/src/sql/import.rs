//! Many entities in one transaction, of which those that cannot be stored are left out.

use std::collections::HashMap;

use fieldline_core::ports::{ImportRow, ImportValueStore, StoreError, StoreResult};
use fieldline_model::EntityId;
use uuid::Uuid;

use super::assignables::AssignableRecord;
use super::database::EntityDatabase;
use super::query::unreadable;
use super::record;

/// Stores all that can be stored; an answer for each, in their order. Fails as a whole where the database does before
/// anything is stored.
pub(super) async fn all<E: AssignableRecord>(
    database: &EntityDatabase,
    rows: &[ImportRow<E>],
    values: &dyn ImportValueStore,
) -> StoreResult<Vec<StoreResult<E>>> {
    let mut answers: Vec<Option<StoreResult<E>>> = rows.iter().map(|_| None).collect();
    // Where one of several cannot be stored, each half is tried on its own.
    let mut left = vec![(0, rows)];
    while let Some((start, some)) = left.pop() {
        match attempt(database, some, values).await {
            Ok(stored) => {
                for (answer, entity) in answers.iter_mut().skip(start).zip(stored) {
                    *answer = Some(Ok(entity));
                }
            }
            Err(error) if error.kind().is_about_the_store() => {
                if !answers.iter().flatten().any(Result::is_ok) {
                    return Err(error);
                }
                // What is stored stays, and is answered.
                let (kind, message) = (error.kind(), error.message().to_owned());
                let mut cause = Some(error);
                for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                    let error = cause.take();
                    *answer = Some(Err(error.unwrap_or_else(|| StoreError::new(kind, &message))));
                }
                break;
            }
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

/// Stores all of them or none.
async fn attempt<E: AssignableRecord>(
    database: &EntityDatabase,
    rows: &[ImportRow<E>],
    values: &dyn ImportValueStore,
) -> StoreResult<Vec<E>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut changes = database.begin().await?;
    let new: Vec<&E> = rows
        .iter()
        .filter(|row| row.create)
        .map(|row| &row.entity)
        .collect();
    let mut stored: HashMap<Uuid, E> = HashMap::with_capacity(rows.len());
    for entity in record::insert_all(&mut changes, &new).await? {
        stored.insert(entity.key().id, entity);
    }
    for row in rows.iter().filter(|row| !row.create) {
        let changed = record::update_within(&mut changes, &row.entity).await?;
        let changed = changed.ok_or_else(|| record::not_found(E::NAME))?;
        stored.insert(changed.key().id, changed);
    }
    let along: Vec<&E::ImportExtra> = rows.iter().map(|row| &row.along).collect();
    E::attach(&along, &mut changes).await?;
    let ids: Vec<EntityId> = rows
        .iter()
        .filter(|row| row.create)
        .map(|row| row.entity.id().into())
        .collect();
    values.save(&ids).await?;
    changes.commit().await?;
    rows.iter()
        .map(|row| {
            let found = stored.remove(&row.entity.key().id);
            found.ok_or_else(|| unreadable("a saved row was not returned"))
        })
        .collect()
}
