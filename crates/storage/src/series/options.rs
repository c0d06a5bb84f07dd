//! Settings of the time-series store.

use std::path::PathBuf;

use fieldline_core::options::{ByteSize, HumanDuration};
use serde::{Deserialize, Serialize};

/// Where time series, latest values and attributes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// In the data directory, in an engine of the program's own.
    Embedded,
    /// In the PostgreSQL database that `sql.url` names.
    Sql,
    /// In the Cassandra cluster that `cassandra.nodes` names. What says how far the journal is stored, and the states of rule
    /// nodes, are in the PostgreSQL database that `sql.url` names.
    Cassandra,
}

/// Settings of the time-series store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Where time series, latest values and attributes are kept.
    pub kind: SeriesKind,
    /// Connections to the PostgreSQL database at most, 2 to 1,000, where `kind` is `sql` or `cassandra`.
    pub connections: u32,
    /// Whether each point that comes in is also written as a row of the table `telemetry`, for programs that read with SQL.
    /// Only where `kind` is `sql`. It takes several times the space and the work of what the program itself keeps.
    pub plain_rows: bool,
    /// Memory for blocks that were read from disk.
    pub block_cache: ByteSize,
    /// Memory that one table of recent writes may take before it is written to disk. There are five tables, and up to
    /// three of each may be on their way to disk.
    pub memtable: ByteSize,
    /// Memory for latest values, and the same for attributes. What does not fit is read from disk when it is needed.
    pub cells_cache: ByteSize,
    /// Recent rows are packed into compressed chunks once they take this much.
    pub pack_bytes: ByteSize,
    /// Recent rows are packed at the latest after this time.
    pub pack_age: HumanDuration,
    /// How often a slice of the stored data is searched for points past their time-to-live.
    pub sweep_interval: HumanDuration,
    /// How long the machine's clock must have stood, since the start or since it was set forward, before what has expired
    /// by it is deleted. Until then it is only hidden, so that a clock that ran ahead costs nothing once it is put right.
    pub clock_grace: HumanDuration,
    /// Files that are kept open for reading.
    pub open_files: u32,
}

/// One that commits, one that reads, and one each that changes plain rows and deletes what is past.
const CONNECTIONS_WITH_PLAIN_ROWS: u32 = 4;

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: SeriesKind::Embedded,
            connections: 8,
            plain_rows: false,
            block_cache: ByteSize::mib(16),
            memtable: ByteSize::mib(8),
            cells_cache: ByteSize::mib(96),
            pack_bytes: ByteSize::mib(64),
            pack_age: HumanDuration::secs(86_400),
            sweep_interval: HumanDuration::secs(10),
            clock_grace: HumanDuration::secs(3_600),
            open_files: 256,
        }
    }
}

impl Options {
    /// What is wrong with the settings, `None` where nothing is.
    pub fn problem(&self) -> Option<String> {
        if !(2..=1_000).contains(&self.connections) {
            return Some("connections must be 2 to 1000".to_owned());
        }
        if self.plain_rows && self.kind != SeriesKind::Sql {
            return Some("plain-rows needs kind = \"sql\"".to_owned());
        }
        if self.plain_rows && self.connections < CONNECTIONS_WITH_PLAIN_ROWS {
            return Some("connections must be 4 or more with plain-rows".to_owned());
        }
        if self.memtable < ByteSize::mib(1) {
            return Some("memtable must be at least 1MiB".to_owned());
        }
        if self.memtable > ByteSize::mib(1024) {
            return Some("memtable must be at most 1GiB".to_owned());
        }
        if self.pack_bytes < ByteSize::kib(64) {
            return Some("pack-bytes must be at least 64KiB".to_owned());
        }
        if self.sweep_interval.0.is_zero() {
            return Some("sweep-interval must be more than 0".to_owned());
        }
        if self.open_files < 16 {
            return Some("open-files must be at least 16".to_owned());
        }
        None
    }
}

/// Where the tables of the time-series store are in PostgreSQL.
#[cfg(feature = "sql")]
#[derive(Clone, PartialEq, Eq)]
pub struct SqlSeriesOptions {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// Connections at most, two at least: one that writes and one that reads.
    pub connections: u32,
    /// Whether the points are also rows of the table `telemetry`.
    pub plain_rows: bool,
}

#[cfg(feature = "sql")]
impl std::fmt::Debug for SqlSeriesOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("SqlSeriesOptions")
            .field("connections", &self.connections)
            .field("plain_rows", &self.plain_rows)
            .finish_non_exhaustive()
    }
}

/// The Cassandra cluster that keeps time series, latest values and attributes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CassandraOptions {
    /// Some of its nodes, `host:port,host:port`; the others are asked of them.
    pub nodes: String,
    /// The keyspace of the tables: a letter, then letters, digits and `_`, 48 characters at most.
    pub keyspace: String,
    /// How the keyspace is made where there is none: `SimpleStrategy:1`, or `NetworkTopologyStrategy:east=3,west=3` with the
    /// copies in each data center. If not set, the keyspace must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication: Option<String>,
    /// The data center whose nodes are used, and whose quorum confirms. If not set, any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_center: Option<String>,
    /// Who logs in, where the cluster asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password of `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Whether connections are encrypted, and the nodes' certificates checked.
    pub tls: bool,
    /// File with the certificates of the authorities of the nodes, PEM; those of the system if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// File with the certificate chain that is shown to nodes that ask for one, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// File with the key of that certificate, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PathBuf>,
    /// Whether the address of a node must be one that its certificate names. The nodes that others tell of are known by their
    /// IP address.
    pub verify_hostname: bool,
}

impl Default for CassandraOptions {
    fn default() -> Self {
        Self {
            nodes: "localhost:9042".to_owned(),
            keyspace: "fieldline".to_owned(),
            replication: None,
            data_center: None,
            user: None,
            password: None,
            tls: false,
            ca: None,
            certificate: None,
            private_key: None,
            verify_hostname: true,
        }
    }
}

impl CassandraOptions {
    /// What is wrong with the settings, `None` where nothing is.
    pub fn problem(&self) -> Option<&'static str> {
        let is_word = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        };
        if self.node_list().next().is_none() {
            return Some("`cassandra.nodes` must name a node, such as host:9042");
        }
        let starts_with_letter = self
            .keyspace
            .starts_with(|first: char| first.is_ascii_alphabetic());
        let is_plain = self
            .keyspace
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !starts_with_letter || !is_plain || self.keyspace.len() > 48 {
            return Some(
                "`cassandra.keyspace` must be a letter, then letters, digits and _, 48 characters at most",
            );
        }
        let has_wrong_replication = self.replication.as_deref().is_some_and(|text| {
            let Some((strategy, copies)) = text.split_once(':') else {
                return true;
            };
            let is_count = |text: &str| text.parse::<u8>().is_ok_and(|count| count > 0);
            match strategy {
                "SimpleStrategy" => !is_count(copies),
                "NetworkTopologyStrategy" => !copies.split(',').all(|of| {
                    of.split_once('=')
                        .is_some_and(|(center, count)| is_word(center) && is_count(count))
                }),
                _ => true,
            }
        });
        if has_wrong_replication {
            return Some(
                "`cassandra.replication` must be like SimpleStrategy:1 or NetworkTopologyStrategy:east=3,west=3",
            );
        }
        if self.password.is_some() && self.user.is_none() {
            return Some("`cassandra.password` needs `cassandra.user`");
        }
        if self.certificate.is_some() != self.private_key.is_some() {
            return Some("`cassandra.certificate` and `cassandra.private-key` need each other");
        }
        if self.tls && !cfg!(feature = "cassandra-tls") {
            return Some(
                "`cassandra.tls`: this program was built without TLS to Cassandra (Cargo feature `cassandra-tls`)",
            );
        }
        if !self.tls && (self.ca.is_some() || self.certificate.is_some()) {
            return Some("`cassandra.ca` and `cassandra.certificate` need `cassandra.tls`");
        }
        None
    }

    /// The nodes that are named.
    pub fn node_list(&self) -> impl Iterator<Item = &str> {
        self.nodes
            .split(',')
            .map(str::trim)
            .filter(|node| !node.is_empty())
    }

    /// The replication as CQL has it, of settings without a problem.
    #[cfg(feature = "cassandra")]
    pub(super) fn replication_cql(&self) -> Option<String> {
        let (strategy, copies) = self.replication.as_deref()?.split_once(':')?;
        let copies = match strategy {
            "SimpleStrategy" => format!("'replication_factor': {copies}"),
            _ => {
                let centers = copies.split(',').filter_map(|of| of.split_once('='));
                let centers = centers.map(|(center, count)| format!("'{center}': {count}"));
                centers.collect::<Vec<_>>().join(", ")
            }
        };
        Some(format!("{{'class': '{strategy}', {copies}}}"))
    }
}

impl std::fmt::Debug for CassandraOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CassandraOptions")
            .field("nodes", &self.nodes)
            .field("keyspace", &self.keyspace)
            .field("replication", &self.replication)
            .field("data_center", &self.data_center)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "********"))
            .field("tls", &self.tls)
            .field("ca", &self.ca)
            .field("certificate", &self.certificate)
            .field("private_key", &self.private_key)
            .field("verify_hostname", &self.verify_hostname)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_rows_need_postgres_and_connections_of_their_own() {
        let plain = Options {
            plain_rows: true,
            ..Options::default()
        };
        assert!(plain.problem().is_some_and(|problem| problem.contains("kind")));
        let of_sql = |connections| Options {
            kind: SeriesKind::Sql,
            connections,
            ..plain.clone()
        };
        assert_eq!(of_sql(4).problem(), None);
        assert!(
            of_sql(3)
                .problem()
                .is_some_and(|problem| problem.contains("connections"))
        );
    }
}
