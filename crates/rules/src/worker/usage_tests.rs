//! API usage in the engine: what is counted, and what becomes of messages when it is used up.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ingest::{IngestService, IngestStores, Options, QueueProducer};
use fieldline_core::ports::{Journal as _, TimeSeriesStore as _};
use fieldline_core::usage::{ApiFeature, UsageKey};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::message::MsgType;
use fieldline_model::record::RecordBatch;
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use serde_json::{Value, json};

use crate::chain::CompiledChain;
use crate::chain_registry::TenantChains;
use crate::engine::{EngineShared, QueueHandle};
use crate::nodes::tests::{NOW, World};

const DAY: u32 = 86_400;

/// Gives the tenant other limits.
async fn limit(world: &World, name: &str, limit: u64) {
    let stores = &world.services.stores;
    let mut profile = stores.tenant_profiles.default_profile().await.unwrap().unwrap();
    profile.profile_data["configuration"][name] = limit.into();
    let id = profile.id;
    stores.tenant_profiles.update(profile).await.unwrap();
    world.events.listen(world.services.usage.clone());
    world
        .events
        .publish(fieldline_core::events::EntityChange::saved(TenantId::NULL, id));
    world.services.usage.refresh().await.unwrap();
}

fn script(lang: &str) -> Value {
    json!({"scriptLang": lang, "jsScript": "return true;", "tbelScript": "return true;"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_are_counted_and_messages_of_a_tenant_that_used_them_up_are_dropped_and_acknowledged() {
    let (world, dir) = (World::new().await, tempfile::tempdir().unwrap());
    let usage = world.services.usage.clone();
    usage.restore().await.unwrap();
    let device = world.device("a", json!(null)).await;
    let journal =
        Arc::new(EmbeddedJournal::open(dir.path(), &fieldline_journal::Options::default()).unwrap());
    let uplink = QueueProducer::open(journal.clone(), 1).unwrap();
    let nodes = [
        world.node("filter.TbJsFilterNode", script("TBEL")),
        world.node("filter.TbJsFilterNode", script("JS")),
        world.node("telemetry.TbMsgTimeseriesNode", json!({})),
    ];
    let nodes = nodes.into_iter().map(|node| (RuleNodeId::new(), node)).collect();
    let chain = CompiledChain::of(RuleChainId::new(), nodes, &[(0, 1, "True"), (1, 2, "True")]);
    let common = EngineShared {
        services: world.services.clone(),
        chains: world.common.chains.clone(),
        events: world.common.events.clone(),
    };
    let chains = TenantChains::of(Some(chain.id), [Arc::new(chain)], 0);
    common.chains.put(world.tenant, chains);
    let queue = QueueHandle::new("Main", uplink.partitions(), Default::default());
    let stores = IngestStores {
        store: world.store.clone(),
        activity: world.services.activity.clone(),
        processors: queue.processors(&Arc::new(common)),
    };
    let service = IngestService::start(&uplink, stores, &Options::default())
        .await
        .unwrap();
    let send = async |ts: i64, acknowledged: u64| {
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(world.subject(device), ts, 10 * DAY);
        telemetry.begin_row(ts);
        pack("a", KvValueRef::Long(ts), telemetry.buffer());
        telemetry.count_point();
        telemetry.finish();
        uplink
            .append(world.subject(device), &batch)
            .await
            .unwrap()
            .await
            .unwrap();
        for _ in 0..4000 {
            let successful = queue.counts.lock().of(world.tenant).0.successful;
            if successful == acknowledged {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it was never acknowledged");
    };
    send(NOW - 2, 1).await;
    send(NOW - 1, 2).await;
    let of_tenant = usage.of(world.tenant);
    // What the last batch has counted is handed on before it is stored.
    for _ in 0..4000 {
        usage.report(false).await;
        if of_tenant.used(UsageKey::StorageDataPoints) == 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let used = [
        (UsageKey::RuleEngineExecutions, 6),
        (UsageKey::TbelExecutions, 2),
        (UsageKey::JavaScriptExecutions, 2),
        (UsageKey::StorageDataPoints, 20),
    ];
    for (key, count) in used {
        assert_eq!(of_tenant.used(key), count, "{key:?}");
    }

    limit(&world, "maxREExecutions", 6).await;
    assert!(!usage.is_allowed(world.tenant, ApiFeature::RuleEngine));
    send(NOW, 3).await;
    usage.report(false).await;
    assert_eq!(of_tenant.used(UsageKey::RuleEngineExecutions), 6);
    journal.close().await;
    tokio::task::spawn_blocking(move || service.stop(Duration::from_secs(60)))
        .await
        .unwrap();
    let latest = world.store.latest(world.subject(device), None).await.unwrap();
    assert_eq!(latest[0].point.ts, NOW - 1, "the dropped one was not stored");
}

#[tokio::test]
async fn nodes_fail_where_their_feature_is_used_up() {
    let mut world = World::new().await;
    world.services.usage.restore().await.unwrap();
    let device = world.device("a", json!(null)).await;
    let tenant = world.tenant;
    for (class, patch, name, key, text) in [
        (
            "filter.TbJsFilterNode",
            script("TBEL"),
            "maxTbelExecutions",
            UsageKey::TbelExecutions,
            "Script execution is disabled due to API limits!",
        ),
        (
            "filter.TbJsFilterNode",
            script("JS"),
            "maxJSExecutions",
            UsageKey::JavaScriptExecutions,
            "Script execution is disabled due to API limits!",
        ),
        (
            "telemetry.TbMsgTimeseriesNode",
            json!({}),
            "maxDPStorageDays",
            UsageKey::StorageDataPoints,
            "DB storage writes are disabled due to API limits!",
        ),
        (
            "mail.TbSendEmailNode",
            json!({}),
            "maxEmails",
            UsageKey::Emails,
            "Email sending is disabled due to API limits!",
        ),
    ] {
        limit(&world, name, 1).await;
        world.services.usage.count(tenant, key, 1);
        world.services.usage.report(false).await;
        let node = world.node(class, patch);
        let (kind, body) = match key {
            UsageKey::Emails => (
                MsgType::SendEmail,
                json!({"from": "a@example.org", "to": "b@example.org", "subject": "s", "body": "b"}),
            ),
            _ => (MsgType::PostTelemetry, json!({"a": 1})),
        };
        let msg = world.msg(kind, device, &body);
        let out = world.one(&node, msg).await;
        assert_eq!(out.error.as_deref(), Some(text), "{name}");
    }
}
