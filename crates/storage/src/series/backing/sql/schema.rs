//! The tables, their partitions, and who owns them.

use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Postgres, Row as _, Transaction};
use uuid::Uuid;

use super::super::super::keys;
use super::SqlFailure;

pub(super) const BLOCK_TABLE: &str = "series_block";

/// Any constant will do, so long as no other program uses it on the same database.
const PREPARE_LOCK: i64 = 0x6669_656c_645f_7473;

/// 2020-01-01T00:00:00Z, from which epochs count seconds.
const EPOCH_BEGIN_SECONDS: i64 = 1_577_836_800;

/// What is read and written in whole values: pages of latest values and attributes are rewritten all the time, so that
/// their pages on the disk keep room for it; chunks are compressed already and are not searched.
const TABLES: [&str; 9] = [
    "CREATE TABLE IF NOT EXISTS series_owner (id int2 PRIMARY KEY CHECK (id = 0), run uuid NOT NULL, epoch int8 NOT NULL)",
    "CREATE TABLE IF NOT EXISTS series_meta (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 50)",
    "CREATE TABLE IF NOT EXISTS series_state (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 60)",
    "CREATE TABLE IF NOT EXISTS series_latest (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 70)",
    "CREATE TABLE IF NOT EXISTS series_attribute (key bytea PRIMARY KEY, value bytea NOT NULL) WITH (fillfactor = 70)",
    "CREATE TABLE IF NOT EXISTS series_chunk (key bytea PRIMARY KEY, value bytea NOT NULL)",
    "ALTER TABLE series_chunk ALTER COLUMN value SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS series_stuck (key bytea PRIMARY KEY, value bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS series_block (key bytea PRIMARY KEY, value bytea NOT NULL) PARTITION BY RANGE (key)",
];

/// Makes what is missing, and takes the tables over. Answers with the epoch of the ownership, which is greater than all
/// before, also where the database has been set back to a copy: it grows with the seconds.
pub(super) async fn prepare(pool: &PgPool, run: Uuid) -> Result<i64, SqlFailure> {
    let mut transaction = pool.begin().await?;
    let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(PREPARE_LOCK);
    lock.execute(&mut *transaction).await?;
    for statement in TABLES {
        sqlx::query(statement).execute(&mut *transaction).await?;
    }
    let claim = "INSERT INTO series_owner (id, run, epoch) VALUES (0, $1, extract(epoch FROM now())::int8 - $2) \
                 ON CONFLICT (id) DO UPDATE SET run = excluded.run, epoch = greatest(series_owner.epoch + 1, excluded.epoch) \
                 RETURNING epoch";
    let claim = sqlx::query(claim).bind(run).bind(EPOCH_BEGIN_SECONDS);
    let epoch = claim.fetch_one(&mut *transaction).await?.try_get(0)?;
    transaction.commit().await?;
    Ok(epoch)
}

/// Waits for the end of all transactions that rely on the ownership.
pub(super) async fn renew(pool: &PgPool, run: Uuid) -> Result<(), SqlFailure> {
    let renewal = sqlx::query("UPDATE series_owner SET epoch = epoch + 1 WHERE run = $1").bind(run);
    match renewal.execute(pool).await?.rows_affected() {
        0 => Err(SqlFailure::TakenOver),
        _ => Ok(()),
    }
}

/// Makes sure that the tables are still owned, and stay so until the transaction ends.
pub(super) async fn check_owner(
    transaction: &mut Transaction<'_, Postgres>,
    run: Uuid,
) -> Result<(), SqlFailure> {
    let owned = sqlx::query("SELECT 1 FROM series_owner WHERE run = $1 FOR SHARE").bind(run);
    match owned.fetch_optional(&mut **transaction).await? {
        Some(_) => Ok(()),
        None => Err(SqlFailure::TakenOver),
    }
}

fn partition(number: u64) -> String {
    format!("{BLOCK_TABLE}_{number}")
}

/// Makes the partition of an epoch, where there is none.
pub(super) async fn add_partition(pool: &PgPool, run: Uuid, number: u64) -> Result<(), SqlFailure> {
    let mut transaction = pool.begin().await?;
    check_owner(&mut transaction, run).await?;
    let bound = |number| hex(&keys::epoch_key(number));
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {} PARTITION OF {BLOCK_TABLE} FOR VALUES FROM ('{}') TO ('{}')",
        partition(number),
        bound(number),
        bound(number + 1),
    );
    sqlx::query(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold("\\x".to_owned(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Drops the partitions of an epoch and of those before it, but none that is being read.
pub(super) async fn drop_partitions(pool: &PgPool, run: Uuid, number: u64) -> Result<(), SqlFailure> {
    let found = sqlx::query(
        "SELECT child.relname::text FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid \
         WHERE inhparent = $1::regclass",
    );
    for row in found.bind(BLOCK_TABLE).fetch_all(pool).await? {
        let name: String = row.try_get(0)?;
        let suffix = name
            .strip_prefix(BLOCK_TABLE)
            .and_then(|rest| rest.strip_prefix('_'));
        let Some(of) = suffix.and_then(|number| number.parse::<u64>().ok()) else {
            continue;
        };
        if of > number {
            continue;
        }
        match drop_partition(pool, run, of).await {
            Err(SqlFailure::Database(sqlx::Error::Database(error)))
                if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) =>
            {
                tracing::debug!(
                    partition = name,
                    "a packed partition is being read; it is dropped later"
                );
            }
            outcome => outcome?,
        }
    }
    Ok(())
}

/// PostgreSQL's code for a lock that was not granted in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

async fn drop_partition(pool: &PgPool, run: Uuid, number: u64) -> Result<(), SqlFailure> {
    let mut transaction = pool.begin().await?;
    check_owner(&mut transaction, run).await?;
    // Readers that come later queue behind this lock.
    sqlx::query("SET LOCAL lock_timeout = '200ms'")
        .execute(&mut *transaction)
        .await?;
    let sql = format!("DROP TABLE IF EXISTS {}", partition(number));
    sqlx::query(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Bytes of a table and its partitions, with their indexes.
pub(super) async fn table_bytes(pool: &PgPool, table: &'static str) -> Result<u64, SqlFailure> {
    let sizes =
        "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::int8 FROM pg_partition_tree($1::regclass)";
    let row = sqlx::query(sizes).bind(table).fetch_one(pool).await?;
    let bytes: i64 = row.try_get(0)?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}
