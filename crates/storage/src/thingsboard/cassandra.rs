//! The tables in Cassandra: a partition has the points of a series in a period, and a table which periods there are.

use std::error::Error;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::EntityId;
use fieldline_model::timeseries::{DataPoint, LatestValue};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimeuuid;
use uuid::Uuid;

use super::FiveColumns;
use crate::cql_session;
use crate::series::CassandraOptions;

/// Rows that are read at once. A text may have megabytes.
const PAGE_ROWS: i32 = 1_000;
/// The partition of series that are not divided into periods.
const UNDIVIDED: i64 = 0;
/// Periods are minutes, hours, days, months or years.
const LONGEST_PERIOD_MS: i64 = 366 * 86_400_000;

/// The tables of a ThingsBoard installation.
pub(super) struct CassandraTables {
    session: Session,
    periods: PreparedStatement,
    points: PreparedStatement,
    /// Where latest values are in PostgreSQL, the table may be missing.
    latest: Option<PreparedStatement>,
}

/// The columns of a point: time, and those of its value.
type PointColumns = (
    i64,
    Option<bool>,
    Option<String>,
    Option<i64>,
    Option<f64>,
    Option<String>,
);

/// The same of a latest value, with its name.
type LatestColumns = (
    String,
    i64,
    Option<bool>,
    Option<String>,
    Option<i64>,
    Option<f64>,
    Option<String>,
);

fn point((ts, bool_v, str_v, long_v, dbl_v, json_v): PointColumns) -> Option<DataPoint> {
    let columns = FiveColumns {
        bool_v,
        str_v,
        long_v,
        dbl_v,
        json_v,
    };
    columns.value().map(|value| DataPoint { ts, value })
}

fn failed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the Cassandra of ThingsBoard cannot be read",
    )
    .caused_by(cause)
}

/// The id as a key of the tables; `None` if they cannot have it, since it was not made from a time.
fn key_of(id: Uuid) -> Option<CqlTimeuuid> {
    (id.get_version_num() == 1).then(|| CqlTimeuuid::from(id))
}

impl CassandraTables {
    pub(super) async fn open(options: &CassandraOptions) -> StoreResult<Self> {
        if let Some(problem) = options.problem() {
            return Err(StoreError::new(StoreErrorKind::Invalid, problem));
        }
        let session = cql_session::connect(options).await.map_err(failed)?;
        let keyspace = &options.keyspace;
        let found = session
            .query_unpaged(
                "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?",
                (keyspace,),
            )
            .await
            .map_err(failed)?
            .into_rows_result()
            .map_err(failed)?;
        let tables = found
            .rows::<(String,)>()
            .map_err(failed)?
            .map(|row| Ok(row.map_err(failed)?.0))
            .collect::<StoreResult<Vec<_>>>()?;
        let has = |table: &str| tables.iter().any(|name| name == table);
        if !has("ts_kv_cf") || !has("ts_kv_partitions_cf") {
            let message =
                format!("there are no tables of ThingsBoard in the keyspace {keyspace} of Cassandra");
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        // The keyspace is a plain word.
        let prepare = async |text: String| -> StoreResult<PreparedStatement> {
            let mut statement = session.prepare(text).await.map_err(failed)?;
            statement.set_page_size(PAGE_ROWS);
            Ok(statement)
        };
        let periods = prepare(format!(
            "SELECT partition FROM {keyspace}.ts_kv_partitions_cf WHERE entity_type = ? AND entity_id = ? AND key = ?"
        ))
        .await?;
        let points = prepare(format!(
            "SELECT ts, bool_v, str_v, long_v, dbl_v, json_v FROM {keyspace}.ts_kv_cf \
             WHERE entity_type = ? AND entity_id = ? AND key = ? AND partition = ? AND ts > ? ORDER BY ts"
        ))
        .await?;
        let latest = match has("ts_kv_latest_cf") {
            true => Some(
                prepare(format!(
                    "SELECT key, ts, bool_v, str_v, long_v, dbl_v, json_v FROM {keyspace}.ts_kv_latest_cf \
                     WHERE entity_type = ? AND entity_id = ?"
                ))
                .await?,
            ),
            false => None,
        };
        Ok(Self {
            session,
            periods,
            points,
            latest,
        })
    }

    pub(super) async fn latest_names(&self, entity: EntityId) -> StoreResult<Vec<String>> {
        let rows = self.latest_rows(entity).await?;
        Ok(rows.into_iter().map(|(key, ..)| key).collect())
    }

    pub(super) async fn latest(&self, entity: EntityId) -> StoreResult<Vec<LatestValue>> {
        let rows = self.latest_rows(entity).await?.into_iter();
        let value = |(key, ts, bool_v, str_v, long_v, dbl_v, json_v): LatestColumns| {
            point((ts, bool_v, str_v, long_v, dbl_v, json_v)).map(|point| LatestValue { key, point })
        };
        Ok(rows.filter_map(value).collect())
    }

    async fn latest_rows(&self, entity: EntityId) -> StoreResult<Vec<LatestColumns>> {
        let (Some(statement), Some(id)) = (&self.latest, key_of(entity.id)) else {
            return Ok(Vec::new());
        };
        let pages = self
            .session
            .execute_iter(statement.clone(), (entity.entity_type.name(), id))
            .await
            .map_err(failed)?;
        let rows = pages.rows_stream::<LatestColumns>().map_err(failed)?;
        rows.map_err(failed).try_collect().await
    }

    /// The partitions that may have points behind a time.
    async fn periods(
        &self,
        entity_type: &str,
        id: CqlTimeuuid,
        name: &str,
        after: Option<i64>,
    ) -> StoreResult<Vec<i64>> {
        let pages = self
            .session
            .execute_iter(self.periods.clone(), (entity_type, id, name))
            .await
            .map_err(failed)?;
        let rows = pages.rows_stream::<(i64,)>().map_err(failed)?;
        let mut found: Vec<i64> = rows.map_ok(|row| row.0).map_err(failed).try_collect().await?;
        // Periods have had other lengths where that was changed, and what was stored without them is in no list.
        found.retain(|begin| after.is_none_or(|after| begin.saturating_add(LONGEST_PERIOD_MS) > after));
        found.push(UNDIVIDED);
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    async fn points_of_period(
        &self,
        entity_type: &str,
        id: CqlTimeuuid,
        name: &str,
        period: i64,
        after: Option<i64>,
    ) -> StoreResult<impl Stream<Item = StoreResult<Option<DataPoint>>> + use<>> {
        let values = (entity_type, id, name, period, after.unwrap_or(i64::MIN));
        let pages = self
            .session
            .execute_iter(self.points.clone(), values)
            .await
            .map_err(failed)?;
        let rows = pages.rows_stream::<PointColumns>().map_err(failed)?;
        Ok(rows.map_err(failed).map_ok(point))
    }

    pub(super) fn points<'a>(
        &'a self,
        entity: EntityId,
        name: &'a str,
        after: Option<i64>,
    ) -> BoxStream<'a, StoreResult<Option<DataPoint>>> {
        let Some(id) = key_of(entity.id) else {
            return futures::stream::empty().boxed();
        };
        let entity_type = entity.entity_type.name();
        let of_period = move |period: i64| self.points_of_period(entity_type, id, name, period, after);
        let periods = async move {
            let periods = self.periods(entity_type, id, name, after).await?;
            Ok::<_, StoreError>(futures::stream::iter(periods.into_iter().map(Ok)))
        };
        futures::stream::once(periods)
            .try_flatten()
            .and_then(of_period)
            .try_flatten()
            .boxed()
    }
}
