//! The tables in PostgreSQL, a table of bytes each, and `series_block` with a partition an epoch.
//!
//! A batch is a transaction that first makes sure that this process still owns the tables: whoever opens them takes them
//! over, and what an earlier owner commits late fails. Where the outcome of a commit is not known, the transaction may
//! still be running, so ownership is renewed, which waits for its end, and the batch is written again: it is the same
//! bytes either way.

mod plain;
mod read;
mod schema;

use std::collections::BTreeMap;
use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fjall::Slice;
use parking_lot::Mutex;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Postgres, Transaction};
use uuid::Uuid;

pub(in super::super) use self::plain::PlainChange;
use self::plain::PlainRows;
pub(in super::super) use self::read::{SqlEntries, SqlSnapshot};
use super::super::engine::SeriesTables;
use super::super::options::SqlSeriesOptions;
use super::runtime::{BackingRuntime, CallTimedOut, CommitAttempts, READ_TIMEOUT, WRITE_TIMEOUT};
use super::{SeriesDatabase, SeriesTable};
use crate::sql::{WITHOUT_JIT, postgres_kind};

/// What one statement writes at most.
const STATEMENT_BYTES: usize = 4 << 20;
const STATEMENT_ROWS: usize = 10_000;

/// How long rows of points that have gone are deleted, in statements of some rows each.
const PLAIN_CHANGE_TIMEOUT: Duration = Duration::from_secs(3_600);

const META_TABLE: &str = "series_meta";
const STATE_TABLE: &str = "series_state";

/// The database, with threads of its own: its callers are threads that wait.
pub(in super::super) struct SqlSeriesDatabase(Arc<SqlSession>);

struct SqlSession {
    pool: PgPool,
    /// Who this process is among those that have opened the tables.
    run: Uuid,
    /// A transaction of this process may still be running although nobody waits for it.
    is_in_doubt: AtomicBool,
    is_taken_over: AtomicBool,
    /// Whether there is the table of plain rows.
    has_plain_rows: bool,
    /// One change of plain rows at a time, so that commits and reads keep their connections.
    changing: Mutex<()>,
    runtime: BackingRuntime,
}

/// A table of the database.
#[derive(Clone)]
pub(in super::super) struct SqlTable {
    session: Arc<SqlSession>,
    name: &'static str,
}

/// What is to be written, a value a key; `None` removes it.
type TableChanges = BTreeMap<Slice, Option<Slice>>;

/// What is to be written together.
#[derive(Default)]
pub(in super::super) struct SqlBatch {
    tables: BTreeMap<&'static str, TableChanges>,
    /// Keys of blocks whose points are new, and not only in another block than before.
    new_blocks: Vec<Slice>,
}

impl SqlBatch {
    pub(super) fn insert(&mut self, table: &SqlTable, key: Slice, value: Slice) {
        self.tables
            .entry(table.name)
            .or_default()
            .insert(key, Some(value));
    }

    /// Inserts a block of points that are new.
    pub(super) fn insert_new_block(&mut self, table: &SqlTable, key: Slice, value: Slice) {
        if table.session.has_plain_rows {
            self.new_blocks.push(key.clone());
        }
        self.insert(table, key, value);
    }

    pub(super) fn remove(&mut self, table: &SqlTable, key: Slice) {
        self.tables.entry(table.name).or_default().insert(key, None);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The rows of the blocks that are new.
    fn plain_rows(&self) -> PlainRows<'_> {
        let mut rows = PlainRows::default();
        if let Some(blocks) = self.tables.get(schema::BLOCK_TABLE) {
            for key in &self.new_blocks {
                if let Some(Some(value)) = blocks.get(key) {
                    rows.add(key, value);
                }
            }
        }
        rows
    }

    /// Writes it all in a transaction.
    async fn write(&self, transaction: &mut Transaction<'_, Postgres>) -> Result<(), SqlFailure> {
        for (table, entries) in &self.tables {
            let mut part = StatementPart::default();
            for (key, value) in entries {
                part.add(key, value.as_deref());
                if part.is_full() {
                    std::mem::take(&mut part).write(table, transaction).await?;
                }
            }
            part.write(table, transaction).await?;
        }
        Ok(())
    }
}

/// What two statements write: one all values, one all removals.
#[derive(Default)]
struct StatementPart<'a> {
    keys: Vec<&'a [u8]>,
    values: Vec<&'a [u8]>,
    removed: Vec<&'a [u8]>,
    bytes: usize,
}

impl<'a> StatementPart<'a> {
    fn add(&mut self, key: &'a [u8], value: Option<&'a [u8]>) {
        self.bytes += key.len() + value.map_or(0, <[u8]>::len);
        match value {
            Some(value) => {
                self.keys.push(key);
                self.values.push(value);
            }
            None => self.removed.push(key),
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= STATEMENT_BYTES || self.keys.len() + self.removed.len() >= STATEMENT_ROWS
    }

    async fn write(self, table: &str, transaction: &mut Transaction<'_, Postgres>) -> Result<(), SqlFailure> {
        if !self.keys.is_empty() {
            let sql = format!(
                "INSERT INTO {table} (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            );
            let statement = sqlx::query(AssertSqlSafe(sql)).bind(self.keys).bind(self.values);
            statement.execute(&mut **transaction).await?;
        }
        if !self.removed.is_empty() {
            let sql = format!("DELETE FROM {table} WHERE key = ANY($1::bytea[])");
            let statement = sqlx::query(AssertSqlSafe(sql)).bind(self.removed);
            statement.execute(&mut **transaction).await?;
        }
        Ok(())
    }
}

/// Why a call to the database failed.
enum SqlFailure {
    Database(sqlx::Error),
    TimedOut,
    /// Another process has opened the tables since.
    TakenOver,
}

impl From<sqlx::Error> for SqlFailure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<CallTimedOut> for SqlFailure {
    fn from(_: CallTimedOut) -> Self {
        Self::TimedOut
    }
}

impl SqlFailure {
    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Database(sqlx::Error::Database(error)) => postgres_kind(&error.code().unwrap_or_default()),
            Self::Database(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
                StoreErrorKind::Corrupt
            }
            Self::Database(_) | Self::TimedOut | Self::TakenOver => StoreErrorKind::Unavailable,
        }
    }

    /// Whether it may go well the next time.
    fn is_passing(&self) -> bool {
        !matches!(self, Self::TakenOver) && self.kind() == StoreErrorKind::Unavailable
    }
}

impl From<SqlFailure> for StoreError {
    fn from(failure: SqlFailure) -> Self {
        let kind = failure.kind();
        let message = match (&failure, kind) {
            (SqlFailure::TakenOver, _) => {
                "another process has opened the time series of this database: only one may, and the last one goes on"
            }
            (_, StoreErrorKind::DiskFull) => "the disk of the time-series database is full",
            (_, StoreErrorKind::Corrupt) => "the time-series database is damaged",
            (_, StoreErrorKind::Invalid) => "the time-series database refuses these values",
            _ => "the time-series database cannot be reached",
        };
        let error = StoreError::new(kind, message);
        match failure {
            SqlFailure::Database(cause) => error.caused_by(cause),
            SqlFailure::TimedOut => error.caused_by("no answer in time"),
            SqlFailure::TakenOver => error,
        }
    }
}

/// Opens the tables in a PostgreSQL database, making what is missing, and takes them over from whoever had them.
pub(in super::super) fn open(options: &SqlSeriesOptions) -> StoreResult<SeriesTables> {
    let (session, _) = connect(options)?;
    let table = |name| session.table(name);
    Ok(SeriesTables {
        meta: table(META_TABLE),
        states: table(STATE_TABLE),
        latest: table("series_latest"),
        attributes: table("series_attribute"),
        chunks: table("series_chunk"),
        quarantine: table("series_stuck"),
        blocks: table(schema::BLOCK_TABLE),
        db: SeriesDatabase::Sql(SqlSeriesDatabase(session)),
    })
}

/// What PostgreSQL keeps where the values are elsewhere: how far things are, and who owns them.
#[cfg(feature = "cassandra")]
pub(super) struct OwnedTables {
    pub(super) meta: SeriesTable,
    pub(super) states: SeriesTable,
    /// Greater than those of all owners before.
    pub(super) epoch: i64,
}

/// Opens what PostgreSQL keeps beside another database, and takes it over from whoever had it.
#[cfg(feature = "cassandra")]
pub(super) fn open_owned(options: &SqlSeriesOptions) -> StoreResult<(SqlSeriesDatabase, OwnedTables)> {
    let (session, epoch) = connect(options)?;
    let tables = OwnedTables {
        meta: session.table(META_TABLE),
        states: session.table(STATE_TABLE),
        epoch,
    };
    Ok((SqlSeriesDatabase(session), tables))
}

/// Connects, makes the tables that are missing, and takes them over. Answers with the epoch of the ownership as well.
fn connect(options: &SqlSeriesOptions) -> StoreResult<(Arc<SqlSession>, i64)> {
    let connect = PgConnectOptions::from_str(&options.url)
        .map_err(SqlFailure::from)?
        .application_name("fieldline series")
        // A session that the network has cut off must not hold its locks for long.
        .options([
            ("idle_in_transaction_session_timeout", "30s"),
            ("statement_timeout", "30s"),
            WITHOUT_JIT,
        ]);
    let runtime = BackingRuntime::new("series-sql")?;
    let pool = runtime.inside(|| {
        PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(READ_TIMEOUT)
            .connect_lazy_with(connect)
    });
    let run = Uuid::now_v7();
    let has_plain_rows = options.plain_rows;
    let epoch = {
        let pool = pool.clone();
        runtime.call::<_, SqlFailure, _>(WRITE_TIMEOUT, async move {
            let epoch = schema::prepare(&pool, run).await?;
            if has_plain_rows {
                plain::prepare(&pool).await?;
            }
            Ok(epoch)
        })?
    };
    let session = Arc::new(SqlSession {
        pool,
        run,
        is_in_doubt: AtomicBool::new(false),
        is_taken_over: AtomicBool::new(false),
        has_plain_rows,
        changing: Mutex::default(),
        runtime,
    });
    Ok((session, epoch))
}

impl SqlSession {
    fn table(self: &Arc<Self>, name: &'static str) -> SeriesTable {
        SeriesTable::Sql(SqlTable {
            session: Arc::clone(self),
            name,
        })
    }

    /// Runs a call on the database's own thread, and waits for it there where the caller is.
    fn call<T, F>(
        self: &Arc<Self>,
        timeout: Duration,
        call: impl FnOnce(Arc<Self>) -> F,
    ) -> Result<T, SqlFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlFailure>> + Send + 'static,
    {
        self.runtime.call(timeout, call(Arc::clone(self)))
    }

    /// Runs a call that reads; not before it is known what the last write has done.
    fn read<T, F>(self: &Arc<Self>, call: impl FnOnce(Arc<Self>) -> F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlFailure>> + Send + 'static,
    {
        self.end_doubt()?;
        Ok(self.call(READ_TIMEOUT, call)?)
    }

    /// Waits for the end of a transaction whose outcome is not known.
    fn end_doubt(self: &Arc<Self>) -> Result<(), SqlFailure> {
        if self.is_in_doubt.load(Ordering::Acquire) {
            self.call(READ_TIMEOUT, |session| async move {
                schema::renew(&session.pool, session.run).await
            })?;
            self.is_in_doubt.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn commit(self: &Arc<Self>, batch: SqlBatch) -> StoreResult<()> {
        let batch = Arc::new(batch);
        self.change(|session| {
            let batch = Arc::clone(&batch);
            async move {
                let mut transaction = session.pool.begin().await?;
                schema::check_owner(&mut transaction, session.run).await?;
                batch.write(&mut transaction).await?;
                // Of blocks that are new, which there are none of without the table.
                batch.plain_rows().write(&mut transaction).await?;
                transaction.commit().await?;
                Ok(())
            }
        })
    }

    /// Makes a change that may be made twice, for as long as there is hope that it can be made.
    fn change<F>(self: &Arc<Self>, change: impl Fn(Arc<Self>) -> F) -> StoreResult<()>
    where
        F: Future<Output = Result<(), SqlFailure>> + Send + 'static,
    {
        let mut attempts = CommitAttempts::begin();
        loop {
            let done = self.end_doubt().and_then(|()| self.call(WRITE_TIMEOUT, &change));
            let Err(failure) = done else { return Ok(()) };
            if matches!(failure, SqlFailure::TakenOver) {
                self.is_taken_over.store(true, Ordering::Release);
            }
            if !failure.is_passing() {
                return Err(failure.into());
            }
            self.is_in_doubt.store(true, Ordering::Release);
            if !attempts.wait() {
                return Err(failure.into());
            }
        }
    }
}

impl SqlSeriesDatabase {
    pub(super) fn commit(&self, batch: SqlBatch) -> StoreResult<()> {
        self.0.commit(batch)
    }

    /// Makes sure that this process still owns the tables.
    #[cfg(feature = "cassandra")]
    pub(super) fn check_owner(&self) -> StoreResult<()> {
        self.0.change(|session| async move {
            let mut transaction = session.pool.begin().await?;
            schema::check_owner(&mut transaction, session.run).await?;
            transaction.commit().await?;
            Ok(())
        })
    }

    pub(super) fn is_taken_over(&self) -> bool {
        self.0.is_taken_over.load(Ordering::Acquire)
    }

    pub(super) fn snapshot(&self) -> SqlSnapshot {
        SqlSnapshot::new(Arc::clone(&self.0))
    }

    /// Makes partitions of the plain rows ahead, and deletes what is past its time-to-live.
    pub(super) fn keep_up_plain_rows(&self, now_ms: i64) -> StoreResult<()> {
        if !self.0.has_plain_rows {
            return Ok(());
        }
        let kept_up = self.0.call(WRITE_TIMEOUT, |session| async move {
            plain::keep_up(&session.pool, now_ms).await
        });
        Ok(kept_up?)
    }

    /// Changes plain rows that are there already. Where that fails they stay: nothing depends on them.
    pub(super) fn change_plain_rows(&self, change: PlainChange) {
        if !self.0.has_plain_rows {
            return;
        }
        let _one = self.0.changing.lock();
        let changed = self.0.call(PLAIN_CHANGE_TIMEOUT, |session| async move {
            change.make(&session.pool).await
        });
        if let Err(failure) = changed {
            let error = StoreError::from(failure);
            tracing::warn!(%error, "rows of points that went stay in the table telemetry");
        }
    }

    /// Makes the partition of an epoch.
    pub(super) fn begin_epoch(&self, number: u64) -> StoreResult<()> {
        self.0
            .change(|session| async move { schema::add_partition(&session.pool, session.run, number).await })
    }

    /// Drops the partitions of an epoch and of those before it. Those that are being read are dropped with a later one.
    pub(super) fn drop_epochs(&self, number: u64) -> StoreResult<()> {
        self.0.change(
            |session| async move { schema::drop_partitions(&session.pool, session.run, number).await },
        )
    }
}

impl SqlTable {
    /// Writes one entry in a transaction of its own.
    pub(super) fn insert(&self, key: Slice, value: Slice) -> StoreResult<()> {
        let mut batch = SqlBatch::default();
        batch.insert(self, key, value);
        self.session.commit(batch)
    }

    #[cfg(test)]
    pub(super) fn remove(&self, key: &[u8]) -> StoreResult<()> {
        let mut batch = SqlBatch::default();
        batch.remove(self, key.into());
        self.session.commit(batch)
    }

    /// Bytes of the table on the disk, with its index.
    pub(super) fn bytes(&self) -> StoreResult<u64> {
        let name = self.name;
        self.session
            .read(move |session| async move { schema::table_bytes(&session.pool, name).await })
    }
}
