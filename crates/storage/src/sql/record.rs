//! Saving, reading and deleting any entity.

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::StoredEntity;
use fieldline_model::{EntityId, EntityKey, NULL_UUID, TenantId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::database::{EntityDatabase, ProgramLock, SqlTransaction};
use super::housekeeper;
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, SqlRow, unreadable};
use super::statement_error::StatementError;

/// Longest text in a column that is indexed, in characters; ThingsBoard's limit, too.
const MAX_CHARS: usize = 255;

/// Ids in one statement: well under the parameters that either database takes.
pub(super) const IDS_A_STATEMENT: usize = 500;

/// Rows in one statement: at some twenty values each well under the parameters that either database takes.
const INSERTED_A_STATEMENT: usize = 250;

/// An entity that is kept as a row of a table with the columns `id`, `created_time`, `version`, `doc` and some more.
pub(super) trait EntityRecord:
    StoredEntity<Id: From<Uuid> + Into<EntityId>> + Serialize + DeserializeOwned
{
    /// What people call it, as the first word of a message.
    const NAME: &'static str;
    /// Its table.
    const TABLE: &'static str;
    /// The columns that [`EntityRecord::values`] has the values of; `tenant_id`, where there is one, comes first.
    const COLUMNS: &'static [&'static str];
    /// What [`EntityRecord::read`] reads: the four columns that all tables have, and those that [`EntityRecord::fill`] takes.
    const SELECT: &'static str;
    /// JSON keys that columns hold, so that the document leaves them out.
    const IN_COLUMNS: &'static [&'static str];
    /// The column of a flag that one row of its owner has: an update may set it but not take it away, and its row is not
    /// deleted, since another process may have elected it meanwhile.
    const ELECTED: Option<&'static str> = None;
    /// The answer where a saved row refers to one that the tenant does not have.
    const BROKEN_REFERENCE: &'static str;

    /// Which row it is, and whose.
    fn key(&self) -> EntityRowKey;
    /// The values of [`EntityRecord::COLUMNS`].
    fn values(&self) -> StoreResult<Vec<SqlArg>>;
    /// Fills in what columns hold: its version and those behind the first four.
    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()>;
    /// The answer where this value of a constraint is taken; `None` for constraints of no meaning to people.
    fn conflict_message(&self, constraint: &str) -> Option<String>;

    /// An entity from the columns of [`EntityRecord::SELECT`].
    fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Self> {
        read(columns, Self::fill)
    }

    /// Inserts it, and returns what is stored.
    fn insert(self, database: &EntityDatabase) -> impl Future<Output = StoreResult<Self>> + Send {
        insert(database, self)
    }

    /// Updates it, and returns what is stored.
    fn update(self, database: &EntityDatabase) -> impl Future<Output = StoreResult<Self>> + Send {
        update(database, self)
    }
}

/// An entity from its document and what columns hold, which some have more of than [`EntityRecord::fill`] takes.
pub(super) fn read<R: EntityRecord>(
    columns: &mut ColumnReader<'_>,
    fill: impl FnOnce(&mut R, i64, &mut ColumnReader<'_>) -> StoreResult<()>,
) -> StoreResult<R> {
    let id = columns.id()?;
    let created_time = columns.next()?;
    let version = columns.next()?;
    let doc: String = columns.next()?;
    let mut record: R = serde_json::from_str(&doc).map_err(unreadable)?;
    record.set_identity(id, created_time);
    fill(&mut record, version, columns)?;
    Ok(record)
}

/// What every entity is kept under.
pub(super) struct EntityRowKey {
    /// Id.
    pub(super) id: Uuid,
    /// Creation time, which later saves do not change.
    pub(super) created_time: i64,
    /// The version that an update expects.
    pub(super) version: Option<i64>,
    /// Whose row it is.
    pub(super) owner: RowOwner,
}

impl EntityRowKey {
    /// The key of an entity.
    pub(super) fn new(record: &impl EntityRecord, owner: RowOwner, version: Option<i64>) -> Self {
        Self {
            id: bare(record.id()),
            created_time: record.created_time(),
            version,
            owner,
        }
    }

    /// The key of an entity that belongs to a tenant.
    pub(super) fn of_tenant(record: &impl EntityRecord, tenant: TenantId, version: Option<i64>) -> Self {
        Self::new(record, RowOwner::Tenant(tenant.0), version)
    }
}

/// An entity of a tenant.
pub(super) fn subject(tenant: TenantId, id: impl Into<EntityId>) -> EntityKey {
    let entity = id.into();
    EntityKey { tenant, entity }
}

/// An id without its type.
pub(super) fn bare(id: impl Into<EntityId>) -> Uuid {
    id.into().id
}

/// Inserts, and returns what is stored.
pub(super) async fn insert<R: EntityRecord>(database: &EntityDatabase, record: R) -> StoreResult<R> {
    let saved = database.write(insertion(&record)?).await;
    stored(&record, saved)
}

/// Updates, and returns what is stored.
pub(super) async fn update<R: EntityRecord>(database: &EntityDatabase, record: R) -> StoreResult<R> {
    let saved = database.write(update_statement(&record)?).await;
    if matches!(&saved, Ok(rows) if rows.is_empty()) {
        return Err(not_updated(database, &record).await?);
    }
    stored(&record, saved)
}

/// Inserts within a transaction, and returns what is stored.
pub(super) async fn insert_within<R: EntityRecord>(
    changes: &mut SqlTransaction,
    record: &R,
) -> StoreResult<R> {
    let saved = changes.rows(insertion(record)?).await;
    stored(record, saved)
}

/// Inserts several within a transaction, and returns what is stored, in no particular order. An error is about one of them.
pub(super) async fn insert_all<R: EntityRecord>(
    changes: &mut SqlTransaction,
    records: &[&R],
) -> StoreResult<Vec<R>> {
    let mut inserted = Vec::with_capacity(records.len());
    for some in records.chunks(INSERTED_A_STATEMENT) {
        let (Some(first), query) = (some.first(), insertion_of(some)?) else {
            continue;
        };
        let rows = match changes.rows(query).await {
            Ok(rows) => rows,
            failed => {
                return Err(stored(*first, failed)
                    .err()
                    .unwrap_or_else(|| unreadable("no error")));
            }
        };
        for row in &rows {
            inserted.push(R::read(&mut row.columns())?);
        }
    }
    Ok(inserted)
}

/// Updates within a transaction, and returns what is stored; `None` where [`not_updated`] says why.
pub(super) async fn update_within<R: EntityRecord>(
    changes: &mut SqlTransaction,
    record: &R,
) -> StoreResult<Option<R>> {
    let saved = changes.rows(update_statement(record)?).await;
    if matches!(&saved, Ok(rows) if rows.is_empty()) {
        return Ok(None);
    }
    stored(record, saved).map(Some)
}

/// Updates a row of another owner within a transaction, which gives it to the owner that the record names. Returns what is
/// stored; `None` where that owner does not have it, or another version.
pub(super) async fn transfer_within<R: EntityRecord>(
    changes: &mut SqlTransaction,
    record: &R,
    from: RowOwner,
) -> StoreResult<Option<R>> {
    let saved = changes.rows(update_of(record, from)?).await;
    if matches!(&saved, Ok(rows) if rows.is_empty()) {
        return Ok(None);
    }
    stored(record, saved).map(Some)
}

/// The entity, if its owner has it.
pub(super) async fn get<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    id: Uuid,
) -> StoreResult<Option<R>> {
    let query = select::<R>().push("id = ").bind(id).owned_by(owner);
    first(&database.read(query).await?)
}

/// The entity of that name.
pub(super) async fn by_name<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    name: &str,
) -> StoreResult<Option<R>> {
    let query = select::<R>().push("name = ").bind(name).owned_by(owner);
    first(&database.read(query).await?)
}

/// Those of the entities that the owner has, in no particular order.
pub(super) async fn by_ids<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    ids: impl Iterator<Item = Uuid>,
) -> StoreResult<Vec<R>> {
    let mut ids: Vec<Uuid> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let mut found = Vec::with_capacity(ids.len().min(IDS_A_STATEMENT));
    for chunk in ids.chunks(IDS_A_STATEMENT) {
        let query = select::<R>()
            .push("id IN (")
            .bind_list(chunk.iter().copied())
            .push(")")
            .owned_by(owner);
        for row in &database.read(query).await? {
            found.push(R::read(&mut row.columns())?);
        }
    }
    Ok(found)
}

/// Deletes the entity, if its owner has it; returns whether it did. `in_use` is the answer where others refer to it.
pub(super) async fn delete<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    id: Uuid,
    in_use: &str,
) -> StoreResult<bool> {
    match database.execute(deletion::<R>(owner, id)).await {
        Ok(0) => not_deleted::<R>(database, owner, id, in_use).await,
        Ok(_) => Ok(true),
        Err(StatementError::BrokenReference) => Err(StoreError::new(StoreErrorKind::Conflict, in_use)),
        Err(failure) => Err(failure.into_error()),
    }
}

/// The same of an entity that may have values and events: it is noted with it that they are left.
pub(super) async fn delete_leaving<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    subject: EntityKey,
    in_use: &str,
) -> StoreResult<bool> {
    let mut changes = database.begin().await?;
    let deletion = deletion::<R>(owner, subject.entity.id);
    match changes.execute(deletion).await {
        Ok(0) => {
            // Its connection may be the last one.
            drop(changes);
            return not_deleted::<R>(database, owner, subject.entity.id, in_use).await;
        }
        Ok(_) => {}
        Err(StatementError::BrokenReference) => {
            return Err(StoreError::new(StoreErrorKind::Conflict, in_use));
        }
        Err(failure) => return Err(failure.into_error()),
    }
    changes.execute(housekeeper::note(subject)).await?;
    changes.commit().await?;
    Ok(true)
}

/// Why a deletion found no row: there is none, or it is the elected one.
pub(super) async fn not_deleted<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    id: Uuid,
    in_use: &str,
) -> StoreResult<bool> {
    match R::ELECTED.is_some() && get::<R>(database, owner, id).await?.is_some() {
        true => Err(StoreError::new(StoreErrorKind::Conflict, in_use)),
        false => Ok(false),
    }
}

/// The statement that deletes an entity, unless it is the elected one.
pub(super) fn deletion<R: EntityRecord>(owner: RowOwner, id: Uuid) -> SqlQuery {
    let query = SqlQuery::new("DELETE FROM ")
        .push(R::TABLE)
        .push(" WHERE id = ")
        .bind(id)
        .owned_by(owner);
    match R::ELECTED {
        Some(column) => query.push(" AND NOT ").push(column),
        None => query,
    }
}

/// Those of the entities of these names that the owner has, in no particular order.
pub(super) async fn by_names<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    names: &[&str],
) -> StoreResult<Vec<R>> {
    let mut found = Vec::new();
    for some in names.chunks(IDS_A_STATEMENT) {
        let query = select::<R>()
            .push("name IN (")
            .bind_list(some.iter().copied())
            .push(")")
            .owned_by(owner);
        for row in &database.read(query).await? {
            found.push(R::read(&mut row.columns())?);
        }
    }
    Ok(found)
}

/// How many rows the owner has.
pub(super) async fn count<R: EntityRecord>(database: &EntityDatabase, owner: RowOwner) -> StoreResult<u64> {
    let query = SqlQuery::new("SELECT COUNT(*) FROM ")
        .push(R::TABLE)
        .push(" WHERE TRUE")
        .owned_by(owner);
    number(&database.read(query).await?)
}

/// Waits for others who take their turn with the same owner: of two who count or choose at once neither would see the other. It is
/// the first statement of a transaction, so that the next one sees what they have changed.
pub(super) async fn take_turn(changes: &mut SqlTransaction, owner: RowOwner) -> StoreResult<()> {
    match owner {
        RowOwner::Tenant(tenant) => {
            let turn = SqlQuery::new("UPDATE tenant SET version = version WHERE id = ").bind(tenant);
            changes.execute(turn).await?;
        }
        RowOwner::Installation | RowOwner::NoTenant => changes.lock(ProgramLock::DEFAULTS).await?,
    }
    Ok(())
}

/// Makes a row the only default one of its owner; returns whether the owner has it.
pub(super) async fn set_default<R: EntityRecord>(
    database: &EntityDatabase,
    owner: RowOwner,
    id: Uuid,
) -> StoreResult<bool> {
    let mut changes = database.begin().await?;
    take_turn(&mut changes, owner).await?;
    let unset = SqlQuery::new("UPDATE ")
        .push(R::TABLE)
        .push(" SET is_default = FALSE, version = version + 1 WHERE is_default AND id <> ")
        .bind(id)
        .owned_by(owner);
    changes.execute(unset).await?;
    let set = SqlQuery::new("UPDATE ")
        .push(R::TABLE)
        .push(
            " SET is_default = TRUE, version = version + CASE WHEN is_default THEN 0 ELSE 1 END WHERE id = ",
        )
        .bind(id)
        .owned_by(owner);
    if changes.execute(set).await? == 0 {
        return Ok(false);
    }
    changes.commit().await?;
    Ok(true)
}

/// `SELECT … FROM … WHERE `, to be continued with a condition.
pub(super) fn select<R: EntityRecord>() -> SqlQuery {
    SqlQuery::new("SELECT ")
        .push(R::SELECT)
        .push(" FROM ")
        .push(R::TABLE)
        .push(" WHERE ")
}

/// The entity in the first row, if there is one.
pub(super) fn first<R: EntityRecord>(rows: &[SqlRow]) -> StoreResult<Option<R>> {
    rows.first().map(|row| R::read(&mut row.columns())).transpose()
}

/// The number that a `COUNT` returned.
pub(super) fn number(rows: &[SqlRow]) -> StoreResult<u64> {
    let count: i64 = match rows.first() {
        Some(row) => row.columns().next()?,
        None => 0,
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

/// A text of an indexed column.
pub(super) fn bounded(field: &str, text: &str) -> StoreResult<SqlArg> {
    if text.chars().count() > MAX_CHARS {
        return Err(invalid(format!(
            "Validation error: {field} length must be equal or less than {MAX_CHARS}"
        )));
    }
    Ok(text.into())
}

/// What a column is sorted by: lower-case, so that people find what they look for, and empty where absent, because the
/// databases disagree on where nulls sort.
pub(super) fn sort_key(text: Option<&str>) -> SqlArg {
    let text = text.unwrap_or_default();
    text.chars()
        .take(MAX_CHARS)
        .collect::<String>()
        .to_lowercase()
        .into()
}

/// What a text search looks through, in one column; the first text decides the order when sorting by it.
pub(super) fn search_text(texts: &[Option<&str>]) -> SqlArg {
    let present: Vec<&str> = texts.iter().copied().flatten().collect();
    present.join("\n").to_lowercase().into()
}

/// Arguments that make no sense.
pub(super) fn invalid(message: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, message)
}

fn insertion<R: EntityRecord>(record: &R) -> StoreResult<SqlQuery> {
    insertion_of(&[record])
}

fn insertion_of<R: EntityRecord>(records: &[&R]) -> StoreResult<SqlQuery> {
    let mut query = SqlQuery::new("INSERT INTO ")
        .push(R::TABLE)
        .push(" (id, created_time, version, doc, ")
        .push_list(R::COLUMNS.iter().copied())
        .push(") VALUES ");
    for (index, record) in records.iter().enumerate() {
        let key = record.key();
        require_id::<R>(&key)?;
        query = query
            .push(if index == 0 { "(" } else { ", (" })
            .bind(key.id)
            .push(", ")
            .bind(key.created_time)
            .push(", 1, ")
            .bind(document(*record)?)
            .push(", ")
            .bind_list(record.values()?)
            .push(")");
    }
    Ok(query.push(" RETURNING ").push(R::SELECT))
}

fn update_statement<R: EntityRecord>(record: &R) -> StoreResult<SqlQuery> {
    update_of(record, record.key().owner)
}

fn update_of<R: EntityRecord>(record: &R, owner: RowOwner) -> StoreResult<SqlQuery> {
    let key = record.key();
    require_id::<R>(&key)?;
    let mut query = SqlQuery::new("UPDATE ")
        .push(R::TABLE)
        .push(" SET version = version + 1, doc = ")
        .bind(document(record)?);
    // The owner is in the condition; assigning it again would only make the database check every row that refers to it.
    let assigned = R::COLUMNS
        .iter()
        .zip(record.values()?)
        .filter(|(column, _)| **column != "tenant_id" || owner != key.owner);
    for (column, value) in assigned {
        query = query.push(", ").push(column).push(" = ");
        // What the record was read with may be older than what another process has made of it.
        query = match R::ELECTED == Some(*column) {
            true => query.push("(").push(column).push(" OR ").bind(value).push(")"),
            false => query.bind(value),
        };
    }
    query = query.push(" WHERE id = ").bind(key.id).owned_by(owner);
    if let Some(version) = key.version {
        query = query.push(" AND version = ").bind(version);
    }
    Ok(query.push(" RETURNING ").push(R::SELECT))
}

/// Why an update found no row.
pub(super) async fn not_updated<R: EntityRecord>(
    database: &EntityDatabase,
    record: &R,
) -> StoreResult<StoreError> {
    let key = record.key();
    let query = SqlQuery::new("SELECT version FROM ")
        .push(R::TABLE)
        .push(" WHERE id = ")
        .bind(key.id)
        .owned_by(key.owner);
    Ok(if database.read(query).await?.is_empty() {
        not_found(R::NAME)
    } else {
        version_conflict(R::NAME)
    })
}

/// The entity does not exist for this owner.
pub(super) fn not_found(name: &str) -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, format!("{name} is not found!"))
}

/// The stored version is another.
pub(super) fn version_conflict(name: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::VersionConflict,
        format!("{name} was already changed by someone else"),
    )
}

fn stored<R: EntityRecord>(record: &R, saved: Result<Vec<SqlRow>, StatementError>) -> StoreResult<R> {
    match saved {
        Ok(rows) => first(&rows)?.ok_or_else(|| unreadable("a saved row was not returned")),
        Err(StatementError::BrokenReference) => Err(invalid(R::BROKEN_REFERENCE)),
        Err(StatementError::Taken(constraint)) => Err(match record.conflict_message(&constraint) {
            Some(message) => StoreError::new(StoreErrorKind::Conflict, message),
            None => StatementError::Taken(constraint).into_error(),
        }),
        Err(StatementError::Other(error)) => Err(error),
    }
}

/// What has the null id was never given one: its row would be everybody's.
fn require_id<R: EntityRecord>(key: &EntityRowKey) -> StoreResult<()> {
    if key.id == NULL_UUID {
        return Err(invalid(format!("{} id should be specified!", R::NAME)));
    }
    Ok(())
}

/// The entity as JSON without what columns hold.
fn document<R: EntityRecord>(record: &R) -> StoreResult<String> {
    let unwritable = |cause| invalid(format!("{} cannot be stored", R::NAME)).caused_by(cause);
    let mut value = serde_json::to_value(record).map_err(unwritable)?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|key, value| {
            !value.is_null()
                && !["id", "createdTime", "version"].contains(&key.as_str())
                && !R::IN_COLUMNS.contains(&key.as_str())
        });
    }
    serde_json::to_string(&value).map_err(unwritable)
}
