//! SQLite and PostgreSQL behind one small interface.
//!
//! SQLite has one writer: writes go through a pool of a single connection, so that they queue in the program and never
//! find the file locked, while reads go on beside them (WAL mode).

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_core::reader;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Postgres, Sqlite, Transaction};
use uuid::Uuid;

use super::list_executor::ListExecutor;
use super::months::{self, MonthlyParts};
use super::options::Options;
use super::query::{SqlArg, SqlQuery, SqlRow};
use super::schema;
use super::statement_error::StatementError;
use super::text_index;

/// How long a call waits for a connection or a lock before the store counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Statements take milliseconds, machine code for one of them tenths of a second.
pub(crate) const WITHOUT_JIT: (&str, &str) = ("jit", "off");

/// What programs that share a PostgreSQL database do one after another. Any numbers will do, so long as no other program uses them
/// on the same database.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramLock(i64);

impl ProgramLock {
    /// Changing the schema.
    pub(super) const SCHEMA: Self = Self(0x6669_656c_646c_696e);
    /// Making room for a record that is set aside: which tenants' rows it changes shows only on the way.
    pub(super) const SET_ASIDE: Self = Self(0x6669_656c_646c_696f);
    /// Choosing the default tenant profile.
    pub(super) const DEFAULTS: Self = Self(0x6669_656c_646c_6970);
}

/// An open entity database; clones share it.
#[derive(Clone)]
pub struct EntityDatabase {
    engine: DatabaseEngine,
    lists: Arc<ListExecutor>,
    months: Arc<MonthlyParts>,
}

#[derive(Clone)]
enum DatabaseEngine {
    Sqlite { read: SqlitePool, write: SqlitePool },
    Postgres(PgPool),
}

/// A statement ready for either engine.
macro_rules! prepared {
    ($query:expr) => {{
        let (sql, args) = $query.into_parts()?;
        let mut prepared = sqlx::query(sqlx::AssertSqlSafe(sql));
        for arg in args {
            prepared = match arg {
                SqlArg::Id(id) => prepared.bind(id),
                SqlArg::Text(text) => prepared.bind(text),
                SqlArg::Int(number) => prepared.bind(number),
                SqlArg::Flag(flag) => prepared.bind(flag),
                SqlArg::Bytes(bytes) => prepared.bind(bytes),
            };
        }
        prepared
    }};
}
pub(super) use prepared;

impl EntityDatabase {
    /// Opens a SQLite file, creating it where there is none, and brings its tables up to date.
    pub async fn sqlite(path: &Path, options: &Options) -> StoreResult<Self> {
        check(options)?;
        create_private(path)?;
        let connect = SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(true)
            .busy_timeout(ACQUIRE_TIMEOUT)
            // In WAL mode only FULL syncs the log at every commit, which is what "acknowledged" means here.
            .synchronous(SqliteSynchronous::Full)
            .pragma("cache_size", format!("-{}", options.page_cache.0 >> 10));
        let pool = || {
            SqlitePoolOptions::new()
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .max_lifetime(None)
                .test_before_acquire(false)
        };
        let write = pool()
            .max_connections(1)
            .idle_timeout(None)
            .connect_with(connect.clone().journal_mode(SqliteJournalMode::Wal))
            .await
            .map_err(StatementError::from)?;
        let read = pool()
            .max_connections(options.readers)
            .connect_lazy_with(connect.clone().pragma("query_only", "on"));
        let lists = ListExecutor::sqlite(
            connect.pragma("query_only", "on"),
            options.list_readers,
            options.list_timeout.0,
        );
        Self {
            engine: DatabaseEngine::Sqlite { read, write },
            lists: Arc::new(lists),
            months: Arc::default(),
        }
        .with_current_schema()
        .await
    }

    /// Opens the database that the settings name: PostgreSQL, or else SQLite in a file.
    pub async fn open(path: &Path, options: &Options) -> StoreResult<Self> {
        match &options.url {
            Some(url) => Self::postgres(url, options).await,
            None => Self::sqlite(path, options).await,
        }
    }

    /// Opens a PostgreSQL database and brings its tables up to date.
    pub async fn postgres(url: &str, options: &Options) -> StoreResult<Self> {
        Self::postgres_unprepared(url, options)
            .await?
            .with_current_schema()
            .await
    }

    /// Opens a PostgreSQL database as it is.
    pub(super) async fn postgres_unprepared(url: &str, options: &Options) -> StoreResult<Self> {
        check(options)?;
        let connect = PgConnectOptions::from_str(url)
            .map_err(StatementError::from)?
            .application_name("fieldline entities")
            .options([WITHOUT_JIT])
            // Locks of a program whose machine has gone must not outlive it by hours.
            .options([
                ("tcp_keepalives_idle", "30"),
                ("tcp_keepalives_interval", "10"),
                ("tcp_keepalives_count", "3"),
            ]);
        let pool = PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(connect.clone())
            .await
            .map_err(StatementError::from)?;
        let patience = options.list_timeout.0;
        let for_lists = PgPoolOptions::new()
            .max_connections(options.list_readers)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(connect.options([("statement_timeout", patience.as_millis().to_string())]));
        Ok(Self {
            engine: DatabaseEngine::Postgres(pool),
            lists: Arc::new(ListExecutor::postgres(for_lists, options.list_readers, patience)),
            months: Arc::default(),
        })
    }

    async fn with_current_schema(self) -> StoreResult<Self> {
        let mut prepared = schema::migrate(&self).await;
        if prepared.is_ok() {
            prepared = text_index::prepare(&self).await;
        }
        if let Err(error) = prepared {
            self.close().await;
            return Err(error);
        }
        months::prepare(&self).await;
        Ok(self)
    }

    /// When the parts of months were made last.
    pub(super) fn months(&self) -> &MonthlyParts {
        &self.months
    }

    /// Which of the two it is.
    pub(super) const fn is_sqlite(&self) -> bool {
        matches!(self.engine, DatabaseEngine::Sqlite { .. })
    }

    /// Waits for calls under way and closes all connections; SQLite's log is folded into its file.
    pub async fn close(&self) {
        self.lists.close().await;
        match &self.engine {
            DatabaseEngine::Sqlite { read, write } => {
                read.close().await;
                write.close().await;
            }
            DatabaseEngine::Postgres(pool) => pool.close().await,
        }
    }

    /// Runs a statement that changes nothing. Every text bound to one is part of a condition, so one that no row can have
    /// finds nothing: what devices and people show at the door is no mistake of the caller.
    pub(super) async fn read(&self, query: SqlQuery) -> Result<Vec<SqlRow>, StatementError> {
        if query.has_null_character() {
            return Ok(Vec::new());
        }
        match &self.engine {
            DatabaseEngine::Sqlite { read, .. } => sqlite_rows(query, read).await,
            DatabaseEngine::Postgres(pool) => postgres_rows(query, pool).await,
        }
    }

    /// The same of a statement that may take long: for a person it is read beside everything else, in the turn of the
    /// person's tenant, and within a time and so many bytes.
    pub(super) async fn read_list(&self, query: SqlQuery) -> Result<Vec<SqlRow>, StatementError> {
        match reader::current_reader() {
            Some(_) if query.has_null_character() => Ok(Vec::new()),
            Some(tenant) => self.lists.rows(tenant, query).await,
            None => self.read(query).await,
        }
    }

    /// The same, where the first rows are enough: those that take so many bytes, one at least.
    pub(super) async fn read_some(&self, query: SqlQuery) -> Result<Vec<SqlRow>, StatementError> {
        match reader::current_reader() {
            Some(tenant) => self.lists.first_rows(tenant, query).await,
            None => self.read(query).await,
        }
    }

    /// Runs a statement that changes something and returns rows. They are all awaited, because only a statement that has
    /// run to its end is committed.
    pub(super) async fn write(&self, query: SqlQuery) -> Result<Vec<SqlRow>, StatementError> {
        match &self.engine {
            DatabaseEngine::Sqlite { write, .. } => sqlite_rows(query, write).await,
            DatabaseEngine::Postgres(pool) => postgres_rows(query, pool).await,
        }
    }

    /// Runs a statement that changes something; returns how many rows it changed.
    pub(super) async fn execute(&self, query: SqlQuery) -> Result<u64, StatementError> {
        Ok(match &self.engine {
            DatabaseEngine::Sqlite { write, .. } => prepared!(query.for_sqlite())
                .execute(write)
                .await?
                .rows_affected(),
            DatabaseEngine::Postgres(pool) => prepared!(query).execute(pool).await?.rows_affected(),
        })
    }

    /// Begins a transaction, which is rolled back unless it is committed.
    pub(super) async fn begin(&self) -> Result<SqlTransaction, StatementError> {
        Ok(match &self.engine {
            DatabaseEngine::Sqlite { write, .. } => match write.begin_with(BEGIN_WRITING).await {
                // SQLite rolls back by itself when the disk is full, which the driver does not notice: its connection
                // takes no transaction any more and is replaced.
                Err(sqlx::Error::InvalidSavePointStatement) => {
                    write.acquire().await?.close().await?;
                    SqlTransaction::Sqlite(write.begin_with(BEGIN_WRITING).await?)
                }
                begun => SqlTransaction::Sqlite(begun?),
            },
            DatabaseEngine::Postgres(pool) => SqlTransaction::Postgres(pool.begin().await?),
        })
    }
}

/// Takes the write lock at once, so that a transaction never fails half-way for want of it.
const BEGIN_WRITING: &str = "BEGIN IMMEDIATE";

/// A transaction.
pub(super) enum SqlTransaction {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl SqlTransaction {
    /// Runs a statement and returns its rows.
    pub(super) async fn rows(&mut self, query: SqlQuery) -> Result<Vec<SqlRow>, StatementError> {
        match self {
            Self::Sqlite(changes) => sqlite_rows(query, &mut **changes).await,
            Self::Postgres(changes) => postgres_rows(query, &mut **changes).await,
        }
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) async fn execute(&mut self, query: SqlQuery) -> Result<u64, StatementError> {
        Ok(match self {
            Self::Sqlite(changes) => prepared!(query.for_sqlite())
                .execute(&mut **changes)
                .await?
                .rows_affected(),
            Self::Postgres(changes) => prepared!(query).execute(&mut **changes).await?.rows_affected(),
        })
    }

    /// Waits until no other program does this on the same database, and keeps them from it until the transaction ends. On
    /// SQLite a transaction that writes is the only one anyhow.
    pub(super) async fn lock(&mut self, what: ProgramLock) -> Result<(), StatementError> {
        if let Self::Postgres(changes) = self {
            sqlx::query("SELECT pg_advisory_xact_lock($1)")
                .bind(what.0)
                .execute(&mut **changes)
                .await?;
        }
        Ok(())
    }

    /// Waits for who refers to a row, and keeps others from it until the transaction ends.
    pub(super) async fn lock_row(&mut self, table: &'static str, id: Uuid) -> Result<(), StatementError> {
        if let Self::Postgres(_) = self {
            let lock = SqlQuery::new("SELECT 1 FROM ")
                .push(table)
                .push(" WHERE id = ")
                .bind(id)
                .push(" FOR UPDATE");
            self.rows(lock).await?;
        }
        Ok(())
    }

    /// Runs the statements of a migration; `KEYTEXT` is text that sorts by code point in both databases.
    pub(super) async fn migrate(&mut self, statements: &'static str) -> Result<(), StatementError> {
        let text = match self {
            Self::Sqlite(_) => "TEXT",
            Self::Postgres(_) => "TEXT COLLATE \"C\"",
        };
        self.run(statements.replace("KEYTEXT", text)).await
    }

    /// Runs statements that change the schema. Nothing in them may come from outside.
    pub(super) async fn run(&mut self, statements: String) -> Result<(), StatementError> {
        let statements = AssertSqlSafe(statements);
        match self {
            Self::Sqlite(changes) => {
                sqlx::raw_sql(statements).execute(&mut **changes).await?;
            }
            Self::Postgres(changes) => {
                sqlx::raw_sql(statements).execute(&mut **changes).await?;
            }
        }
        Ok(())
    }

    /// Makes the changes durable and visible.
    pub(super) async fn commit(self) -> Result<(), StatementError> {
        match self {
            Self::Sqlite(changes) => changes.commit().await?,
            Self::Postgres(changes) => changes.commit().await?,
        }
        Ok(())
    }
}

async fn sqlite_rows<'c>(
    query: SqlQuery,
    executor: impl sqlx::Executor<'c, Database = Sqlite>,
) -> Result<Vec<SqlRow>, StatementError> {
    let rows = prepared!(query.for_sqlite()).fetch_all(executor).await?;
    Ok(rows.into_iter().map(SqlRow::Sqlite).collect())
}

async fn postgres_rows<'c>(
    query: SqlQuery,
    executor: impl sqlx::Executor<'c, Database = Postgres>,
) -> Result<Vec<SqlRow>, StatementError> {
    let rows = prepared!(query).fetch_all(executor).await?;
    Ok(rows.into_iter().map(SqlRow::Postgres).collect())
}

fn check(options: &Options) -> StoreResult<()> {
    let invalid = |message: &str| Err(StoreError::new(StoreErrorKind::Invalid, message));
    if !(1..=1_000).contains(&options.connections) {
        return invalid("`connections` must be 1 to 1000");
    }
    if !(1..=64).contains(&options.readers) {
        return invalid("`readers` must be 1 to 64");
    }
    if !(1..=64).contains(&options.list_readers) {
        return invalid("`list-readers` must be 1 to 64");
    }
    if options.list_timeout < HumanDuration::millis(100) {
        return invalid("`list-timeout` must be at least 100ms");
    }
    if !(64 << 10..=1 << 30).contains(&options.page_cache.0) {
        return invalid("`page-cache` must be 64KiB to 1GiB");
    }
    Ok(())
}

/// Creates the file so that only its owner can read it: it holds device tokens and password hashes. SQLite gives its log
/// the permissions of the file.
fn create_private(path: &Path) -> StoreResult<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::StorageFull => StoreErrorKind::DiskFull,
            _ => StoreErrorKind::Unavailable,
        };
        StoreError::new(
            kind,
            format!("The entity database {} cannot be opened", path.display()),
        )
        .caused_by(error)
    })
}
