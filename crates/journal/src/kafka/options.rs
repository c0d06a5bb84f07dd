//! Settings of the journal on Kafka.

use std::fmt;
use std::path::PathBuf;

use fieldline_core::options::{ByteSize, HumanDuration};
use serde::{Deserialize, Serialize};

/// How a user proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(inline)]
pub enum SaslMechanism {
    /// The password itself.
    #[serde(rename = "plain")]
    Plain,
    /// A proof that one knows it.
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    /// The same with a longer hash.
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
}

/// The journal on Kafka.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KafkaOptions {
    /// Addresses of some servers, `host:port` separated by commas; the others are learned from them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<String>,
    /// Begin of the names of all topics and groups: letters, digits, dots, dashes and underscores.
    pub prefix: String,
    /// Partitions of the topics that are created, one for each queue, 1 to 1,024; `ingest.partitions` and the partitions
    /// of queues have no effect. A queue keeps its number.
    pub partitions: u16,
    /// Copies of each partition in topics that are created. By default 3, or as many as there are servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication: Option<u16>,
    /// How many copies must have what is acknowledged, in topics that are created. By default 2, or 1 where there are
    /// fewer than 3 copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_in_sync: Option<u16>,
    /// How long records are kept after they are stored durably. The servers that keep the values may lose their last
    /// commits in a failover; this much can be stored again then.
    pub trim_after: HumanDuration,
    /// Bytes that are fetched ahead for each partition that is read.
    pub fetch_memory: ByteSize,
    /// Whether the servers speak TLS.
    pub tls: bool,
    /// File with the certificates of the authorities of the servers; those of the system if not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// File with the certificate chain that is shown to servers that ask for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// File with the key of that certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<PathBuf>,
    /// Name of the user; none if the servers ask for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Password of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// How the user proves who it is: `plain`, `scram-sha-256` or `scram-sha-512`.
    pub sasl_mechanism: SaslMechanism,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        Self {
            servers: None,
            prefix: "fl".to_owned(),
            partitions: 24,
            replication: None,
            min_in_sync: None,
            trim_after: HumanDuration::secs(600),
            fetch_memory: ByteSize::kib(512),
            tls: false,
            ca: None,
            certificate: None,
            private_key: None,
            username: None,
            password: None,
            sasl_mechanism: SaslMechanism::ScramSha256,
        }
    }
}

impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        f.debug_struct("KafkaOptions")
            .field("servers", &self.servers)
            .field("prefix", &self.prefix)
            .field("partitions", &self.partitions)
            .field("replication", &self.replication)
            .field("min_in_sync", &self.min_in_sync)
            .field("tls", &self.tls)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// Longest begin of a name.
const MAX_PREFIX: usize = 64;

impl KafkaOptions {
    /// Whether the settings need what only a program with the feature `kafka-tls` has.
    fn needs_tls(&self) -> bool {
        self.tls || self.username.is_some()
    }

    /// Checks that the values are consistent; the error names the key and what is allowed.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self
            .servers
            .as_ref()
            .is_none_or(|servers| servers.trim().is_empty())
        {
            return Err("kafka.servers must name the servers, host:port separated by commas".to_owned());
        }
        if self.prefix.is_empty() || self.prefix.len() > MAX_PREFIX || !self.prefix.chars().all(is_name) {
            return Err(format!(
                "kafka.prefix must be 1 to {MAX_PREFIX} letters, digits, dots, dashes and underscores"
            ));
        }
        if !(1..=1_024).contains(&self.partitions) {
            return Err("kafka.partitions must be 1 to 1024".to_owned());
        }
        if self.replication == Some(0) || self.min_in_sync == Some(0) {
            return Err("kafka.replication and kafka.min-in-sync must be 1 or more".to_owned());
        }
        if let (Some(copies), Some(needed)) = (self.replication, self.min_in_sync)
            && needed > copies
        {
            return Err("kafka.min-in-sync must be at most kafka.replication".to_owned());
        }
        if self.fetch_memory < ByteSize::kib(64) || self.fetch_memory > ByteSize::mib(256) {
            return Err("kafka.fetch-memory must be between 64KiB and 256MiB".to_owned());
        }
        if self.username.is_some() != self.password.is_some() {
            return Err("kafka.username and kafka.password need each other".to_owned());
        }
        if self.certificate.is_some() != self.private_key.is_some() {
            return Err("kafka.certificate and kafka.private-key need each other".to_owned());
        }
        if !self.tls && (self.ca.is_some() || self.certificate.is_some()) {
            return Err("kafka.ca and kafka.certificate need kafka.tls".to_owned());
        }
        if self.needs_tls() && !cfg!(feature = "kafka-tls") {
            return Err(
                "kafka.tls and kafka.username: this program was built without TLS to Kafka (Cargo feature `kafka-tls`, \
                 which packages and images have)"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_by_name_and_passwords_are_not_shown() {
        type Change = fn(&mut KafkaOptions);
        let cases: [(Change, &str); 6] = [
            (|options| options.servers = Some(" ".to_owned()), "kafka.servers"),
            (|options| options.prefix = "a/b".to_owned(), "kafka.prefix"),
            (|options| options.partitions = 0, "kafka.partitions"),
            (
                |options| (options.replication, options.min_in_sync) = (Some(1), Some(2)),
                "kafka.min-in-sync",
            ),
            (
                |options| options.username = Some("me".to_owned()),
                "kafka.password",
            ),
            (|options| options.ca = Some("ca.pem".into()), "kafka.tls"),
        ];
        let options = || KafkaOptions {
            servers: Some("localhost:9092".to_owned()),
            ..KafkaOptions::default()
        };
        options().check().unwrap();
        for (change, key) in cases {
            let mut changed = options();
            change(&mut changed);
            let problem = changed.check().unwrap_err();
            assert!(problem.contains(key), "{problem}");
        }
        let secret = KafkaOptions {
            username: Some("me".to_owned()),
            password: Some("hidden".to_owned()),
            ..options()
        };
        assert!(!format!("{secret:?}").contains("hidden"));
        assert_eq!(secret.check().is_ok(), cfg!(feature = "kafka-tls"));
    }
}
