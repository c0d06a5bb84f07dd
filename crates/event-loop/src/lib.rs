//! Event loops that carry many connections, a thread each, and their sockets.
//!
//! A loop knows no protocol. It waits for sockets, for wake-ups from other threads and for what its
//! [`ConnectionDriver`] owes, and gives each connection concerned one turn after the other. What would block leaves the
//! loop: the driver takes the connection away, and brings it back through the loop's mailbox.

mod event_loop;
mod group;
mod listen;
mod mailbox;
mod proxies;
mod slots;
mod socket;
mod tokio_stream;
mod websocket;

pub use event_loop::{ConnectionDriver, ConnectionTurn, EventLoop, LoopHandle, NextTurn};
pub use group::EventLoopGroup;
pub use listen::{listen, listen_locally};
pub use mailbox::ConnectionAbsence;
pub use proxies::TrustedProxies;
pub use slots::{ConnectionKey, Readiness};
pub use socket::Socket;
pub use tokio_stream::TaskStream;
pub use websocket::WebSocketStream;
