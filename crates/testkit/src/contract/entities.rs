//! The promises of the entity stores. Every function wants a database of its own, empty; [`entity_contract!`] makes a
//! test of each.

mod alarm_lifetime;
pub(super) mod alarms;
mod api_keys;
mod audit;
mod calculated_fields;
mod cleanup;
mod dashboards;
mod deleting;
mod devices;
mod events;
pub mod fixture;
mod importing;
mod limits;
mod listing;
mod mqtt_clients;
pub(super) mod ota;
mod relations;
mod resources;
mod rpcs;
pub(super) mod rule_chains;
mod saving;
mod searching;
pub(super) mod set_aside;
mod settings;
mod sign_ins;
mod tenant_isolation;
mod tenant_transfer;
mod users;
pub(super) mod versions;
mod widgets;

pub use alarm_lifetime::{
    alarms_stay_within_their_tenant, comments_stand_under_their_alarm, deleted_alarms_are_gone,
};
pub use alarms::{
    a_replayed_draft_raises_nothing, alarms_are_found_where_they_show,
    changes_of_an_alarm_say_whether_they_were_any, concurrent_raises_make_one_alarm,
    one_alarm_of_a_type_is_active_at_a_time,
};
pub use api_keys::keys_are_found_by_their_hash_and_go_with_their_user;
pub use audit::{what_people_did_is_forgotten_in_time, what_people_did_is_found_by_who_and_what};
pub use calculated_fields::{
    calculated_fields_are_found_by_what_they_are, calculated_fields_are_kept_like_devices,
    calculated_fields_go_with_their_entity,
};
pub use cleanup::{a_tenant_with_many_rows_goes_whole, what_goes_is_noted_as_left};
pub use dashboards::{
    dashboards_are_assigned_to_customers, dashboards_of_mobile_applications_have_an_order,
    dashboards_read_back_whole, dashboards_stay_within_their_tenant,
    only_public_customers_are_found_without_their_tenant,
};
pub use deleting::{
    deleting_a_customer_unassigns_its_devices_and_deletes_its_users,
    deleting_a_tenant_deletes_everything_that_belongs_to_it, profiles_in_use_cannot_be_deleted,
    what_is_deleted_is_gone_and_can_be_made_again,
};
pub use devices::{
    a_device_and_its_credentials_are_created_both_or_neither, active_devices_are_read_in_pieces,
    activity_is_recorded_for_many_devices_at_once, credentials_are_found_by_type_and_id,
    credentials_are_replaced_under_their_version, device_lists_are_filtered,
    profiles_are_named_all_or_those_that_a_device_has, renaming_a_profile_renames_the_type_of_its_devices,
};
pub use events::{events_are_found_by_what_they_hold, events_go_where_they_are_not_wanted_any_more};
pub use importing::{
    of_an_import_that_fails_halfway_the_stored_half_is_answered, of_many_assets_the_good_ones_are_stored,
    of_many_devices_the_good_ones_are_stored,
};
pub use limits::{
    queries_of_alarms_name_so_many_entities_and_no_more, searches_along_relations_end_at_their_bound,
};
pub use listing::{
    devices_are_sorted_by_every_promised_property, owners_are_sorted_by_every_promised_property,
    pages_cover_a_list_without_gaps_or_repeats, the_newest_come_first_where_no_order_is_asked_for,
    unknown_sort_properties_are_refused_by_name,
};
pub use mqtt_clients::{
    blocked_mqtt_clients_are_kept_until_they_are_forgotten,
    credentials_of_mqtt_clients_are_found_by_what_names_them,
    credentials_of_mqtt_clients_are_listed_by_what_they_say, shared_subscriptions_are_kept_by_their_filter,
};
pub use ota::{
    devices_wait_for_being_told_of_their_package, packages_read_back_whole_with_their_data,
    packages_stay_within_what_their_tenant_may_have, packages_that_are_assigned_stay,
    tenants_take_turns_in_being_told,
};
pub use relations::{
    assets_are_kept_like_devices, entity_views_are_kept_like_devices, relations_are_found_from_both_ends,
    searches_walk_along_relations,
};
pub use resources::resources_keep_their_files_and_their_walls;
pub use rpcs::{calls_are_found_until_they_end, calls_of_others_are_not_there};
pub use rule_chains::{
    a_rule_chain_is_saved_whole_with_its_nodes, metadata_of_a_rule_chain_is_guarded_by_its_version,
    queues_are_shared_or_of_a_tenant, rule_chains_are_listed_and_one_of_a_type_is_the_root,
    rule_chains_stay_within_their_tenant,
};
pub use saving::{
    devices_read_back_whole, hostile_texts_are_stored_as_they_are_or_refused,
    of_many_updates_of_one_version_exactly_one_succeeds, only_one_profile_is_the_default,
    owners_read_back_whole, references_to_nothing_are_refused,
    taken_values_are_conflicts_that_say_what_is_taken, versions_count_up_and_guard_updates,
};
pub use searching::{
    a_text_search_is_the_list_without_what_does_not_match, text_search_ignores_case_in_every_script,
    text_search_looks_where_it_promises, wildcards_in_a_text_search_are_plain_characters,
};
pub use set_aside::{
    records_that_were_set_aside_are_kept_whole, records_that_were_set_aside_stay_within_their_room,
};
pub use settings::{
    settings_of_the_installation_are_kept_by_key, settings_of_users_go_with_them,
    wrong_and_earlier_passwords_are_remembered,
};
pub use sign_ins::{
    a_refresh_token_is_replaced_once, places_of_sign_ins_are_remembered,
    sessions_of_a_user_are_listed_and_ended, sessions_that_have_ended_are_remembered_while_they_matter,
};
pub use tenant_isolation::{tenants_cannot_change_each_other, tenants_do_not_see_each_other};
pub use tenant_transfer::devices_go_from_one_tenant_to_another;
pub use users::{
    users_are_found_by_email_regardless_of_case, users_are_listed_by_what_they_are,
    users_log_in_by_credentials,
};
pub use versions::{
    each_save_of_a_dashboard_is_a_version, each_save_of_nodes_is_a_version_of_their_chain,
    versions_stay_within_their_room, what_was_saved_before_there_were_versions_is_kept_once,
};
pub use widgets::the_widget_library_is_shared_or_of_a_tenant;

/// Makes a `#[tokio::test]` of every promise of the entity stores. `$open` is an async function that returns a fixture
/// with the field `stores` and the async method `close(self)`; further arguments are attributes of the tests.
#[macro_export]
macro_rules! entity_contract {
    ($open:path $(, $attribute:meta)*) => {
        $crate::entity_contract! { @ $open, [$($attribute),*],
            calculated_fields_are_kept_like_devices
            calculated_fields_are_found_by_what_they_are
            calculated_fields_go_with_their_entity
            calls_are_found_until_they_end
            calls_of_others_are_not_there
            packages_read_back_whole_with_their_data
            packages_that_are_assigned_stay
            devices_wait_for_being_told_of_their_package
            packages_stay_within_what_their_tenant_may_have
            tenants_take_turns_in_being_told
            devices_go_from_one_tenant_to_another
            dashboards_read_back_whole
            each_save_of_a_dashboard_is_a_version
            each_save_of_nodes_is_a_version_of_their_chain
            versions_stay_within_their_room
            what_was_saved_before_there_were_versions_is_kept_once
            dashboards_are_assigned_to_customers
            dashboards_of_mobile_applications_have_an_order
            dashboards_stay_within_their_tenant
            only_public_customers_are_found_without_their_tenant
            settings_of_the_installation_are_kept_by_key
            settings_of_users_go_with_them
            wrong_and_earlier_passwords_are_remembered
            what_people_did_is_found_by_who_and_what
            what_people_did_is_forgotten_in_time
            of_many_devices_the_good_ones_are_stored
            of_an_import_that_fails_halfway_the_stored_half_is_answered
            of_many_assets_the_good_ones_are_stored
            keys_are_found_by_their_hash_and_go_with_their_user
            a_refresh_token_is_replaced_once
            places_of_sign_ins_are_remembered
            blocked_mqtt_clients_are_kept_until_they_are_forgotten
            credentials_of_mqtt_clients_are_found_by_what_names_them
            credentials_of_mqtt_clients_are_listed_by_what_they_say
            shared_subscriptions_are_kept_by_their_filter
            sessions_of_a_user_are_listed_and_ended
            sessions_that_have_ended_are_remembered_while_they_matter
            active_devices_are_read_in_pieces
            records_that_were_set_aside_are_kept_whole
            records_that_were_set_aside_stay_within_their_room
            owners_read_back_whole
            devices_read_back_whole
            versions_count_up_and_guard_updates
            of_many_updates_of_one_version_exactly_one_succeeds
            taken_values_are_conflicts_that_say_what_is_taken
            references_to_nothing_are_refused
            hostile_texts_are_stored_as_they_are_or_refused
            only_one_profile_is_the_default
            tenants_do_not_see_each_other
            tenants_cannot_change_each_other
            pages_cover_a_list_without_gaps_or_repeats
            the_newest_come_first_where_no_order_is_asked_for
            owners_are_sorted_by_every_promised_property
            devices_are_sorted_by_every_promised_property
            unknown_sort_properties_are_refused_by_name
            text_search_ignores_case_in_every_script
            text_search_looks_where_it_promises
            wildcards_in_a_text_search_are_plain_characters
            a_text_search_is_the_list_without_what_does_not_match
            device_lists_are_filtered
            activity_is_recorded_for_many_devices_at_once
            renaming_a_profile_renames_the_type_of_its_devices
            a_device_and_its_credentials_are_created_both_or_neither
            credentials_are_replaced_under_their_version
            credentials_are_found_by_type_and_id
            users_are_found_by_email_regardless_of_case
            users_are_listed_by_what_they_are
            users_log_in_by_credentials
            what_is_deleted_is_gone_and_can_be_made_again
            deleting_a_tenant_deletes_everything_that_belongs_to_it
            deleting_a_customer_unassigns_its_devices_and_deletes_its_users
            profiles_in_use_cannot_be_deleted
            what_goes_is_noted_as_left
            a_tenant_with_many_rows_goes_whole
            a_rule_chain_is_saved_whole_with_its_nodes
            metadata_of_a_rule_chain_is_guarded_by_its_version
            rule_chains_are_listed_and_one_of_a_type_is_the_root
            rule_chains_stay_within_their_tenant
            queues_are_shared_or_of_a_tenant
            the_widget_library_is_shared_or_of_a_tenant
            resources_keep_their_files_and_their_walls
            events_are_found_by_what_they_hold
            events_go_where_they_are_not_wanted_any_more
            searches_along_relations_end_at_their_bound
            queries_of_alarms_name_so_many_entities_and_no_more
            profiles_are_named_all_or_those_that_a_device_has
            one_alarm_of_a_type_is_active_at_a_time
            concurrent_raises_make_one_alarm
            a_replayed_draft_raises_nothing
            changes_of_an_alarm_say_whether_they_were_any
            alarms_are_found_where_they_show
            deleted_alarms_are_gone
            comments_stand_under_their_alarm
            alarms_stay_within_their_tenant
            relations_are_found_from_both_ends
            searches_walk_along_relations
            assets_are_kept_like_devices
            entity_views_are_kept_like_devices
        }
    };
    (@ $open:path, $attributes:tt, $($promise:ident)*) => {
        $($crate::entity_contract! { @one $open, $attributes, $promise })*
    };
    (@one $open:path, [$($attribute:meta),*], $promise:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $(#[$attribute])*
        async fn $promise() {
            let fixture = $open().await;
            $crate::contract::entities::$promise(&fixture.stores).await;
            fixture.close().await;
        }
    };
}
