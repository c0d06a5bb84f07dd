//! Protobuf payloads of devices: the schemas of device profiles, and the conversion of their messages.
//!
//! The crate knows no transport: it converts bytes to key-values, and values to bytes. A device's own messages follow
//! the schemas of its profile ([`PayloadSchemas`]); the messages defined by the platform itself are in [`api`]. A
//! message is converted like its JSON mapping, but without writing and parsing the text, and numbers keep the type of
//! their field.
//!
//! A schema is compiled to a plan for decoding its bytes, which converts messages to key-values without an intermediate
//! tree.
//!
//! The cost of schemas and messages is bounded: the size and nesting of a schema, the size of a message, and its growth
//! when it is decoded.

pub mod api;
mod decode;
mod encode;
mod message;
mod payloads;
mod plan;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod wire;

use fieldline_model::json::JsonError;

pub use payloads::PayloadSchemas;
pub use schema::{MAX_SCHEMA_BYTES, ProtobufSchema, SchemaError};
pub use wire::WireError;

/// Largest message that is decoded, bytes. A decoded value takes up to about seventy times its encoded bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// The reason why a message was refused, or could not be encoded.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is larger than [`MAX_MESSAGE_BYTES`].
    #[error("message exceeds {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// It violates the wire format or the schema.
    #[error("not a message of the schema: {0}")]
    Malformed(#[from] WireError),
    /// It is not a valid message of the platform's own API.
    #[error("not a message of the schema: {0}")]
    Unreadable(#[from] prost::DecodeError),
    /// Defaults and repeated fields make it much larger than its encoded size.
    #[error("message grows beyond what its size allows")]
    Grows,
    /// A part of it is invalid.
    #[error("{0}")]
    Invalid(&'static str),
    /// A text in it was refused.
    #[error(transparent)]
    Text(#[from] JsonError),
    /// A value does not fit its field.
    #[error("field `{field}` takes {expected}")]
    Misfit {
        /// The field.
        field: String,
        /// The values that the field accepts.
        expected: &'static str,
    },
}
