//! The clients against stand-ins of services that cannot be run here, which check what they are sent.

mod ai;
mod aws;
mod google;
mod others;
mod rest;
mod server;
