//! The state of a connection and of its session, as state machines without I/O.
//!
//! A state machine takes decoded packets and the time, appends the answers that the protocol requires to the caller's
//! buffer, and returns the remaining action for the application. [`ServerSession`] and [`ClientSession`] are the two
//! sides; they share the flow control of QoS 1 and 2, topic aliases and the peer's limits.
//!
//! An idle session owns no heap memory: aliases are boxed with the first one, and messages in flight live in
//! collections that free their memory when they become empty. Receiving QoS 0 and 1 costs a counter.

mod alias;
mod client;
mod error;
mod exchange;
mod inflight;
mod keep_alive;
mod server;

pub use client::{ClientEvent, ClientSession};
pub use error::{SessionError, SessionErrorKind, SessionSendError};
pub use exchange::{SessionLimits, SessionState};
pub use inflight::{InflightMessage, Redelivery};
pub use keep_alive::KeepAliveInterval;
pub use server::{ServerEvent, ServerSession};
