//! The core of Fieldline: the ports between transports, journal, stores and API, and the path of a message between
//! them. It knows no database, no socket and no file format.

pub mod address_guard;
pub mod any_entity;
pub mod broker_statistics;
pub mod clock;
pub mod directory;
pub mod events;
pub mod fair_reads;
pub mod in_flight;
pub mod ingest;
pub mod logging;
pub mod memory_pool;
pub mod observed_store;
pub mod options;
pub mod overload;
pub mod partial_budget;
pub mod pending_commits;
pub mod ports;
pub mod queue_stats;
pub mod rate_limits;
pub mod reader;
pub mod set_aside;
pub mod tenant_semaphore;
pub mod usage;
pub mod web_url;
