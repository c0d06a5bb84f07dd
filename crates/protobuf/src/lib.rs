//! Protobuf payloads of devices: the schemas of device profiles, and what their messages become.
//!
//! Knows no transport: bytes go in and key-values come out, values go in and bytes come out. A device's own messages
//! follow the schemas of its profile ([`PayloadSchemas`]); what the platform defines itself is in [`api`]. A message becomes what
//! its JSON mapping would become if the device had sent that, but without writing and reading the text, and with numbers
//! that keep the type of their field.
//!
//! A schema is compiled to a plan of what its bytes mean, by which messages become key-values without a tree between.
//!
//! What a schema or a message can cost is bounded: the size and nesting of a schema, the size of a message, and what it
//! grows to when it is decoded.

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

/// Largest message that is decoded, bytes. A decoded value takes up to some seventy times the bytes that carried it.
pub const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// Why a message was refused, or could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is larger than [`MAX_MESSAGE_BYTES`].
    #[error("message exceeds {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    /// It does not follow the wire format or the schema.
    #[error("not a message of the schema: {0}")]
    Malformed(#[from] WireError),
    /// It is none of the messages that the platform defines.
    #[error("not a message of the schema: {0}")]
    Unreadable(#[from] prost::DecodeError),
    /// Defaults and repeated fields make it much larger than what was sent.
    #[error("message grows beyond what its size allows")]
    Grows,
    /// Something in it is not what it has to be.
    #[error("{0}")]
    Invalid(&'static str),
    /// A text in it is refused.
    #[error(transparent)]
    Text(#[from] JsonError),
    /// A value does not fit the field that it is for.
    #[error("field `{field}` takes {expected}")]
    Misfit {
        /// The field.
        field: String,
        /// What it takes.
        expected: &'static str,
    },
}
