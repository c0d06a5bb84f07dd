#![allow(missing_docs, dead_code, unreachable_pub)]
mod auth; mod caller; mod endpoint; mod error; mod extract; mod options; mod state; mod telemetry;
pub use error::ApiError;
