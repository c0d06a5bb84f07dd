//! The controllers, one file per area: each parses its request, checks the caller's access to the entity, and calls the
//! services.

mod absent_features;
mod admin;
mod admin_mail;
mod admin_security;
mod alarm;
mod alarm_comment;
mod alarm_list;
mod alarm_query;
mod alarm_rule;
mod api_key;
mod asset;
mod asset_profile;
mod assignable;
mod audit_log;
mod auth;
mod blocked_client;
mod broker;
mod bulk_import;
mod calculated_field;
mod calculated_field_list;
mod calculated_field_reprocess;
mod claim;
mod conflict;
mod customer;
mod dashboard;
mod dashboard_assignment;
mod dashboard_home;
mod dashboard_list;
mod device;
mod device_connectivity;
mod device_profile;
mod device_session;
mod entity_query;
mod entity_search;
mod entity_view;
mod event;
mod image;
mod login;
mod map;
mod mqtt_auth_provider;
mod mqtt_credentials;
mod ota_package;
mod overload;
mod password_reset;
mod profile;
mod queue;
mod queue_stats;
mod relation;
mod relation_list;
mod resource;
mod rpc;
mod rule_chain;
mod rule_chain_counters;
mod rule_chain_replay;
mod rule_engine;
mod rule_node;
mod rule_usage;
mod set_aside;
mod system;
mod tenant;
mod tenant_profile;
mod usage;
mod user;
mod user_list;
mod user_session;
mod user_settings;
mod widget_type;
mod widgets_bundle;

use fieldline_model::{EntityId, EntityType, TenantId};
use serde::Serialize;

use crate::endpoint::ApiRoutes;

/// The endpoints of all controllers.
pub(crate) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .merge(auth::routes())
        .merge(audit_log::routes())
        .merge(api_key::routes())
        .merge(broker::routes())
        .merge(bulk_import::routes())
        .merge(login::routes())
        .merge(ota_package::routes())
        .merge(overload::routes())
        .merge(password_reset::routes())
        .merge(admin::routes())
        .merge(admin_mail::routes())
        .merge(admin_security::routes())
        .merge(alarm_rule::routes())
        .merge(calculated_field::routes())
        .merge(calculated_field_list::routes())
        .merge(calculated_field_reprocess::routes())
        .merge(tenant::routes())
        .merge(tenant_profile::routes())
        .merge(customer::routes())
        .merge(dashboard::routes())
        .merge(dashboard_assignment::routes())
        .merge(dashboard_home::routes())
        .merge(dashboard_list::routes())
        .merge(user::routes())
        .merge(user_list::routes())
        .merge(user_session::routes())
        .merge(user_settings::routes())
        .merge(device::routes())
        .merge(device_profile::routes())
        .merge(asset::routes())
        .merge(asset_profile::routes())
        .merge(entity_view::routes())
        .merge(entity_query::routes())
        .merge(entity_search::routes())
        .merge(relation::routes())
        .merge(relation_list::routes())
        .merge(alarm::routes())
        .merge(alarm_list::routes())
        .merge(alarm_query::routes())
        .merge(alarm_comment::routes())
        .merge(rule_chain::routes())
        .merge(rule_chain_counters::routes())
        .merge(rule_chain_replay::routes())
        .merge(rule_engine::routes())
        .merge(rule_node::routes())
        .merge(queue::routes())
        .merge(device_session::routes())
        .merge(rpc::routes())
        .merge(claim::routes())
        .merge(queue_stats::routes())
        .merge(event::routes())
        .merge(set_aside::routes())
        .merge(system::routes())
        .merge(map::routes())
        .merge(mqtt_credentials::routes())
        .merge(mqtt_auth_provider::routes())
        .merge(blocked_client::routes())
        .merge(rule_usage::routes())
        .merge(usage::routes())
        .merge(absent_features::routes())
        .merge(device_connectivity::routes())
        .merge(image::routes())
        .merge(resource::routes())
        .merge(widget_type::routes())
        .merge(widgets_bundle::routes())
}

/// Id and name of an entity.
#[derive(Serialize, utoipa::ToSchema)]
struct EntityInfo {
    /// Id with its entity type.
    id: EntityId,
    /// Name.
    name: String,
}

/// A type of entities, such as the profile name of devices.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct EntitySubtype {
    /// The tenant.
    tenant_id: TenantId,
    /// The kind of the entities, such as `DEVICE`.
    #[schema(value_type = String)]
    entity_type: EntityType,
    /// Name of the type.
    #[serde(rename = "type")]
    subtype: String,
}

/// One of two response types, chosen by the query parameters.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(untagged)]
enum Either<A, B> {
    Left(A),
    Right(B),
}
