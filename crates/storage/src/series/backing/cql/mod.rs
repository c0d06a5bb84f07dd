//! The tables in Cassandra, with what says how far things are in PostgreSQL.
//!
//! Cassandra has neither transactions over partitions nor snapshots. The order of writes (`write.rs`) makes up for the
//! first: data before positions, and what a crash leaves is written again by the replay. A gate a slot (`gate.rs`) makes
//! up for the second: there is one process that writes.
//!
//! Who that is, PostgreSQL says. Each run that takes the tables over gets a greater epoch, and everything it writes is
//! stamped with epoch and number, so that what an earlier run still has under way loses against it.

mod gate;
mod place;
mod prefixes;
mod read;
mod schema;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fjall::Slice;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

use self::gate::SlotGate;
use self::place::ByteRange;
pub(in super::super) use self::place::CqlTableKind;
use self::read::ReadDirection;
pub(in super::super) use self::read::{CqlEntries, CqlSnapshot};
use self::schema::CqlStatements;
pub(in super::super) use self::write::CqlBatch;
use self::write::PartitionWrite;
use super::super::engine::SeriesTables;
use super::super::keys;
use super::super::options::{CassandraOptions, SqlSeriesOptions};
use super::runtime::{
    BackingCall, BackingRuntime, CallTimedOut, CommitAttempts, READ_TIMEOUT, WRITE_TIMEOUT,
};
use super::sql::{self, SqlSeriesDatabase};
use super::{SeriesDatabase, SeriesTable, TableEntry};
use crate::cql_session;

/// Batches that are under way at the same time.
const WRITES_AT_ONCE: usize = 64;

/// Cassandra, and the PostgreSQL database that says who writes to it.
pub(in super::super) struct CqlSeriesDatabase {
    session: Arc<CqlSession>,
    sql: SqlSeriesDatabase,
}

struct CqlSession {
    driver: Session,
    keyspace: String,
    statements: BTreeMap<CqlTableKind, CqlStatements>,
    gate: SlotGate,
    /// Until when nothing is read that lies between what is wanted.
    narrow_until: Mutex<Option<Instant>>,
    /// What the next write is stamped with.
    timestamp: AtomicI64,
    runtime: Arc<BackingRuntime>,
}

/// A table in Cassandra.
#[derive(Clone)]
pub(in super::super) struct CqlTable {
    session: Arc<CqlSession>,
    kind: CqlTableKind,
}

impl CqlTable {
    pub(super) const fn kind(&self) -> CqlTableKind {
        self.kind
    }
}

/// Why a call to Cassandra failed.
struct CqlFailure {
    kind: StoreErrorKind,
    cause: Box<dyn Error + Send + Sync>,
}

impl CqlFailure {
    fn corrupt(cause: impl Error + Send + Sync + 'static) -> Self {
        Self {
            kind: StoreErrorKind::Corrupt,
            cause: Box::new(cause),
        }
    }

    /// Whether a node has given up on a read, as it does where it would go through too much that has been deleted.
    fn is_given_up(&self) -> bool {
        matches!(
            self.cause.downcast_ref(),
            Some(
                ExecutionError::RequestTimeout(_)
                    | ExecutionError::LastAttemptError(RequestAttemptError::DbError(
                        DbError::ReadFailure { .. } | DbError::ReadTimeout { .. },
                        _
                    ))
            )
        )
    }

    fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: StoreErrorKind::Unavailable,
            cause: cause.into(),
        }
    }
}

impl From<ExecutionError> for CqlFailure {
    fn from(cause: ExecutionError) -> Self {
        Self::unavailable(cause)
    }
}

impl From<scylla::errors::PrepareError> for CqlFailure {
    fn from(cause: scylla::errors::PrepareError) -> Self {
        Self::unavailable(cause)
    }
}

impl From<CallTimedOut> for CqlFailure {
    fn from(_: CallTimedOut) -> Self {
        Self::unavailable("no answer in time")
    }
}

impl From<CqlFailure> for StoreError {
    fn from(failure: CqlFailure) -> Self {
        let message = match failure.kind {
            StoreErrorKind::Corrupt => "the time series in Cassandra are damaged",
            _ => "Cassandra cannot be reached",
        };
        Self::new(failure.kind, message).caused_by(failure.cause)
    }
}

/// Opens the tables, making what is missing, and takes them over from whoever had them.
pub(in super::super) fn open(
    owner: &SqlSeriesOptions,
    options: &CassandraOptions,
) -> StoreResult<SeriesTables> {
    let runtime = Arc::new(BackingRuntime::new("series-cql")?);
    let (driver, statements) = {
        let options = options.clone();
        runtime.call::<_, CqlFailure, _>(WRITE_TIMEOUT, async move {
            let driver = cql_session::connect(&options)
                .await
                .map_err(CqlFailure::unavailable)?;
            schema::prepare(&driver, &options).await?;
            let mut statements = BTreeMap::new();
            for kind in CqlTableKind::ALL {
                let of_table = CqlStatements::prepare(&driver, &options.keyspace, kind).await?;
                statements.insert(kind, of_table);
            }
            Ok((driver, statements))
        })?
    };
    // Not before Cassandra answers: whoever has the tables loses them by this.
    let (sql, tables) = sql::open_owned(owner)?;
    let session = Arc::new(CqlSession {
        driver,
        keyspace: options.keyspace.clone(),
        statements,
        gate: SlotGate::default(),
        narrow_until: Mutex::default(),
        timestamp: AtomicI64::new(first_timestamp(tables.epoch)),
        runtime,
    });
    let table = |kind| {
        SeriesTable::Cql(CqlTable {
            session: Arc::clone(&session),
            kind,
        })
    };
    Ok(SeriesTables {
        meta: tables.meta,
        states: tables.states,
        latest: table(CqlTableKind::Latest),
        attributes: table(CqlTableKind::Attributes),
        chunks: table(CqlTableKind::Chunks),
        quarantine: table(CqlTableKind::Stuck),
        blocks: table(CqlTableKind::Blocks),
        db: SeriesDatabase::Cql(CqlSeriesDatabase { session, sql }),
    })
}

/// Stamps of a run are greater than all of the runs before it.
const fn first_timestamp(epoch: i64) -> i64 {
    epoch << 32
}

impl CqlSession {
    fn statements(&self, kind: CqlTableKind) -> &CqlStatements {
        // All kinds are prepared when the session is made.
        &self.statements[&kind]
    }

    fn next_timestamp(&self) -> i64 {
        self.timestamp.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs a call that reads.
    fn read<T, F>(self: &Arc<Self>, call: impl FnOnce(Arc<Self>) -> F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CqlFailure>> + Send + 'static,
    {
        Ok(self.begin_read(call).wait()?)
    }

    /// Begins a call that reads.
    fn begin_read<T, F>(self: &Arc<Self>, call: impl FnOnce(Arc<Self>) -> F) -> BackingCall<T, CqlFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CqlFailure>> + Send + 'static,
    {
        self.runtime.begin(READ_TIMEOUT, call(Arc::clone(self)))
    }

    /// Entries of a range of a partition.
    async fn page(
        &self,
        kind: CqlTableKind,
        partition: &[u8],
        range: &ByteRange,
        limit: usize,
        direction: ReadDirection,
    ) -> Result<Vec<TableEntry>, CqlFailure> {
        let statements = self.statements(kind);
        let statement = match direction {
            ReadDirection::Forward => &statements.ascending,
            ReadDirection::Backward => &statements.descending,
        };
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let values = (partition, range.start.as_slice(), range.end.as_slice(), limit);
        let found = self.driver.execute_unpaged(statement, values).await?;
        let rows = found.into_rows_result().map_err(CqlFailure::corrupt)?;
        let rows = rows
            .rows::<(&[u8], Option<&[u8]>)>()
            .map_err(CqlFailure::corrupt)?;
        rows.map(|row| {
            let (key, value) = row.map_err(CqlFailure::corrupt)?;
            Ok((Slice::from(key), Slice::from(value.unwrap_or_default())))
        })
        .collect()
    }

    /// The epochs that have blocks and meet a range, oldest first.
    fn epochs(self: &Arc<Self>, range: &ByteRange) -> StoreResult<VecDeque<u64>> {
        let epochs = self.read(|session| async move {
            let statement = session.statements(CqlTableKind::Blocks).partitions.clone();
            let found = session.driver.execute_unpaged(&statement, ()).await?;
            let rows = found.into_rows_result().map_err(CqlFailure::corrupt)?;
            let rows = rows.rows::<(&[u8],)>().map_err(CqlFailure::corrupt)?;
            let mut epochs = BTreeSet::new();
            for row in rows {
                let (partition,) = row.map_err(CqlFailure::corrupt)?;
                epochs.extend(keys::read_epoch(partition));
            }
            Ok(epochs)
        })?;
        let meets = |epoch: &u64| {
            let begin = keys::epoch_key(*epoch);
            let end = keys::epoch_key(epoch.saturating_add(1));
            begin.as_slice() < range.end.as_slice() && end.as_slice() > range.start.as_slice()
        };
        Ok(epochs.into_iter().filter(meets).collect())
    }

    /// Makes a change that may be made twice, for as long as there is hope that it can be made.
    fn change<F>(self: &Arc<Self>, change: impl Fn(Arc<Self>) -> F) -> StoreResult<()>
    where
        F: Future<Output = Result<(), CqlFailure>> + Send + 'static,
    {
        let mut attempts = CommitAttempts::begin();
        loop {
            let done = self.runtime.call(WRITE_TIMEOUT, change(Arc::clone(self)));
            let Err(failure) = done else { return Ok(()) };
            if failure.kind != StoreErrorKind::Unavailable || !attempts.wait() {
                return Err(failure.into());
            }
        }
    }

    /// Writes all of a batch that is for Cassandra.
    fn store(self: &Arc<Self>, batch: &CqlBatch) -> StoreResult<()> {
        let steps = Arc::new(batch.steps());
        let _alone = self.gate.write(steps.moves.clone());
        let timestamp = self.next_timestamp();
        self.change(|session| {
            let steps = Arc::clone(&steps);
            async move {
                session.write(&steps.news, timestamp).await?;
                session.write(&steps.removals, timestamp).await
            }
        })
    }

    async fn write(&self, writes: &[PartitionWrite], timestamp: i64) -> Result<(), CqlFailure> {
        let calls: Vec<_> = writes
            .iter()
            .map(|write| self.write_partition(write, timestamp))
            .collect();
        stream::iter(calls)
            .buffer_unordered(WRITES_AT_ONCE)
            .try_collect::<()>()
            .await
    }

    async fn write_partition(&self, write: &PartitionWrite, timestamp: i64) -> Result<(), CqlFailure> {
        let is_insert = write.entries.iter().map(|(_, value)| value.is_some());
        let batch = self.statements(write.kind).batch(is_insert, timestamp);
        let values: Vec<Vec<&[u8]>> = write
            .entries
            .iter()
            .map(|(key, value)| {
                let mut values = vec![write.partition.as_slice(), &key[..]];
                values.extend(value.as_deref());
                values
            })
            .collect();
        self.driver.batch(&batch, values).await?;
        Ok(())
    }

    /// Takes a series out of the index if it has no chunks. Nothing happens while somebody reads or writes there.
    fn forget_series(self: &Arc<Self>, series: &Slice) {
        let slot = place::slot_of_key(CqlTableKind::Series, series);
        let Some(_alone) = self.gate.try_write(slot) else {
            return;
        };
        let timestamp = self.next_timestamp();
        let series = series.clone();
        let forgotten = self.read(|session| async move {
            let range = series.to_vec()..[&series[..], &[u8::MAX; 9]].concat();
            let chunks = session.page(CqlTableKind::Chunks, &series, &range, 1, ReadDirection::Forward);
            if !chunks.await?.is_empty() {
                return Ok(());
            }
            let removal = PartitionWrite {
                kind: CqlTableKind::Series,
                partition: slot.to_be_bytes().to_vec(),
                entries: vec![(series, None)],
            };
            session.write_partition(&removal, timestamp).await
        });
        if let Err(error) = forgotten {
            tracing::debug!(%error, "a series without points stays in the index");
        }
    }
}

impl CqlSeriesDatabase {
    pub(super) fn commit(&self, batch: CqlBatch) -> StoreResult<()> {
        if !batch.is_sql_only() {
            self.sql.check_owner()?;
            self.session.store(&batch)?;
        }
        match batch.sql.is_empty() {
            true => Ok(()),
            false => self.sql.commit(batch.sql),
        }
    }

    /// Writes one entry at once.
    pub(super) fn put(table: &CqlTable, key: Slice, value: Option<Slice>) -> StoreResult<()> {
        let mut batch = CqlBatch::default();
        batch.put(table.kind, key, value);
        table.session.store(&batch)
    }

    pub(super) fn is_taken_over(&self) -> bool {
        self.sql.is_taken_over()
    }

    pub(super) fn snapshot(&self) -> CqlSnapshot {
        CqlSnapshot::new(Arc::clone(&self.session))
    }

    /// Drops the blocks of an epoch and of those before it, a slot at a time, as soon as nobody reads there.
    pub(super) fn drop_epochs(&self, number: u64) -> StoreResult<()> {
        self.sql.check_owner()?;
        let end = keys::epoch_key(number.saturating_add(1)).to_vec();
        let epochs = self.session.epochs(&(Vec::new()..end))?;
        for slot in 0..place::SLOTS {
            let _alone = self.session.gate.write(BTreeSet::from([slot]));
            let timestamp = self.session.next_timestamp();
            self.session.change(|session| {
                let epochs = epochs.clone();
                async move {
                    let mut statement = session.statements(CqlTableKind::Blocks).remove_partition.clone();
                    statement.set_timestamp(Some(timestamp));
                    for epoch in epochs {
                        let partition = place::block_partition(epoch, slot);
                        let values = (partition.as_slice(),);
                        session.driver.execute_unpaged(&statement, values).await?;
                    }
                    Ok(())
                }
            })?;
        }
        Ok(())
    }
}

impl CqlTable {
    /// Bytes of the table on the node that answers, as Cassandra estimates them every few minutes.
    pub(super) fn bytes(&self) -> StoreResult<u64> {
        let name = self.kind.name();
        self.session.read(move |session| async move {
            let cql = "SELECT mean_partition_size, partitions_count FROM system.size_estimates \
                       WHERE keyspace_name = ? AND table_name = ?";
            let found = session
                .driver
                .query_unpaged(cql, (session.keyspace.as_str(), name))
                .await?;
            let rows = found.into_rows_result().map_err(CqlFailure::corrupt)?;
            let rows = rows.rows::<(i64, i64)>().map_err(CqlFailure::corrupt)?;
            let sizes = rows.map(|row| row.map_or(0, |(size, count)| size.saturating_mul(count)));
            Ok(u64::try_from(sizes.sum::<i64>()).unwrap_or_default())
        })
    }
}
