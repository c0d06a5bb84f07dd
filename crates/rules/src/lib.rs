//! The rule engine: every message goes through its tenant's rule chain.
//!
//! | module | job |
//! |---|---|
//! | `message`, `originators` | a message on its way, and the entity it is about |
//! | `node`, `node_types`, `nodes` | the node interface, the list of types, and the implementations |
//! | `editor_forms` | how ThingsBoard's own editor shows each node type |
//! | `bounds` | size limits of compiled chains |
//! | `chain`, `deletions` | chains compiled into index graphs; the log of deleted things |
//! | `chain_registry` | the chains of all tenants, swapped when they are saved |
//! | `worker` | takes batches of records through the chains, and stores their effects |
//! | `lanes` | slow lanes for messages of slow tenants, so that others do not wait for them |
//! | `strategy`, `stats`, `events` | retries of queues; statistics; debug, lifecycle and error events |
//! | `script_pool`, `script_ledger` | scripts of all tenants on threads of their own, in turn; what each tenant has
//! used |
//! | `fields`, `value_update` | the fields in force of all tenants; the updates of values that reach them |
//! | `accounts` | settings of outside services; the platform's own mails and text messages |
//! | `producer`, `catalog` | messages from inside the platform; the REST API's questions about nodes and scripts |
//! | `engine` | all of it together |

pub mod accounts;
pub mod bounds;
pub mod catalog;
pub mod chain;
pub mod chain_registry;
mod config_schema;
pub mod deletions;
pub mod editor_forms;
pub mod egress;
pub mod engine;
pub mod events;
pub mod external;
mod field_script_test;
pub mod fields;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod lanes;
pub mod message;
pub mod node;
pub mod node_counters;
pub mod node_types;
pub mod nodes;
pub mod originators;
pub mod producer;
pub mod queue_listener;
pub mod script_ledger;
pub mod script_pool;
pub mod services;
pub mod stats;
pub mod strategy;
pub mod tenant_cache;
pub mod value_update;
mod values;
pub mod worker;
