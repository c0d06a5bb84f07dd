//! Relations, and assets and views, which are saved like devices.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{
    AssetFilter, EntityStores, EntityViewFilter, RelationEnds, RelationKey, StoreErrorKind,
};
use fieldline_model::entity::{
    Asset, AssetProfile, EntityRelation, EntityView, RelationFilter, RelationTypeGroup, RelationsQuery,
    RelationsSearchParameters, SearchDirection, ViewKeys,
};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{AssetId, AssetProfileId, DeviceId, EntityId, EntityType, EntityViewId, TenantId};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error, searched, sorted};

/// A relation is saved under its ends, type and group; saving it again replaces it.
pub async fn relations_are_found_from_both_ends(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let other = EntityFixture::new(stores, "other").await.tenant;
    let (a, b) = (world.device("a").await.id, world.device("b").await.id);
    let relations = &stores.relations;
    let relation = EntityRelation {
        additional_info: Some(json!({"n": 1})),
        ..EntityRelation::new(a, b, "Contains")
    };
    let saved = relations.save(world.tenant, relation.clone()).await.unwrap();
    assert_eq!(
        saved,
        EntityRelation {
            version: Some(1),
            ..relation.clone()
        }
    );
    let again = EntityRelation {
        additional_info: None,
        ..relation.clone()
    };
    let again = relations.save(world.tenant, again).await.unwrap();
    assert_eq!((again.version, &again.additional_info), (Some(2), &None));
    let grouped = EntityRelation {
        type_group: RelationTypeGroup::Edge,
        ..relation
    };
    relations.save(world.tenant, grouped.clone()).await.unwrap();

    let key = RelationKey::from(&again);
    assert_eq!(
        relations.get(world.tenant, &key).await.unwrap(),
        Some(again.clone())
    );
    assert_eq!(relations.get(other, &key).await.unwrap(), None);
    for ends in [
        RelationEnds::from(a),
        RelationEnds::to(b),
        RelationEnds::from(a).of_type("Contains"),
    ] {
        assert_eq!(
            relations.find(world.tenant, &ends).await.unwrap(),
            std::slice::from_ref(&again)
        );
        assert_eq!(relations.find(other, &ends).await.unwrap(), []);
    }
    for ends in [
        RelationEnds::from(b),
        RelationEnds::to(a),
        RelationEnds::from(a).of_type("Uses"),
    ] {
        assert_eq!(relations.find(world.tenant, &ends).await.unwrap(), []);
    }
    expect_error(
        relations.find(world.tenant, &RelationEnds::default()).await,
        StoreErrorKind::Invalid,
    );
    let named = relations
        .with_names(world.tenant, vec![again.clone()])
        .await
        .unwrap();
    assert_eq!(
        (named[0].from_name.as_deref(), named[0].to_name.as_deref()),
        (Some("a"), Some("b"))
    );

    assert_eq!(relations.delete(other, &key).await.unwrap(), None);
    assert_eq!(relations.delete_of(other, a.into(), None).await.unwrap(), 0);
    assert_eq!(
        relations
            .delete_of(world.tenant, b.into(), Some(RelationTypeGroup::Common))
            .await
            .unwrap(),
        1
    );
    assert_eq!(relations.delete(world.tenant, &key).await.unwrap(), None);
    assert!(
        relations
            .delete(world.tenant, &RelationKey::from(&grouped))
            .await
            .unwrap()
            .is_some()
    );
    let nameless = EntityRelation::new(a, b, "");
    expect_error(
        relations.save(world.tenant, nameless).await,
        StoreErrorKind::Invalid,
    );
}

/// A search walks relations level by level, ends in cycles, and keeps what its filters match.
pub async fn searches_walk_along_relations(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let ids: Vec<EntityId> = (0..5)
        .map(|n| match n {
            4 => AssetId::new().into(),
            _ => DeviceId::new().into(),
        })
        .collect();
    // 0 → 1 → 3 → 0 and 0 → 2 → 3, 2 → 4.
    for (from, to, name) in [
        (0, 1, "A"),
        (0, 2, "B"),
        (1, 3, "A"),
        (2, 3, "A"),
        (3, 0, "A"),
        (2, 4, "B"),
    ] {
        let relation = EntityRelation::new(ids[from], ids[to], name);
        stores.relations.save(world.tenant, relation).await.unwrap();
    }
    let search = async |root: usize, direction, max_level, last, filters: &[RelationFilter]| {
        let query = RelationsQuery {
            parameters: RelationsSearchParameters {
                root_id: ids[root].id,
                root_type: ids[root].entity_type,
                direction,
                relation_type_group: RelationTypeGroup::Common,
                max_level,
                fetch_last_level_only: last,
            },
            filters: filters.to_vec(),
        };
        let found = stores.relations.search(world.tenant, &query).await.unwrap();
        let index = |entity| ids.iter().position(|id| *id == entity).unwrap();
        let mut ends: Vec<(usize, usize)> = found
            .iter()
            .map(|relation| (index(relation.from), index(relation.to)))
            .collect();
        ends.sort_unstable();
        ends
    };
    use SearchDirection::{From, To};
    assert_eq!(search(0, From, 1, false, &[]).await, [(0, 1), (0, 2)]);
    assert_eq!(
        search(0, From, 2, false, &[]).await,
        [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4)]
    );
    let all = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 0)];
    assert_eq!(search(0, From, 0, false, &[]).await, all);
    assert_eq!(search(0, From, 2, true, &[]).await, [(1, 3), (2, 3), (2, 4)]);
    assert_eq!(
        search(2, From, 0, true, &[]).await,
        [(2, 4)],
        "4 has nothing further"
    );
    assert_eq!(search(3, To, 1, false, &[]).await, [(1, 3), (2, 3)]);
    let filter = |relation_type: Option<&str>, entity_types: &[EntityType], negate| RelationFilter {
        relation_type: relation_type.map(Into::into),
        entity_types: entity_types.to_vec(),
        negate,
    };
    assert_eq!(
        search(0, From, 0, false, &[filter(Some("B"), &[], false)]).await,
        [(0, 2), (2, 4)]
    );
    assert_eq!(
        search(0, From, 2, false, &[filter(Some("A"), &[], true)]).await,
        [(0, 2), (2, 4)]
    );
    let assets = filter(None, &[EntityType::Asset], false);
    assert_eq!(search(0, From, 0, false, &[assets]).await, [(2, 4)]);
}

fn asset_profile(tenant: TenantId, name: &str) -> AssetProfile {
    AssetProfile {
        id: AssetProfileId::new(),
        created_time: NOW,
        tenant_id: tenant,
        name: name.into(),
        description: Some("Häuser".into()),
        default_queue_name: Some("Main".into()),
        ..AssetProfile::default()
    }
}

fn asset(profile: &AssetProfile, name: &str) -> Asset {
    Asset {
        id: AssetId::new(),
        created_time: NOW,
        tenant_id: profile.tenant_id,
        name: name.into(),
        asset_type: profile.name.clone(),
        label: Some("Etikett".into()),
        asset_profile_id: Some(profile.id),
        additional_info: Some(json!({"description": "x"})),
        ..Asset::default()
    }
}

/// Assets and their profiles are saved, listed, filtered, and deleted within their tenant.
pub async fn assets_are_kept_like_devices(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let theirs = EntityFixture::new(stores, "theirs").await.tenant;
    let (assets, profiles) = (&stores.assets, &stores.asset_profiles);
    let profile = profiles
        .insert(asset_profile(world.tenant, "house"))
        .await
        .unwrap();
    let profile_id = profile.id;
    assert_eq!(
        profiles.get(world.tenant, profile_id).await.unwrap().unwrap(),
        profile
    );
    assert_eq!(profile.description.as_deref(), Some("Häuser"));
    assert!(profiles.set_default(world.tenant, profile_id).await.unwrap());
    assert!(
        profiles
            .default_profile(world.tenant)
            .await
            .unwrap()
            .unwrap()
            .is_default
    );
    expect_error(
        profiles.insert(asset_profile(world.tenant, "house")).await,
        StoreErrorKind::Conflict,
    );

    let customer = world.customer("Kunde").await.id;
    let new = asset(&profile, "villa");
    let saved = assets.insert(new.clone()).await.unwrap();
    assert_eq!(
        saved,
        Asset {
            version: Some(1),
            ..new
        }
    );
    let id = saved.id;
    let saved = assets
        .update(Asset {
            customer_id: customer,
            ..saved
        })
        .await
        .unwrap();
    expect_error(
        assets
            .update(Asset {
                version: Some(1),
                ..saved.clone()
            })
            .await,
        StoreErrorKind::VersionConflict,
    );
    expect_error(
        assets.insert(asset(&profile, "villa")).await,
        StoreErrorKind::Conflict,
    );
    assets.insert(asset(&profile, "Barn")).await.unwrap();
    assert_eq!(assets.count(world.tenant).await.unwrap(), 2);
    let info = assets.info(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(
        (info.customer_title.as_deref(), info.asset_profile_name.as_str()),
        (Some("Kunde"), "house")
    );
    assert_eq!(assets.by_name(world.tenant, "villa").await.unwrap(), Some(saved));
    let all = AssetFilter::default();
    for property in [
        "createdTime",
        "name",
        "type",
        "label",
        "assetProfileName",
        "customerTitle",
    ] {
        let page = sorted(property, SortOrder::Asc);
        assert_eq!(
            assets.list(world.tenant, &all, &page).await.unwrap().data.len(),
            2
        );
    }
    let found = assets.list(world.tenant, &all, &searched("kunde")).await.unwrap();
    assert_eq!(found.data[0].asset.name, "villa");
    for (filter, expected) in [
        (
            AssetFilter {
                customer: Some(customer),
                ..all.clone()
            },
            1,
        ),
        (
            AssetFilter {
                asset_type: Some("house".into()),
                ..all.clone()
            },
            2,
        ),
        (
            AssetFilter {
                profile: Some(AssetProfileId::new()),
                ..all.clone()
            },
            0,
        ),
    ] {
        let found = assets
            .list(world.tenant, &filter, &PageLink::first(9))
            .await
            .unwrap();
        assert_eq!(found.total_elements, expected);
    }
    expect_error(
        profiles.delete(world.tenant, profile_id).await,
        StoreErrorKind::Conflict,
    );

    assert_eq!(assets.get(theirs, id).await.unwrap(), None);
    assert_eq!(assets.info(theirs, id).await.unwrap(), None);
    assert_eq!(assets.by_ids(theirs, &[id]).await.unwrap(), []);
    assert!(!assets.delete(theirs, id).await.unwrap());
    assert_eq!(profiles.get(theirs, profile_id).await.unwrap(), None);
    assert!(!profiles.set_default(theirs, profile_id).await.unwrap());
    let stolen = Asset {
        tenant_id: theirs,
        ..asset(&profile, "stolen")
    };
    expect_error(assets.insert(stolen).await, StoreErrorKind::Invalid);

    assert!(stores.customers.delete(world.tenant, customer).await.unwrap());
    assert!(
        assets
            .get(world.tenant, id)
            .await
            .unwrap()
            .unwrap()
            .customer_id
            .is_null()
    );
    assert!(assets.delete(world.tenant, id).await.unwrap());
    assert!(!assets.delete(world.tenant, id).await.unwrap());
}

/// Entity views are saved, listed, filtered, and deleted within their tenant.
pub async fn entity_views_are_kept_like_devices(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let theirs = EntityFixture::new(stores, "theirs").await.tenant;
    let device: EntityId = world.device("device").await.id.into();
    let customer = world.customer("Kunde").await.id;
    let views = &stores.entity_views;
    let new = EntityView {
        id: EntityViewId::new(),
        created_time: NOW,
        entity_id: Some(device),
        tenant_id: world.tenant,
        customer_id: customer,
        name: "view".into(),
        view_type: "public".into(),
        keys: Some(ViewKeys {
            timeseries: vec!["t".into()],
            ..ViewKeys::default()
        }),
        start_time_ms: 5,
        ..EntityView::default()
    };
    let saved = views.insert(new.clone()).await.unwrap();
    assert_eq!(
        saved,
        EntityView {
            version: Some(1),
            ..new.clone()
        }
    );
    let id = saved.id;
    assert_eq!(views.get(world.tenant, id).await.unwrap(), Some(saved.clone()));
    assert_eq!(views.by_name(world.tenant, "view").await.unwrap(), Some(saved));
    let taken = EntityView {
        id: EntityViewId::new(),
        ..new.clone()
    };
    expect_error(views.insert(taken).await, StoreErrorKind::Conflict);
    let entityless = EntityView {
        id: EntityViewId::new(),
        entity_id: None,
        ..new
    };
    expect_error(views.insert(entityless).await, StoreErrorKind::Invalid);
    let info = views.info(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(info.customer_title.as_deref(), Some("Kunde"));
    let all = EntityViewFilter::default();
    for (filter, expected) in [
        (all.clone(), 1),
        (
            EntityViewFilter {
                customer: Some(customer),
                ..all.clone()
            },
            1,
        ),
        (
            EntityViewFilter {
                view_type: Some("other".into()),
                ..all.clone()
            },
            0,
        ),
        (
            EntityViewFilter {
                entity: Some(device),
                ..all.clone()
            },
            1,
        ),
        (
            EntityViewFilter {
                entity: Some(world.tenant.into()),
                ..all.clone()
            },
            0,
        ),
    ] {
        let found = views
            .list(world.tenant, &filter, &sorted("type", SortOrder::Asc))
            .await
            .unwrap();
        assert_eq!(found.total_elements, expected);
    }
    assert_eq!(
        views
            .list(world.tenant, &all, &searched("KUNDE"))
            .await
            .unwrap()
            .total_elements,
        1
    );
    assert_eq!(views.types(world.tenant).await.unwrap(), ["public"]);
    assert_eq!(views.get(theirs, id).await.unwrap(), None);
    assert_eq!(
        views
            .list(theirs, &all, &PageLink::first(1))
            .await
            .unwrap()
            .total_elements,
        0
    );
    assert!(!views.delete(theirs, id).await.unwrap());
    assert!(stores.customers.delete(world.tenant, customer).await.unwrap());
    assert!(
        views
            .get(world.tenant, id)
            .await
            .unwrap()
            .unwrap()
            .customer_id
            .is_null()
    );
    assert!(views.delete(world.tenant, id).await.unwrap());
}
