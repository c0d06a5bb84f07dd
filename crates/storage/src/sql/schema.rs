//! Numbered migrations, applied in one transaction when a database is opened.

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};

use super::database::{EntityDatabase, ProgramLock};
use super::query::SqlQuery;
use super::text_index;

/// What brings a database from the version before to the next one.
enum Migration {
    /// Statements that both databases take.
    Both(&'static str),
    /// What only SQLite needs.
    Sqlite(fn() -> String),
    /// Statements that only PostgreSQL needs.
    Postgres(&'static str),
}

/// The first makes version 1. Never edit one that was released: append another.
const MIGRATIONS: &[Migration] = &[
    Migration::Both(include_str!("migrations/0001_entities.sql")),
    Migration::Both(include_str!("migrations/0002_rule_chains.sql")),
    Migration::Both(include_str!("migrations/0003_assets_alarms.sql")),
    Migration::Both(include_str!("migrations/0004_calculated_fields.sql")),
    Migration::Both(include_str!("migrations/0005_calls.sql")),
    Migration::Both(include_str!("migrations/0006_dashboards.sql")),
    Migration::Both(include_str!("migrations/0007_settings.sql")),
    Migration::Both(include_str!("migrations/0008_audit_log.sql")),
    Migration::Both(include_str!("migrations/0009_api_keys.sql")),
    Migration::Both(include_str!("migrations/0010_log_ins.sql")),
    Migration::Both(include_str!("migrations/0011_ota_packages.sql")),
    Migration::Both(include_str!("migrations/0012_device_moves.sql")),
    Migration::Both(include_str!("migrations/0013_ota_turns.sql")),
    Migration::Sqlite(text_index::sqlite_migration),
    Migration::Both(include_str!("migrations/0015_sign_ins.sql")),
    Migration::Both(include_str!("migrations/0016_set_aside.sql")),
    Migration::Both(include_str!("migrations/0017_leftovers.sql")),
    Migration::Both(include_str!("migrations/0018_widgets.sql")),
    Migration::Both(include_str!("migrations/0019_resources.sql")),
    Migration::Both(include_str!("migrations/0020_versions.sql")),
    Migration::Both(include_str!("migrations/0021_copy.sql")),
    Migration::Postgres(include_str!("migrations/0022_months.sql")),
    Migration::Both(include_str!("migrations/0023_sessions.sql")),
    Migration::Both(include_str!("migrations/0024_mqtt_clients.sql")),
    Migration::Both(include_str!("migrations/0025_shared_subscriptions.sql")),
];

/// Brings the tables up to date; refuses a database that a newer program has changed.
pub(super) async fn migrate(database: &EntityDatabase) -> StoreResult<()> {
    migrate_to(database, MIGRATIONS.len()).await
}

/// The same to a version, of a database that has no later one.
pub(super) async fn migrate_to(database: &EntityDatabase, versions: usize) -> StoreResult<()> {
    let newest = versions as i64;
    let mut changes = database.begin().await?;
    changes.lock(ProgramLock::SCHEMA).await?;
    changes
        .execute(SqlQuery::new(
            "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)",
        ))
        .await?;
    let rows = changes
        .rows(SqlQuery::new("SELECT MAX(version) FROM schema_version"))
        .await?;
    let current: Option<i64> = match rows.first() {
        Some(row) => row.columns().next()?,
        None => None,
    };
    let current = current.unwrap_or(0);
    if current > newest {
        return Err(StoreError::new(
            StoreErrorKind::Invalid,
            format!(
                "The entity database has schema version {current}, but this program knows versions up to {newest} only: \
                 start the newer program that changed it, or restore a backup"
            ),
        ));
    }
    let missing = (1..).zip(MIGRATIONS).take(versions);
    for (version, migration) in missing.filter(|(version, _)| *version > current) {
        match migration {
            Migration::Both(statements) => changes.migrate(statements).await?,
            Migration::Sqlite(statements) if database.is_sqlite() => changes.run(statements()).await?,
            Migration::Postgres(statements) if !database.is_sqlite() => changes.migrate(statements).await?,
            Migration::Sqlite(_) | Migration::Postgres(_) => {}
        }
        changes
            .execute(
                SqlQuery::new("INSERT INTO schema_version (version) VALUES (")
                    .bind(version)
                    .push(")"),
            )
            .await?;
    }
    changes.commit().await?;
    Ok(())
}
