//! What was kept of things that are no more.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::events::{EntityChange, EntityListener as _};
use fieldline_core::ports::IngestStore as _;
use fieldline_model::{DeviceId, EntityId, RuleChainId, RuleNodeId};
use uuid::Uuid;

use super::rig::{Rig, Seen, eventually, node};
use crate::chain::CompiledChain;
use crate::chain_registry::ChainRegistryListener;
use crate::node::NodeResult;
use crate::strategy::QueueStrategy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_goes_with_its_node_its_entity_and_its_tenant() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let [a, b] = [
        rig.world.device("a", ().into()).await,
        rig.world.device("b", ().into()).await,
    ];
    let keeps = node(|ctx, msg| {
        ctx.set_state(msg.subject(), 0, None, b"kept");
        NodeResult::success(msg)
    });
    let [old, stays] = [RuleNodeId::new(), RuleNodeId::new()];
    let chain = |ids: &[RuleNodeId]| {
        let nodes = ids.iter().map(|id| (*id, keeps.clone())).collect();
        CompiledChain::of(RuleChainId::new(), nodes, &[(0, 1, "Success")])
    };
    let kept = async || -> Vec<(Uuid, EntityId)> {
        let rows = rig.store.states(rig.partition(0)).await.unwrap();
        let mut kept: Vec<_> = rows
            .into_iter()
            .map(|row| (row.key.owner, row.key.subject.entity))
            .collect();
        kept.sort_unstable();
        kept
    };
    let becomes = async |what: &str, wanted: &[(RuleNodeId, EntityId)]| {
        let mut wanted: Vec<_> = wanted.iter().map(|(node, entity)| (node.0, *entity)).collect();
        wanted.sort_unstable();
        eventually(what, async || kept().await == wanted).await;
    };
    rig.put(chain(&[old, stays]));
    let service = rig.start().await;
    rig.send(a, [1]).await;
    rig.send(b, [2]).await;
    becomes(
        "not everything is kept",
        &[(old, a), (old, b), (stays, a), (stays, b)],
    )
    .await;

    rig.put(chain(&[stays]));
    becomes("states of the node that is gone", &[(stays, a), (stays, b)]).await;
    let listener = ChainRegistryListener(Arc::clone(&rig.world.common.chains));
    listener.on_change(EntityChange::deleted(rig.world.tenant, DeviceId(a.id)));
    becomes("states of the device that is gone", &[(stays, b)]).await;
    listener.on_change(EntityChange::deleted(rig.world.tenant, rig.world.tenant));
    becomes("states of the tenant that is gone", &[]).await;
    rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_midst_of_a_pack_stores_nothing_of_what_it_keeps_however_much_has_gone() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let (device, came) = (rig.device_in(0).await, Seen::default());
    let keeps = {
        let came = came.clone();
        node(move |ctx, msg| {
            ctx.set_state(msg.subject(), 0, None, b"kept");
            came.note(&msg);
            NodeResult::wait(std::future::pending())
        })
    };
    rig.chain(vec![keeps], &[]);
    rig.send(device, [1]).await;
    let service = rig.start().await;
    eventually("the message has not come", async || came.all() == [1]).await;
    let listener = ChainRegistryListener(Arc::clone(&rig.world.common.chains));
    listener.on_change(EntityChange::deleted(rig.world.tenant, DeviceId::new()));
    rig.stop(service, Duration::ZERO).await;
    // The message comes again, and would meet what it has kept already.
    assert!(rig.store.states(rig.partition(0)).await.unwrap().is_empty());
}
