//! Copies a whole database into an empty one, of either kind.
//!
//! Each table is copied in the order of its primary key, in transactions of many rows, so that a copy that was cut off
//! goes on behind the last row that the target has. Foreign keys are taken away meanwhile, because tables refer to each
//! other in circles, and made again at the end, which checks them. The target notes that it is not complete yet: nothing
//! else may use it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};

use super::database::EntityDatabase;
use super::query::{SqlArg, SqlQuery, SqlRow};
use crate::page_size::{FIRST_PAGE, next_page_size};

/// All tables with data; the rest is made from them.
const TABLES: [&str; 51] = [
    "admin_settings",
    "alarm",
    "alarm_comment",
    "alarm_type",
    "api_key",
    "asset",
    "asset_profile",
    "audit_log",
    "blocked_client",
    "calculated_field",
    "calculated_field_reference",
    "customer",
    "dashboard",
    "dashboard_customer",
    "dashboard_version",
    "device",
    "device_credentials",
    "device_move",
    "device_profile",
    "entity_alarm",
    "entity_view",
    "event",
    "leftover",
    "mqtt_credentials",
    "ota_package",
    "ota_piece",
    "ota_update",
    "ota_upload",
    "queue",
    "relation",
    "resource_file",
    "resource_piece",
    "rpc",
    "rule_chain",
    "rule_chain_version",
    "rule_connection",
    "rule_node",
    "set_aside",
    "set_aside_use",
    "shared_subscription",
    "sign_in",
    "sign_in_source",
    "tb_resource",
    "tenant",
    "tenant_profile",
    "user_account",
    "user_credentials",
    "user_settings",
    "widget_type",
    "widgets_bundle",
    "widgets_bundle_type",
];

/// Tables whose rows may have megabytes, and may have few bytes beside: how many are read at once.
const LARGE: [&str; 9] = [
    "dashboard",
    "dashboard_version",
    "ota_piece",
    "resource_piece",
    "rule_chain_version",
    "rule_node",
    "set_aside",
    "tb_resource",
    "widget_type",
];
const LARGE_ROWS: usize = 8;
/// Most values that a statement binds.
const BOUND: usize = 16_000;

/// What a table holds: how many rows, and a sum over all of them that is the same in both databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChecksum {
    /// Its name.
    pub table: &'static str,
    /// Number of its rows.
    pub rows: u64,
    /// Sum of the hashes of its rows.
    pub sum: u64,
}

#[derive(Clone, Copy)]
enum ColumnKind {
    Id,
    Text,
    Int,
    Flag,
    Bytes,
}

impl ColumnKind {
    /// The kind of a declared type.
    fn of(declared: &str) -> Option<Self> {
        Some(match declared.to_ascii_lowercase().split(' ').next()? {
            "uuid" => Self::Id,
            "text" => Self::Text,
            "bigint" | "integer" => Self::Int,
            "boolean" => Self::Flag,
            "bytea" => Self::Bytes,
            _ => return None,
        })
    }
}

/// A table with its columns as the catalogue of its database has them.
struct TableShape {
    name: &'static str,
    columns: Vec<(String, ColumnKind)>,
    /// Places of the columns of the primary key.
    key: Vec<usize>,
}

impl TableShape {
    async fn read(database: &EntityDatabase, name: &'static str) -> StoreResult<Self> {
        let query = if database.is_sqlite() {
            SqlQuery::new("SELECT name, type, pk FROM pragma_table_info(")
                .bind(name)
                .push(") ORDER BY name")
        } else {
            SqlQuery::new(
                "SELECT attname::text, format_type(atttypid, NULL)::text, \
                 COALESCE(array_position(indkey::int2[], attnum) + 1, 0)::int8 \
                 FROM pg_attribute LEFT JOIN pg_index ON indrelid = attrelid AND indisprimary \
                 WHERE attnum > 0 AND NOT attisdropped AND attrelid = to_regclass(",
            )
            .bind(name)
            .push(") ORDER BY attname::text COLLATE \"C\"")
        };
        let mut columns = Vec::new();
        let mut key = Vec::new();
        for row in database.read(query).await? {
            let mut row = row.columns();
            let (column, declared, place): (String, String, i64) = (row.next()?, row.next()?, row.next()?);
            let kind = ColumnKind::of(&declared).ok_or_else(|| {
                let message =
                    format!("The column {column} of {name} has the type {declared}, which is not copied");
                StoreError::new(StoreErrorKind::Invalid, message)
            })?;
            if place > 0 {
                key.push((place, columns.len()));
            }
            columns.push((column, kind));
        }
        key.sort_unstable();
        Ok(Self {
            name,
            columns,
            key: key.into_iter().map(|(_, column)| column).collect(),
        })
    }

    fn names(&self, places: impl Iterator<Item = usize>, suffix: &str) -> String {
        let names: Vec<String> = places
            .filter_map(|place| self.columns.get(place))
            .map(|(name, _)| format!("\"{name}\"{suffix}"))
            .collect();
        names.join(", ")
    }

    /// A statement for rows behind a key, in the order of keys, or for the last one.
    fn select(&self, behind: Option<&[SqlArg]>, rows: usize, is_last: bool) -> SqlQuery {
        let columns = self.names(0..self.columns.len(), "");
        let mut query = SqlQuery::of_catalogue(format!("SELECT {columns} FROM {}", self.name));
        if let Some(key) = behind {
            let names = self.names(self.key.iter().copied(), "");
            query = query
                .push_catalogue(&format!(" WHERE ({names}) > ("))
                .bind_list(key.iter().cloned())
                .push(")");
        }
        let order = self.names(self.key.iter().copied(), if is_last { " DESC" } else { "" });
        query.push_catalogue(&format!(" ORDER BY {order} LIMIT {rows}"))
    }

    fn insert(&self, rows: &[Vec<SqlArg>]) -> SqlQuery {
        let columns = self.names(0..self.columns.len(), "");
        let mut query = SqlQuery::of_catalogue(format!("INSERT INTO {} ({columns}) VALUES ", self.name));
        for (number, row) in rows.iter().enumerate() {
            query = query
                .push(if number == 0 { "(" } else { ", (" })
                .bind_list(row.iter().cloned())
                .push(")");
        }
        query
    }

    /// Reads the rows behind a key, some at a time.
    async fn page(&self, database: &EntityDatabase, place: &mut PagePlace) -> StoreResult<Vec<Vec<SqlArg>>> {
        let most = match LARGE.contains(&self.name) {
            true => LARGE_ROWS,
            false => (BOUND / self.columns.len().max(1)).max(1),
        };
        let limit = place.size.min(most);
        let found = database
            .read(self.select(place.behind.as_deref(), limit, false))
            .await?;
        let rows = found
            .iter()
            .map(|row| self.values(row))
            .collect::<StoreResult<Vec<_>>>()?;
        if let Some(last) = rows.last() {
            place.behind = Some(self.key_of(last));
        }
        let bytes = rows.iter().flatten().map(size_of_value).sum();
        place.size = next_page_size(place.size, rows.len(), bytes);
        Ok(rows)
    }

    fn values(&self, row: &SqlRow) -> StoreResult<Vec<SqlArg>> {
        let mut row = row.columns();
        let value = |(_, kind): &(String, ColumnKind)| {
            Ok(match kind {
                ColumnKind::Id => SqlArg::Id(row.next()?),
                ColumnKind::Text => SqlArg::Text(row.next()?),
                ColumnKind::Int => SqlArg::Int(row.next()?),
                ColumnKind::Flag => SqlArg::Flag(row.next()?),
                ColumnKind::Bytes => SqlArg::Bytes(row.next()?),
            })
        };
        self.columns.iter().map(value).collect()
    }

    fn key_of(&self, row: &[SqlArg]) -> Vec<SqlArg> {
        self.key
            .iter()
            .filter_map(|place| row.get(*place).cloned())
            .collect()
    }
}

/// Where the next page of a table begins.
struct PagePlace {
    behind: Option<Vec<SqlArg>>,
    size: usize,
}

impl PagePlace {
    fn new(behind: Option<Vec<SqlArg>>) -> Self {
        Self {
            behind,
            size: FIRST_PAGE,
        }
    }
}

fn size_of_value(value: &SqlArg) -> usize {
    match value {
        SqlArg::Text(Some(text)) => text.len(),
        SqlArg::Bytes(bytes) => bytes.len(),
        _ => size_of::<SqlArg>(),
    }
}

fn hash_of(row: &[SqlArg]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in row {
        match value {
            SqlArg::Id(id) => id.hash(&mut hasher),
            SqlArg::Text(text) => text.hash(&mut hasher),
            SqlArg::Int(number) => number.hash(&mut hasher),
            SqlArg::Flag(flag) => flag.hash(&mut hasher),
            SqlArg::Bytes(bytes) => bytes.hash(&mut hasher),
        }
    }
    hasher.finish()
}

impl EntityDatabase {
    /// Where the database is being filled from, if that has not come to its end.
    pub async fn unfinished_copy(&self) -> StoreResult<Option<String>> {
        let rows = self
            .read(SqlQuery::new("SELECT source FROM database_copy"))
            .await?;
        rows.first().map(|row| row.columns().next()).transpose()
    }

    /// What tells an installation from others: the id of its oldest tenant profile. None where there is no installation.
    pub async fn installation(&self) -> StoreResult<Option<String>> {
        let rows = self
            .read(SqlQuery::new("SELECT id FROM tenant_profile ORDER BY id LIMIT 1"))
            .await?;
        let id = rows
            .first()
            .map(|row| row.columns().next::<uuid::Uuid>())
            .transpose()?;
        Ok(id.map(|id| id.to_string()))
    }

    /// Begins to fill an empty database from a named source, or goes on with that.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] if it has entities, or is being filled from another source.
    pub async fn begin_copy(&self, source: &str) -> StoreResult<()> {
        match self.unfinished_copy().await? {
            Some(found) if found == source => {}
            Some(found) => {
                let message = format!(
                    "the target is being filled from {found}: go on with that, or name another database"
                );
                return Err(StoreError::new(StoreErrorKind::Conflict, message));
            }
            None => {
                self.refuse_entities().await?;
                self.note_copy(source).await?;
            }
        }
        if self.is_sqlite() {
            // There is one connection that writes.
            self.execute(SqlQuery::new("PRAGMA foreign_keys = OFF")).await?;
        }
        Ok(())
    }

    /// Refuses a database that has any rows.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] if it has.
    pub async fn refuse_entities(&self) -> StoreResult<()> {
        for table in TABLES {
            let any = SqlQuery::of_catalogue(format!("SELECT 1 FROM {table} LIMIT 1"));
            if !self.read(any).await?.is_empty() {
                let message = "the target has entities already: name an empty database";
                return Err(StoreError::new(StoreErrorKind::Conflict, message));
            }
        }
        Ok(())
    }

    /// Notes the source, and takes the foreign keys of PostgreSQL away.
    async fn note_copy(&self, source: &str) -> StoreResult<()> {
        let mut changes = self.begin().await?;
        let mut constraints = Vec::new();
        if !self.is_sqlite() {
            let found = changes
                .rows(SqlQuery::new(
                    "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint \
                     WHERE contype = 'f' AND connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())",
                ))
                .await?;
            for row in &found {
                let mut row = row.columns();
                let (table, name, definition): (String, String, String) =
                    (row.next()?, row.next()?, row.next()?);
                if TABLES.contains(&table.as_str()) {
                    changes
                        .run(format!("ALTER TABLE {table} DROP CONSTRAINT {name}"))
                        .await?;
                    constraints.push(format!("ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"));
                }
            }
        }
        changes
            .execute(
                SqlQuery::new("INSERT INTO database_copy (source, constraints) VALUES (")
                    .bind_list([source.to_owned(), constraints.join(";\n")])
                    .push(")"),
            )
            .await?;
        Ok(changes.commit().await?)
    }

    /// Copies all rows that are not there yet from another database. Tells how many rows of a table are copied as it
    /// goes.
    pub async fn copy_from(
        &self,
        source: &Self,
        progress: &mut (dyn FnMut(&'static str, u64) + Send),
    ) -> StoreResult<()> {
        for table in TABLES {
            let shape = TableShape::read(source, table).await?;
            let own = TableShape::read(self, table).await?;
            if shape.columns.len() != own.columns.len() {
                let message = format!("The table {table} has other columns in one of the databases");
                return Err(StoreError::new(StoreErrorKind::Invalid, message));
            }
            let last = self.read(own.select(None, 1, true)).await?;
            let mut place = PagePlace::new(match last.first() {
                Some(row) => Some(own.key_of(&own.values(row)?)),
                None => None,
            });
            let mut copied = 0;
            loop {
                let rows = shape.page(source, &mut place).await?;
                if rows.is_empty() {
                    break;
                }
                self.execute(shape.insert(&rows)).await?;
                copied += rows.len() as u64;
                progress(table, copied);
            }
        }
        Ok(())
    }

    /// Reads all rows, and says what each table holds.
    pub async fn checksums(&self) -> StoreResult<Vec<TableChecksum>> {
        let mut all = Vec::with_capacity(TABLES.len());
        for table in TABLES {
            let shape = TableShape::read(self, table).await?;
            let mut found = TableChecksum {
                table,
                rows: 0,
                sum: 0,
            };
            let mut place = PagePlace::new(None);
            loop {
                let rows = shape.page(self, &mut place).await?;
                if rows.is_empty() {
                    break;
                }
                found.rows += rows.len() as u64;
                let sums = rows.iter().map(|row| hash_of(row));
                found.sum = sums.fold(found.sum, u64::wrapping_add);
            }
            all.push(found);
        }
        Ok(all)
    }

    /// Makes the foreign keys again, and gives the database free for use.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] or [`StoreErrorKind::Corrupt`] if rows refer to some that are not there.
    pub async fn end_copy(&self) -> StoreResult<()> {
        if self.is_sqlite() {
            let broken = self
                .read(SqlQuery::new("SELECT \"table\" FROM pragma_foreign_key_check"))
                .await?;
            if let Some(row) = broken.first() {
                let table: String = row.columns().next()?;
                let message = format!("Rows of {table} refer to some that are not there");
                return Err(StoreError::new(StoreErrorKind::Corrupt, message));
            }
            self.execute(SqlQuery::new("DELETE FROM database_copy")).await?;
            self.execute(SqlQuery::new("PRAGMA foreign_keys = ON")).await?;
            return Ok(());
        }
        let mut changes = self.begin().await?;
        let rows = changes
            .rows(SqlQuery::new("DELETE FROM database_copy RETURNING constraints"))
            .await?;
        for row in &rows {
            changes.run(row.columns().next()?).await?;
        }
        Ok(changes.commit().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    async fn open(dir: &std::path::Path, name: &str) -> EntityDatabase {
        EntityDatabase::sqlite(&dir.join(name), &Options::default())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn every_table_is_copied_but_those_that_are_made_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let database = open(dir.path(), "entities.db").await;
        let query = SqlQuery::new(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' \
             AND name NOT GLOB 'text_*' AND name NOT GLOB '*_text_new' \
             AND name NOT IN ('schema_version', 'database_copy') ORDER BY name",
        );
        let rows = database.read(query).await.unwrap();
        let found: Vec<String> = rows.iter().map(|row| row.columns().next().unwrap()).collect();
        assert_eq!(found, TABLES);
        for table in TABLES {
            let shape = TableShape::read(&database, table).await.unwrap();
            assert!(!shape.key.is_empty(), "{table} has no primary key");
        }
        database.close().await;
    }

    #[tokio::test]
    async fn a_database_that_is_not_complete_is_known_as_such_and_broken_references_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (open(dir.path(), "a.db").await, open(dir.path(), "b.db").await);
        target.begin_copy("here").await.unwrap();
        assert_eq!(target.unfinished_copy().await.unwrap().as_deref(), Some("here"));
        assert!(target.begin_copy("there").await.is_err());
        let orphan = SqlQuery::new("INSERT INTO alarm_type (tenant_id, type, search) VALUES (")
            .bind(uuid::Uuid::now_v7())
            .push(", 'Hot', 'hot')");
        target.execute(orphan).await.unwrap();
        target.copy_from(&source, &mut |_, _| {}).await.unwrap();
        assert_ne!(
            source.checksums().await.unwrap(),
            target.checksums().await.unwrap()
        );
        let error = target.end_copy().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
        target
            .execute(SqlQuery::new("DELETE FROM alarm_type"))
            .await
            .unwrap();
        target.end_copy().await.unwrap();
        assert_eq!(target.unfinished_copy().await.unwrap(), None);
        source.close().await;
        target.close().await;
    }
}
