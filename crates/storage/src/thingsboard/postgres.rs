//! The tables in PostgreSQL.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::time::Duration;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::timeseries::{Attribute, AttributeScope, DataPoint, LatestValue};
use fieldline_model::{EntityId, EntityType, TenantId};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use sqlx::Row as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use uuid::Uuid;

use super::{FiveColumns, ThingsBoardEntity, ThingsBoardSeries};

/// Entities are read at the same time, each on a connection.
const CONNECTIONS: u32 = 8;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// The columns of a value, as [`columns`] reads them behind `ts`.
macro_rules! value_columns {
    () => {
        "bool_v, str_v, long_v, dbl_v, json_v::text"
    };
}

/// The tables of a ThingsBoard installation.
pub(super) struct PostgresTables {
    pool: PgPool,
    /// Names of series and, from 3.7 on, of attributes.
    names: HashMap<i32, String>,
    /// Before 3.7, attributes have their scope and name in clear.
    has_named_attributes: bool,
    has_latest: bool,
}

fn failed(error: sqlx::Error) -> StoreError {
    let kind = match &error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreErrorKind::Corrupt,
        sqlx::Error::Configuration(_) => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, "the PostgreSQL database of ThingsBoard cannot be read").caused_by(error)
}

fn unfit(message: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, message)
}

impl PostgresTables {
    pub(super) async fn open(url: &str, has_series: bool) -> StoreResult<Self> {
        let connect = PgConnectOptions::from_str(url)
            .map_err(failed)?
            .application_name("fieldline migrate-history")
            .options([("default_transaction_read_only", "on")]);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(connect)
            .await
            .map_err(failed)?;
        let scope_type = column_type(&pool, "attribute_kv", "attribute_type").await?;
        let has_named_attributes = match scope_type.as_deref() {
            None => {
                return Err(unfit(
                    "there are no tables of ThingsBoard in this PostgreSQL database",
                ));
            }
            Some("integer") => false,
            Some(_) => true,
        };
        let key_type = column_type(&pool, "ts_kv_latest", "key").await?;
        let series_type = column_type(&pool, "ts_kv", "entity_id").await?;
        let is_new =
            |found: &Option<String>, expected| found.as_deref().is_none_or(|found| found == expected);
        if !is_new(&key_type, "integer") || !is_new(&series_type, "uuid") {
            return Err(unfit(
                "the tables are those of a ThingsBoard before 3.0: upgrade it first",
            ));
        }
        if has_series && series_type.is_none() {
            return Err(unfit(
                "there is no table ts_kv in this PostgreSQL database: name the Cassandra that has the time series",
            ));
        }
        let mut names = HashMap::new();
        for (dictionary, statement) in [
            ("key_dictionary", "SELECT key_id, key FROM key_dictionary"),
            ("ts_kv_dictionary", "SELECT key_id, key FROM ts_kv_dictionary"),
        ] {
            if names.is_empty() && column_type(&pool, dictionary, "key_id").await?.is_some() {
                for row in sqlx::query(statement).fetch_all(&pool).await.map_err(failed)? {
                    names.insert(row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
                }
            }
        }
        Ok(Self {
            pool,
            names,
            has_named_attributes,
            has_latest: key_type.is_some(),
        })
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    pub(super) async fn entities(
        &self,
        kind: EntityType,
        after: Option<Uuid>,
        limit: u32,
    ) -> StoreResult<Vec<ThingsBoardEntity>> {
        let statement = match kind {
            EntityType::Tenant => "SELECT id, id, title FROM tenant WHERE id > $1 ORDER BY id LIMIT $2",
            EntityType::Customer => {
                "SELECT id, tenant_id, title FROM customer WHERE id > $1 ORDER BY id LIMIT $2"
            }
            EntityType::User => "SELECT id, tenant_id, email FROM tb_user WHERE id > $1 ORDER BY id LIMIT $2",
            EntityType::Device => "SELECT id, tenant_id, name FROM device WHERE id > $1 ORDER BY id LIMIT $2",
            EntityType::Asset => "SELECT id, tenant_id, name FROM asset WHERE id > $1 ORDER BY id LIMIT $2",
            EntityType::EntityView => {
                "SELECT id, tenant_id, name FROM entity_view WHERE id > $1 ORDER BY id LIMIT $2"
            }
            _ => return Ok(Vec::new()),
        };
        let rows = sqlx::query(statement)
            .bind(after.unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        rows.iter()
            .map(|row| {
                Ok(ThingsBoardEntity {
                    id: EntityId::new(kind, row.try_get(0)?),
                    tenant: TenantId(row.try_get(1)?),
                    // No constraint says that it must be there.
                    name: row.try_get::<Option<String>, _>(2)?.unwrap_or_default(),
                })
            })
            .collect::<Result<_, _>>()
            .map_err(failed)
    }

    /// The series of an entity. Each look-up of the next number is one in the index, where a list of all would read all
    /// points.
    pub(super) async fn series(&self, entity: EntityId) -> StoreResult<Vec<ThingsBoardSeries>> {
        let mut found = Vec::new();
        let mut last = i32::MIN;
        loop {
            let row = sqlx::query("SELECT MIN(key) FROM ts_kv WHERE entity_id = $1 AND key > $2")
                .bind(entity.id)
                .bind(last)
                .fetch_one(&self.pool)
                .await
                .map_err(failed)?;
            let Some(number) = row.try_get::<Option<i32>, _>(0).map_err(failed)? else {
                return Ok(found);
            };
            last = number;
            found.extend(self.names.get(&number).map(|name| ThingsBoardSeries {
                name: name.clone(),
                number: Some(number),
            }));
        }
    }

    pub(super) fn points(
        &self,
        entity: EntityId,
        number: i32,
        after: Option<i64>,
    ) -> BoxStream<'_, StoreResult<Option<DataPoint>>> {
        let statement = concat!(
            "SELECT ts, ",
            value_columns!(),
            " FROM ts_kv WHERE entity_id = $1 AND key = $2 AND ts > $3 ORDER BY ts"
        );
        sqlx::query(statement)
            .bind(entity.id)
            .bind(number)
            .bind(after.unwrap_or(i64::MIN))
            .fetch(&self.pool)
            .map(|row| point(&row?, 0))
            .map(|point| point.map_err(failed))
            .boxed()
    }

    /// The names of series that have a latest value.
    pub(super) async fn latest_names(&self, entity: EntityId) -> StoreResult<Vec<String>> {
        if !self.has_latest {
            return Ok(Vec::new());
        }
        let rows = sqlx::query("SELECT key FROM ts_kv_latest WHERE entity_id = $1")
            .bind(entity.id)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let names = rows.iter().map(|row| {
            let number = row.try_get(0).map_err(failed)?;
            Ok(self.names.get::<i32>(&number).cloned())
        });
        names.filter_map(Result::transpose).collect()
    }

    pub(super) async fn latest(&self, entity: EntityId) -> StoreResult<Vec<LatestValue>> {
        if !self.has_latest {
            return Ok(Vec::new());
        }
        let statement = concat!(
            "SELECT key, ts, ",
            value_columns!(),
            " FROM ts_kv_latest WHERE entity_id = $1"
        );
        let rows = sqlx::query(statement)
            .bind(entity.id)
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let mut found = Vec::new();
        for row in rows {
            let name = self.names.get(&row.try_get(0).map_err(failed)?);
            if let (Some(name), Some(point)) = (name, point(&row, 1).map_err(failed)?) {
                let key = name.clone();
                found.push(LatestValue { key, point });
            }
        }
        Ok(found)
    }

    pub(super) async fn attributes(&self, entity: EntityId) -> StoreResult<Vec<(AttributeScope, Attribute)>> {
        let statement = match self.has_named_attributes {
            true => concat!(
                "SELECT attribute_type, attribute_key, last_update_ts, ",
                value_columns!(),
                " FROM attribute_kv WHERE entity_type = $2 AND entity_id = $1"
            ),
            false => concat!(
                "SELECT attribute_type, attribute_key, last_update_ts, ",
                value_columns!(),
                " FROM attribute_kv WHERE entity_id = $1"
            ),
        };
        let mut query = sqlx::query(statement).bind(entity.id);
        if self.has_named_attributes {
            query = query.bind(entity.entity_type.name());
        }
        let rows = query.fetch_all(&self.pool).await.map_err(failed)?;
        let mut found = Vec::new();
        for row in &rows {
            let Some((scope, key)) = self.attribute_name(row).map_err(failed)? else {
                continue;
            };
            let last_update_ts = row.try_get::<Option<i64>, _>(2).map_err(failed)?.unwrap_or(0);
            let value = columns(row, 3).map_err(failed)?.value();
            found.extend(value.map(|value| {
                let attribute = Attribute {
                    key,
                    value,
                    last_update_ts,
                };
                (scope, attribute)
            }));
        }
        Ok(found)
    }

    fn attribute_name(&self, row: &PgRow) -> Result<Option<(AttributeScope, String)>, sqlx::Error> {
        let (scope, name) = if self.has_named_attributes {
            let scope: String = row.try_get(0)?;
            (AttributeScope::from_name(&scope), Some(row.try_get(1)?))
        } else {
            // ThingsBoard's own numbers.
            let scope = match row.try_get(0)? {
                1 => Some(AttributeScope::Client),
                2 => Some(AttributeScope::Server),
                3 => Some(AttributeScope::Shared),
                _ => None,
            };
            (scope, self.names.get(&row.try_get(1)?).cloned())
        };
        Ok(scope.zip(name))
    }
}

/// The type of a column, `None` if there is none.
async fn column_type(pool: &PgPool, table: &str, column: &str) -> StoreResult<Option<String>> {
    let statement = "SELECT data_type::text FROM information_schema.columns \
        WHERE table_schema = ANY(current_schemas(false)) AND table_name = $1 AND column_name = $2 LIMIT 1";
    let row = sqlx::query(statement)
        .bind(table)
        .bind(column)
        .fetch_optional(pool)
        .await
        .map_err(failed)?;
    row.map(|row| row.try_get(0)).transpose().map_err(failed)
}

/// The value whose time is the column at a place.
fn point(row: &PgRow, place: usize) -> Result<Option<DataPoint>, sqlx::Error> {
    let ts = row.try_get(place)?;
    let value = columns(row, place + 1)?.value();
    Ok(value.map(|value| DataPoint { ts, value }))
}

fn columns(row: &PgRow, place: usize) -> Result<FiveColumns, sqlx::Error> {
    Ok(FiveColumns {
        bool_v: row.try_get(place)?,
        str_v: row.try_get(place + 1)?,
        long_v: row.try_get(place + 2)?,
        dbl_v: row.try_get(place + 3)?,
        json_v: row.try_get(place + 4)?,
    })
}
