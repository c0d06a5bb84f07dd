//! Whole kinds of entities, on both databases.

use std::sync::Arc;

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::{EntityRowStore, EntityStores};
use fieldline_model::entity::{Device, DeviceProfile, Tenant, TenantProfile};
use fieldline_model::{DeviceId, DeviceProfileId, EntityType, TenantId, TenantProfileId};
use uuid::Uuid;

async fn tenant(stores: &EntityStores, title: &str) -> (TenantId, DeviceProfileId) {
    let profile = match stores.tenant_profiles.default_profile().await.unwrap() {
        Some(profile) => profile,
        None => {
            let profile = TenantProfile {
                id: TenantProfileId::new(),
                name: "p".into(),
                is_default: true,
                ..TenantProfile::default()
            };
            stores.tenant_profiles.insert(profile).await.unwrap()
        }
    };
    let tenant = Tenant {
        id: TenantId::new(),
        title: title.into(),
        tenant_profile_id: Some(profile.id),
        ..Tenant::default()
    };
    let id = stores.tenants.insert(tenant).await.unwrap().id;
    let profile = DeviceProfile {
        id: DeviceProfileId::new(),
        tenant_id: id,
        name: "meter".into(),
        ..DeviceProfile::default()
    };
    let profile = stores.device_profiles.insert(profile).await.unwrap();
    (id, profile.id)
}

async fn device(
    stores: &EntityStores,
    of: (TenantId, DeviceProfileId),
    name: &str,
    created_time: i64,
) -> Uuid {
    let device = Device {
        id: DeviceId::new(),
        tenant_id: of.0,
        name: name.into(),
        created_time,
        device_profile_id: Some(of.1),
        ..Device::default()
    };
    stores.devices.insert(device).await.unwrap().id.0
}

/// Pages hold each entity of the tenant once, however many were created at one time; ids of others find nothing.
pub(super) async fn are_read_page_by_page(stores: &EntityStores, rows: &Arc<dyn EntityRowStore>) {
    let (mine, other) = (tenant(stores, "mine").await, tenant(stores, "other").await);
    let mut expected = Vec::new();
    for number in 0..7 {
        expected.push(device(stores, mine, &format!("d{number}"), 1_000 + number / 3).await);
    }
    let foreign = device(stores, other, "x", 1_000).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = rows.page(mine.0, EntityType::Device, after, 2).await.unwrap();
        let Some(AnyEntity::Device(last)) = page.last() else {
            break;
        };
        after = Some((last.created_time, last.id.0));
        assert_eq!(last.device_type, "meter");
        found.extend(page.iter().map(|entity| entity.resource().entity.id));
    }
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let asked = [expected[0], foreign, Uuid::from_u128(1)];
    let by_ids = rows.by_ids(mine.0, EntityType::Device, &asked).await.unwrap();
    assert_eq!(by_ids.len(), 1);
    let own = rows.page(mine.0, EntityType::Tenant, None, 9).await.unwrap();
    assert_eq!(own.len(), 1);
    let all = rows
        .page(TenantId::NULL, EntityType::Tenant, None, 9)
        .await
        .unwrap();
    assert!(all.len() >= 2);
    assert!(
        rows.page(mine.0, EntityType::WidgetType, None, 9)
            .await
            .unwrap()
            .is_empty()
    );
}
