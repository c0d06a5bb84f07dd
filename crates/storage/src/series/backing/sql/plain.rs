//! The table `telemetry`: each point once more as a row, for programs that read with SQL.
//!
//! Rows are written in the transaction of the blocks that hold the same points, and deleted in that of the barrier of a
//! deletion, so that both tell the same. The table is a hypertable where TimescaleDB is there, else it has a partition a
//! month. What PostgreSQL cannot hold in such a row (a time beyond its own, a name with a null character) is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use fieldline_core::logging::LogGate;
use fieldline_model::kv::{KvValueRef, unpack};
use fieldline_model::{EntityKey, TenantId};
use fjall::Slice;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

use super::super::super::{block, keys};
use super::SqlFailure;

/// Rows of one statement.
const STATEMENT_ROWS: usize = 5_000;
/// Bytes of texts of one statement, roughly.
const STATEMENT_BYTES: usize = 4 << 20;
/// Rows past their time-to-live that one statement deletes.
const EXPIRED_AT_ONCE: i64 = 10_000;
/// Years 1 to 9999, which PostgreSQL and its clients read.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
/// Times that get a partition: years 2000 to 2099. All others share one.
const PARTITIONED: std::ops::Range<i64> = 946_684_800_000..4_102_444_800_000;
/// Longest name of a series; its index refuses entries of more than 2,704 bytes.
const MAX_KEY_BYTES: usize = 2_048;

static REFUSED_GATE: LogGate = LogGate::new(1);

const COLUMNS: &str = "CREATE TABLE telemetry (tenant_id uuid NOT NULL, entity_type text NOT NULL, entity_id uuid NOT NULL, \
     key text NOT NULL, ts timestamptz NOT NULL, bool_v bool, long_v int8, dbl_v float8, str_v text, json_v json, \
     expires timestamptz, PRIMARY KEY (entity_id, key, ts))";

const INSERT: &str = "INSERT INTO telemetry (tenant_id, entity_type, entity_id, key, ts, bool_v, long_v, dbl_v, str_v, json_v, \
     expires) \
     SELECT tenant_id, entity_type, entity_id, key, to_timestamp(ts / 1000.0), bool_v, long_v, dbl_v, str_v, json_v::json, \
     CASE WHEN ttl > 0 THEN to_timestamp(ts / 1000.0 + ttl) END \
     FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::int8[], $6::bool[], $7::int8[], $8::float8[], $9::text[], \
     $10::text[], $11::int8[]) \
     AS point (tenant_id, entity_type, entity_id, key, ts, bool_v, long_v, dbl_v, str_v, json_v, ttl) \
     ON CONFLICT (entity_id, key, ts) DO UPDATE SET tenant_id = excluded.tenant_id, bool_v = excluded.bool_v, \
     long_v = excluded.long_v, dbl_v = excluded.dbl_v, str_v = excluded.str_v, json_v = excluded.json_v, \
     expires = excluded.expires";

/// What happens to rows with a batch.
pub(in super::super::super) enum PlainChange {
    /// They are deleted.
    Delete {
        /// Whose they are.
        subject: EntityKey,
        /// Of these series; of all if not set.
        keys: Option<Vec<String>>,
        /// From a time on, up to another that is left out; at all times if not set.
        range: Option<(i64, i64)>,
    },
    /// Their entity goes to another tenant.
    Move {
        /// What the entity was.
        from: EntityKey,
        /// Its tenant.
        to: TenantId,
    },
}

/// Makes the table, if it is not there.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<PlainTable, SqlFailure> {
    let found = sqlx::query("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass('telemetry')");
    if let Some(row) = found.fetch_optional(&mut *connection).await? {
        return Ok(PlainTable::new(row.try_get(0)?));
    }
    let has_timescale = has_timescale(connection).await?;
    let mut transaction = connection.begin().await?;
    let create = match has_timescale {
        true => COLUMNS.to_owned(),
        false => format!("{COLUMNS} PARTITION BY RANGE (ts)"),
    };
    sqlx::query(AssertSqlSafe(create))
        .execute(&mut *transaction)
        .await?;
    let second = match has_timescale {
        true => "SELECT create_hypertable('telemetry', 'ts', chunk_time_interval => INTERVAL '7 days')",
        false => "CREATE TABLE telemetry_rest PARTITION OF telemetry DEFAULT",
    };
    sqlx::query(second).execute(&mut *transaction).await?;
    sqlx::query("CREATE INDEX telemetry_by_expiry ON telemetry (expires) WHERE expires IS NOT NULL")
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(PlainTable::new(!has_timescale))
}

/// Whether TimescaleDB is there, or can be.
async fn has_timescale(connection: &mut PgConnection) -> Result<bool, SqlFailure> {
    let available = sqlx::query("SELECT 1 FROM pg_available_extensions WHERE name = 'timescaledb'");
    if available.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(false);
    }
    let made = sqlx::query("CREATE EXTENSION IF NOT EXISTS timescaledb")
        .execute(&mut *connection)
        .await;
    if let Err(error) = &made {
        tracing::warn!(%error, "TimescaleDB is installed but cannot be used: the table telemetry gets partitions");
    }
    Ok(made.is_ok())
}

/// The table, and the partitions that it has.
pub(super) struct PlainTable {
    is_partitioned: bool,
    months: Mutex<BTreeSet<(i64, u32)>>,
}

impl PlainTable {
    const fn new(is_partitioned: bool) -> Self {
        Self {
            is_partitioned,
            months: Mutex::new(BTreeSet::new()),
        }
    }

    /// Makes the partitions that rows belong to.
    pub(super) async fn make_partitions(
        &self,
        pool: &PgPool,
        rows: &PlainRows<'_>,
    ) -> Result<(), SqlFailure> {
        if !self.is_partitioned {
            return Ok(());
        }
        let missing: Vec<(i64, u32)> = match self.months.lock() {
            Ok(made) => rows.months.difference(&made).copied().collect(),
            Err(_) => Vec::new(),
        };
        for month in missing {
            let sql = format!(
                "CREATE TABLE IF NOT EXISTS telemetry_{} PARTITION OF telemetry FOR VALUES FROM ('{}') TO ('{}')",
                name_of(month, '_'),
                first_day(month),
                first_day(next_month(month)),
            );
            let made = sqlx::query(AssertSqlSafe(sql)).execute(pool).await;
            if let Err(error) = made {
                let code = error.as_database_error().and_then(|error| error.code());
                // Rows of the month are among all others: so are those that come.
                if code.as_deref() != Some(CHECK_VIOLATION) {
                    return Err(error.into());
                }
            }
            if let Ok(mut made) = self.months.lock() {
                made.insert(month);
            }
        }
        Ok(())
    }

    /// Deletes rows past their time-to-live, up to a bound; returns whether there may be more.
    pub(super) async fn expire(pool: &PgPool, now_ms: i64) -> Result<bool, SqlFailure> {
        let deletion = "DELETE FROM telemetry WHERE (entity_id, key, ts) IN (SELECT entity_id, key, ts FROM telemetry \
            WHERE expires < to_timestamp($1 / 1000.0) LIMIT $2)";
        let deleted = sqlx::query(deletion)
            .bind(now_ms)
            .bind(EXPIRED_AT_ONCE)
            .execute(pool)
            .await?;
        Ok(deleted.rows_affected() >= EXPIRED_AT_ONCE.unsigned_abs())
    }
}

/// PostgreSQL's code for rows that a new partition would have to take from the one of all others.
const CHECK_VIOLATION: &str = "23514";

fn name_of((year, month): (i64, u32), separator: char) -> String {
    format!("{year:04}{separator}{month:02}")
}

fn first_day(month: (i64, u32)) -> String {
    format!("{}-01 00:00+00", name_of(month, '-'))
}

const fn next_month((year, month): (i64, u32)) -> (i64, u32) {
    match month {
        12 => (year + 1, 1),
        _ => (year, month + 1),
    }
}

/// Year and month of a time. See <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
const fn month_of(ts: i64) -> (i64, u32) {
    let days = ts.div_euclid(86_400_000) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // March is the first month.
    let month = (5 * day_of_year + 2) / 153;
    let year = year_of_era + era * 400;
    match month {
        0..=9 => (year, month as u32 + 3),
        _ => (year + 1, month as u32 - 9),
    }
}

/// What tells rows apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PlainKey<'a> {
    entity: Uuid,
    key: &'a str,
    ts: i64,
}

struct PlainRow<'a> {
    seq: u64,
    subject: EntityKey,
    ttl: u32,
    value: KvValueRef<'a>,
}

/// The rows of the blocks of a batch.
#[derive(Default)]
pub(super) struct PlainRows<'a> {
    rows: BTreeMap<PlainKey<'a>, PlainRow<'a>>,
    months: BTreeSet<(i64, u32)>,
}

impl<'a> PlainRows<'a> {
    /// Takes the points of a block that has just been encoded.
    pub(super) fn add(&mut self, key: &'a Slice, value: &'a Slice) {
        let Some(subject) = keys::read_subject(keys::without_epoch(key)) else {
            return;
        };
        let Ok(rows) = block::rows(key, value) else {
            return;
        };
        for row in rows.flatten().filter(|row| TIMES.contains(&row.ts)) {
            for (name, value) in unpack(row.values).flatten() {
                if name.len() > MAX_KEY_BYTES || name.contains('\0') {
                    continue;
                }
                let key = PlainKey {
                    entity: subject.entity.id,
                    key: name,
                    ts: row.ts,
                };
                if self.rows.get(&key).is_some_and(|other| other.seq > row.seq) {
                    continue;
                }
                let row = PlainRow {
                    seq: row.seq,
                    subject,
                    ttl: row.ttl,
                    value,
                };
                self.rows.insert(key, row);
            }
            if PARTITIONED.contains(&row.ts) {
                self.months.insert(month_of(row.ts));
            }
        }
    }

    /// Writes them in a transaction, all or, where PostgreSQL refuses what one of them holds, none.
    pub(super) async fn write(&self, transaction: &mut PgConnection) -> Result<(), SqlFailure> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut inner = transaction.begin().await?;
        let written = self.write_all(&mut inner).await;
        match written {
            Ok(()) => Ok(inner.commit().await?),
            Err(SqlFailure::Database(sqlx::Error::Database(error)))
                if is_refusal(error.code().as_deref()) =>
            {
                inner.rollback().await?;
                if let Some(suppressed) = REFUSED_GATE.open() {
                    let rows = self.rows.len();
                    tracing::warn!(%error, rows, suppressed, "rows are left out of the table telemetry");
                }
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn write_all(&self, transaction: &mut PgConnection) -> Result<(), SqlFailure> {
        let mut columns = PlainColumns::default();
        for (key, row) in &self.rows {
            columns.push(key, row);
            if columns.ts.len() >= STATEMENT_ROWS || columns.bytes >= STATEMENT_BYTES {
                std::mem::take(&mut columns).insert(transaction).await?;
            }
        }
        match columns.ts.is_empty() {
            true => Ok(()),
            false => columns.insert(transaction).await,
        }
    }
}

/// Whether an error is about the data: class 22, and a document that is nested too deeply.
fn is_refusal(code: Option<&str>) -> bool {
    code.is_some_and(|code| code.starts_with("22") || code.starts_with("54"))
}

/// The columns of a statement.
#[derive(Default)]
struct PlainColumns<'a> {
    tenants: Vec<Uuid>,
    types: Vec<&'static str>,
    entities: Vec<Uuid>,
    keys: Vec<&'a str>,
    ts: Vec<i64>,
    flags: Vec<Option<bool>>,
    longs: Vec<Option<i64>>,
    doubles: Vec<Option<f64>>,
    texts: Vec<Option<String>>,
    jsons: Vec<Option<&'a str>>,
    ttls: Vec<i64>,
    bytes: usize,
}

impl<'a> PlainColumns<'a> {
    fn push(&mut self, key: &PlainKey<'a>, row: &PlainRow<'a>) {
        self.tenants.push(row.subject.tenant.0);
        self.types.push(row.subject.entity.entity_type.name());
        self.entities.push(key.entity);
        self.keys.push(key.key);
        self.ts.push(key.ts);
        self.ttls.push(row.ttl.into());
        let (mut flag, mut long, mut double, mut text, mut json) = (None, None, None, None, None);
        match row.value {
            KvValueRef::Bool(value) => flag = Some(value),
            KvValueRef::Long(value) => long = Some(value),
            KvValueRef::Double(value) => double = Some(value),
            // PostgreSQL's texts have no null character.
            KvValueRef::Text(value) => text = Some(value.replace('\0', "\u{fffd}")),
            KvValueRef::Json(value) => json = Some(value),
        }
        self.bytes += key.key.len() + text.as_deref().map_or(0, str::len) + json.map_or(0, str::len);
        self.flags.push(flag);
        self.longs.push(long);
        self.doubles.push(double);
        self.texts.push(text);
        self.jsons.push(json);
    }

    async fn insert(self, transaction: &mut PgConnection) -> Result<(), SqlFailure> {
        sqlx::query(INSERT)
            .bind(self.tenants)
            .bind(self.types)
            .bind(self.entities)
            .bind(self.keys)
            .bind(self.ts)
            .bind(self.flags)
            .bind(self.longs)
            .bind(self.doubles)
            .bind(self.texts)
            .bind(self.jsons)
            .bind(self.ttls)
            .execute(transaction)
            .await?;
        Ok(())
    }
}

impl PlainChange {
    /// Makes the change in a transaction.
    pub(super) async fn make(&self, transaction: &mut PgConnection) -> Result<(), SqlFailure> {
        match self {
            Self::Delete { subject, keys, range } => {
                delete(transaction, *subject, keys.as_deref(), *range).await
            }
            Self::Move { from, to } => {
                let statement = "UPDATE telemetry SET tenant_id = $3 WHERE entity_id = $1 AND tenant_id = $2";
                sqlx::query(statement)
                    .bind(from.entity.id)
                    .bind(from.tenant.0)
                    .bind(to.0)
                    .execute(transaction)
                    .await?;
                Ok(())
            }
        }
    }
}

async fn delete(
    transaction: &mut PgConnection,
    subject: EntityKey,
    keys: Option<&[String]>,
    range: Option<(i64, i64)>,
) -> Result<(), SqlFailure> {
    let clamp = |ts: i64| ts.clamp(*TIMES.start(), *TIMES.end());
    let (from, to) = range.unwrap_or((*TIMES.start(), i64::MAX));
    let statement = "DELETE FROM telemetry WHERE entity_id = $1 AND tenant_id = $2 AND ($3::text[] IS NULL OR key = ANY($3)) \
        AND ts >= to_timestamp($4 / 1000.0) AND ($5 OR ts < to_timestamp($6 / 1000.0))";
    sqlx::query(statement)
        .bind(subject.entity.id)
        .bind(subject.tenant.0)
        .bind(keys)
        .bind(clamp(from))
        .bind(to > *TIMES.end())
        .bind(clamp(to))
        .execute(transaction)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_month() {
        assert_eq!(month_of(0), (1970, 1));
        assert_eq!(month_of(-1), (1969, 12));
        assert_eq!(month_of(951_782_399_999), (2000, 2));
        assert_eq!(month_of(951_868_800_000), (2000, 3));
        assert_eq!(month_of(1_798_761_599_999), (2026, 12));
        assert_eq!(month_of(1_798_761_600_000), (2027, 1));
        assert_eq!(first_day(next_month((2026, 12))), "2027-01-01 00:00+00");
    }
}
