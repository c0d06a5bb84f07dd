//! The keyspace and its tables.

use scylla::client::session::Session;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;

use super::super::super::options::CassandraOptions;
use super::CqlFailure;
use super::place::CqlTableKind;

/// Rows are rewritten all the time where values are kept, and hardly ever where history is. Deleted partitions of packed
/// epochs are of no interest once all replicas had their time to hear of it: one that comes back is deleted again.
fn table_options(kind: CqlTableKind) -> &'static str {
    match kind {
        CqlTableKind::Latest | CqlTableKind::Attributes => {
            "compaction = {'class': 'LeveledCompactionStrategy'}"
        }
        CqlTableKind::Blocks => {
            "compaction = {'class': 'SizeTieredCompactionStrategy'} AND gc_grace_seconds = 10800"
        }
        _ => "compaction = {'class': 'SizeTieredCompactionStrategy'}",
    }
}

/// Makes the keyspace, where the settings say with which replication, and the tables that are missing.
pub(super) async fn prepare(session: &Session, options: &CassandraOptions) -> Result<(), CqlFailure> {
    let keyspace = &options.keyspace;
    if let Some(replication) = options.replication_cql() {
        let cql = format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}");
        session.query_unpaged(cql, ()).await?;
    }
    for kind in CqlTableKind::ALL {
        let cql = format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.{} (part blob, key blob, value blob, PRIMARY KEY (part, key)) \
             WITH {}",
            kind.name(),
            table_options(kind)
        );
        session.query_unpaged(cql, ()).await?;
    }
    Ok(())
}

/// The statements of a table.
pub(super) struct CqlStatements {
    pub(super) insert: PreparedStatement,
    pub(super) remove: PreparedStatement,
    pub(super) remove_partition: PreparedStatement,
    pub(super) get: PreparedStatement,
    pub(super) ascending: PreparedStatement,
    pub(super) descending: PreparedStatement,
    pub(super) partitions: PreparedStatement,
}

impl CqlStatements {
    pub(super) async fn prepare(
        session: &Session,
        keyspace: &str,
        kind: CqlTableKind,
    ) -> Result<Self, CqlFailure> {
        let table = format!("{keyspace}.{}", kind.name());
        let prepare = async |cql: String| {
            let mut statement = session.prepare(cql).await?;
            statement.set_is_idempotent(true);
            Ok::<_, CqlFailure>(statement)
        };
        let page = format!("SELECT key, value FROM {table} WHERE part = ? AND key >= ? AND key < ?");
        Ok(Self {
            insert: prepare(format!("INSERT INTO {table} (part, key, value) VALUES (?, ?, ?)")).await?,
            remove: prepare(format!("DELETE FROM {table} WHERE part = ? AND key = ?")).await?,
            remove_partition: prepare(format!("DELETE FROM {table} WHERE part = ?")).await?,
            get: prepare(format!("SELECT value FROM {table} WHERE part = ? AND key = ?")).await?,
            ascending: prepare(format!("{page} ORDER BY key ASC LIMIT ?")).await?,
            descending: prepare(format!("{page} ORDER BY key DESC LIMIT ?")).await?,
            partitions: prepare(format!("SELECT DISTINCT part FROM {table}")).await?,
        })
    }

    /// An unlogged batch for one partition, which Cassandra applies whole or not at all.
    pub(super) fn batch(&self, is_insert: impl Iterator<Item = bool>, timestamp: i64) -> Batch {
        let mut batch = Batch::new(scylla::statement::batch::BatchType::Unlogged);
        for is_insert in is_insert {
            let statement = if is_insert { &self.insert } else { &self.remove };
            batch.append_statement(statement.clone());
        }
        batch.set_timestamp(Some(timestamp));
        batch.set_is_idempotent(true);
        batch
    }
}
