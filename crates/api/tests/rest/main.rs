//! The REST API on real stores, called as clients call it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod access_matrix;
mod actions;
mod alarm_queries;
mod alarms;
mod api_keys;
mod assets;
mod audit;
mod broker;
mod broker_queues;
mod calculated_fields;
mod dashboards;
mod devices;
mod docs;
mod entity_queries;
mod events;
mod fixture;
mod imports;
mod login;
mod meters;
mod mqtt_clients;
mod nodes;
mod owners;
mod profiles;
mod queues;
mod relations;
mod resources;
mod rule_chains;
mod rule_engine;
mod security;
mod settings;
#[path = "../support/stores.rs"]
mod stores;
mod tenant_transfer;
mod uploads;
mod usage;
mod users;
mod versions;
