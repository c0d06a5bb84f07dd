//! The properties of the Kafka producer that are understood; others change nothing.

use std::time::Duration;

use rskafka::client::partition::Compression;
use rskafka::client::{Credentials, SaslConfig};

use super::config::KafkaConfig;
use crate::config::ConnectorConfigError;
use crate::secret::Secret;
use crate::tls::{self, TlsIdentity};

#[derive(Debug, Clone)]
pub(super) struct ProducerProperties {
    pub(super) client_id: Option<String>,
    pub(super) batch_size: usize,
    pub(super) linger: Duration,
    pub(super) buffer_memory: usize,
    pub(super) max_request_size: usize,
    pub(super) max_block: Duration,
    pub(super) request_timeout: Duration,
    pub(super) delivery_timeout: Duration,
    pub(super) retries: u32,
    pub(super) compression: Compression,
    encrypted: bool,
    sasl: Option<SaslCredentials>,
    truststore: Secret,
    chain: Secret,
    key: Secret,
    key_password: Secret,
}

#[derive(Debug, Clone)]
struct SaslCredentials {
    mechanism: SaslMechanism,
    username: String,
    password: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SaslMechanism {
    Plain,
    Scram256,
    Scram512,
}

fn field(name: &str) -> String {
    format!("otherProperties.{name}")
}

fn wrong(name: &str, problem: impl Into<String>) -> ConnectorConfigError {
    ConnectorConfigError::new(field(name), problem)
}

fn number(name: &str, value: &str) -> Result<u32, ConnectorConfigError> {
    value
        .trim()
        .parse::<i64>()
        .ok()
        .and_then(|number| u32::try_from(number.max(0)).ok())
        .ok_or_else(|| wrong(name, "must be a whole number"))
}

fn millis(name: &str, value: &str) -> Result<Duration, ConnectorConfigError> {
    number(name, value).map(|number| Duration::from_millis(number.into()))
}

const MECHANISM: &str = "sasl.mechanism";
const JAAS: &str = "sasl.jaas.config";

impl ProducerProperties {
    /// Reads the properties of a configuration, which go before its own fields.
    pub(super) fn of(config: &KafkaConfig) -> Result<Self, ConnectorConfigError> {
        check_acks("acks", &config.acks)?;
        let mut properties = Self {
            client_id: None,
            batch_size: config.batch_size as usize,
            linger: Duration::from_millis(config.linger.into()),
            buffer_memory: config.buffer_memory as usize,
            max_request_size: 1 << 20,
            max_block: Duration::from_secs(60),
            request_timeout: Duration::from_secs(30),
            delivery_timeout: Duration::from_secs(120),
            retries: config.retries,
            compression: Compression::NoCompression,
            encrypted: false,
            sasl: None,
            truststore: Secret::default(),
            chain: Secret::default(),
            key: Secret::default(),
            key_password: Secret::default(),
        };
        let mut protocol = "PLAINTEXT".to_owned();
        let mut mechanism = None;
        let mut jaas = Secret::default();
        for (name, value) in &config.other_properties {
            let text = value.expose();
            let pem = || Secret::new(text.replace("\\n", "\n"));
            match name.as_str() {
                "client.id" => properties.client_id = Some(text.to_owned()),
                "acks" => check_acks(&field(name), text)?,
                "batch.size" => properties.batch_size = number(name, text)? as usize,
                "linger.ms" => properties.linger = millis(name, text)?,
                "buffer.memory" => properties.buffer_memory = number(name, text)? as usize,
                "max.request.size" => properties.max_request_size = number(name, text)? as usize,
                "max.block.ms" => properties.max_block = millis(name, text)?,
                "request.timeout.ms" => properties.request_timeout = millis(name, text)?,
                "delivery.timeout.ms" => properties.delivery_timeout = millis(name, text)?,
                "retries" => properties.retries = number(name, text)?,
                "compression.type" => properties.compression = compression(name, text)?,
                "security.protocol" => text.clone_into(&mut protocol),
                MECHANISM => mechanism = Some(read_mechanism(text)?),
                JAAS => jaas = value.clone(),
                "ssl.truststore.certificates" => properties.truststore = pem(),
                "ssl.keystore.certificate.chain" => properties.chain = pem(),
                "ssl.keystore.key" => properties.key = pem(),
                "ssl.key.password" => properties.key_password = value.clone(),
                "ssl.truststore.location" | "ssl.keystore.location" => {
                    let problem = "key store files are not read; use PEM in ssl.truststore.certificates, \
                                   ssl.keystore.certificate.chain and ssl.keystore.key";
                    return Err(wrong(name, problem));
                }
                _ => {}
            }
        }
        let (encrypted, authenticated) = match protocol.as_str() {
            "PLAINTEXT" => (false, false),
            "SSL" => (true, false),
            "SASL_PLAINTEXT" => (false, true),
            "SASL_SSL" => (true, true),
            _ => {
                let problem = "must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL";
                return Err(wrong("security.protocol", problem));
            }
        };
        properties.encrypted = encrypted;
        if authenticated {
            let mechanism = mechanism.ok_or_else(|| wrong(MECHANISM, "is missing"))?;
            let (username, password) = jaas_credentials(jaas.expose())?;
            properties.sasl = Some(SaslCredentials {
                mechanism,
                username,
                password,
            });
        }
        Ok(properties)
    }

    pub(super) fn tls(&self) -> Result<Option<rustls::ClientConfig>, ConnectorConfigError> {
        if !self.encrypted {
            return Ok(None);
        }
        let identity = (!self.chain.is_empty() && !self.key.is_empty()).then_some(TlsIdentity {
            cert: self.chain.expose(),
            private_key: &self.key,
            password: &self.key_password,
        });
        let name = |part: &str| match part {
            "caCert" => "ssl.truststore.certificates",
            "cert" => "ssl.keystore.certificate.chain",
            "password" => "ssl.key.password",
            _ => "ssl.keystore.key",
        };
        tls::client_config(self.truststore.expose(), identity)
            .map(Some)
            .map_err(|error| wrong(name(error.field()), error.problem()))
    }

    pub(super) fn sasl(&self) -> Option<SaslConfig> {
        let sasl = self.sasl.as_ref()?;
        let credentials = Credentials::new(sasl.username.clone(), sasl.password.expose().to_owned());
        Some(match sasl.mechanism {
            SaslMechanism::Plain => SaslConfig::Plain(credentials),
            SaslMechanism::Scram256 => SaslConfig::ScramSha256(credentials),
            SaslMechanism::Scram512 => SaslConfig::ScramSha512(credentials),
        })
    }
}

fn check_acks(field: &str, acks: &str) -> Result<(), ConnectorConfigError> {
    match acks.trim() {
        "all" | "-1" | "0" | "1" => Ok(()),
        _ => Err(ConnectorConfigError::new(field, "must be all, -1, 0 or 1")),
    }
}

fn compression(name: &str, value: &str) -> Result<Compression, ConnectorConfigError> {
    Ok(match value.trim() {
        "" | "none" => Compression::NoCompression,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        _ => return Err(wrong(name, "must be none, gzip, snappy, lz4 or zstd")),
    })
}

fn read_mechanism(value: &str) -> Result<SaslMechanism, ConnectorConfigError> {
    Ok(match value.trim() {
        "PLAIN" => SaslMechanism::Plain,
        "SCRAM-SHA-256" => SaslMechanism::Scram256,
        "SCRAM-SHA-512" => SaslMechanism::Scram512,
        _ => return Err(wrong(MECHANISM, "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")),
    })
}

/// Finds user name and password in `org.….PlainLoginModule required username="u" password="p";`.
fn jaas_credentials(jaas: &str) -> Result<(String, Secret), ConnectorConfigError> {
    let option =
        |name: &str| jaas_option(jaas, name).ok_or_else(|| wrong(JAAS, format!("has no {name}=\"…\"")));
    Ok((option("username")?, Secret::new(option("password")?)))
}

fn jaas_option(jaas: &str, name: &str) -> Option<String> {
    let mut rest = jaas;
    loop {
        let at = rest.find(name)?;
        let before = rest.get(..at)?.chars().next_back();
        rest = rest.get(at + name.len()..)?;
        let value = rest.trim_start().strip_prefix('=').map(str::trim_start);
        let Some(value) = value.filter(|_| before.is_none_or(char::is_whitespace)) else {
            continue;
        };
        let Some(quoted) = value.strip_prefix('"') else {
            return Some(value.split([';', ' ', '\n', '\t', '\r']).next()?.to_owned());
        };
        let mut text = String::new();
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => return Some(text),
                '\\' => text.push(characters.next()?),
                other => text.push(other),
            }
        }
        return None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(properties: &[(&str, &str)]) -> Result<ProducerProperties, ConnectorConfigError> {
        ProducerProperties::of(&KafkaConfig {
            other_properties: properties
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
                .collect(),
            ..KafkaConfig::default()
        })
    }

    #[test]
    fn credentials_are_found_in_the_login_module() {
        let jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required\n username=\"u=1\" \
                    password=\"p\\\"; q\";";
        let (username, password) = jaas_credentials(jaas).unwrap();
        assert_eq!((username.as_str(), password.expose()), ("u=1", "p\"; q"));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        for (properties, field) in [
            (vec![("security.protocol", "TLS")], "security.protocol"),
            (vec![("security.protocol", "SASL_SSL")], "sasl.mechanism"),
            (vec![("sasl.mechanism", "GSSAPI")], "sasl.mechanism"),
            (
                vec![("security.protocol", "SASL_SSL"), ("sasl.mechanism", "PLAIN")],
                "sasl.jaas.config",
            ),
            (
                vec![("ssl.truststore.location", "/x.jks")],
                "ssl.truststore.location",
            ),
            (vec![("compression.type", "rar")], "compression.type"),
            (vec![("linger.ms", "soon")], "linger.ms"),
        ] {
            let error = with(&properties).unwrap_err();
            assert_eq!(error.field(), format!("otherProperties.{field}"));
        }
        let unknown = with(&[("interceptor.classes", "x"), ("batch.size", "5")]).unwrap();
        assert_eq!(unknown.batch_size, 5);
    }
}
