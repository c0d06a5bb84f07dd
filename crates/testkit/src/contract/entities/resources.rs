//! Resources and their files.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use bytes::Bytes;
use fieldline_core::ports::{EntityStores, RESOURCE_PIECE, ResourceFilter, StoreErrorKind};
use fieldline_model::entity::{
    Dashboard, DashboardInfo, ResourceSubType, ResourceType, StoredFile, TbResourceInfo,
};
use fieldline_model::page::PageLink;
use fieldline_model::{DashboardId, EntityType, TbResourceId, TenantId};
use serde_json::json;
use uuid::Uuid;

use super::fixture::{EntityFixture, NOW, expect_error, searched};

/// Stores a file of two pieces.
async fn file(stores: &EntityStores, tenant: TenantId, last: &'static [u8]) -> StoredFile {
    let (resources, file) = (&stores.resources, Uuid::now_v7());
    resources.begin_file(tenant, file, NOW).await.unwrap();
    let first = Bytes::from(vec![7; RESOURCE_PIECE]);
    resources.append(file, 0, first).await.unwrap();
    resources.append(file, 1, Bytes::from_static(last)).await.unwrap();
    StoredFile {
        file,
        size: (RESOURCE_PIECE + last.len()) as u64,
        preview: None,
    }
}

fn image(tenant: TenantId, key: &str, stored: StoredFile) -> TbResourceInfo {
    TbResourceInfo {
        id: TbResourceId::new(),
        created_time: NOW,
        tenant_id: tenant,
        title: format!("Picture {key}"),
        resource_type: Some(ResourceType::Image),
        resource_sub_type: Some(ResourceSubType::Image),
        resource_key: Some(key.to_owned()),
        is_public: true,
        public_resource_key: Some(format!("public{}", Uuid::now_v7().simple())),
        etag: Some(format!("{}-{}", stored.size, key)),
        file_name: Some(key.to_owned()),
        descriptor: Some(json!({ "mediaType": "image/png", "z": 1, "a": 2 })),
        stored,
        ..TbResourceInfo::default()
    }
}

/// Files come with their resource, are replaced and go with it; keys are unique among the system's and in each tenant.
pub async fn resources_keep_their_files_and_their_walls(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let other = EntityFixture::new(stores, "other").await;
    let resources = &stores.resources;
    let save = async |resource: TbResourceInfo| resources.save_with_file(resource, true, None).await;

    let shared = file(stores, TenantId::NULL, b"shared").await;
    let shared = save(image(TenantId::NULL, "a.png", shared))
        .await
        .unwrap()
        .unwrap();
    let own_file = file(stores, world.tenant, b"own").await;
    assert_eq!(
        resources.data_bytes(world.tenant).await.unwrap(),
        2 * RESOURCE_PIECE as u64
    );
    let own = save(image(world.tenant, "a.png", own_file))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(resources.data_bytes(world.tenant).await.unwrap(), own_file.size);
    assert_eq!(own.descriptor.as_ref().unwrap()["a"], 2);
    for tenant in [TenantId::NULL, world.tenant] {
        let again = file(stores, tenant, b"x").await;
        let message = expect_error(
            save(image(tenant, "a.png", again)).await,
            StoreErrorKind::Conflict,
        );
        assert_eq!(message, "Resource with such key already exists!");
        resources.discard_file(again.file).await.unwrap();
        assert_eq!(resources.piece(tenant, again.file, 0).await.unwrap(), None);
    }

    let kind = ResourceType::Image;
    let found = resources.by_key(world.tenant, kind, "a.png").await.unwrap();
    assert_eq!(found, Some(own.clone()));
    assert_eq!(resources.by_key(other.tenant, kind, "a.png").await.unwrap(), None);
    assert_eq!(resources.get(other.tenant, own.id).await.unwrap(), None);
    let tag = own.etag.clone().unwrap();
    assert_eq!(
        resources.by_etag(world.tenant, kind, &tag).await.unwrap(),
        Some(own.clone())
    );
    assert_eq!(resources.by_etag(other.tenant, kind, &tag).await.unwrap(), None);
    let tag = shared.etag.clone().unwrap();
    let known = resources.by_etag(other.tenant, kind, &tag).await.unwrap();
    assert_eq!(known.map(|known| known.id), Some(shared.id));
    let both = [own.id, shared.id];
    assert_eq!(resources.visible(world.tenant, &both).await.unwrap().len(), 2);
    assert_eq!(resources.visible(other.tenant, &both).await.unwrap().len(), 1);
    let public_key = own.public_resource_key.clone().unwrap();
    let public = resources.public_image(&public_key).await.unwrap();
    assert_eq!(public.map(|public| public.id), Some(own.id));
    assert!(resources.has_public_key(&public_key).await.unwrap());
    let piece = resources.piece(world.tenant, own_file.file, 1).await.unwrap();
    assert_eq!(piece.as_deref(), Some(&b"own"[..]));
    assert_eq!(
        resources.piece(world.tenant, own_file.file, 2).await.unwrap(),
        None
    );
    assert_eq!(
        resources.piece(other.tenant, own_file.file, 0).await.unwrap(),
        None
    );

    // The tenant's own stands for the system's of the same key.
    let mut filter = ResourceFilter {
        tenant: world.tenant,
        with_system: true,
        kinds: vec![kind],
        ..ResourceFilter::default()
    };
    let page = resources.list(&filter, &PageLink::first(9)).await.unwrap();
    assert_eq!(page.data, std::slice::from_ref(&own));
    filter.tenant = other.tenant;
    let page = resources.list(&filter, &searched("PICTURE A")).await.unwrap();
    assert_eq!(page.data[0].id, shared.id);
    filter.sub_types = vec![ResourceSubType::ScadaSymbol];
    let page = resources.list(&filter, &PageLink::first(9)).await.unwrap();
    assert!(page.data.is_empty());
    let keys = resources.keys(world.tenant, kind, "a", 9).await.unwrap();
    assert_eq!(keys, ["a.png"]);
    assert!(
        resources
            .keys(world.tenant, kind, "%", 9)
            .await
            .unwrap()
            .is_empty()
    );

    // A limit counts what is replaced no more.
    let larger = file(stores, world.tenant, b"larger").await;
    let replaced = TbResourceInfo {
        stored: larger,
        ..own.clone()
    };
    let too_much = resources
        .save_with_file(replaced.clone(), false, Some(larger.size - 1))
        .await;
    assert_eq!(too_much.unwrap(), None);
    let saved = resources
        .save_with_file(replaced.clone(), false, Some(larger.size))
        .await;
    assert_eq!(saved.unwrap().unwrap().stored, larger);
    assert_eq!(
        resources.piece(world.tenant, own_file.file, 0).await.unwrap(),
        None
    );
    let stale = resources.update(own.clone()).await;
    expect_error(stale, StoreErrorKind::VersionConflict);

    let dashboard = Dashboard {
        info: DashboardInfo {
            id: DashboardId::new(),
            tenant_id: world.tenant,
            title: "shows it".to_owned(),
            ..DashboardInfo::default()
        },
        configuration: Some(json!({ "i": "tb-image;/api/images/tenant/a.png/preview" })),
        ..Dashboard::default()
    };
    stores.dashboards.insert(dashboard).await.unwrap();
    let kinds = [
        EntityType::Dashboard,
        EntityType::WidgetType,
        EntityType::RuleChain,
    ];
    let referring = async |tenant, text| resources.references(tenant, &kinds, text, 5).await.unwrap();
    let link = "tb-image;/api/images/tenant/a.png";
    assert_eq!(referring(world.tenant, link).await[0].name, "shows it");
    assert_eq!(referring(TenantId::NULL, link).await.len(), 1);
    assert!(referring(other.tenant, link).await.is_empty());
    assert!(
        referring(world.tenant, "tb-image;/api/images/tenant/a.pn")
            .await
            .is_empty()
    );

    // A file that is of no resource goes when it is old.
    let loose = file(stores, world.tenant, b"loose").await;
    assert_eq!(resources.discard_files_before(NOW).await.unwrap(), 0);
    assert_eq!(resources.discard_files_before(NOW + 1).await.unwrap(), 1);
    assert_eq!(resources.piece(world.tenant, loose.file, 0).await.unwrap(), None);

    assert!(!resources.delete(other.tenant, own.id).await.unwrap());
    assert!(resources.delete(world.tenant, own.id).await.unwrap());
    assert_eq!(resources.piece(world.tenant, larger.file, 0).await.unwrap(), None);

    let last = file(stores, world.tenant, b"last").await;
    save(image(world.tenant, "b.png", last)).await.unwrap().unwrap();
    assert!(stores.tenants.delete(world.tenant).await.unwrap());
    assert_eq!(resources.piece(world.tenant, last.file, 0).await.unwrap(), None);
    assert!(resources.delete(TenantId::NULL, shared.id).await.unwrap());
}
