//! The rule engine: every message goes through its tenant's rule chain.
//!
//! | module | job |
//! |---|---|
//! | `message`, `originators` | a message on its way, and whom it is about |
//! | `node`, `node_types`, `nodes` | what a node is, which there are, and what each does |
//! | `bounds` | how large what is compiled may be |
//! | `chain`, `deletions` | chains compiled into index graphs; what is no more |
//! | `chain_registry` | the chains of all tenants, swapped as they are saved |
//! | `worker` | takes batches of records through the chains, and stores what they do |
//! | `lanes` | where messages of slow tenants go, so that others do not wait for them |
//! | `strategy`, `stats`, `events` | retries of queues; what is counted; what people who look for mistakes are shown |
//! | `script_pool`, `script_ledger` | scripts of all tenants on threads of their own, in turn; what each tenant has used |
//! | `fields`, `value_update` | the fields in force of all tenants; how they learn of changed values |
//! | `accounts` | what is set for outside services; the platform's own mails and text messages |
//! | `producer`, `catalog` | messages from inside the platform; what the REST API asks about nodes and scripts |
//! | `engine` | all of it together |

pub mod accounts;
pub mod bounds;
pub mod catalog;
pub mod chain;
pub mod chain_registry;
pub mod deletions;
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
pub mod node_types;
pub mod nodes;
pub mod originators;
pub mod producer;
pub mod script_ledger;
pub mod script_pool;
pub mod services;
pub mod stats;
pub mod strategy;
pub mod tenant_cache;
pub mod value_update;
mod values;
pub mod worker;
