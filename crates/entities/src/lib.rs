//! What people do with entities: the rules of changing them, who may do what, queries, the audit log, passwords, and
//! who may connect to the broker.

pub mod access;
pub mod audit;
pub mod broker_access;
pub mod entity_query;
pub mod password;
pub mod ports;
pub mod rest_api_requests;
pub mod services;
