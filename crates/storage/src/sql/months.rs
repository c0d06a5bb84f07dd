//! Tables that have a part for each month in PostgreSQL, by the time with which their ids begin: the space of a month that is
//! past is given back at once, by dropping its part. SQLite has one table.

use std::time::{Duration, Instant};

use fieldline_core::ports::StoreResult;
use parking_lot::Mutex;

use super::database::{EntityDatabase, ProgramLock};
use super::query::SqlQuery;
use super::statement_error::StatementError;

/// How often it is looked whether the parts of this and the next month are there.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);

/// Whoever comes later waits behind the locks of what changes the parts.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

/// Makes the parts of this and the next month. It fails for none: rows without a part go to the one for all others. So do
/// those of a month that has some there already.
const MAKE_PARTS: &str = "
DO $$
DECLARE
    kept TEXT;
    begun TIMESTAMP;
    part TEXT;
BEGIN
    FOREACH kept IN ARRAY ARRAY['audit_log', 'event'] LOOP
        FOR ahead IN 0..1 LOOP
            begun := date_trunc('month', now() AT TIME ZONE 'UTC') + ahead * INTERVAL '1 month';
            part := kept || to_char(begun, '\"_\"YYYY\"_\"MM');
            IF to_regclass(format('%I.%I', current_schema(), part)) IS NULL THEN
                BEGIN
                    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', part, kept,
                        (lpad(to_hex((extract(epoch FROM begun) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid,
                        (lpad(to_hex((extract(epoch FROM begun + INTERVAL '1 month') * 1000)::bigint), 12, '0')
                            || repeat('0', 20))::uuid);
                EXCEPTION WHEN invalid_object_definition OR check_violation THEN
                    NULL;
                END;
            END IF;
        END LOOP;
    END LOOP;
END $$";

/// A table that has a part for each month.
#[derive(Debug, Clone, Copy)]
pub(super) enum MonthlyTable {
    AuditLog,
    Event,
}

impl MonthlyTable {
    const fn name(self) -> &'static str {
        match self {
            Self::AuditLog => "audit_log",
            Self::Event => "event",
        }
    }
}

/// When the parts were made last.
#[derive(Default)]
pub(super) struct MonthlyParts(Mutex<Option<Instant>>);

impl MonthlyParts {
    /// Begins to look for them, unless somebody has within the interval; returns whether it is to be done.
    fn begin_check(&self) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= CHECK_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Makes the parts for the rows of this and the next month, now and then.
pub(super) async fn prepare(database: &EntityDatabase) {
    if database.is_sqlite() || !database.months().begin_check() {
        return;
    }
    if let Err(failure) = make_parts(database).await {
        let error = failure.into_error();
        tracing::warn!(%error, "the database gets no parts for the next month: rows go to the one for all others");
    }
}

async fn make_parts(database: &EntityDatabase) -> Result<(), StatementError> {
    let mut changes = database.begin().await?;
    changes.run(LOCK_TIMEOUT.to_owned()).await?;
    changes.lock(ProgramLock::SCHEMA).await?;
    changes.run(MAKE_PARTS.to_owned()).await?;
    changes.commit().await
}

/// Drops the parts all of whose rows are before a time, and of a kind where one is given; returns how many rows they had.
/// A part that somebody is reading for long is dropped another time.
pub(super) async fn drop_before(
    database: &EntityDatabase,
    table: MonthlyTable,
    time_ms: i64,
    kind: Option<&str>,
) -> StoreResult<u64> {
    if database.is_sqlite() {
        return Ok(0);
    }
    let past = SqlQuery::new(
        "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = to_regclass(",
    )
    .bind(table.name())
    .push(
        r") AND relname ~ '_\d{4}_\d\d$' AND extract(epoch FROM to_date(right(relname, 7), 'YYYY_MM') + INTERVAL '1 month') * 1000 <= ",
    )
    .bind(time_ms)
    .push(" ORDER BY relname");
    let mut dropped = 0;
    for row in &database.read(past).await? {
        let part: String = row.columns().next()?;
        let find = kept(&part, time_ms, kind);
        if !database.read(find).await?.is_empty() {
            continue;
        }
        match drop_part(database, table, &part, time_ms, kind).await {
            Ok(rows) => dropped += rows,
            Err(failure) => {
                let error = failure.into_error();
                tracing::debug!(%error, part, "a part that is past is in use; it is dropped later");
            }
        }
    }
    Ok(dropped)
}

/// A row of a part that is to be kept.
fn kept(part: &str, time_ms: i64, kind: Option<&str>) -> SqlQuery {
    let query =
        SqlQuery::of_catalogue(format!("SELECT 1 FROM \"{part}\" WHERE created_time >= ")).bind(time_ms);
    let query = match kind {
        Some(kind) => query.push(" OR kind <> ").bind(kind),
        None => query,
    };
    query.push(" LIMIT 1")
}

/// Drops a part unless it has got rows to keep; returns how many rows it had.
async fn drop_part(
    database: &EntityDatabase,
    table: MonthlyTable,
    part: &str,
    time_ms: i64,
    kind: Option<&str>,
) -> Result<u64, StatementError> {
    let count = SqlQuery::of_catalogue(format!("SELECT COUNT(*) FROM \"{part}\""));
    let rows = database.read(count).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.columns().next())?;
    let mut changes = database.begin().await?;
    changes.run(LOCK_TIMEOUT.to_owned()).await?;
    // The table first, as those who read it: in the other order the two would wait for each other.
    changes
        .run(format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", table.name()))
        .await?;
    if !changes.rows(kept(part, time_ms, kind)).await?.is_empty() {
        return Ok(0);
    }
    changes.run(format!("DROP TABLE \"{part}\"")).await?;
    changes.commit().await?;
    Ok(u64::try_from(count).unwrap_or(0))
}
