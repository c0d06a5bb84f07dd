//! Statements under construction, and rows read column by column.

use std::borrow::Cow;
use std::fmt::Write as _;

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::TenantId;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};
use uuid::Uuid;

/// A value that is bound to a statement.
#[derive(Debug, Clone)]
pub(super) enum SqlArg {
    Id(Option<Uuid>),
    Text(Option<String>),
    Int(Option<i64>),
    Flag(bool),
    Bytes(Vec<u8>),
}

impl From<Uuid> for SqlArg {
    fn from(id: Uuid) -> Self {
        Self::Id(Some(id))
    }
}

impl From<Option<Uuid>> for SqlArg {
    fn from(id: Option<Uuid>) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for SqlArg {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for SqlArg {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for SqlArg {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for SqlArg {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for SqlArg {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for SqlArg {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// Whose rows a statement may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOwner {
    /// The table belongs to the installation and has no `tenant_id`.
    Installation,
    /// Rows that belong to no tenant, in a table where others do.
    NoTenant,
    /// Rows of this tenant.
    Tenant(Uuid),
}

impl RowOwner {
    /// A tenant, or for the null id those that belong to none.
    pub(super) fn of(tenant: TenantId) -> Self {
        if tenant.is_null() {
            Self::NoTenant
        } else {
            Self::Tenant(tenant.0)
        }
    }
}

/// A statement and what is bound to it. Its text is made of literals only; everything else is bound.
#[derive(Debug, Clone)]
pub(super) struct SqlQuery {
    sql: Cow<'static, str>,
    args: Vec<SqlArg>,
}

impl SqlQuery {
    pub(super) fn new(sql: &'static str) -> Self {
        Self {
            sql: Cow::Borrowed(sql),
            args: Vec::new(),
        }
    }

    /// A statement with names that the database's own catalogue has, and nothing else from outside.
    pub(super) fn of_catalogue(sql: String) -> Self {
        Self {
            sql: Cow::Owned(sql),
            args: Vec::new(),
        }
    }

    /// Appends text with such names.
    pub(super) fn push_catalogue(mut self, sql: &str) -> Self {
        self.sql.to_mut().push_str(sql);
        self
    }

    /// Appends text.
    pub(super) fn push(mut self, sql: &'static str) -> Self {
        self.sql.to_mut().push_str(sql);
        self
    }

    /// Appends a placeholder and binds a value to it.
    pub(super) fn bind(mut self, arg: impl Into<SqlArg>) -> Self {
        self.args.push(arg.into());
        // Writing to a string cannot fail.
        let _ = write!(self.sql.to_mut(), "${}", self.args.len());
        self
    }

    /// The statement as SQLite takes it fastest: it looks every name of a placeholder up in a list, so that thousands of
    /// numbered ones take seconds. Values are bound in the order of their placeholders anyway.
    pub(super) fn for_sqlite(mut self) -> Self {
        const FEW: usize = 32;
        if self.args.len() > FEW {
            let mut sql = String::with_capacity(self.sql.len());
            let mut parts = self.sql.split('$');
            sql.push_str(parts.next().unwrap_or_default());
            for part in parts {
                sql.push('?');
                sql.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
            }
            self.sql = Cow::Owned(sql);
        }
        self
    }

    /// Appends names or other texts with commas between them.
    pub(super) fn push_list(mut self, texts: impl IntoIterator<Item = &'static str>) -> Self {
        for (index, text) in texts.into_iter().enumerate() {
            self = self.push(if index == 0 { "" } else { ", " }).push(text);
        }
        self
    }

    /// Appends placeholders with commas between them.
    pub(super) fn bind_list<A: Into<SqlArg>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for (index, arg) in args.into_iter().enumerate() {
            self = self.push(if index == 0 { "" } else { ", " }).bind(arg);
        }
        self
    }

    /// Appends the condition that a row has this owner.
    pub(super) fn owned_by(self, owner: RowOwner) -> Self {
        match owner {
            RowOwner::Installation => self,
            RowOwner::NoTenant => self.push(" AND tenant_id IS NULL"),
            RowOwner::Tenant(tenant) => self.push(" AND tenant_id = ").bind(tenant),
        }
    }

    /// Whether a bound text has the null character. PostgreSQL cannot store one in a text, so no row has it anywhere.
    pub(super) fn has_null_character(&self) -> bool {
        self.args
            .iter()
            .any(|arg| matches!(arg, SqlArg::Text(Some(text)) if text.contains('\0')))
    }

    /// The text and what is bound to it.
    pub(super) fn into_parts(self) -> StoreResult<(Cow<'static, str>, Vec<SqlArg>)> {
        if self.has_null_character() {
            return Err(StoreError::new(
                StoreErrorKind::Invalid,
                "A text must not contain the null character!",
            ));
        }
        Ok((self.sql, self.args))
    }
}

/// A row of a result.
pub(super) enum SqlRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl SqlRow {
    /// The columns from the first one on.
    pub(super) fn columns(&self) -> ColumnReader<'_> {
        ColumnReader { row: self, next: 0 }
    }
}

/// Reads the columns of a row in the order in which the statement names them.
pub(super) struct ColumnReader<'r> {
    row: &'r SqlRow,
    next: usize,
}

impl<'r> ColumnReader<'r> {
    /// The next column.
    pub(super) fn next<T>(&mut self) -> StoreResult<T>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>,
    {
        let index = self.next;
        self.next += 1;
        match self.row {
            SqlRow::Sqlite(row) => row.try_get(index),
            SqlRow::Postgres(row) => row.try_get(index),
        }
        .map_err(unreadable)
    }

    /// The id in the next column.
    pub(super) fn id<I: From<Uuid>>(&mut self) -> StoreResult<I> {
        self.next::<Uuid>().map(I::from)
    }

    /// The id in the next column, if there is one.
    pub(super) fn optional_id<I: From<Uuid>>(&mut self) -> StoreResult<Option<I>> {
        Ok(self.next::<Option<Uuid>>()?.map(I::from))
    }
}

/// A stored value that is not what this program stores.
pub(super) fn unreadable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "A stored entity cannot be read").caused_by(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_placeholders_are_not_numbered_for_sqlite() {
        let query = |count: i64| {
            SqlQuery::new("SELECT (")
                .bind_list(1..=count)
                .push(") LIMIT ")
                .bind(9)
        };
        let (sql, args) = query(2).for_sqlite().into_parts().unwrap();
        assert_eq!((&*sql, args.len()), ("SELECT ($1, $2) LIMIT $3", 3));
        let (sql, args) = query(100).for_sqlite().into_parts().unwrap();
        let expected = format!("SELECT ({}) LIMIT ?", ["?"; 100].join(", "));
        assert_eq!((&*sql, args.len()), (expected.as_str(), 101));
    }
}
