//! What a database's error means to the caller.

use fieldline_core::ports::{StoreError, StoreErrorKind};
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::PgDatabaseError;

/// A failed statement.
#[derive(Debug)]
pub(super) enum StatementError {
    /// A unique value is taken; the constraint's name as PostgreSQL makes it: `<table>_<columns>_key`.
    Taken(String),
    /// A row refers to one that does not exist, or would.
    BrokenReference,
    /// Anything else.
    Other(StoreError),
}

impl StatementError {
    /// The error to report where neither a taken value nor a broken reference has a meaning of its own.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Taken(constraint) => {
                StoreError::new(StoreErrorKind::Conflict, "Such an entity already exists!")
                    .caused_by(constraint)
            }
            Self::BrokenReference => StoreError::new(
                StoreErrorKind::Conflict,
                "Another entity refers to this one, or this one to one that does not exist!",
            ),
            Self::Other(error) => error,
        }
    }
}

impl From<StoreError> for StatementError {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

impl From<StatementError> for StoreError {
    fn from(failure: StatementError) -> Self {
        failure.into_error()
    }
}

impl From<sqlx::Error> for StatementError {
    fn from(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else {
            return Self::Other(outside_database(error));
        };
        match database.kind() {
            ErrorKind::UniqueViolation => return Self::Taken(constraint(database)),
            ErrorKind::ForeignKeyViolation => return Self::BrokenReference,
            _ => {}
        }
        let is_postgres = database.try_downcast_ref::<PgDatabaseError>().is_some();
        let code = database.code().unwrap_or_default();
        let kind = if is_postgres {
            postgres_kind(&code)
        } else {
            sqlite_kind(&code)
        };
        Self::Other(StoreError::new(kind, message(kind)).caused_by(error))
    }
}

/// An error that the database itself did not report: connections, pools, decoding.
fn outside_database(error: sqlx::Error) -> StoreError {
    let kind = match &error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreErrorKind::Corrupt,
        sqlx::Error::Configuration(_) => StoreErrorKind::Invalid,
        sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => StoreErrorKind::DiskFull,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, message(kind)).caused_by(error)
}

fn message(kind: StoreErrorKind) -> &'static str {
    match kind {
        StoreErrorKind::DiskFull => "There is no room left for entities",
        StoreErrorKind::Corrupt => "The entity database is damaged",
        StoreErrorKind::Invalid => "The entity database refuses these values",
        _ => "The entity database is not available",
    }
}

/// The name of the violated constraint. SQLite says `UNIQUE constraint failed: device.tenant_id, device.name`, from
/// which follows the name that PostgreSQL gives such a constraint.
fn constraint(error: &dyn DatabaseError) -> String {
    if let Some(name) = error.constraint() {
        return name.to_owned();
    }
    let columns = error.message().rsplit(": ").next().unwrap_or_default();
    let mut name = columns
        .split_once('.')
        .map(|(table, _)| table.to_owned())
        .unwrap_or_default();
    for column in columns.split(", ") {
        name.push('_');
        name.push_str(column.rsplit('.').next().unwrap_or_default());
    }
    name.push_str("_key");
    name
}

/// SQLite's extended result codes carry the primary code in the lowest byte.
fn sqlite_kind(code: &str) -> StoreErrorKind {
    const CORRUPT: i32 = 11;
    const FULL: i32 = 13;
    const TOO_BIG: i32 = 18;
    const NOT_A_DATABASE: i32 = 26;
    match code.parse::<i32>().map(|code| code & 0xff) {
        Ok(FULL) => StoreErrorKind::DiskFull,
        Ok(CORRUPT | NOT_A_DATABASE) => StoreErrorKind::Corrupt,
        Ok(TOO_BIG) => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    }
}

/// PostgreSQL's five-character codes; the first two name the class.
pub(crate) fn postgres_kind(code: &str) -> StoreErrorKind {
    match code {
        "53100" => StoreErrorKind::DiskFull,
        "XX001" | "XX002" => StoreErrorKind::Corrupt,
        _ if code.starts_with("22") || code.starts_with("54") => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_damaged_file_are_told_apart() {
        assert_eq!(sqlite_kind("13"), StoreErrorKind::DiskFull);
        assert_eq!(sqlite_kind("267"), StoreErrorKind::Corrupt);
        assert_eq!(sqlite_kind("261"), StoreErrorKind::Unavailable);
        assert_eq!(postgres_kind("53100"), StoreErrorKind::DiskFull);
        assert_eq!(postgres_kind("40P01"), StoreErrorKind::Unavailable);
    }
}
