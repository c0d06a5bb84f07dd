//! The nodes.

mod action;
pub(crate) mod derived;
mod enrichment;
pub(crate) mod entities;
mod external;
mod filter;
mod flow;
pub(crate) mod geofence;
pub(crate) mod json_path;
mod message_codec;
pub(crate) mod message_part;
mod pending_limiter;
mod profile;
pub(crate) mod regex;
pub(crate) mod relations;
pub(crate) mod script;
pub(crate) mod text;
pub(crate) mod text_template;
pub(crate) mod time;
mod transformation;

#[cfg(test)]
pub(crate) mod tests;

use crate::node_types::NodeType;

/// All of them, group by group.
pub const GROUPS: &[&[NodeType]] = &[
    action::telemetry::NODES,
    action::alarm::NODES,
    action::log::NODES,
    action::message_count::NODES,
    action::device_state::NODES,
    action::rpc::NODES,
    action::delay::NODES,
    action::customer::NODES,
    action::generator::NODES,
    action::geofencing::NODES,
    action::relation::NODES,
    action::copy_to_view::NODES,
    action::math::NODES,
    action::unavailable::NODES,
    external::rest::NODES,
    external::mqtt::NODES,
    external::kafka::NODES,
    external::rabbitmq::NODES,
    external::aws::NODES,
    external::pubsub::NODES,
    external::mail::NODES,
    external::sms::NODES,
    external::notification::NODES,
    external::ai::NODES,
    profile::NODES,
    filter::scripts::NODES,
    filter::types::NODES,
    filter::checks::NODES,
    filter::geofencing::NODES,
    flow::chains::NODES,
    flow::queues::NODES,
    enrichment::attributes::NODES,
    enrichment::mapped::NODES,
    enrichment::details::NODES,
    enrichment::fields::NODES,
    enrichment::telemetry::NODES,
    enrichment::credentials::NODES,
    enrichment::delta::NODES,
    transformation::script::NODES,
    transformation::originator::NODES,
    transformation::copy::NODES,
    transformation::remove::NODES,
    transformation::rename::NODES,
    transformation::json_path::NODES,
    transformation::split::NODES,
    transformation::deduplication::NODES,
    transformation::email::NODES,
];
