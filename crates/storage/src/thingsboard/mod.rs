//! What a ThingsBoard installation keeps of its entities, read from its own tables: time series, latest values and
//! attributes. Tables of ThingsBoard 3.0 and later; nothing is written to them.
//!
//! Entities and attributes are in PostgreSQL. Time series are there too (`ts_kv`, also where that is a hypertable), or in
//! Cassandra (`ts_kv_cf`); latest values are in either of them, whatever the series are in.
//!
//! Source: `schema-entities.sql`, `schema-ts-psql.sql`, `schema-ts.cql` of ThingsBoard CE.

mod cassandra;
mod postgres;

use fieldline_core::ports::StoreResult;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::{Attribute, AttributeScope, DataPoint, LatestValue};
use fieldline_model::{EntityId, EntityType, TenantId};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use uuid::Uuid;

use self::cassandra::CassandraTables;
use self::postgres::PostgresTables;
use crate::series::CassandraOptions;

/// The databases of a ThingsBoard installation, open for reading.
pub struct ThingsBoardDatabase {
    postgres: PostgresTables,
    cassandra: Option<CassandraTables>,
}

/// An entity of a ThingsBoard installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThingsBoardEntity {
    /// Its id there.
    pub id: EntityId,
    /// Id of its tenant there.
    pub tenant: TenantId,
    /// Its name, title or e-mail address.
    pub name: String,
}

/// A series of an entity of a ThingsBoard installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThingsBoardSeries {
    /// Its name.
    pub name: String,
    /// Its number in PostgreSQL; Cassandra has the name itself.
    number: Option<i32>,
}

/// Points of a series.
pub type ThingsBoardPoints<'a> = BoxStream<'a, StoreResult<DataPoint>>;

impl ThingsBoardDatabase {
    /// The kinds of entities that can be read.
    pub const KINDS: [EntityType; 6] = [
        EntityType::Tenant,
        EntityType::Customer,
        EntityType::User,
        EntityType::Device,
        EntityType::Asset,
        EntityType::EntityView,
    ];

    /// Opens the PostgreSQL database at an address, and the Cassandra cluster where series are kept in one.
    ///
    /// # Errors
    /// [`Invalid`](fieldline_core::ports::StoreErrorKind::Invalid) if the tables are not there, or older than those of
    /// ThingsBoard 3.0.
    pub async fn open(url: &str, cassandra: Option<&CassandraOptions>) -> StoreResult<Self> {
        let postgres = PostgresTables::open(url, cassandra.is_none()).await?;
        let cassandra = match cassandra {
            Some(options) => Some(CassandraTables::open(options).await?),
            None => None,
        };
        Ok(Self { postgres, cassandra })
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.postgres.close().await;
    }

    /// Whether points come oldest first, so that a copy may go on behind the last one that came.
    pub const fn comes_in_order(&self) -> bool {
        // Its periods may overlap.
        self.cassandra.is_none()
    }

    /// Entities of one of the [kinds](Self::KINDS) behind an id, in the order of their ids.
    pub async fn entities(
        &self,
        kind: EntityType,
        after: Option<Uuid>,
        limit: u32,
    ) -> StoreResult<Vec<ThingsBoardEntity>> {
        self.postgres.entities(kind, after, limit).await
    }

    /// The series of an entity.
    pub async fn series(&self, entity: EntityId) -> StoreResult<Vec<ThingsBoardSeries>> {
        let Some(cassandra) = &self.cassandra else {
            return self.postgres.series(entity).await;
        };
        // The names are with the latest values, and those are where the settings say.
        let mut names = self.postgres.latest_names(entity).await?;
        names.extend(cassandra.latest_names(entity).await?);
        names.sort_unstable();
        names.dedup();
        let series = |name| ThingsBoardSeries { name, number: None };
        Ok(names.into_iter().map(series).collect())
    }

    /// The points of a series behind a time; oldest first where they [come in order](Self::comes_in_order). Values that are none (a double that is not finite) are left
    /// out.
    pub fn points<'a>(
        &'a self,
        entity: EntityId,
        series: &'a ThingsBoardSeries,
        after: Option<i64>,
    ) -> ThingsBoardPoints<'a> {
        let points = match (&self.cassandra, series.number) {
            (Some(cassandra), _) => cassandra.points(entity, &series.name, after),
            (None, Some(number)) => self.postgres.points(entity, number, after),
            (None, None) => futures::stream::empty().boxed(),
        };
        points
            .filter_map(|point| std::future::ready(point.transpose()))
            .boxed()
    }

    /// The latest values of an entity, also of series that have no points.
    pub async fn latest(&self, entity: EntityId) -> StoreResult<Vec<LatestValue>> {
        let mut found = self.postgres.latest(entity).await?;
        if let Some(cassandra) = &self.cassandra {
            found.extend(cassandra.latest(entity).await?);
        }
        Ok(found)
    }

    /// The attributes of an entity in all scopes.
    pub async fn attributes(&self, entity: EntityId) -> StoreResult<Vec<(AttributeScope, Attribute)>> {
        self.postgres.attributes(entity).await
    }
}

/// A value as ThingsBoard keeps it: one of five columns has it.
struct FiveColumns {
    bool_v: Option<bool>,
    str_v: Option<String>,
    long_v: Option<i64>,
    dbl_v: Option<f64>,
    json_v: Option<String>,
}

impl FiveColumns {
    /// The value, `None` where no column has one.
    fn value(self) -> Option<KvValue> {
        if let Some(flag) = self.bool_v {
            return Some(KvValue::Bool(flag));
        }
        if let Some(number) = self.long_v {
            return Some(KvValue::Long(number));
        }
        if let Some(number) = self.dbl_v {
            return number.is_finite().then_some(KvValue::Double(number));
        }
        if let Some(text) = self.str_v {
            return Some(KvValue::Text(text.into()));
        }
        let json = self.json_v?;
        let is_nested = json.trim_start().starts_with(['{', '[']);
        Some(match fieldline_model::json::compact(json.as_bytes()) {
            Ok(compact) if is_nested => KvValue::Json(compact.into()),
            // A value that is no object or array has types of its own.
            _ => KvValue::Text(json.into()),
        })
    }
}

#[cfg(test)]
mod tests;
