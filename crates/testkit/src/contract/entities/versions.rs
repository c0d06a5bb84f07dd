//! What dashboards and rule chains were at each save.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, SavedBy, StoreErrorKind};
use fieldline_model::entity::{
    Dashboard, DashboardInfo, EntityVersion, RuleChain, RuleChainMetaData, RuleChainVersion, RuleNode,
};
use fieldline_model::page::PageLink;
use fieldline_model::{DashboardId, EntityId, RuleChainId, RuleNodeId, TenantId, UserId, new_uuid};
use serde_json::{Value, json};

use super::fixture::{EntityFixture, NOW, expect_error};

pub(in crate::contract) fn dashboard(tenant: TenantId, title: &str) -> Dashboard {
    Dashboard {
        info: DashboardInfo {
            id: DashboardId::new(),
            created_time: NOW,
            tenant_id: tenant,
            title: title.into(),
            name: title.into(),
            ..DashboardInfo::default()
        },
        configuration: Some(json!({ "widgets": { "z": 1, "a": null } })),
        external_id: None,
        resources: None,
    }
}

fn by(user: UserId, at_ms: i64) -> SavedBy {
    SavedBy {
        at_ms,
        user: Some((user, "ann@x.org".to_owned())),
    }
}

async fn numbers(stores: &EntityStores, tenant: TenantId, id: impl Into<EntityId>) -> Vec<i64> {
    let page = stores
        .versions
        .list(tenant, id.into(), &PageLink::first(100))
        .await
        .unwrap();
    page.data.iter().map(|version| version.version).collect()
}

/// Each save of a dashboard that changes something is a version, which reads back whole and goes with the dashboard; a save
/// that is refused is none.
pub async fn each_save_of_a_dashboard_is_a_version(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let other = EntityFixture::new(stores, "U").await;
    let (tenant, user) = (world.tenant, UserId::new());
    let first = stores
        .dashboards
        .insert_by(dashboard(tenant, "First"), &by(user, NOW))
        .await
        .unwrap();
    let id = first.info.id;
    let mut changed = first.clone();
    changed.info.title = "Second".into();
    changed.configuration = Some(json!({ "widgets": { "ü": [2.5] } }));
    let second = stores
        .dashboards
        .update_by(changed, &by(user, NOW + 1))
        .await
        .unwrap();
    assert_eq!(second.info.version, Some(2));
    let again = stores
        .dashboards
        .update_by(second.clone(), &by(user, NOW + 2))
        .await
        .unwrap();
    assert_eq!(again.info.version, Some(3));
    let stale = stores
        .dashboards
        .update_by(first.clone(), &SavedBy::default())
        .await;
    expect_error(stale, StoreErrorKind::VersionConflict);

    let link = PageLink {
        page_size: 1,
        ..PageLink::first(1)
    };
    let page = stores.versions.list(tenant, id.into(), &link).await.unwrap();
    assert_eq!((page.total_elements, page.has_next), (2, true));
    let newest = EntityVersion {
        version: 2,
        created_time: NOW + 1,
        user_id: Some(user),
        user_name: Some("ann@x.org".into()),
        title: "Second".into(),
    };
    assert_eq!(page.data, [newest]);
    let saved = async |version| -> Option<Dashboard> {
        let found: Option<Value> = stores.versions.get(tenant, id.into(), version).await.unwrap();
        found.map(|found| serde_json::from_value(found).unwrap())
    };
    let found = saved(1).await.unwrap();
    assert_eq!((found.info.version, &found.info.title), (None, &first.info.title));
    assert_eq!(
        found.configuration.unwrap().to_string(),
        first.configuration.unwrap().to_string()
    );
    assert_eq!(saved(2).await.unwrap().configuration, second.configuration);
    assert_eq!(saved(3).await, None, "it changed nothing");

    let of_others = stores
        .versions
        .list(other.tenant, id.into(), &PageLink::first(9))
        .await
        .unwrap();
    assert_eq!(of_others.total_elements, 0);
    assert_eq!(
        stores.versions.get(other.tenant, id.into(), 1).await.unwrap(),
        None
    );
    let mut planted = again;
    planted.info.tenant_id = other.tenant;
    planted.info.version = None;
    let planted = stores.dashboards.update_by(planted, &SavedBy::default()).await;
    expect_error(planted, StoreErrorKind::NotFound);
    assert_eq!(numbers(stores, tenant, id).await, [2, 1]);

    assert!(stores.dashboards.delete(tenant, id).await.unwrap());
    assert_eq!(numbers(stores, tenant, id).await, [0_i64; 0]);

    let of_tenant = dashboard(tenant, "goes with its tenant");
    let of_tenant = stores
        .dashboards
        .insert_by(of_tenant, &by(user, NOW))
        .await
        .unwrap();
    assert!(stores.tenants.delete(tenant).await.unwrap());
    assert_eq!(numbers(stores, tenant, of_tenant.info.id).await, [0_i64; 0]);
}

/// The first save of a dashboard that has no versions keeps what it was before, too.
pub async fn what_was_saved_before_there_were_versions_is_kept_once(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let old = stores
        .dashboards
        .insert(dashboard(world.tenant, "Old"))
        .await
        .unwrap();
    let id = old.info.id;
    assert_eq!(numbers(stores, world.tenant, id).await, [0_i64; 0]);
    let mut new = old.clone();
    new.info.title = "New".into();
    stores
        .dashboards
        .update_by(
            new,
            &SavedBy {
                at_ms: NOW + 9,
                user: None,
            },
        )
        .await
        .unwrap();
    let page = stores
        .versions
        .list(world.tenant, id.into(), &PageLink::first(9))
        .await
        .unwrap();
    let shown: Vec<_> = page
        .data
        .iter()
        .map(|version| (version.version, version.created_time, version.title.as_str()))
        .collect();
    assert_eq!(shown, [(2, NOW + 9, "New"), (1, NOW, "Old")]);
}

/// So many versions of a thing are kept, and so many bytes of them; the oldest go.
pub async fn versions_stay_within_their_room(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let tenant = world.tenant;
    let many = stores
        .dashboards
        .insert_by(dashboard(tenant, "0"), &SavedBy::default())
        .await
        .unwrap();
    let id = many.info.id;
    for number in 1..35 {
        let mut next = many.clone();
        next.info.version = None;
        next.info.title = number.to_string();
        stores
            .dashboards
            .update_by(next, &SavedBy::default())
            .await
            .unwrap();
    }
    let kept = numbers(stores, tenant, id).await;
    assert_eq!((kept.len(), kept.first(), kept.last()), (30, Some(&35), Some(&6)));

    // Random bytes do not become fewer.
    let large = || {
        (0..350_000)
            .map(|_| new_uuid().simple().to_string())
            .collect::<String>()
    };
    let mut next = dashboard(tenant, "large");
    next.configuration = Some(json!({ "text": large() }));
    let saved = stores
        .dashboards
        .insert_by(next, &SavedBy::default())
        .await
        .unwrap();
    let id = saved.info.id;
    for _ in 0..4 {
        let mut next = saved.clone();
        next.info.version = None;
        next.configuration = Some(json!({ "text": large() }));
        stores
            .dashboards
            .update_by(next, &SavedBy::default())
            .await
            .unwrap();
    }
    let kept = numbers(stores, tenant, id).await;
    assert_eq!(kept.first(), Some(&5));
    assert!((2..5).contains(&kept.len()), "{kept:?}");
}

/// A save of nodes is a version of the chain, with both; one that changes nothing is none.
pub async fn each_save_of_nodes_is_a_version_of_their_chain(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let tenant = world.tenant;
    let chain = RuleChain {
        id: RuleChainId::new(),
        created_time: NOW,
        tenant_id: tenant,
        name: "Chain".into(),
        ..RuleChain::default()
    };
    let chain = stores.rule_chains.insert(chain).await.unwrap();
    let node = |name: &str| RuleNode {
        id: RuleNodeId::new(),
        created_time: NOW,
        node_type: "org.example.Node".into(),
        name: name.into(),
        configuration: json!({ "keys": ["ä"] }),
        ..RuleNode::default()
    };
    let mut metadata = RuleChainMetaData {
        rule_chain_id: Some(chain.id),
        first_node_index: Some(0),
        nodes: vec![node("a"), node("b")],
        ..RuleChainMetaData::default()
    };
    let user = UserId::new();
    let first = stores
        .rule_chains
        .save_metadata(tenant, metadata.clone(), &by(user, NOW))
        .await
        .unwrap();
    stores
        .rule_chains
        .save_metadata(tenant, first.clone(), &by(user, NOW + 1))
        .await
        .unwrap();
    metadata.nodes.pop();
    stores
        .rule_chains
        .save_metadata(tenant, metadata, &by(user, NOW + 2))
        .await
        .unwrap();
    let page = stores
        .versions
        .list(tenant, chain.id.into(), &PageLink::first(9))
        .await
        .unwrap();
    let times: Vec<_> = page
        .data
        .iter()
        .map(|it| (it.created_time, it.title.as_str()))
        .collect();
    assert_eq!(times, [(NOW + 2, "Chain"), (NOW, "Chain")]);
    let version = first.version.unwrap();
    let kept = stores
        .versions
        .get(tenant, chain.id.into(), version)
        .await
        .unwrap()
        .unwrap();
    let kept: RuleChainVersion = serde_json::from_value(kept).unwrap();
    assert_eq!(kept.rule_chain.name, "Chain");
    assert_eq!(kept.metadata.nodes, first.nodes);
    assert_eq!(kept.metadata.first_node_index, Some(0));
    assert!(stores.rule_chains.delete(tenant, chain.id).await.unwrap());
    assert_eq!(numbers(stores, tenant, chain.id).await, [0_i64; 0]);
}
