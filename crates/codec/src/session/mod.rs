//! The state of a connection and of the session behind it, as machines without I/O.
//!
//! A machine is handed decoded packets and the time, appends what the protocol makes it answer to the caller's
//! buffer, and returns what is left for the application to do. [`ServerSession`] and [`ClientSession`] are the two
//! ends; both share the flow control of QoS 1 and 2, topic aliases and the peer's limits.
//!
//! An idle session owns no heap memory: aliases are boxed with the first one, and what is in flight lives in
//! collections that give their memory back when they run empty. Receiving QoS 0 and 1 costs a counter.

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
pub use inflight::Redelivery;
pub use keep_alive::KeepAliveInterval;
pub use server::{ServerEvent, ServerSession};
