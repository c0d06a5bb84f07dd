//! What keeps the index of text searches, in each database.

use std::fmt::Write as _;

use fieldline_core::ports::StoreResult;

use super::database::{EntityDatabase, ProgramLock, SqlTransaction};
use super::query::SqlQuery;
use super::record::number;
use super::statement_error::StatementError;

/// The kinds that may be many, with the tenant of a row, or the null id. Migration 14 goes through them: another kind needs a
/// migration of its own.
const KINDS: [(&str, &str); 7] = [
    ("tenant", "zeroblob(16)"),
    ("customer", "customer.tenant_id"),
    ("user_account", "COALESCE(user_account.tenant_id, zeroblob(16))"),
    ("device", "device.tenant_id"),
    ("asset", "asset.tenant_id"),
    ("entity_view", "entity_view.tenant_id"),
    ("dashboard", "dashboard.tenant_id"),
];

/// Whether the texts of a table are indexed.
pub(super) fn has(table: &str) -> bool {
    KINDS.iter().any(|(kind, _)| *kind == table)
}

/// Migration 14 of an SQLite database.
pub(super) fn sqlite_migration() -> String {
    let mut statements = include_str!("migrations/0014_text_index.sql").to_owned();
    for (kind, owner) in KINDS {
        let of_kind = include_str!("migrations/0014_text_index_of_kind.sql");
        let moved = match kind {
            "tenant" => "FALSE",
            _ => "OLD.tenant_id IS NOT NEW.tenant_id",
        };
        let of_kind = of_kind.replace("OWNER", owner).replace("MOVED", moved);
        statements.push_str(&of_kind.replace("KIND", kind));
    }
    statements
}

/// Makes the indexes of a PostgreSQL database where they are missing, if it has trigrams or the extension may be created. That is
/// tried at each start: what it needs may be there by then. Without them, searches are slower.
pub(super) async fn prepare(database: &EntityDatabase) -> StoreResult<()> {
    if database.is_sqlite() {
        return Ok(());
    }
    let mut changes = database.begin().await?;
    changes.lock(ProgramLock::SCHEMA).await?;
    if missing(&mut changes).await? == 0 {
        return Ok(());
    }
    match create(&mut changes).await {
        Ok(()) => Ok(changes.commit().await?),
        Err(failure) => {
            let error = failure.into_error();
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(
                cause = cause.unwrap_or_default(),
                "text searches scan: the extension pg_trgm is not there and cannot be created; \
                 `CREATE EXTENSION pg_trgm` by an administrator makes the next start index them"
            );
            Ok(())
        }
    }
}

/// How many of the indexes are missing.
async fn missing(changes: &mut SqlTransaction) -> StoreResult<u64> {
    let names = KINDS.map(|(kind, _)| format!("{kind}_by_text"));
    let query =
        SqlQuery::new("SELECT COUNT(*) FROM pg_class WHERE pg_table_is_visible(oid) AND relname IN (")
            .bind_list(names)
            .push(")");
    let found = number(&changes.rows(query).await?)?;
    Ok((KINDS.len() as u64).saturating_sub(found))
}

async fn create(changes: &mut SqlTransaction) -> Result<(), StatementError> {
    // The class is named with the schema of the extension, which need not be on the search path.
    let mut statements = String::from(
        "DO $$
        DECLARE home TEXT;
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm') THEN
                IF to_regnamespace('public') IS NULL THEN
                    CREATE EXTENSION pg_trgm;
                ELSE
                    CREATE EXTENSION pg_trgm SCHEMA public;
                END IF;
            END IF;
            SELECT quote_ident(nspname) INTO home
                FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm';",
    );
    for (kind, _) in KINDS {
        // Writing to a string cannot fail.
        let _ = write!(
            statements,
            "EXECUTE 'CREATE INDEX IF NOT EXISTS {kind}_by_text ON {kind} USING gin (search ' || home || '.gin_trgm_ops)';"
        );
    }
    statements.push_str("END $$");
    changes.run(statements).await
}
