//! The audit log.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{AuditFilter, AuditScope, EntityStores};
use fieldline_model::entity::{ActionType, AuditLog, Authority};
use fieldline_model::page::PageLink;
use fieldline_model::{AuditLogId, CustomerId, DeviceId, EntityId, TenantId, UserId, new_uuid};
use serde_json::value::RawValue;

use super::fixture::{EntityFixture, NOW, searched};

fn entry(tenant: TenantId, user: UserId, entity: EntityId, action: ActionType, time: i64) -> AuditLog {
    AuditLog {
        id: AuditLogId(new_uuid()),
        created_time: time,
        tenant_id: tenant,
        customer_id: CustomerId::NULL,
        entity_id: entity,
        entity_name: None,
        user_id: user,
        user_name: None,
        action_type: action,
        action_data: RawValue::from_string(r#"{"entity":{"z":1,"a":null}}"#.into()).unwrap(),
        succeeded: true,
        action_failure_details: String::new(),
    }
}

/// Entries read back with the names of their time, in the order of time, by tenant, customer, user, entity, time and kind.
pub async fn what_people_did_is_found_by_who_and_what(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let other = EntityFixture::new(stores, "other").await;
    let user = world
        .user("ann@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let customer = world.customer("C").await.id;
    let device = world.device("Pump").await.id;
    let gone: EntityId = DeviceId::new().into();
    let tenant = world.tenant;
    let failed = AuditLog {
        succeeded: false,
        customer_id: customer,
        action_failure_details: "no\0pe".into(),
        ..entry(tenant, user, gone, ActionType::Updated, NOW + 1)
    };
    let entries = vec![
        entry(tenant, user, device.into(), ActionType::Added, NOW),
        failed,
        entry(
            tenant,
            UserId::new(),
            device.into(),
            ActionType::AttributesUpdated,
            NOW + 2,
        ),
        entry(other.tenant, user, device.into(), ActionType::Deleted, NOW + 3),
        entry(TenantId::NULL, user, gone, ActionType::Login, NOW + 4),
        // Its tenant is gone already.
        entry(TenantId::new(), user, gone, ActionType::Login, NOW + 5),
    ];
    stores.audit.append(entries).await.unwrap();
    let list = async |tenant, filter: &AuditFilter, link: &PageLink| {
        let page = stores.audit.list(tenant, filter, link).await.unwrap();
        assert_eq!(page.total_elements as usize, page.data.len());
        page.data
    };
    let times = |found: &[AuditLog]| {
        found
            .iter()
            .map(|entry| entry.created_time - NOW)
            .collect::<Vec<_>>()
    };
    let (all, every) = (PageLink::first(10), AuditFilter::default());
    let found = list(tenant, &every, &all).await;
    assert_eq!(times(&found), [2, 1, 0], "the newest come first");
    assert_eq!(found[2].entity_name.as_deref(), Some("Pump"));
    assert_eq!(found[2].user_name.as_deref(), Some("ann@x.org"));
    assert_eq!(found[2].action_data.get(), r#"{"entity":{"z":1,"a":null}}"#);
    assert_eq!(found[1].entity_name.as_deref(), Some("N/A"));
    assert!(!found[1].succeeded && found[1].action_failure_details.starts_with("no"));
    for (scope, expected) in [
        (AuditScope::Customer(customer), vec![1]),
        (AuditScope::User(user), vec![1, 0]),
        (AuditScope::Entity(device.into()), vec![2, 0]),
        (
            AuditScope::Entity(EntityId::new(fieldline_model::EntityType::Asset, device.0)),
            vec![],
        ),
    ] {
        let filter = AuditFilter {
            scope,
            ..AuditFilter::default()
        };
        assert_eq!(times(&list(tenant, &filter, &all).await), expected, "{scope:?}");
    }
    let filter = AuditFilter {
        start_time: Some(NOW + 1),
        end_time: Some(NOW + 2),
        actions: vec![ActionType::AttributesUpdated, ActionType::Added],
        ..AuditFilter::default()
    };
    assert_eq!(times(&list(tenant, &filter, &all).await), [2]);
    for (text, expected) in [
        ("PUMP", vec![2, 0]),
        ("failure", vec![1]),
        ("ann@", vec![1, 0]),
        ("%", vec![]),
    ] {
        let link = PageLink {
            text_search: Some(text.into()),
            sort_property: None,
            sort_order: None,
            ..searched(text)
        };
        assert_eq!(times(&list(tenant, &every, &link).await), expected, "{text}");
    }
    assert_eq!(times(&list(TenantId::NULL, &every, &all).await), [4]);
}

/// Old entries are deleted, and those of a tenant go with it.
pub async fn what_people_did_is_forgotten_in_time(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let (user, entity) = (UserId::new(), DeviceId::new().into());
    let entries = (0..5).map(|n| entry(world.tenant, user, entity, ActionType::Updated, NOW + n));
    stores.audit.append(entries.collect()).await.unwrap();
    assert_eq!(stores.audit.delete_before(NOW + 2).await.unwrap(), 2);
    let every = AuditFilter::default();
    let left = stores
        .audit
        .list(world.tenant, &every, &PageLink::first(9))
        .await
        .unwrap();
    assert_eq!(left.total_elements, 3);
    stores.tenants.delete(world.tenant).await.unwrap();
    let left = stores
        .audit
        .list(world.tenant, &every, &PageLink::first(9))
        .await
        .unwrap();
    assert_eq!(left.total_elements, 0);
}
