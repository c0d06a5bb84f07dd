//! What became of a message.

use thiserror::Error;

/// Names and values to put into the metadata of a message.
pub type MetadataEntries = Vec<(String, String)>;

/// What a node adds to a message that was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectorOutcome {
    /// The new body of the message; `None` keeps the one it has.
    pub body: Option<String>,
    /// What to put into the metadata, over what is there.
    pub metadata: MetadataEntries,
}

impl ConnectorOutcome {
    pub(crate) const fn with_metadata(metadata: MetadataEntries) -> Self {
        Self { body: None, metadata }
    }
}

/// What stands in the way of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectorFault {
    /// The service, or the way to it: another time it may take the message.
    #[default]
    Service,
    /// The service has no time for it: another time it takes the message.
    Busy,
    /// The service does not know where the message should go.
    Destination,
    /// The message: it will not be taken another time either.
    Message,
}

/// Why a message was not sent, and what a node adds to it then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// What has to change before it can be sent.
    pub fault: ConnectorFault,
    /// The reason, for people.
    pub message: String,
    /// What to put into the metadata, over what is there.
    pub metadata: MetadataEntries,
    /// The new body of the message; `None` keeps the one it has.
    pub body: Option<String>,
}

/// The metadata key of nodes that keep the reason of a failure.
pub(crate) const ERROR: &str = "error";

impl ConnectorError {
    /// A failure that leaves no trace in the metadata.
    pub fn bare(message: impl Into<String>) -> Self {
        Self {
            fault: ConnectorFault::default(),
            message: message.into(),
            metadata: MetadataEntries::new(),
            body: None,
        }
    }

    /// A failure that the metadata keeps under `error`.
    pub(crate) fn with_error_metadata(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            metadata: vec![(ERROR.to_owned(), message.clone())],
            ..Self::bare(message)
        }
    }

    #[must_use]
    pub(crate) fn with_fault(self, fault: ConnectorFault) -> Self {
        Self { fault, ..self }
    }
}

/// One entry of the metadata.
pub(crate) fn entry(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}
