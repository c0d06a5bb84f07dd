//! Calculated fields.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{CalculatedFieldFilter, EntityStores, StoreErrorKind};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{CalculatedFieldId, DeviceId, EntityId, EntityType, TenantId};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error, searched, sorted};

fn field(world: &EntityFixture<'_>, entity: EntityId, name: &str) -> CalculatedField {
    CalculatedField {
        id: CalculatedFieldId::new(),
        created_time: NOW,
        tenant_id: world.tenant,
        entity_id: Some(entity),
        field_type: CalculatedFieldType::Simple,
        name: name.into(),
        configuration_version: 1,
        configuration: json!({
            "type": "SIMPLE",
            "arguments": { "a": { "refEntityKey": { "key": "a", "type": "TS_LATEST" } } },
            "expression": "a", "output": { "type": "TIME_SERIES", "name": "b" }, "unknown": [1, null],
        }),
        additional_info: Some(json!({ "description": "für alle" })),
        ..CalculatedField::default()
    }
}

async fn names(stores: &EntityStores, tenant: TenantId, filter: &CalculatedFieldFilter) -> Vec<String> {
    let page = sorted("name", SortOrder::Asc);
    let page = stores
        .calculated_fields
        .list(tenant, filter, &page)
        .await
        .unwrap();
    assert_eq!(page.total_elements, page.data.len() as u64);
    page.data.into_iter().map(|info| info.field.name).collect()
}

/// A field reads back whole, counts its versions, and belongs to one tenant.
pub async fn calculated_fields_are_kept_like_devices(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "A").await;
    let other = EntityFixture::new(stores, "B").await;
    let device: EntityId = world.device("pump").await.id.into();
    let fields = &stores.calculated_fields;

    let new = field(&world, device, "Größe");
    let saved = fields.insert(new.clone()).await.unwrap();
    assert_eq!(
        saved,
        CalculatedField {
            version: Some(1),
            ..new.clone()
        }
    );
    let id = saved.id;
    assert_eq!(fields.get(world.tenant, id).await.unwrap(), Some(saved.clone()));
    assert_eq!(fields.get(other.tenant, id).await.unwrap(), None);

    let same_name = CalculatedField {
        id: CalculatedFieldId::new(),
        ..new.clone()
    };
    let taken = expect_error(fields.insert(same_name.clone()).await, StoreErrorKind::Conflict);
    assert_eq!(taken, "Calculated field with such name and type already exists");
    let other_type = CalculatedField {
        field_type: CalculatedFieldType::Script,
        ..same_name
    };
    fields.insert(other_type).await.unwrap();

    let renamed = CalculatedField {
        name: "Size".into(),
        ..saved.clone()
    };
    assert_eq!(fields.update(renamed).await.unwrap().version, Some(2));
    expect_error(
        fields.update(saved.clone()).await,
        StoreErrorKind::VersionConflict,
    );
    let stolen = CalculatedField {
        tenant_id: other.tenant,
        ..saved
    };
    expect_error(fields.update(stolen).await, StoreErrorKind::NotFound);

    assert!(!fields.delete(other.tenant, id).await.unwrap());
    assert!(fields.delete(world.tenant, id).await.unwrap());
    assert!(!fields.delete(world.tenant, id).await.unwrap());
}

/// Lists are filtered by type, entity and name, searched and sorted; names are listed once.
pub async fn calculated_fields_are_found_by_what_they_are(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "A").await;
    let pump: EntityId = world.device("pump").await.id.into();
    let valve: EntityId = world.device("valve").await.id.into();
    let profile: EntityId = world.profile.id.into();
    let fields = &stores.calculated_fields;
    for (entity, name, kind) in [
        (pump, "mean", CalculatedFieldType::Simple),
        (valve, "mean", CalculatedFieldType::Simple),
        (valve, "Area_1", CalculatedFieldType::Geofencing),
        (profile, "hot", CalculatedFieldType::Alarm),
    ] {
        let new = CalculatedField {
            field_type: kind,
            ..field(&world, entity, name)
        };
        fields.insert(new).await.unwrap();
    }
    let filter = CalculatedFieldFilter::default;
    for (filter, expected) in [
        (filter(), vec!["Area_1", "hot", "mean", "mean"]),
        (
            CalculatedFieldFilter {
                types: Some(vec![CalculatedFieldType::Alarm]),
                ..filter()
            },
            vec!["hot"],
        ),
        (
            CalculatedFieldFilter {
                types: Some(vec![]),
                ..filter()
            },
            vec![],
        ),
        (
            CalculatedFieldFilter {
                entity_types: Some(vec![EntityType::DeviceProfile]),
                ..filter()
            },
            vec!["hot"],
        ),
        (
            CalculatedFieldFilter {
                entities: Some(vec![valve.id]),
                ..filter()
            },
            vec!["Area_1", "mean"],
        ),
        (
            CalculatedFieldFilter {
                names: Some(vec!["mean".into(), "x".into()]),
                ..filter()
            },
            vec!["mean", "mean"],
        ),
    ] {
        assert_eq!(names(stores, world.tenant, &filter).await, expected, "{filter:?}");
    }
    let found = fields
        .list(world.tenant, &filter(), &searched("area_"))
        .await
        .unwrap();
    assert_eq!(found.data[0].field.name, "Area_1");
    assert_eq!(found.data[0].entity_name.as_deref(), Some("valve"));
    let kind = CalculatedFieldType::Simple;
    let listed = fields
        .names(world.tenant, kind, &PageLink::first(10))
        .await
        .unwrap();
    assert_eq!((listed.data, listed.total_elements), (vec!["mean".to_owned()], 1));
    let listed = fields.names(world.tenant, kind, &searched("x")).await.unwrap();
    assert!(listed.data.is_empty());
    assert_eq!(fields.count_of_entity(world.tenant, valve).await.unwrap(), 2);
    assert_eq!(
        fields.count_of_entity(world.tenant, profile).await.unwrap(),
        0,
        "alarm rules do not count"
    );
    assert_eq!(fields.of_entity(world.tenant, valve).await.unwrap().len(), 2);
    let nowhere = EntityFixture::new(stores, "B").await;
    assert!(names(stores, nowhere.tenant, &filter()).await.is_empty());
    assert!(fields.of_entity(nowhere.tenant, valve).await.unwrap().is_empty());
}

/// All fields of an entity are deleted together; who is named in arguments is known as long as the field is there.
pub async fn calculated_fields_go_with_their_entity(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "A").await;
    let pump: EntityId = world.device("pump").await.id.into();
    let valve: EntityId = world.device("valve").await.id.into();
    let fields = &stores.calculated_fields;
    let mut naming = field(&world, pump, "naming");
    naming.configuration["arguments"]["a"]["refEntityId"] = json!({ "entityType": "DEVICE", "id": valve.id });
    let naming = fields.insert(naming).await.unwrap();
    let other = fields.insert(field(&world, pump, "other")).await.unwrap();
    let kept = fields.insert(field(&world, valve, "kept")).await.unwrap();
    let referenced = |entity| fields.is_referenced(world.tenant, entity);
    assert!(referenced(valve).await.unwrap());
    assert!(!referenced(pump).await.unwrap());
    // An update says anew who is named.
    let mut plain = naming.clone();
    plain.configuration = other.configuration.clone();
    let plain = fields.update(plain).await.unwrap();
    assert!(!referenced(valve).await.unwrap());
    let again = CalculatedField {
        configuration: naming.configuration.clone(),
        ..plain
    };
    fields.update(again).await.unwrap();
    assert!(referenced(valve).await.unwrap());

    let mut deleted = fields.delete_of_entity(world.tenant, pump).await.unwrap();
    deleted.sort_unstable();
    let mut expected = vec![naming.id, other.id];
    expected.sort_unstable();
    assert_eq!(deleted, expected);
    assert!(!referenced(valve).await.unwrap());
    let nobody: EntityId = DeviceId::new().into();
    assert!(
        fields
            .delete_of_entity(world.tenant, nobody)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(fields.of_entity(world.tenant, valve).await.unwrap(), [kept]);
    // And with their tenant.
    assert!(stores.tenants.delete(world.tenant).await.unwrap());
    assert!(fields.of_entity(world.tenant, valve).await.unwrap().is_empty());
}
