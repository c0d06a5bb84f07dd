//! OTA packages, and which devices have been told of which.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use bytes::Bytes;
use fieldline_core::ports::{
    EntityStores, OTA_PIECE, OtaPackageFilter, OtaScope, OtaTarget, OtaUpdate, StoreErrorKind,
};
use fieldline_model::entity::{ChecksumAlgorithm, Device, OtaKind, OtaPackageInfo};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{DeviceId, EntityId, OtaPackageId, TenantId, new_uuid};
use serde_json::json;
use uuid::Uuid;

use super::fixture::{EntityFixture, NOW, expect_error, searched, sorted};

fn package(world: &EntityFixture<'_>, kind: OtaKind, version: &str) -> OtaPackageInfo {
    OtaPackageInfo {
        id: OtaPackageId::new(),
        created_time: NOW,
        tenant_id: world.tenant,
        device_profile_id: Some(world.profile.id),
        kind: Some(kind),
        title: "Pümpe".into(),
        name: "Pümpe".into(),
        version: version.into(),
        tag: Some("nightly".into()),
        external_id: Some(OtaPackageId::new()),
        additional_info: Some(json!({ "description": "δ" })),
        ..OtaPackageInfo::default()
    }
}

/// A package whose four bytes are uploaded and not attached yet, with their upload.
pub(in crate::contract) async fn uploaded(
    world: &EntityFixture<'_>,
    version: &str,
) -> (OtaPackageInfo, Uuid) {
    let packages = &world.stores.ota_packages;
    let saved = packages
        .insert(package(world, OtaKind::Firmware, version))
        .await
        .unwrap();
    let upload = new_uuid();
    packages.begin_upload(world.tenant, upload, NOW).await.unwrap();
    packages
        .append(upload, 0, Bytes::from_static(b"data"))
        .await
        .unwrap();
    let whole = OtaPackageInfo {
        data_size: Some(4),
        ..saved
    };
    (whole, upload)
}

/// A package with data of a piece and a half.
async fn ready(world: &EntityFixture<'_>, kind: OtaKind, version: &str) -> OtaPackageInfo {
    let stores = &world.stores.ota_packages;
    let saved = stores.insert(package(world, kind, version)).await.unwrap();
    let upload = new_uuid();
    stores.begin_upload(world.tenant, upload, NOW).await.unwrap();
    stores
        .append(upload, 0, Bytes::from(vec![1; OTA_PIECE]))
        .await
        .unwrap();
    stores
        .append(upload, 1, Bytes::from_static(b"\0end"))
        .await
        .unwrap();
    let whole = OtaPackageInfo {
        file_name: Some("pump.bin".into()),
        content_type: Some("application/octet-stream".into()),
        checksum_algorithm: Some(ChecksumAlgorithm::Murmur3x128),
        checksum: Some("00".into()),
        data_size: Some(OTA_PIECE as i64 + 4),
        ..saved
    };
    stores.attach(whole, upload, None).await.unwrap().unwrap()
}

/// A package reads back as it was saved, with its data once that is whole; uploads that become nothing are deleted.
pub async fn packages_read_back_whole_with_their_data(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let packages = &stores.ota_packages;
    let new = package(&world, OtaKind::Firmware, "1.0");
    let id = new.id;
    let saved = packages.insert(new.clone()).await.unwrap();
    assert_eq!(saved, new);
    assert_eq!(packages.get(world.tenant, id).await.unwrap(), Some(saved.clone()));
    let twin = packages.insert(package(&world, OtaKind::Software, "1.0")).await;
    let message = expect_error(twin, StoreErrorKind::Conflict);
    assert_eq!(message, "OtaPackage with such title and version already exists!");

    let whole = ready(&world, OtaKind::Firmware, "2.0").await;
    let whole_id = whole.id;
    assert!(whole.has_data && !saved.has_data);
    assert_eq!(
        packages.get(world.tenant, whole_id).await.unwrap(),
        Some(whole.clone())
    );
    assert_eq!(
        packages.data_bytes(world.tenant).await.unwrap(),
        OTA_PIECE as u64 + 4
    );
    let piece = packages.piece(world.tenant, whole_id, 0).await.unwrap().unwrap();
    assert!(piece.len() == OTA_PIECE && piece.iter().all(|byte| *byte == 1));
    let piece = packages.piece(world.tenant, whole_id, 1).await.unwrap();
    assert_eq!(piece.as_deref(), Some(&b"\0end"[..]));
    assert_eq!(packages.piece(world.tenant, whole_id, 2).await.unwrap(), None);
    // Who has read it before the data came does not take that away again.
    let before = OtaPackageInfo {
        data_size: None,
        checksum: None,
        ..whole.clone()
    };
    expect_error(packages.update(before).await, StoreErrorKind::VersionConflict);
    let tagged = OtaPackageInfo {
        tag: Some("weekly".into()),
        ..whole.clone()
    };
    assert_eq!(packages.update(tagged.clone()).await.unwrap(), tagged);
    assert_eq!(packages.update(whole.clone()).await.unwrap(), whole);
    // Data comes once.
    let (second, third) = (new_uuid(), new_uuid());
    packages.begin_upload(world.tenant, second, NOW).await.unwrap();
    packages.begin_upload(world.tenant, third, NOW + 2).await.unwrap();
    expect_error(
        packages.attach(whole.clone(), second, None).await,
        StoreErrorKind::Conflict,
    );
    assert_eq!(packages.discard_before(NOW + 1).await.unwrap(), 1);
    packages.discard(third).await.unwrap();
    assert_eq!(packages.discard_before(i64::MAX).await.unwrap(), 0);
    assert!(packages.piece(world.tenant, whole_id, 1).await.unwrap().is_some());

    let linked = OtaPackageInfo {
        url: Some("https://example.org/x".into()),
        ..package(&world, OtaKind::Software, "3.0")
    };
    let linked = packages.insert(linked).await.unwrap();
    assert!(linked.has_data);
    let versions = async |filter, link: PageLink| {
        let page = packages.list(world.tenant, filter, &link).await.unwrap();
        page.data.into_iter().map(|one| one.version).collect::<Vec<_>>()
    };
    let profile = world.profile.id;
    let by_version = sorted("version", SortOrder::Desc);
    assert_eq!(
        versions(OtaPackageFilter::All, by_version.clone()).await,
        ["3.0", "2.0", "1.0"]
    );
    let ready = OtaPackageFilter::Ready(profile, OtaKind::Firmware);
    assert_eq!(versions(ready, by_version).await, ["2.0"]);
    assert_eq!(versions(OtaPackageFilter::All, searched("PÜMP")).await.len(), 3);
    for property in [
        "title",
        "type",
        "tag",
        "url",
        "fileName",
        "dataSize",
        "createdTime",
    ] {
        let link = sorted(property, SortOrder::Asc);
        assert_eq!(versions(OtaPackageFilter::All, link).await.len(), 3, "{property}");
    }

    assert!(packages.delete(world.tenant, whole_id).await.unwrap());
    assert!(!packages.delete(world.tenant, whole_id).await.unwrap());
    assert_eq!(packages.data_bytes(world.tenant).await.unwrap(), 0);
    assert_eq!(packages.piece(world.tenant, whole_id, 0).await.unwrap(), None);
}

/// A package stays while somebody has it, and another tenant never sees it; it goes with its tenant.
pub async fn packages_that_are_assigned_stay(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let other = EntityFixture::new(stores, "other").await;
    let packages = &stores.ota_packages;
    for (kind, of_device, of_profile) in [
        (
            OtaKind::Firmware,
            "The otaPackage referenced by the devices cannot be deleted!",
            "The otaPackage referenced by the device profile cannot be deleted!",
        ),
        (
            OtaKind::Software,
            "The software referenced by the devices cannot be deleted!",
            "The software referenced by the device profile cannot be deleted!",
        ),
    ] {
        let id = ready(&world, kind, kind.name()).await.id;
        let entity: Option<EntityId> = Some(id.into());
        let of = |wanted: OtaKind| entity.filter(|_| kind == wanted);
        let device = Device {
            firmware_id: of(OtaKind::Firmware),
            software_id: of(OtaKind::Software),
            ..world.new_device(kind.name())
        };
        let device = world.save(device).await;
        assert_eq!(
            (device.firmware_id, device.software_id),
            (of(OtaKind::Firmware), of(OtaKind::Software))
        );
        let message = expect_error(packages.delete(world.tenant, id).await, StoreErrorKind::Conflict);
        assert_eq!(message, of_device);
        let freed = Device {
            firmware_id: None,
            software_id: None,
            ..device
        };
        assert_eq!(stores.devices.update(freed).await.unwrap().firmware_id, None);
        let mut profile = world.profile(kind.noun()).await;
        (profile.firmware_id, profile.software_id) = (of(OtaKind::Firmware), of(OtaKind::Software));
        let profile = stores.device_profiles.update(profile).await.unwrap();
        assert_eq!(
            (profile.firmware_id, profile.software_id),
            (of(OtaKind::Firmware), of(OtaKind::Software))
        );
        let message = expect_error(packages.delete(world.tenant, id).await, StoreErrorKind::Conflict);
        assert_eq!(message, of_profile);

        assert_eq!(packages.get(other.tenant, id).await.unwrap(), None);
        assert_eq!(packages.piece(other.tenant, id, 0).await.unwrap(), None);
        assert!(!packages.delete(other.tenant, id).await.unwrap());
        let profile_id = profile.id;
        assert!(
            stores
                .device_profiles
                .delete(world.tenant, profile_id)
                .await
                .unwrap()
        );
        assert!(packages.get(world.tenant, id).await.unwrap().is_some());
    }
    assert_eq!(packages.tenants().await.unwrap(), [world.tenant]);
    stores.tenants.delete(world.tenant).await.unwrap();
    assert_eq!(packages.tenants().await.unwrap(), [] as [TenantId; 0]);
    assert_eq!(packages.discard_before(i64::MAX).await.unwrap(), 0);
    let absent = Device {
        firmware_id: Some(OtaPackageId::new().into()),
        ..other.new_device("d")
    };
    expect_error(stores.devices.insert(absent).await, StoreErrorKind::Invalid);
}

/// What devices shall have is compared with what was noted; those with a package of their own are told first.
pub async fn devices_wait_for_being_told_of_their_package(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let other = EntityFixture::new(stores, "other").await;
    let (updates, tenant) = (&stores.ota_updates, world.tenant);
    let kind = OtaKind::Firmware;
    let first = ready(&world, kind, "1").await.id;
    let second = ready(&world, kind, "2").await.id;
    let following = world.device("follows").await.id;
    let own = Device {
        firmware_id: Some(second.into()),
        ..world.new_device("own")
    };
    let own = world.save(own).await.id;
    other.device("other").await;
    let differing = async |scope: &OtaScope| {
        let mut found = updates.differing(tenant, kind, scope, None, 10).await.unwrap();
        found.sort_by_key(|target| target.is_own);
        found
    };
    let target = |device, package, is_own| OtaTarget {
        device,
        profile: world.profile.id,
        package,
        is_own,
    };
    assert_eq!(differing(&OtaScope::All).await, [target(own, Some(second), true)]);
    let mut profile = world.profile.clone();
    (profile.firmware_id, profile.version) = (Some(first.into()), None);
    stores.device_profiles.update(profile.clone()).await.unwrap();
    let both = [
        target(following, Some(first), false),
        target(own, Some(second), true),
    ];
    for scope in [
        OtaScope::All,
        OtaScope::Profile(world.profile.id),
        OtaScope::Devices(vec![own, following, DeviceId::new()]),
    ] {
        assert_eq!(differing(&scope).await, both, "{scope:?}");
    }
    let assigned = updates.assigned(tenant, following, kind).await.unwrap();
    assert_eq!(assigned, Some(first));
    assert_eq!(updates.assigned(tenant, own, kind).await.unwrap(), Some(second));
    assert_eq!(updates.assigned(other.tenant, own, kind).await.unwrap(), None);
    assert_eq!(
        updates.assigned(tenant, own, OtaKind::Software).await.unwrap(),
        None
    );
    let count = updates.count_following(tenant, world.profile.id, kind).await;
    assert_eq!(count.unwrap(), 1);

    // One of them was deleted in the meantime.
    let gone = target(DeviceId::new(), Some(first), false);
    let noted = [both[0], both[1], gone];
    updates.note(tenant, kind, &noted, NOW).await.unwrap();
    assert!(differing(&OtaScope::All).await.is_empty());
    let update = |device, package| OtaUpdate {
        tenant,
        device,
        package,
        kind,
        ts: NOW,
    };
    for (device, package) in [(own, second), (following, first)] {
        let next = updates.next(tenant, NOW).await.unwrap();
        assert_eq!(next, Some(update(device, package)));
        updates.mark_notified(&update(device, package)).await.unwrap();
    }
    assert_eq!(updates.next(tenant, NOW).await.unwrap(), None);
    // What was told of an earlier package leaves the new one waiting.
    updates
        .note(tenant, kind, &[target(own, Some(first), true)], NOW + 1)
        .await
        .unwrap();
    updates.mark_notified(&update(own, second)).await.unwrap();
    assert_eq!(
        updates.next(tenant, NOW).await.unwrap().map(|next| next.package),
        Some(first)
    );

    profile.firmware_id = None;
    stores.device_profiles.update(profile).await.unwrap();
    let changed = [target(following, None, false), target(own, Some(second), true)];
    assert_eq!(differing(&OtaScope::All).await, changed);
    updates.note(tenant, kind, &changed[..1], NOW).await.unwrap();
    stores.devices.delete(tenant, own).await.unwrap();
    assert!(differing(&OtaScope::All).await.is_empty());
    assert_eq!(updates.next(tenant, NOW).await.unwrap(), None);
}

/// A tenant has so many bytes of packages and no more; what is being uploaded counts.
pub async fn packages_stay_within_what_their_tenant_may_have(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let packages = &stores.ota_packages;
    let mut uploads = Vec::new();
    for version in ["1", "2"] {
        uploads.push(uploaded(&world, version).await);
    }
    assert_eq!(
        packages.data_bytes(world.tenant).await.unwrap(),
        2 * OTA_PIECE as u64
    );
    let other = EntityFixture::new(stores, "other").await;
    assert_eq!(packages.data_bytes(other.tenant).await.unwrap(), 0);
    let attach = async |index: usize, limit| {
        let (whole, upload) = uploads[index].clone();
        packages
            .attach(whole, upload, Some(limit))
            .await
            .unwrap()
            .is_some()
    };
    let both = [attach(0, 7).await, attach(1, 7).await];
    assert_eq!(both, [true, false]);
    let left = packages.get(world.tenant, uploads[1].0.id).await.unwrap();
    assert!(!left.unwrap().has_data);
    assert!(attach(1, 8).await);
    assert_eq!(packages.data_bytes(world.tenant).await.unwrap(), 8);
}

/// Turns go around among tenants, whatever one of them has waiting; who was put off comes later, behind the others.
pub async fn tenants_take_turns_in_being_told(stores: &EntityStores) {
    let mut worlds = [
        EntityFixture::new(stores, "one").await,
        EntityFixture::new(stores, "two").await,
    ];
    worlds.sort_by_key(|world| world.tenant);
    let (updates, kind) = (&stores.ota_updates, OtaKind::Firmware);
    for (number, world) in worlds.iter().enumerate() {
        let package = ready(world, kind, "1").await.id;
        let mut targets = Vec::new();
        for name in ["a", "b"] {
            targets.push(OtaTarget {
                device: world.device(name).await.id,
                profile: world.profile.id,
                package: Some(package),
                is_own: number == 1,
            });
        }
        updates.note(world.tenant, kind, &targets, NOW).await.unwrap();
    }
    let mut last = TenantId::NULL;
    let mut served = Vec::new();
    while let Some(next) = updates.next(last, NOW).await.unwrap() {
        last = next.tenant;
        served.push(next);
        match served.len() {
            1 => updates.put_off(&next, NOW + 5).await.unwrap(),
            _ => updates.mark_notified(&next).await.unwrap(),
        }
    }
    let tenants: Vec<TenantId> = served.iter().map(|next| next.tenant).collect();
    let [one, two] = worlds.each_ref().map(|world| world.tenant);
    assert_eq!(tenants, [one, two, one, two]);
    assert_eq!(updates.put_off_until().await.unwrap(), Some(NOW + 5));
    assert_eq!(updates.next(one, NOW + 5).await.unwrap(), Some(served[0]));
    updates.mark_notified(&served[0]).await.unwrap();
    assert_eq!(updates.put_off_until().await.unwrap(), None);
}
