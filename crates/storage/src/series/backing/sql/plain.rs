//! The table `telemetry`: each point once more as a row, for programs that read with SQL.
//!
//! Rows are written in the transaction of the blocks that hold the same points. Deletions and moves follow those of the
//! program's own tables, some rows at a time, so that nobody waits for them. The table is a hypertable where TimescaleDB is
//! there, else it has a partition a month from its making on, one for what was before, and one for all others. What PostgreSQL cannot hold in such a row
//! (a time beyond its own, a name with a null character) is left out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fieldline_core::logging::LogGate;
use fieldline_model::kv::{KvValueRef, unpack};
use fieldline_model::{EntityKey, TenantId};
use fjall::Slice;
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

use super::super::super::{block, keys, metrics as names};
use super::SqlFailure;

/// Rows of one statement.
const STATEMENT_ROWS: usize = 5_000;
/// Bytes of texts of one statement, roughly.
const STATEMENT_BYTES: usize = 4 << 20;
/// Rows that one statement deletes or moves.
const ROWS_AT_ONCE: u64 = 10_000;
/// How long rows past their time-to-live are deleted at a time.
const EXPIRY_TIME: Duration = Duration::from_secs(3);
/// Years 1 to 9999, which PostgreSQL and its clients read.
const TIMES: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
/// Refusals after which the rest of what a batch is refused is left out undivided: twenty or so find one row of a million.
const REFUSALS_AT_MOST: usize = 60;
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

/// What happens to rows that are there.
pub(in super::super::super) enum PlainChange {
    /// They are deleted.
    Delete {
        /// Tenant of the entities.
        tenant: TenantId,
        /// Whose they are.
        entities: Vec<Uuid>,
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

/// Makes the table, if it is not there, and the partitions of this month and the next ones.
pub(super) async fn prepare(pool: &PgPool) -> Result<(), SqlFailure> {
    let found = sqlx::query(
        "SELECT 1 FROM pg_class WHERE oid = to_regclass(format('%I.telemetry', current_schema()))",
    );
    if found.fetch_optional(pool).await?.is_none() {
        let timescale = sqlx::query(
            "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'timescaledb'",
        );
        let timescale: Option<String> = match timescale.fetch_optional(pool).await? {
            Some(row) => Some(row.try_get(0)?),
            None => None,
        };
        let mut transaction = pool.begin().await?;
        let (create, divide) = match timescale {
            Some(schema) => (
                COLUMNS.to_owned(),
                format!(
                    "SELECT {schema}.create_hypertable('telemetry', 'ts', chunk_time_interval => INTERVAL '7 days')"
                ),
            ),
            None => (format!("{COLUMNS} PARTITION BY RANGE (ts)"), DIVIDE.to_owned()),
        };
        for statements in [create, divide] {
            sqlx::raw_sql(AssertSqlSafe(statements))
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query("CREATE INDEX telemetry_by_expiry ON telemetry (expires) WHERE expires IS NOT NULL")
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
    sqlx::raw_sql(MAKE_PARTITIONS).execute(pool).await?;
    Ok(())
}

/// What was before this month has a partition, and so has what no month takes. The latter holds next to nothing, for each
/// month that is made searches it.
const DIVIDE: &str = "
DO $$ BEGIN
    EXECUTE format('CREATE TABLE telemetry_before PARTITION OF telemetry FOR VALUES FROM (MINVALUE) TO (%L)',
        date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC');
    CREATE TABLE telemetry_rest PARTITION OF telemetry DEFAULT;
END $$";

/// Makes the partitions of this month and the next three, where the table has partitions. Nothing waits for it for long: where
/// it does not go, it is tried again, and a month that has come without one has its rows among all others.
const MAKE_PARTITIONS: &str = "
DO $$
DECLARE
    begun TIMESTAMP;
    part TEXT;
BEGIN
    IF (SELECT relkind <> 'p' FROM pg_class WHERE oid = to_regclass(format('%I.telemetry', current_schema()))) THEN
        RETURN;
    END IF;
    SET LOCAL lock_timeout = '200ms';
    FOR ahead IN 0..3 LOOP
        begun := date_trunc('month', now() AT TIME ZONE 'UTC') + ahead * INTERVAL '1 month';
        part := to_char(begun, '\"telemetry_\"YYYY\"_\"MM');
        IF to_regclass(format('%I.%I', current_schema(), part)) IS NULL THEN
            BEGIN
                EXECUTE format('CREATE TABLE %I PARTITION OF telemetry FOR VALUES FROM (%L) TO (%L)', part,
                    begun AT TIME ZONE 'UTC', (begun + INTERVAL '1 month') AT TIME ZONE 'UTC');
            EXCEPTION WHEN OTHERS THEN
                RAISE NOTICE 'telemetry gets no partition %: %', part, SQLERRM;
            END;
        END IF;
    END LOOP;
END $$";

/// Makes partitions ahead, and deletes rows past their time-to-live, for some time.
pub(super) async fn keep_up(pool: &PgPool, now_ms: i64) -> Result<(), SqlFailure> {
    sqlx::raw_sql(MAKE_PARTITIONS).execute(pool).await?;
    let began = Instant::now();
    for part in parts(pool).await? {
        let deletion = format!(
            "DELETE FROM {part} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {part} WHERE expires < to_timestamp($1 / 1000.0) \
             LIMIT {ROWS_AT_ONCE}))"
        );
        while began.elapsed() < EXPIRY_TIME {
            let deletion = sqlx::query(AssertSqlSafe(deletion.as_str())).bind(now_ms);
            if deletion.execute(pool).await?.rows_affected() < ROWS_AT_ONCE {
                break;
            }
        }
    }
    Ok(())
}

/// The tables that hold the rows, by names that can stand in a statement.
async fn parts(pool: &PgPool) -> Result<Vec<String>, SqlFailure> {
    let parts = "SELECT inhrelid::regclass::text FROM pg_inherits \
        WHERE inhparent = to_regclass(format('%I.telemetry', current_schema())) ORDER BY 1";
    let rows = sqlx::query(parts).fetch_all(pool).await?;
    if rows.is_empty() {
        return Ok(vec!["telemetry".to_owned()]);
    }
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
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
        }
    }

    /// Writes them in a transaction. What the database refuses, whatever the reason, is left out: the program's own tables
    /// do not depend on it.
    pub(super) async fn write(&self, transaction: &mut PgConnection) -> Result<(), SqlFailure> {
        let rows: Vec<PlainPoint<'_, 'a>> = self.rows.iter().collect();
        let mut left_out = 0;
        let mut refusals = 0;
        // The last one is the next one. What is refused is tried again in halves.
        let mut parts = vec![&rows[..]];
        while let Some(part) = parts.pop().filter(|part| !part.is_empty()) {
            let Some(refusal) = write_part(part, transaction).await? else {
                continue;
            };
            refusals += 1;
            if part.len() > 1 && refusals < REFUSALS_AT_MOST && is_about_rows(refusal.code().as_deref()) {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
                continue;
            }
            left_out += part.len();
            if !is_about_rows(refusal.code().as_deref()) {
                // The table is locked, or too slow: the commit does not wait for it again.
                left_out += parts.drain(..).map(<[_]>::len).sum::<usize>();
            }
            if let Some(suppressed) = REFUSED_GATE.open() {
                tracing::warn!(error = %refusal, suppressed, "rows are left out of the table telemetry");
            }
        }
        if left_out > 0 {
            metrics::counter!(names::PLAIN_ROWS_LEFT_OUT).increment(left_out as u64);
        }
        Ok(())
    }
}

/// A row with what tells it apart.
type PlainPoint<'r, 'a> = (&'r PlainKey<'a>, &'r PlainRow<'a>);

/// Writes some rows, all or none; returns why they were refused, if they were.
async fn write_part(
    rows: &[PlainPoint<'_, '_>],
    transaction: &mut PgConnection,
) -> Result<Option<Box<dyn DatabaseError>>, SqlFailure> {
    let mut inner = transaction.begin().await?;
    match insert_all(rows, &mut inner).await {
        Ok(()) => {
            inner.commit().await?;
            Ok(None)
        }
        Err(SqlFailure::Database(sqlx::Error::Database(error))) if !is_passing(error.code().as_deref()) => {
            inner.rollback().await?;
            Ok(Some(error))
        }
        Err(failure) => Err(failure),
    }
}

async fn insert_all(rows: &[PlainPoint<'_, '_>], transaction: &mut PgConnection) -> Result<(), SqlFailure> {
    let mut columns = PlainColumns::default();
    for (key, row) in rows {
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

/// Whether an error passes by itself: two that wait for each other, a server that ends.
fn is_passing(code: Option<&str>) -> bool {
    code.is_some_and(|code| code.starts_with("40") || code.starts_with("57P"))
}

/// Whether an error is about what the rows hold, or what the table takes: data, constraints, its definition, nesting.
fn is_about_rows(code: Option<&str>) -> bool {
    code.is_some_and(|code| ["22", "23", "42", "54"].contains(&code.get(..2).unwrap_or_default()))
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
    /// Makes the change, some rows of one of the table's parts at a time.
    pub(super) async fn make(&self, pool: &PgPool) -> Result<(), SqlFailure> {
        for part in parts(pool).await? {
            while self.step(pool, &part).await? >= ROWS_AT_ONCE {}
        }
        Ok(())
    }

    async fn step(&self, pool: &PgPool, part: &str) -> Result<u64, SqlFailure> {
        const ALL_TIMES: (i64, i64) = (i64::MIN, i64::MAX);
        let (change, tenant, entities, keys, range) = match self {
            Self::Delete {
                tenant,
                entities,
                keys,
                range,
            } => (
                format!("DELETE FROM {part}"),
                *tenant,
                &entities[..],
                keys.as_deref(),
                range.unwrap_or(ALL_TIMES),
            ),
            Self::Move { from, to } => {
                // An id is hexadecimal.
                let change = format!("UPDATE {part} SET tenant_id = '{}'", to.0);
                (
                    change,
                    from.tenant,
                    std::slice::from_ref(&from.entity.id),
                    None,
                    ALL_TIMES,
                )
            }
        };
        let clamp = |ts: i64| ts.clamp(*TIMES.start(), *TIMES.end());
        let statement = format!(
            "{change} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {part} WHERE entity_id = ANY($1) AND tenant_id = $2 \
             AND ($3::text[] IS NULL OR key = ANY($3)) AND ts >= to_timestamp($4 / 1000.0) \
             AND ($5 OR ts < to_timestamp($6 / 1000.0)) LIMIT {ROWS_AT_ONCE}))"
        );
        let query = sqlx::query(AssertSqlSafe(statement))
            .bind(entities)
            .bind(tenant.0)
            .bind(keys)
            .bind(clamp(range.0))
            .bind(range.1 > *TIMES.end())
            .bind(clamp(range.1));
        Ok(query.execute(pool).await?.rows_affected())
    }
}
