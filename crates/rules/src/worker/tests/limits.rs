//! What one message may cost: its own end, and nobody else's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::ports::{
    CalculatedFieldFilter, CalculatedFieldStore, EntityStore, StoreError, StoreErrorKind, StoreResult,
    TenantEntityStore,
};
use fieldline_model::entity::{
    CalculatedField, CalculatedFieldInfo, CalculatedFieldType, RuleChain, RuleChainMetaData, RuleNode,
};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CalculatedFieldId, EntityId, RuleNodeId, TenantId, new_uuid};
use serde_json::{Value, json};

use super::rig::{Rig, Seen, eventually, node};
use crate::chain::CompiledChain;
use crate::chain_registry::ChainRegistry;
use crate::engine::EngineShared;
use crate::fields::{FieldEvent, FieldEventKind, FieldTask};
use crate::node::{ConnectionLabel, NodeResult};
use crate::nodes::tests::NOW;
use crate::services::NodeServices;
use crate::strategy::QueueStrategy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_becomes_millions_is_given_up_alone() {
    const DOUBLINGS: usize = 21;
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    let doubles = node(|_, msg| match msg.values_ts() {
        1 => NodeResult::Many(vec![
            (msg.clone(), ConnectionLabel::SUCCESS),
            (msg, ConnectionLabel::SUCCESS),
        ]),
        _ => NodeResult::success(msg),
    });
    let edges: Vec<_> = (1..DOUBLINGS).map(|at| (at - 1, at, "Success")).collect();
    rig.chain(vec![doubles; DOUBLINGS], &edges);
    rig.send(device, [1, 2]).await;
    let service = rig.start().await;
    let (counts, failure) = rig.finish(service).await;
    assert_eq!((counts.failed, counts.successful), (1, 1));
    let error = failure.unwrap().error;
    assert!(error.contains("more than a rule chain may make"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_beyond_the_budget_of_a_node_fails_alone_and_names_the_node() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    let node = |path: &str| RuleNode {
        id: RuleNodeId::new(),
        node_type: "org.thingsboard.rule.engine.transform.TbJsonPathNode".to_owned(),
        name: "Deep look".to_owned(),
        configuration: json!({ "jsonPath": path }),
        ..RuleNode::default()
    };
    let zeros = vec!["0"; 150].join(",");
    for (path, body, limit) in [
        (
            "$..[?($..[?($..[?($..[?(@.x)])])])]".to_owned(),
            json!({"x": vec![json!({}); 1000]}),
            "beyond the limit of steps of an evaluation: ",
        ),
        (
            format!("$.a[{zeros}][{zeros}]"),
            json!({"a": [["x".repeat(100_000)]]}),
            "beyond the limit of bytes that an evaluation makes: ",
        ),
    ] {
        let metadata = RuleChainMetaData {
            first_node_index: Some(0),
            nodes: vec![node(&path)],
            ..RuleChainMetaData::default()
        };
        let chain = RuleChain {
            name: "Root".to_owned(),
            ..RuleChain::default()
        };
        let (services, tenant) = (&rig.world.services, rig.world.tenant);
        rig.put(CompiledChain::compile(services, tenant, &chain, &metadata, None));
        for body in [body.clone(), json!({"a": [[1]], "x": []}), body] {
            let message = QueueMessage::new(
                MsgType::PostTelemetry,
                device,
                NOW,
                MetadataMap::new(),
                body.to_string(),
            );
            rig.send_message(&message).await;
        }
        let failed = rig.counts().0.failed;
        let service = rig.start().await;
        eventually("all are done with", async || rig.counts().0.failed == failed + 2).await;
        rig.stop(service, Duration::ZERO).await;
        let failure = rig.counts().1.unwrap();
        assert_eq!(
            (failure.chain.as_str(), failure.node.as_str()),
            ("Root", "Deep look")
        );
        assert!(failure.error.starts_with(limit), "{}", failure.error);
    }
}

/// A chain that saves telemetry and evaluates alarm rules of profiles, and two messages, the first of which leads to a
/// read that panics.
async fn panic_once(rig: &Rig, device: EntityId) {
    let seen = Seen::default();
    let nodes = vec![
        rig.world.node("telemetry.TbMsgTimeseriesNode", json!({})),
        rig.world.node("profile.TbDeviceProfileNode", json!({})),
        seen.node(),
    ];
    rig.chain(nodes, &[(0, 1, "Success"), (1, 2, "Success")]);
    rig.attributes.panics.store(1, Ordering::Release);
    rig.send(device, [1, 2]).await;
    let service = rig.start().await;
    let (counts, failure) = rig.finish(service).await;
    assert_eq!(rig.attributes.panics.load(Ordering::Acquire), 0);
    assert_eq!((counts.failed, counts.successful), (1, 1));
    assert!(failure.unwrap().error.contains("panicked"));
    assert_eq!(seen.all(), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarm_rules_that_panic_cost_their_message_only() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let key = |kind: &str, key: &str| json!({"type": kind, "key": key});
    let above = |key| {
        json!({"key": key, "valueType": "NUMERIC",
            "predicate": {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 0}}})
    };
    let condition = json!({
        "condition": [above(key("TIME_SERIES", "n")), above(key("ATTRIBUTE", "limit"))],
        "spec": {"type": "SIMPLE"},
    });
    let alarms =
        json!([{"id": "a", "alarmType": "High", "createRules": {"MAJOR": {"condition": condition}}}]);
    let profile = rig
        .world
        .device_profile("watched", json!({"profileData": {"alarms": alarms}}))
        .await;
    let device = rig
        .world
        .device("watched", json!({"deviceProfileId": profile}))
        .await;
    panic_once(&rig, device).await;
}

/// Gives an entity a field over its series `n` and its attribute `limit`.
async fn field(
    rig: &Rig,
    entity: EntityId,
    field_type: CalculatedFieldType,
    patch: Value,
) -> CalculatedFieldId {
    let argument =
        |kind: &str, key: &str| json!({"refEntityKey": {"key": key, "type": kind, "scope": "SERVER_SCOPE"}});
    let mut limit = argument("ATTRIBUTE", "limit");
    limit["defaultValue"] = json!("0");
    let mut configuration = json!({"arguments": {"n": argument("TS_LATEST", "n"), "limit": limit}});
    for (name, value) in patch.as_object().unwrap() {
        configuration[name] = value.clone();
    }
    let field = CalculatedField {
        entity_id: Some(entity),
        field_type,
        name: "watched".into(),
        configuration,
        ..CalculatedField::default()
    };
    let fields = &rig.world.services.rules.calculated_fields;
    fields.save(rig.world.tenant, field.into()).await.unwrap().id
}

fn sum() -> Value {
    let strategy = json!({"type": "IMMEDIATE", "saveTimeSeries": true, "saveLatest": true});
    json!({"type": "SIMPLE", "expression": "n + limit",
        "output": {"type": "TIME_SERIES", "name": "sum", "strategy": strategy}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calculated_fields_that_panic_cost_their_message_only() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    field(&rig, device, CalculatedFieldType::Simple, sum()).await;
    panic_once(&rig, device).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_from_other_partitions_that_makes_a_field_panic_costs_itself_only() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    let id = field(&rig, device, CalculatedFieldType::Simple, sum()).await;
    let (seen, task) = (
        Seen::default(),
        FieldTask {
            field: Some(id),
            event: FieldEvent {
                subject: rig.world.subject(device),
                change: FieldEventKind::Started,
                msg: new_uuid(),
                kind: "CALCULATED_FIELD".into(),
                previous: Arc::default(),
            },
            page: None,
        },
    );
    rig.chain(vec![seen.node()], &[]);
    rig.attributes.panics.store(1, Ordering::Release);
    rig.send_message(&task.message(device, NOW)).await;
    rig.send(device, [2]).await;
    let service = rig.start().await;
    let (counts, failure) = rig.finish(service).await;
    assert_eq!((counts.failed, counts.successful), (1, 1));
    assert!(failure.unwrap().error.contains("panicked"));
    assert_eq!(seen.all(), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_that_makes_a_field_panic_costs_itself_only() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let (device, seen) = (rig.device_in(0).await, Seen::default());
    let lasting = json!({
        "type": "ALARM",
        "createRules": {"MAJOR": {"condition": {
            "type": "DURATION", "unit": "SECONDS", "value": {"staticValue": 60},
            "expression": {"type": "TBEL", "expression": "return n > limit;"},
        }}},
    });
    field(&rig, device, CalculatedFieldType::Alarm, lasting).await;
    let nodes = vec![
        // The alarm comes to the chain as well.
        rig.world.node("filter.TbMsgTypeSwitchNode", json!({})),
        rig.world.node("telemetry.TbMsgTimeseriesNode", json!({})),
        seen.node(),
    ];
    rig.chain(nodes, &[(0, 1, "Post telemetry"), (1, 2, "Success")]);
    let service = rig.start().await;
    rig.send(device, [NOW]).await;
    eventually("the message was not processed", async || {
        rig.counts().0.successful == 1
    })
    .await;
    rig.attributes.panics.store(1, Ordering::Release);
    rig.world.clock.advance(61_000);
    eventually("nothing came due", async || rig.counts().0.failed == 1).await;
    rig.send(device, [NOW + 61_000]).await;
    let (counts, failure) = rig.finish(service).await;
    assert_eq!((counts.failed, counts.successful), (1, 2));
    assert!(failure.unwrap().error.contains("panicked"));
    assert_eq!(seen.all(), [NOW, NOW + 61_000]);
}

/// Calculated fields that can never be read.
struct Unreadable;

fn unreadable<T>() -> StoreResult<T> {
    Err(StoreError::new(StoreErrorKind::Corrupt, "as the test wants it"))
}

#[async_trait]
impl EntityStore<CalculatedField> for Unreadable {
    async fn insert(&self, _: CalculatedField) -> StoreResult<CalculatedField> {
        unreadable()
    }

    async fn update(&self, _: CalculatedField) -> StoreResult<CalculatedField> {
        unreadable()
    }
}

#[async_trait]
impl TenantEntityStore<CalculatedField> for Unreadable {
    async fn get(&self, _: TenantId, _: CalculatedFieldId) -> StoreResult<Option<CalculatedField>> {
        unreadable()
    }

    async fn by_ids(&self, _: TenantId, _: &[CalculatedFieldId]) -> StoreResult<Vec<CalculatedField>> {
        unreadable()
    }

    async fn delete(&self, _: TenantId, _: CalculatedFieldId) -> StoreResult<bool> {
        unreadable()
    }

    async fn count(&self, _: TenantId) -> StoreResult<u64> {
        unreadable()
    }
}

#[async_trait]
impl CalculatedFieldStore for Unreadable {
    async fn list(
        &self,
        _: TenantId,
        _: &CalculatedFieldFilter,
        _: &PageLink,
    ) -> StoreResult<PageData<CalculatedFieldInfo>> {
        unreadable()
    }

    async fn names(
        &self,
        _: TenantId,
        _: CalculatedFieldType,
        _: &PageLink,
    ) -> StoreResult<PageData<String>> {
        unreadable()
    }

    async fn of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<CalculatedField>> {
        unreadable()
    }

    async fn count_of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<u64> {
        unreadable()
    }

    async fn is_referenced(&self, _: TenantId, _: EntityId) -> StoreResult<bool> {
        unreadable()
    }

    async fn delete_of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<CalculatedFieldId>> {
        unreadable()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calculated_fields_that_cannot_be_read_hold_nobody_up() {
    let mut rig = Rig::new(1, QueueStrategy::default()).await;
    let mut services = NodeServices::clone(&rig.world.services);
    services.stores.calculated_fields = Arc::new(Unreadable);
    let (services, events) = (Arc::new(services), rig.world.common.events.clone());
    rig.world.common = Arc::new(EngineShared {
        chains: ChainRegistry::new(services.clone(), events.clone()),
        services,
        events,
    });
    let (device, seen) = (rig.device_in(0).await, Seen::default());
    rig.chain(vec![seen.node()], &[]);
    rig.send(device, [1]).await;
    let service = rig.start().await;
    let (counts, _) = rig.finish(service).await;
    assert_eq!((counts.successful, seen.all()), (1, vec![1]));
}
