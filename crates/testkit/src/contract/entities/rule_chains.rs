//! Rule chains with their nodes and connections, and queues.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, SavedBy, StoreErrorKind};
use fieldline_model::entity::{
    DebugSettings, DeviceProfile, NodeConnection, ProcessingStrategy, ProcessingStrategyType, Queue,
    RuleChain, RuleChainMetaData, RuleChainType, RuleNode, SubmitStrategy, SubmitStrategyType,
};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{QueueId, RuleChainId, RuleNodeId, TenantId};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error, searched, sorted};

fn chain(tenant: TenantId, name: &str) -> RuleChain {
    RuleChain {
        id: RuleChainId::new(),
        created_time: NOW,
        tenant_id: tenant,
        name: name.into(),
        ..RuleChain::default()
    }
}

pub(in crate::contract) async fn saved_chain(world: &EntityFixture<'_>, name: &str) -> RuleChain {
    let chain = chain(world.tenant, name);
    world.stores.rule_chains.insert(chain).await.unwrap()
}

pub(in crate::contract) fn node(name: &str) -> RuleNode {
    RuleNode {
        id: RuleNodeId::new(),
        created_time: NOW,
        node_type: format!("org.example.{name}"),
        name: name.into(),
        debug_settings: Some(DebugSettings {
            failures_enabled: true,
            all_enabled: false,
            all_enabled_until: NOW,
        }),
        singleton_mode: true,
        queue_name: Some("Main".into()),
        configuration_version: 3,
        configuration: json!({"keys": ["ä", 1], "nothing": null}),
        additional_info: Some(json!({"layoutX": 1, "layoutY": 2})),
        ..RuleNode::default()
    }
}

fn connection(from_index: u32, to_index: u32, label: &str) -> NodeConnection {
    NodeConnection {
        from_index,
        to_index,
        label: label.into(),
    }
}

pub(in crate::contract) fn metadata(
    chain: &RuleChain,
    nodes: &[RuleNode],
    connections: &[NodeConnection],
) -> RuleChainMetaData {
    RuleChainMetaData {
        rule_chain_id: Some(chain.id),
        version: None,
        first_node_index: (!nodes.is_empty()).then_some(0),
        nodes: nodes.to_vec(),
        connections: (!connections.is_empty()).then(|| connections.to_vec()),
        ..RuleChainMetaData::default()
    }
}

/// Nodes come back in their order, connections by the nodes they lead between; nodes that stay keep their place in time,
/// those that are left out are gone with their connections; the version is that of the chain.
pub async fn a_rule_chain_is_saved_whole_with_its_nodes(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let chains = &stores.rule_chains;
    let full = RuleChain {
        chain_type: RuleChainType::Edge,
        root: true,
        debug_mode: true,
        configuration: Some(json!({"a": 1})),
        additional_info: Some(json!({"description": "d"})),
        external_id: Some(RuleChainId::new()),
        ..chain(world.tenant, "full")
    };
    let expected = RuleChain {
        version: Some(1),
        ..full.clone()
    };
    assert_eq!(chains.insert(full).await.unwrap(), expected);
    let id = expected.id;
    assert_eq!(
        chains.get(world.tenant, id).await.unwrap(),
        Some(expected.clone())
    );

    let empty = chains.metadata(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(
        empty,
        RuleChainMetaData {
            version: Some(1),
            ..metadata(&expected, &[], &[])
        }
    );

    let nodes = [node("first"), node("second"), node("third")];
    // One is there twice.
    let connections = [
        connection(1, 2, "True"),
        connection(0, 2, "b"),
        connection(0, 1, "Success"),
        connection(0, 2, "a"),
        connection(0, 2, "a"),
    ];
    let given = RuleChainMetaData {
        first_node_index: Some(1),
        notes: Some(vec![json!({"id": "n", "content": "look"})]),
        ..metadata(&expected, &nodes, &connections)
    };
    let saved = chains
        .save_metadata(world.tenant, given.clone(), &SavedBy::default())
        .await
        .unwrap();
    let in_chain = |node: &RuleNode| RuleNode {
        rule_chain_id: Some(id),
        ..node.clone()
    };
    let expected_metadata = RuleChainMetaData {
        version: Some(2),
        nodes: nodes.iter().map(in_chain).collect(),
        connections: Some(vec![
            connection(0, 1, "Success"),
            connection(0, 2, "a"),
            connection(0, 2, "b"),
            connection(1, 2, "True"),
        ]),
        ..given
    };
    assert_eq!(saved, expected_metadata);
    assert_eq!(
        chains.metadata(world.tenant, id).await.unwrap(),
        Some(expected_metadata)
    );
    let stored = chains.get(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(
        (stored.version, stored.first_rule_node_id),
        (Some(2), Some(nodes[1].id))
    );
    let [first, second, third] = nodes.map(|node| node.id);
    let found = chains.node(world.tenant, second).await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.rule_chain_id), ("second", Some(id)));

    // The third stays and comes first, under another name and later by its own account.
    let mut kept = node("third");
    kept.id = third;
    kept.name = "renamed".into();
    kept.created_time = NOW + 1;
    let added = node("fourth");
    let change = metadata(&expected, &[kept, added.clone()], &[connection(1, 0, "Success")]);
    let saved = chains
        .save_metadata(world.tenant, change, &SavedBy::default())
        .await
        .unwrap();
    assert_eq!(saved.version, Some(3));
    assert_eq!(saved.notes, None);
    let seen: Vec<_> = saved
        .nodes
        .iter()
        .map(|node| (node.id, node.name.as_str(), node.created_time))
        .collect();
    assert_eq!(seen, [(third, "renamed", NOW), (added.id, "fourth", NOW)]);
    assert_eq!(saved.connections, Some(vec![connection(1, 0, "Success")]));
    assert_eq!(saved.first_node_index, Some(0));
    for gone in [first, second] {
        assert_eq!(chains.node(world.tenant, gone).await.unwrap(), None);
    }
    let of_type = chains
        .nodes_of_type(world.tenant, "org.example.fourth")
        .await
        .unwrap();
    assert_eq!(of_type.len(), 1);

    // The root stays until another chain is it.
    expect_error(chains.delete(world.tenant, id).await, StoreErrorKind::Conflict);
    let other = RuleChain {
        chain_type: stored.chain_type,
        ..chain(world.tenant, "other")
    };
    let other = chains.insert(other).await.unwrap().id;
    assert!(chains.set_root(world.tenant, other).await.unwrap());
    assert!(chains.delete(world.tenant, id).await.unwrap());
    assert!(!chains.delete(world.tenant, id).await.unwrap());
    assert_eq!(chains.metadata(world.tenant, id).await.unwrap(), None);
    assert_eq!(chains.node(world.tenant, third).await.unwrap(), None);
}

/// A stale version changes neither chain nor nodes, and neither does metadata that does not fit.
pub async fn metadata_of_a_rule_chain_is_guarded_by_its_version(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let chains = &stores.rule_chains;
    let chain = saved_chain(&world, "chain").await;
    let other = saved_chain(&world, "other").await;
    let first = metadata(&chain, &[node("first")], &[]);
    let first = chains
        .save_metadata(world.tenant, first, &SavedBy::default())
        .await
        .unwrap();
    for (version, kind) in [
        (Some(1), StoreErrorKind::VersionConflict),
        (Some(3), StoreErrorKind::VersionConflict),
    ] {
        let stale = RuleChainMetaData {
            version,
            ..metadata(&chain, &[node("late")], &[])
        };
        expect_error(
            chains
                .save_metadata(world.tenant, stale, &SavedBy::default())
                .await,
            kind,
        );
    }
    let stolen = metadata(&other, &first.nodes, &[]);
    expect_error(
        chains
            .save_metadata(world.tenant, stolen, &SavedBy::default())
            .await,
        StoreErrorKind::Conflict,
    );
    let twice = [first.nodes[0].clone(), first.nodes[0].clone()];
    let twice = metadata(&chain, &twice, &[]);
    expect_error(
        chains
            .save_metadata(world.tenant, twice, &SavedBy::default())
            .await,
        StoreErrorKind::Conflict,
    );
    for misfit in [
        metadata(&chain, &[node("a")], &[connection(0, 1, "x")]),
        RuleChainMetaData {
            first_node_index: Some(1),
            ..metadata(&chain, &[node("a")], &[])
        },
    ] {
        expect_error(
            chains
                .save_metadata(world.tenant, misfit, &SavedBy::default())
                .await,
            StoreErrorKind::Invalid,
        );
    }
    let gone = chain_without_row(&chain);
    expect_error(
        chains
            .save_metadata(
                world.tenant,
                metadata(&gone, &[node("a")], &[]),
                &SavedBy::default(),
            )
            .await,
        StoreErrorKind::NotFound,
    );
    let stored = chains.metadata(world.tenant, chain.id).await.unwrap().unwrap();
    assert_eq!(stored, first);
    let untouched = chains.get(world.tenant, other.id).await.unwrap();
    assert_eq!(untouched.unwrap().version, Some(1));

    let stale = RuleChain {
        version: Some(1),
        ..chain.clone()
    };
    expect_error(chains.update(stale).await, StoreErrorKind::VersionConflict);
}

fn chain_without_row(chain: &RuleChain) -> RuleChain {
    RuleChain {
        id: RuleChainId::new(),
        ..chain.clone()
    }
}

/// One root chain a tenant and type; lists hold one type or all, in the promised orders.
pub async fn rule_chains_are_listed_and_one_of_a_type_is_the_root(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let chains = &stores.rule_chains;
    let core = RuleChainType::Core;
    assert_eq!(chains.root(world.tenant, core).await.unwrap(), None);
    let edge = RuleChain {
        chain_type: RuleChainType::Edge,
        root: true,
        ..chain(world.tenant, "Edge")
    };
    let edge = chains.insert(edge).await.unwrap();
    let a = saved_chain(&world, "Alpha").await.id;
    let b = saved_chain(&world, "beta").await.id;
    for (id, former) in [(a, None), (b, Some(a)), (b, Some(b))] {
        let root = chains.root(world.tenant, core).await.unwrap();
        assert_eq!(root.map(|root| root.id), former);
        assert!(chains.set_root(world.tenant, id).await.unwrap());
    }
    let root = chains.root(world.tenant, core).await.unwrap().unwrap();
    assert_eq!((root.id, root.root, root.version), (b, true, Some(2)));
    let former = chains.get(world.tenant, a).await.unwrap().unwrap();
    assert_eq!((former.root, former.version), (false, Some(3)));
    let edge_root = chains.root(world.tenant, RuleChainType::Edge).await.unwrap();
    assert_eq!(edge_root, Some(edge));
    let second = RuleChain {
        root: true,
        ..chain(world.tenant, "second")
    };
    let message = expect_error(chains.insert(second).await, StoreErrorKind::Conflict);
    assert!(message.contains("root rule chain"), "{message}");
    assert!(!chains.set_root(world.tenant, RuleChainId::new()).await.unwrap());
    // Whoever has read it before it became the root takes that from it neither by saving nor by deleting.
    let stale = RuleChain {
        root: false,
        version: None,
        ..root
    };
    assert!(chains.update(stale).await.unwrap().root);
    expect_error(chains.delete(world.tenant, b).await, StoreErrorKind::Conflict);

    let names = |page: PageLink, of_type| async move {
        let page = chains.list(world.tenant, of_type, &page).await.unwrap();
        page.data.into_iter().map(|chain| chain.name).collect::<Vec<_>>()
    };
    let by_name = sorted("name", SortOrder::Asc);
    assert_eq!(names(by_name.clone(), None).await, ["Alpha", "beta", "Edge"]);
    assert_eq!(names(by_name, Some(core)).await, ["Alpha", "beta"]);
    assert_eq!(
        names(sorted("root", SortOrder::Desc), Some(core)).await,
        ["beta", "Alpha"]
    );
    assert_eq!(names(searched("ALP"), None).await, ["Alpha"]);
    let found = chains.by_name(world.tenant, core, "beta").await.unwrap();
    assert_eq!(found.map(|chain| chain.id), Some(b));
    assert_eq!(chains.by_name(world.tenant, core, "Edge").await.unwrap(), None);
    assert_eq!(chains.count(world.tenant).await.unwrap(), 3);
    assert_eq!(chains.by_ids(world.tenant, &[a, b, a]).await.unwrap().len(), 2);
}

/// Chains and nodes of another tenant are not there; a profile keeps its chain from being deleted and can only have one
/// of its own tenant.
pub async fn rule_chains_stay_within_their_tenant(stores: &EntityStores) {
    let mine = EntityFixture::new(stores, "mine").await;
    let theirs = EntityFixture::new(stores, "theirs").await;
    let chains = &stores.rule_chains;
    let chain = saved_chain(&mine, "chain").await;
    let id = chain.id;
    let saved = metadata(&chain, &[node("node")], &[]);
    let saved = chains
        .save_metadata(mine.tenant, saved, &SavedBy::default())
        .await
        .unwrap();
    let node_id = saved.nodes[0].id;

    assert_eq!(chains.get(theirs.tenant, id).await.unwrap(), None);
    assert_eq!(chains.by_ids(theirs.tenant, &[id]).await.unwrap(), []);
    assert_eq!(chains.metadata(theirs.tenant, id).await.unwrap(), None);
    assert_eq!(chains.node(theirs.tenant, node_id).await.unwrap(), None);
    let class = "org.example.node";
    assert_eq!(chains.nodes_of_type(theirs.tenant, class).await.unwrap(), []);
    assert!(!chains.set_root(theirs.tenant, id).await.unwrap());
    assert!(!chains.delete(theirs.tenant, id).await.unwrap());
    assert_eq!(chains.count(theirs.tenant).await.unwrap(), 0);
    let not_found = StoreErrorKind::NotFound;
    expect_error(
        chains
            .save_metadata(
                theirs.tenant,
                metadata(&chain, &[node("x")], &[]),
                &SavedBy::default(),
            )
            .await,
        not_found,
    );
    let stolen = RuleChain {
        tenant_id: theirs.tenant,
        version: None,
        ..chain.clone()
    };
    expect_error(chains.update(stolen).await, not_found);

    let profile = |world: &EntityFixture<'_>| DeviceProfile {
        default_rule_chain_id: Some(id.into()),
        version: None,
        ..world.profile.clone()
    };
    let profiles = &stores.device_profiles;
    expect_error(profiles.update(profile(&theirs)).await, StoreErrorKind::Invalid);
    let with_chain = profiles.update(profile(&mine)).await.unwrap();
    assert_eq!(with_chain.default_rule_chain_id, Some(id.into()));
    expect_error(chains.delete(mine.tenant, id).await, StoreErrorKind::Conflict);
    let without = DeviceProfile {
        default_rule_chain_id: None,
        ..with_chain
    };
    profiles.update(without).await.unwrap();
    profiles.update(profile(&mine)).await.unwrap();
    // A tenant goes with profiles and chains that refer to each other.
    assert!(stores.tenants.delete(mine.tenant).await.unwrap());
    assert_eq!(chains.get(mine.tenant, id).await.unwrap(), None);
}

fn queue(tenant: TenantId, name: &str, topic: &str) -> Queue {
    Queue {
        id: QueueId::new(),
        created_time: NOW,
        tenant_id: tenant,
        name: name.into(),
        topic: topic.into(),
        poll_interval: 25,
        partitions: 3,
        consumer_per_partition: true,
        pack_processing_timeout: 2_000,
        submit_strategy: Some(SubmitStrategy {
            strategy: Some(SubmitStrategyType::SequentialByOriginator),
            batch_size: 7,
        }),
        processing_strategy: Some(ProcessingStrategy {
            strategy: Some(ProcessingStrategyType::RetryFailed),
            retries: 3,
            failure_percentage: 12.5,
            pause_between_retries: 1,
            max_pause_between_retries: 2,
        }),
        additional_info: Some(json!({"description": "d"})),
    }
}

/// Queues are shared or a tenant's own; names and topics are unique among the shared ones, and among those of a tenant.
pub async fn queues_are_shared_or_of_a_tenant(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let queues = &stores.queues;
    let shared = queue(TenantId::NULL, "Main", "main");
    assert_eq!(queues.insert(shared.clone()).await.unwrap(), shared);
    let own = queues.insert(queue(world.tenant, "Main", "main")).await.unwrap();
    let fast = queues.insert(queue(world.tenant, "Fast", "fast")).await.unwrap();
    let conflict = StoreErrorKind::Conflict;
    for tenant in [TenantId::NULL, world.tenant] {
        let message = expect_error(queues.insert(queue(tenant, "Main", "x")).await, conflict);
        assert_eq!(message, "Queue with name: Main already exists!");
        let message = expect_error(queues.insert(queue(tenant, "x", "main")).await, conflict);
        assert_eq!(message, "Queue with topic: main already exists!");
    }
    let nobodys = queue(TenantId::new(), "Main", "main");
    expect_error(queues.insert(nobodys).await, StoreErrorKind::Invalid);

    let (shared_id, own_id) = (shared.id, own.id);
    assert_eq!(
        queues.get(TenantId::NULL, shared_id).await.unwrap(),
        Some(shared.clone())
    );
    assert_eq!(queues.get(world.tenant, shared_id).await.unwrap(), None);
    assert_eq!(queues.get(TenantId::NULL, own_id).await.unwrap(), None);
    let by_name = queues.by_name(world.tenant, "Main").await.unwrap();
    assert_eq!(by_name, Some(own.clone()));
    assert_eq!(queues.by_name(TenantId::NULL, "Fast").await.unwrap(), None);
    assert_eq!(
        queues.all(world.tenant).await.unwrap(),
        [fast.clone(), own.clone()]
    );
    assert_eq!(queues.of_all_tenants().await.unwrap().len(), 3);
    let page = queues.list(TenantId::NULL, &PageLink::first(10)).await.unwrap();
    assert_eq!(page.data, std::slice::from_ref(&shared));
    let page = queues.list(world.tenant, &searched("FAS")).await.unwrap();
    assert_eq!(page.data, [fast]);

    let changed = Queue {
        partitions: 12,
        ..shared
    };
    assert_eq!(queues.update(changed.clone()).await.unwrap(), changed);
    assert!(!queues.delete(world.tenant, shared_id).await.unwrap());
    assert!(queues.delete(TenantId::NULL, shared_id).await.unwrap());
    expect_error(queues.update(changed).await, StoreErrorKind::NotFound);
    stores.tenants.delete(world.tenant).await.unwrap();
    assert_eq!(queues.all(world.tenant).await.unwrap(), []);
}
