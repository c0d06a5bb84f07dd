//! The configuration of `TbKafkaNode`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::properties::ProducerProperties;
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::lenient;
use crate::secret::Secret;

/// The configuration of a Kafka node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KafkaConfig {
    /// Pattern of the topic.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Topic", extend("x-editor" = "template"))]
    pub topic_pattern: String,
    /// Pattern of the key; messages have none if it is empty.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(title = "Key", extend("x-editor" = "template"))]
    pub key_pattern: String,
    /// Hosts and ports of brokers, separated by commas.
    #[serde(deserialize_with = "lenient::string")]
    pub bootstrap_servers: String,
    /// How often to try again; 0 gives a request `request.timeout.ms`, more gives it `delivery.timeout.ms`.
    #[serde(deserialize_with = "lenient::integer")]
    pub retries: u32,
    /// The size of batches in bytes.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "bytes"))]
    pub batch_size: u32,
    /// How long a batch waits for more messages, in milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "ms"))]
    pub linger: u32,
    /// The most bytes that wait to be sent.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(extend("x-unit" = "bytes"))]
    pub buffer_memory: u32,
    /// Who has to have a message: `all` or `-1`, `1`, `0`. It is always waited for all, which is no less safe.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("enum" = ["all", "-1", "0", "1"]))]
    pub acks: String,
    /// Properties of the Kafka producer, by their names.
    #[serde(deserialize_with = "properties")]
    #[schemars(schema_with = "lenient::pairs_schema")]
    pub other_properties: Vec<(String, Secret)>,
    /// Whether the metadata goes along as headers.
    #[serde(deserialize_with = "lenient::boolean")]
    pub add_metadata_key_values_as_kafka_headers: bool,
    /// The character set of the headers' values.
    #[serde(deserialize_with = "lenient::string")]
    pub kafka_headers_charset: String,
}

/// Any of the properties may be a password.
fn properties<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Secret)>, D::Error> {
    let pairs = lenient::pairs(deserializer)?;
    Ok(pairs
        .into_iter()
        .map(|(name, value)| (name, Secret::new(value)))
        .collect())
}

impl Default for KafkaConfig {
    fn default() -> Self {
        Self {
            topic_pattern: "my-topic".to_owned(),
            key_pattern: String::new(),
            bootstrap_servers: "localhost:9092".to_owned(),
            retries: 0,
            batch_size: 16384,
            linger: 0,
            buffer_memory: 33_554_432,
            acks: "-1".to_owned(),
            other_properties: Vec::new(),
            add_metadata_key_values_as_kafka_headers: false,
            kafka_headers_charset: "UTF-8".to_owned(),
        }
    }
}

impl ConnectorConfig for KafkaConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("topicPattern", &self.topic_pattern)?;
        self.brokers()?;
        HeaderCharset::parse(&self.kafka_headers_charset)?;
        let properties = ProducerProperties::of(self)?;
        properties.tls().map(|_| ())
    }
}

impl KafkaConfig {
    pub(super) fn brokers(&self) -> Result<Vec<String>, ConnectorConfigError> {
        const FIELD: &str = "bootstrapServers";
        require(FIELD, &self.bootstrap_servers)?;
        let brokers: Vec<String> = self
            .bootstrap_servers
            .split(',')
            .map(str::trim)
            .filter(|broker| !broker.is_empty())
            .map(str::to_owned)
            .collect();
        for broker in &brokers {
            let port = broker
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse::<u16>().ok());
            if port.is_none_or(|port| port == 0) {
                return Err(ConnectorConfigError::new(
                    FIELD,
                    format!("'{broker}' must be host:port"),
                ));
            }
        }
        Ok(brokers)
    }
}

/// How texts become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderCharset {
    Utf8,
    Ascii,
    Latin1,
    Utf16Be,
    Utf16Le,
    /// Big-endian, with a byte order mark.
    Utf16,
}

impl HeaderCharset {
    pub(super) fn parse(name: &str) -> Result<Self, ConnectorConfigError> {
        match name.to_ascii_uppercase().as_str() {
            "" | "UTF-8" | "UTF8" => Ok(Self::Utf8),
            "US-ASCII" | "ASCII" => Ok(Self::Ascii),
            "ISO-8859-1" | "LATIN1" => Ok(Self::Latin1),
            "UTF-16BE" => Ok(Self::Utf16Be),
            "UTF-16LE" => Ok(Self::Utf16Le),
            "UTF-16" => Ok(Self::Utf16),
            _ => Err(ConnectorConfigError::new(
                "kafkaHeadersCharset",
                "is not supported",
            )),
        }
    }

    /// Encodes a text; what the set lacks becomes a question mark.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        let up_to = |last: u32| {
            let byte = |character: char| {
                let code = u32::from(character);
                u8::try_from(code).ok().filter(|_| code <= last).unwrap_or(b'?')
            };
            text.chars().map(byte).collect()
        };
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Ascii => up_to(0x7F),
            Self::Latin1 => up_to(0xFF),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16 => [0xFE, 0xFF]
                .into_iter()
                .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_in_the_character_set() {
        let encoded = |name| HeaderCharset::parse(name).unwrap().encode("aé€");
        assert_eq!(encoded("UTF-8"), "aé€".as_bytes());
        assert_eq!(encoded("US-ASCII"), b"a??");
        assert_eq!(encoded("ISO-8859-1"), b"a\xE9?");
        assert_eq!(encoded("UTF-16LE"), b"a\0\xE9\0\xAC\x20");
        assert_eq!(encoded("UTF-16"), b"\xFE\xFF\0a\0\xE9\x20\xAC");
        assert_eq!(
            HeaderCharset::parse("KOI8-R").unwrap_err().field(),
            "kafkaHeadersCharset"
        );
    }
}
