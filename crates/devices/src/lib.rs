//! Devices and the way back to them: which there are, when they were heard, their sessions, and what is handed to these:
//! attributes, RPCs, firmware and software.

pub mod activity;
pub mod directory;
pub mod downlink;
pub mod ota;
pub mod rpc;
pub mod sessions;

mod sharded_map;
