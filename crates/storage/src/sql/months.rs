//! Tables that have a part for each month in PostgreSQL, by the time with which their ids begin: what is past is dropped as
//! a whole, where deleting it row by row would write as much again. SQLite has one table.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use fieldline_core::ports::StoreResult;

use super::database::EntityDatabase;
use super::query::SqlQuery;
use super::statement_error::StatementError;

/// How often it is looked whether the parts of this and the next month are there.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);

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
            IF to_regclass(part) IS NULL THEN
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
    /// Whether it is time to look for them; the next one is told so after the interval.
    fn is_due(&self) -> bool {
        let Ok(mut last) = self.0.lock() else { return false };
        let is_due = last.is_none_or(|last| last.elapsed() >= CHECK_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Makes the parts for the rows of this and the next month, now and then.
pub(super) async fn prepare(database: &EntityDatabase) {
    if database.is_sqlite() || !database.months().is_due() {
        return;
    }
    if let Err(failure) = make_parts(database).await {
        let error = failure.into_error();
        tracing::warn!(%error, "the database gets no parts for the next month: rows go to the one for all others");
    }
}

async fn make_parts(database: &EntityDatabase) -> Result<(), StatementError> {
    let mut changes = database.begin().await?;
    changes.lock_schema().await?;
    changes.run(MAKE_PARTS.to_owned()).await?;
    changes.commit().await
}

/// Drops the parts all of whose rows are before a time, and of a kind where one is given; returns how many rows they had.
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
        dropped += drop_part(database, &row.columns().next::<String>()?, time_ms, kind).await?;
    }
    Ok(dropped)
}

/// Drops a part unless it has rows to keep.
async fn drop_part(
    database: &EntityDatabase,
    part: &str,
    time_ms: i64,
    kind: Option<&str>,
) -> StoreResult<u64> {
    let mut changes = database.begin().await?;
    // Others wait behind the lock of this one.
    changes.run("SET LOCAL lock_timeout = '2s'".to_owned()).await?;
    // So that no row comes between counting and dropping.
    changes
        .run(format!("LOCK TABLE \"{part}\" IN ACCESS EXCLUSIVE MODE"))
        .await?;
    let mut query = SqlQuery::new("SELECT COUNT(*), COUNT(*) FILTER (WHERE created_time >= ").bind(time_ms);
    if let Some(kind) = kind {
        query = query.push(" OR kind <> ").bind(kind);
    }
    let query = query.push_catalogue(&format!(") FROM \"{part}\""));
    let rows = changes.rows(query).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let mut columns = row.columns();
    let (all, kept): (i64, i64) = (columns.next()?, columns.next()?);
    if kept > 0 {
        return Ok(0);
    }
    changes.run(format!("DROP TABLE \"{part}\"")).await?;
    changes.commit().await?;
    Ok(u64::try_from(all).unwrap_or(0))
}
