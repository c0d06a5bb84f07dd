//! What people do with entities: the rules of changing them, who may do what, queries, the audit log and passwords.

pub mod access;
pub mod audit;
pub mod entity_query;
pub mod password;
pub mod ports;
pub mod rest_api_requests;
pub mod services;
