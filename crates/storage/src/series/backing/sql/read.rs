//! Reading: single entries, ranges in pages, and several tables as they were at one moment.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use fieldline_core::ports::StoreResult;
use fjall::Slice;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row as _, Transaction};
use tokio::sync::Mutex;

use super::super::super::keys;
use super::super::{KeyRange, TableEntry};
use super::schema::BLOCK_TABLE;
use super::{SqlFailure, SqlSession, SqlTable};
use crate::page_size::{FIRST_PAGE, next_page_size};

/// The tables as they are when the first of them is read.
pub(in super::super::super) struct SqlSnapshot {
    session: Arc<SqlSession>,
    transaction: Arc<Mutex<Option<Transaction<'static, Postgres>>>>,
}

impl SqlSnapshot {
    pub(super) fn new(session: Arc<SqlSession>) -> Self {
        Self {
            session,
            transaction: Arc::default(),
        }
    }
}

impl Drop for SqlSnapshot {
    fn drop(&mut self) {
        let transaction = Arc::clone(&self.transaction);
        // The connection goes back to its pool from a thread of the pool's.
        self.session
            .runtime
            .spawn(async move { drop(transaction.lock().await.take()) });
    }
}

/// A statement with the values that are bound to it, for either a snapshot or what is there now.
struct SqlRead {
    sql: String,
    arguments: Vec<ReadArgument>,
}

enum ReadArgument {
    Key(Vec<u8>),
    Keys(Vec<Vec<u8>>),
    Count(i64),
}

impl SqlRead {
    fn query(self) -> Query<'static, Postgres, PgArguments> {
        let query = sqlx::query(AssertSqlSafe(self.sql));
        self.arguments
            .into_iter()
            .fold(query, |query, argument| match argument {
                ReadArgument::Key(key) => query.bind(key),
                ReadArgument::Keys(keys) => query.bind(keys),
                ReadArgument::Count(count) => query.bind(count),
            })
    }
}

/// Where a reader reads.
#[derive(Clone)]
struct ReadPlace {
    session: Arc<SqlSession>,
    snapshot: Option<Arc<Mutex<Option<Transaction<'static, Postgres>>>>>,
}

impl ReadPlace {
    fn rows(&self, read: SqlRead) -> StoreResult<Vec<PgRow>> {
        let snapshot = self.snapshot.clone();
        self.session.read(move |session| async move {
            let Some(snapshot) = snapshot else {
                return Ok(read.query().fetch_all(&session.pool).await?);
            };
            let mut held = snapshot.lock().await;
            let transaction = match &mut *held {
                Some(transaction) => transaction,
                none => none.insert(begin_snapshot(&session).await?),
            };
            Ok(read.query().fetch_all(&mut **transaction).await?)
        })
    }
}

async fn begin_snapshot(session: &SqlSession) -> Result<Transaction<'static, Postgres>, SqlFailure> {
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let mut transaction = session.pool.begin_with(begin).await?;
    // A partition that is dropped is gone from snapshots as well. The lock comes before the snapshot, which the first
    // statement that reads takes.
    let lock = format!("LOCK TABLE {BLOCK_TABLE} IN ACCESS SHARE MODE");
    sqlx::query(AssertSqlSafe(lock))
        .execute(&mut *transaction)
        .await?;
    Ok(transaction)
}

fn entry(row: &PgRow) -> Result<TableEntry, SqlFailure> {
    let key: &[u8] = row.try_get(0)?;
    let value: &[u8] = row.try_get(1)?;
    Ok((key.into(), value.into()))
}

impl SqlTable {
    fn now(&self) -> ReadPlace {
        ReadPlace {
            session: Arc::clone(&self.session),
            snapshot: None,
        }
    }

    fn then(&self, snapshot: &SqlSnapshot) -> ReadPlace {
        ReadPlace {
            session: Arc::clone(&self.session),
            snapshot: Some(Arc::clone(&snapshot.transaction)),
        }
    }

    fn get_at(&self, place: &ReadPlace, key: &[u8]) -> StoreResult<Option<Slice>> {
        let rows = place.rows(SqlRead {
            sql: format!("SELECT key, value FROM {} WHERE key = $1", self.name),
            arguments: vec![ReadArgument::Key(key.to_vec())],
        })?;
        let found = rows.first().map(entry).transpose()?;
        Ok(found.map(|(_, value)| value))
    }

    pub(in super::super) fn get(&self, key: &[u8]) -> StoreResult<Option<Slice>> {
        self.get_at(&self.now(), key)
    }

    pub(in super::super) fn get_in(&self, snapshot: &SqlSnapshot, key: &[u8]) -> StoreResult<Option<Slice>> {
        self.get_at(&self.then(snapshot), key)
    }

    pub(in super::super) fn range(&self, range: KeyRange<'_>) -> SqlEntries {
        SqlEntries::new(self, self.now(), range)
    }

    pub(in super::super) fn range_in(&self, snapshot: &SqlSnapshot, range: KeyRange<'_>) -> SqlEntries {
        SqlEntries::new(self, self.then(snapshot), range)
    }

    /// The entries whose keys begin with one of some prefixes.
    pub(in super::super) fn prefixes<K: AsRef<[u8]>>(
        &self,
        prefixes: &[K],
        visit: &mut dyn FnMut(TableEntry) -> StoreResult<()>,
    ) -> StoreResult<()> {
        let place = self.now();
        let (mut left, mut at_once) = (prefixes, FIRST_PAGE);
        while !left.is_empty() {
            let (prefixes, rest) = left.split_at(at_once.min(left.len()));
            left = rest;
            let begins: Vec<Vec<u8>> = prefixes.iter().map(|prefix| prefix.as_ref().to_vec()).collect();
            // A key behind all there are, for a prefix that nothing comes after.
            let end = |prefix: &Vec<u8>| {
                keys::after_prefix(prefix).unwrap_or_else(|| [&prefix[..], &[u8::MAX; 64]].concat())
            };
            let ends = begins.iter().map(end).collect();
            // Without OFFSET the planner may take it for a join, and go through the whole table for each prefix: it does not know
            // that a prefix has few rows.
            let rows = place.rows(SqlRead {
                sql: format!(
                    "SELECT key, value FROM unnest($1::bytea[], $2::bytea[]) AS wanted (low, high) \
                     CROSS JOIN LATERAL (SELECT key, value FROM {} WHERE key >= low AND key < high OFFSET 0) AS found \
                     ORDER BY key",
                    self.name
                ),
                arguments: vec![ReadArgument::Keys(begins), ReadArgument::Keys(ends)],
            })?;
            let mut bytes = 0;
            for row in &rows {
                let entry = entry(row)?;
                bytes += entry.0.len() + entry.1.len();
                visit(entry)?;
            }
            at_once = next_page_size(at_once, prefixes.len(), bytes);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadDirection {
    Forward,
    Backward,
}

/// The entries of a range, read in pages. They are read in the direction of the first that is asked for.
pub(in super::super::super) struct SqlEntries {
    table: &'static str,
    place: ReadPlace,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Option<ReadDirection>,
    page: VecDeque<TableEntry>,
    page_size: usize,
    is_exhausted: bool,
}

impl SqlEntries {
    fn new(table: &SqlTable, place: ReadPlace, (from, to): KeyRange<'_>) -> Self {
        Self {
            table: table.name,
            place,
            from: from.map(<[u8]>::to_vec),
            to: to.map(<[u8]>::to_vec),
            direction: None,
            page: VecDeque::new(),
            page_size: FIRST_PAGE,
            is_exhausted: false,
        }
    }

    fn step(&mut self, direction: ReadDirection) -> Option<StoreResult<TableEntry>> {
        let direction = *self.direction.get_or_insert(direction);
        if self.page.is_empty()
            && !self.is_exhausted
            && let Err(error) = self.load(direction)
        {
            self.is_exhausted = true;
            return Some(Err(error));
        }
        self.page.pop_front().map(Ok)
    }

    fn load(&mut self, direction: ReadDirection) -> StoreResult<()> {
        let mut conditions = Vec::new();
        let mut arguments = Vec::new();
        for (bound, including, excluding) in [(&self.from, ">=", ">"), (&self.to, "<=", "<")] {
            let (key, operator) = match bound {
                Bound::Included(key) => (key, including),
                Bound::Excluded(key) => (key, excluding),
                Bound::Unbounded => continue,
            };
            arguments.push(ReadArgument::Key(key.clone()));
            conditions.push(format!("key {operator} ${}", arguments.len()));
        }
        let condition = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", conditions.join(" AND ")),
        };
        let order = match direction {
            ReadDirection::Forward => "ASC",
            ReadDirection::Backward => "DESC",
        };
        arguments.push(ReadArgument::Count(self.page_size as i64));
        let rows = self.place.rows(SqlRead {
            sql: format!(
                "SELECT key, value FROM {} {condition} ORDER BY key {order} LIMIT ${}",
                self.table,
                arguments.len()
            ),
            arguments,
        })?;
        self.is_exhausted = rows.len() < self.page_size;
        let mut bytes = 0;
        for row in &rows {
            let (key, value) = entry(row)?;
            bytes += key.len() + value.len();
            self.page.push_back((key, value));
        }
        self.page_size = next_page_size(self.page_size, rows.len(), bytes);
        if let Some((last, _)) = self.page.back() {
            let behind = Bound::Excluded(last.to_vec());
            match direction {
                ReadDirection::Forward => self.from = behind,
                ReadDirection::Backward => self.to = behind,
            }
        }
        Ok(())
    }
}

impl Iterator for SqlEntries {
    type Item = StoreResult<TableEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(ReadDirection::Forward)
    }
}

impl DoubleEndedIterator for SqlEntries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(ReadDirection::Backward)
    }
}
