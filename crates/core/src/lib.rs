//! The middle of Fieldline: the ports that transports, journal, stores and API meet in, and the path of a message
//! between them. Knows no database, no socket and no file format.

pub mod clock;
pub mod events;
pub mod logging;
pub mod options;
pub mod ports;
