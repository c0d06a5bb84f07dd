//! What people read that may take long: lists, counts, searches. It has connections of its own, so that it never keeps
//! a device from being looked up; a statement ends when its time is over or nobody waits for it any more, and its rows
//! take a bounded memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fieldline_core::options::ByteSize;
use fieldline_core::ports::{StoreError, StoreErrorKind};
use fieldline_core::tenant_semaphore::TenantSemaphore;
use fieldline_model::TenantId;
use futures::TryStreamExt as _;
use parking_lot::Mutex;
use sqlx::postgres::{PgPool, PgRow};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions as _, Row as _, TypeInfo as _, ValueRef as _};

use super::database::prepared;
use super::query::{SqlArg, SqlQuery, SqlRow};
use super::statement_error::StatementError;

/// Bytes of texts that the rows of one statement may have.
const MAX_BYTES: usize = 32 << 20;
/// SQLite looks at the time after so many of its steps.
const STEPS: i32 = 4_096;
/// PostgreSQL's code of a statement that was ended.
const CANCELED: &str = "57014";
/// SQLite's code of a statement that was ended.
const INTERRUPTED: &str = "9";

/// See the module.
pub(super) struct ListExecutor {
    engine: ListConnections,
    semaphore: Arc<TenantSemaphore>,
    timeout: Duration,
}

enum ListConnections {
    Sqlite {
        connect: Box<SqliteConnectOptions>,
        idle: Mutex<Vec<SqliteReader>>,
    },
    Postgres(PgPool),
}

/// A connection and what ends its statements.
struct SqliteReader {
    connection: SqliteConnection,
    watch: Arc<StatementDeadline>,
}

/// Until when a statement may run.
struct StatementDeadline {
    since: Instant,
    /// Milliseconds after that.
    deadline: AtomicU64,
}

impl StatementDeadline {
    fn allow(&self, patience: Duration) {
        let deadline = (self.since.elapsed() + patience).as_millis();
        let deadline = u64::try_from(deadline).unwrap_or(u64::MAX);
        self.deadline.store(deadline, Ordering::Relaxed);
    }

    fn has_time_left(&self) -> bool {
        self.since.elapsed().as_millis() < u128::from(self.deadline.load(Ordering::Relaxed))
    }
}

/// A reader at work. Whoever drops it in the middle of a statement ends that.
struct ReaderLease<'a> {
    reader: Option<SqliteReader>,
    idle: &'a Mutex<Vec<SqliteReader>>,
}

impl Drop for ReaderLease<'_> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.watch.allow(Duration::ZERO);
        }
    }
}

impl ListExecutor {
    /// Of a SQLite database; `connect` opens a connection that only reads.
    pub(super) fn sqlite(connect: SqliteConnectOptions, readers: u32, patience: Duration) -> Self {
        Self {
            engine: ListConnections::Sqlite {
                connect: Box::new(connect),
                idle: Mutex::default(),
            },
            semaphore: TenantSemaphore::new(readers as usize, patience),
            timeout: patience,
        }
    }

    /// Of a PostgreSQL database; the pool's connections end statements that take longer than the patience.
    pub(super) fn postgres(pool: PgPool, readers: u32, patience: Duration) -> Self {
        Self {
            engine: ListConnections::Postgres(pool),
            semaphore: TenantSemaphore::new(readers as usize, patience),
            timeout: patience,
        }
    }

    /// Runs a statement that changes nothing, in the tenant's turn.
    pub(super) async fn rows(
        &self,
        tenant: TenantId,
        query: SqlQuery,
    ) -> Result<Vec<SqlRow>, StatementError> {
        let taken = self.run(tenant, query).await?;
        if taken.is_cut {
            let most = ByteSize(MAX_BYTES as u64);
            let message = format!("This page takes more than {most}: ask for smaller pages");
            return Err(StoreError::new(StoreErrorKind::Invalid, message).into());
        }
        Ok(taken.rows)
    }

    /// The same, where the first rows are enough: as many as fit, one at least.
    pub(super) async fn first_rows(
        &self,
        tenant: TenantId,
        query: SqlQuery,
    ) -> Result<Vec<SqlRow>, StatementError> {
        Ok(self.run(tenant, query).await?.rows)
    }

    async fn run(&self, tenant: TenantId, query: SqlQuery) -> Result<BoundedRows, StatementError> {
        let _turn = self.semaphore.acquire(tenant).await?;
        let taken = match &self.engine {
            ListConnections::Sqlite { connect, idle } => self.sqlite_rows(query, connect, idle).await,
            ListConnections::Postgres(pool) => postgres_rows(query, pool).await,
        };
        taken.map_err(|failure| self.timeout_error(failure))
    }

    async fn sqlite_rows(
        &self,
        query: SqlQuery,
        connect: &SqliteConnectOptions,
        idle: &Mutex<Vec<SqliteReader>>,
    ) -> Result<BoundedRows, StatementError> {
        let known = idle.lock().pop();
        let mut lease = ReaderLease {
            reader: Some(match known {
                Some(reader) => reader,
                None => SqliteReader::open(connect).await?,
            }),
            idle,
        };
        let Some(reader) = &mut lease.reader else {
            return Err(closed());
        };
        reader.watch.allow(self.timeout);
        let mut taken = BoundedRows::default();
        let outcome = async {
            let mut rows = prepared!(query.for_sqlite()).fetch(&mut reader.connection);
            while let Some(row) = rows.try_next().await? {
                if !taken.add(sqlite_bytes(&row), SqlRow::Sqlite(row)) {
                    break;
                }
            }
            Result::<(), StatementError>::Ok(())
        }
        .await;
        // One whose statement has ended by itself is good for the next.
        if !taken.is_cut
            && let Some(reader) = lease.reader.take()
        {
            lease.idle.lock().push(reader);
        }
        outcome.map(|()| taken)
    }

    /// What is told of a statement that was ended.
    fn timeout_error(&self, failure: StatementError) -> StatementError {
        let StatementError::Other(error) = &failure else {
            return failure;
        };
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<sqlx::Error>());
        let code = cause
            .and_then(sqlx::Error::as_database_error)
            .and_then(|error| error.code().map(|code| code.into_owned()));
        if !matches!(code.as_deref(), Some(CANCELED | INTERRUPTED)) {
            return failure;
        }
        let message = format!(
            "This list takes longer than {}: ask for less, or more precisely",
            fieldline_core::options::HumanDuration(self.timeout)
        );
        StatementError::Other(StoreError::new(StoreErrorKind::Unavailable, message))
    }

    /// Closes the connections that are idle; the others close when they have done.
    pub(super) async fn close(&self) {
        match &self.engine {
            ListConnections::Sqlite { idle, .. } => {
                let readers = std::mem::take(&mut *idle.lock());
                for reader in readers {
                    let _ = sqlx::Connection::close(reader.connection).await;
                }
            }
            ListConnections::Postgres(pool) => pool.close().await,
        }
    }
}

impl SqliteReader {
    async fn open(connect: &SqliteConnectOptions) -> Result<Self, StatementError> {
        let mut connection = connect.connect().await?;
        let watch = Arc::new(StatementDeadline {
            since: Instant::now(),
            deadline: AtomicU64::new(0),
        });
        let asked = Arc::clone(&watch);
        connection
            .lock_handle()
            .await?
            .set_progress_handler(STEPS, move || asked.has_time_left());
        Ok(Self { connection, watch })
    }
}

/// Rows, and the bytes of their texts.
#[derive(Default)]
struct BoundedRows {
    rows: Vec<SqlRow>,
    bytes: usize,
    /// Whether there are more, which do not fit.
    is_cut: bool,
}

impl BoundedRows {
    /// Takes a row, if it fits.
    fn add(&mut self, bytes: usize, row: SqlRow) -> bool {
        self.bytes += bytes;
        self.is_cut = self.bytes > MAX_BYTES && !self.rows.is_empty();
        if !self.is_cut {
            self.rows.push(row);
        }
        !self.is_cut
    }
}

async fn postgres_rows(query: SqlQuery, pool: &PgPool) -> Result<BoundedRows, StatementError> {
    let mut taken = BoundedRows::default();
    let mut rows = prepared!(query).fetch(pool);
    while let Some(row) = rows.try_next().await? {
        if !taken.add(postgres_bytes(&row), SqlRow::Postgres(row)) {
            break;
        }
    }
    Ok(taken)
}

fn sqlite_bytes(row: &SqliteRow) -> usize {
    let texts = (0..row.len()).filter_map(|column| {
        let value = row.try_get_raw(column).ok()?;
        let is_text = matches!(value.type_info().name(), "TEXT" | "BLOB");
        let bytes = is_text.then(|| <&[u8] as sqlx::Decode<sqlx::Sqlite>>::decode(value).ok());
        bytes.flatten().map(<[u8]>::len)
    });
    texts.sum()
}

fn postgres_bytes(row: &PgRow) -> usize {
    let values = (0..row.len()).filter_map(|column| row.try_get_raw(column).ok()?.as_bytes().ok());
    values.map(<[u8]>::len).sum()
}

fn closed() -> StatementError {
    StoreError::new(StoreErrorKind::Unavailable, "The entity database is closed").into()
}
