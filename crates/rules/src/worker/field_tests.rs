//! Calculated fields in a running engine: a journal, stores, a rule chain.

mod kinds;

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ingest::{IngestService, IngestStores, Options, QueueProducer};
use fieldline_core::ports::{EventFilter, RuleEngine as _, TimeSeriesStore as _};
use fieldline_entities::services::{ServiceContext, Services};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::entity::{CalculatedField, CalculatedFieldType, EventKind};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::message::{MsgType, QueueMessage};
use fieldline_model::page::PageLink;
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, RuleChainId, RuleNodeId};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::chain::CompiledChain;
use crate::chain_registry::TenantChains;
use crate::engine::{EngineDependencies, RuleEngineService};
use crate::message::RuleMessage;
use crate::node::{Node, NodeContext, NodeResult};
use crate::nodes::tests::{NOW, World};
use crate::producer::RuleMessageProducer;

type Seen = Arc<Mutex<Vec<(String, Value, Value)>>>;

/// Ends messages, and notes their types, bodies and metadata.
struct Collect(Seen);

impl Node for Collect {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let body = serde_json::from_str(&msg.data.to_text()).unwrap_or_default();
        let metadata: serde_json::Map<String, Value> = msg
            .meta
            .to_metadata()
            .iter()
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        self.0
            .lock()
            .push((msg.kind.name().to_owned(), body, metadata.into()));
        NodeResult::Done
    }
}

/// An engine at work, whose chain saves what devices send and collects everything.
struct Running {
    uplink: QueueProducer,
    engine: Arc<RuleEngineService>,
    service: IngestService,
}

impl Running {
    async fn start(world: &World, dir: &TempDir, seen: &Seen) -> Self {
        let journal = EmbeddedJournal::open(dir.path(), &fieldline_journal::Options::default()).unwrap();
        Self::over(world, QueueProducer::open(Arc::new(journal), 4).unwrap(), seen).await
    }

    /// Begins with what a journal holds and what workers before have kept.
    async fn over(world: &World, uplink: QueueProducer, seen: &Seen) -> Self {
        let options = crate::engine::Options::default();
        let messages = RuleMessageProducer::open(uplink.clone(), world.services.stores.clone(), &options);
        let services = Services::new(ServiceContext {
            rule_engine: messages.clone(),
            ..ServiceContext::clone(&world.services.rules.context)
        });
        let deps = EngineDependencies {
            services: services.with_alarm_gate(world.services.usage.clone()),
            messages,
            devices: world.callers.clone(),
            rpc: world.callers.clone(),
            rest_calls: world.callers.clone(),
            activity: world.services.activity.clone(),
            usage: world.services.usage.clone(),
            egress: fieldline_connectors::egress::EgressRules::default(),
            runtime: tokio::runtime::Handle::current(),
            service_id: "here".into(),
        };
        let engine = RuleEngineService::new(deps, &options);
        let nodes: Vec<Arc<dyn Node>> = vec![
            world.node("filter.TbMsgTypeSwitchNode", json!({})),
            world.node("telemetry.TbMsgTimeseriesNode", json!({})),
            world.node("telemetry.TbMsgAttributesNode", json!({})),
            Arc::new(Collect(seen.clone())),
        ];
        let edges = [
            (0, 1, "Post telemetry"),
            (0, 2, "Post attributes"),
            (1, 3, "Success"),
            (2, 3, "Success"),
            (0, 3, "Alarm Created"),
            (0, 3, "Alarm Cleared"),
            (0, 3, "Attributes Updated"),
        ];
        let nodes = nodes.into_iter().map(|node| (RuleNodeId::new(), node)).collect();
        let chain = CompiledChain::of(RuleChainId::new(), nodes, &edges);
        let chains = TenantChains::of(Some(chain.id), [Arc::new(chain)], 0);
        engine.shared().chains.put(world.tenant, chains);
        let stores = IngestStores {
            store: world.store.clone(),
            activity: world.services.activity.clone(),
            processors: engine.main_processors(),
        };
        let service = IngestService::start(&uplink, stores, &Options::default())
            .await
            .unwrap();
        Self {
            uplink,
            engine,
            service,
        }
    }

    /// Ends its workers; what they were told last is handled by those that come after.
    async fn stop(self) -> QueueProducer {
        let service = self.service;
        tokio::task::spawn_blocking(move || service.stop(Duration::from_secs(2)))
            .await
            .unwrap();
        self.engine.stop();
        self.uplink
    }

    /// A device sends values.
    async fn send(&self, world: &World, device: EntityId, ts: i64, values: &[(&str, f64)]) {
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(world.subject(device), ts, 0);
        telemetry.begin_row(ts);
        for (key, value) in values {
            pack(key, KvValueRef::Double(*value), telemetry.buffer());
            telemetry.count_point();
        }
        telemetry.finish();
        self.uplink
            .append(world.subject(device), &batch)
            .await
            .unwrap()
            .await
            .unwrap();
    }

    /// Waits until there is a debug event of a field.
    async fn shows(&self, world: &World, name: &str) {
        let fields = self
            .engine
            .shared()
            .chains
            .fields()
            .tenant(world.tenant)
            .await
            .unwrap();
        let id: EntityId = fields.all().find(|entry| &*entry.name == name).unwrap().id.into();
        let filter = EventFilter::of(EventKind::DebugCalculatedField);
        eventually("no debug event", async || {
            let page = PageLink::first(10);
            let events = world
                .services
                .stores
                .events
                .list(world.tenant, id, &filter, &page)
                .await
                .unwrap();
            !events.data.is_empty()
        })
        .await;
    }

    /// A person has saved something: it is stored already, and the engine is told.
    async fn tell(
        &self,
        world: &World,
        kind: MsgType,
        entity: EntityId,
        metadata: &[(&str, &str)],
        body: Value,
    ) {
        let metadata = metadata.iter().copied().chain([("userId", "somebody")]).collect();
        let message = QueueMessage::new(kind, entity, world.services.now_ms(), metadata, body.to_string());
        self.engine
            .message_producer()
            .push(world.tenant, message)
            .await
            .unwrap();
    }
}

/// Saves a field.
async fn field(world: &World, entity: EntityId, kind: CalculatedFieldType, name: &str, configuration: Value) {
    let field = CalculatedField {
        entity_id: Some(entity),
        field_type: kind,
        name: name.into(),
        configuration,
        debug_settings: Some(fieldline_model::entity::DebugSettings {
            failures_enabled: true,
            all_enabled: true,
            ..Default::default()
        }),
        ..CalculatedField::default()
    };
    world
        .services
        .rules
        .calculated_fields
        .save(world.tenant, field.into())
        .await
        .unwrap();
}

fn latest(key: &str) -> Value {
    json!({"refEntityKey": {"key": key, "type": "TS_LATEST"}})
}

fn immediately(name: &str) -> Value {
    json!({"type": "TIME_SERIES", "name": name, "decimalsByDefault": 2, "strategy": {
        "type": "IMMEDIATE", "saveTimeSeries": true, "saveLatest": true, "processCfs": true,
    }})
}

fn simple(arguments: Value, expression: &str, output: Value) -> Value {
    json!({"type": "SIMPLE", "arguments": arguments, "expression": expression, "output": output, "useLatestTs": true})
}

/// Waits until the latest value of a series is that one.
async fn becomes(world: &World, entity: EntityId, key: &str, value: f64) {
    let keys = [key.to_owned()];
    let mut last = None;
    for _ in 0..12_000 {
        let found = world
            .store
            .latest(world.subject(entity), Some(&keys))
            .await
            .unwrap();
        last = found.first().and_then(|latest| latest.point.value.as_number());
        if last == Some(value) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{key} is {last:?} and not {value}");
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..12_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simple_fields_follow_devices_people_and_each_other() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let device = world.device("a", json!(null)).await;
    let running = Running::start(&world, &dir, &seen).await;
    let sum = simple(
        json!({"a": latest("a"), "b": latest("b")}),
        "a + b",
        immediately("sum"),
    );
    field(&world, device, CalculatedFieldType::Simple, "sum", sum).await;
    let double = simple(json!({"s": latest("sum")}), "s * 2", immediately("double"));
    field(&world, device, CalculatedFieldType::Simple, "double", double).await;
    // It feeds itself, and stops after one round.
    let chained = json!({"type": "TIME_SERIES", "name": "a", "strategy": {"type": "RULE_CHAIN"}});
    let grows = simple(json!({"a": latest("a")}), "a + 100", chained);
    field(&world, device, CalculatedFieldType::Simple, "grows", grows).await;
    // Each is evaluated once when it is saved, and says that its arguments are missing.
    for name in ["sum", "double", "grows"] {
        running.shows(&world, name).await;
    }

    running.send(&world, device, NOW, &[("b", 2.0)]).await;
    running.send(&world, device, NOW + 1, &[("a", 1.0)]).await;
    becomes(&world, device, "sum", 103.0).await;
    becomes(&world, device, "double", 206.0).await;
    becomes(&world, device, "a", 101.0).await;
    let told = seen
        .lock()
        .iter()
        .filter(|(.., meta)| meta.get("calculatedFieldName").is_some())
        .cloned()
        .collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "POST_TELEMETRY_REQUEST");
    assert_eq!(told[0].2, json!({"calculatedFieldName": "grows"}));

    // What a person saves is told to the engine when it is stored.
    world.telemetry(device, NOW + 2, json!({"b": 5.0})).await;
    let points = json!({"timeseries": [{"ts": NOW + 2, "values": {"b": 5.0}}]});
    running
        .tell(&world, MsgType::TimeseriesUpdated, device, &[], points)
        .await;
    becomes(&world, device, "sum", 106.0).await;
    becomes(&world, device, "double", 212.0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_of_profiles_begin_with_what_is_stored_and_keep_windows() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let first = world.device("a", json!(null)).await;
    let second = world.device("b", json!(null)).await;
    for (n, value) in [(3, 10.0), (2, 20.0), (1, 30.0)] {
        world.telemetry(first, NOW - n * 1000, json!({"t": value})).await;
    }
    let running = Running::start(&world, &dir, &seen).await;
    let mean = json!({
        "type": "SCRIPT",
        "arguments": {"t": {
            "refEntityKey": {"key": "t", "type": "TS_ROLLING"}, "limit": 3, "timeWindow": 3_600_000,
        }},
        "expression": "return {\"mean\": t.mean(), \"n\": t.count()};",
        "output": immediately(""),
    });
    field(
        &world,
        world.profile.into(),
        CalculatedFieldType::Script,
        "mean",
        mean,
    )
    .await;
    becomes(&world, first, "mean", 20.0).await;
    running.send(&world, first, NOW, &[("t", 40.0)]).await;
    becomes(&world, first, "mean", 30.0).await;
    becomes(&world, first, "n", 3.0).await;
    running.send(&world, second, NOW, &[("t", 7.0)]).await;
    becomes(&world, second, "mean", 7.0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durations_of_alarm_fields_continue_after_a_restart() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let device = world.device("a", json!(null)).await;
    let running = Running::start(&world, &dir, &seen).await;
    let condition = |body: &str, kind: Value| {
        let mut condition = json!({"expression": {"type": "TBEL", "expression": body}});
        for (key, value) in kind.as_object().unwrap() {
            condition[key] = value.clone();
        }
        json!({"condition": condition, "alarmDetails": "${t} is too much"})
    };
    let lasting = json!({"type": "DURATION", "unit": "SECONDS", "value": {"staticValue": 60}});
    let rules = json!({
        "type": "ALARM",
        "arguments": {"t": latest("t")},
        "createRules": {"MAJOR": condition("return t > 50;", lasting)},
        "clearRule": condition("return t < 40;", json!({"type": "SIMPLE"})),
    });
    field(&world, device, CalculatedFieldType::Alarm, "too hot", rules).await;
    running.send(&world, device, NOW, &[("t", 60.0)]).await;
    eventually("the value did not arrive", async || !seen.lock().is_empty()).await;
    let uplink = running.stop().await;

    world.clock.advance(40_000);
    let running = Running::over(&world, uplink, &seen).await;
    let active = async || {
        world
            .services
            .stores
            .alarms
            .active_of(world.tenant, device)
            .await
            .unwrap()
    };
    assert!(active().await.is_empty());
    // No value comes: the time that had passed before the restart counts.
    world.clock.advance(20_001);
    eventually("no alarm", async || !active().await.is_empty()).await;
    let alarm = active().await.remove(0);
    assert_eq!((alarm.alarm_type.as_str(), alarm.start_ts), ("too hot", NOW));
    assert_eq!(
        alarm.details.as_ref().and_then(|details| details.get("data")),
        Some(&json!("60.0 is too much"))
    );
    let kinds = || {
        seen.lock()
            .iter()
            .map(|(kind, ..)| kind.clone())
            .collect::<Vec<_>>()
    };
    eventually("the chain was not told", async || {
        kinds().contains(&"ALARM_CREATED".to_owned())
    })
    .await;
    let created = seen
        .lock()
        .iter()
        .find(|(kind, ..)| kind == "ALARM_CREATED")
        .cloned()
        .unwrap();
    assert_eq!(
        (&created.1["type"], &created.2["isNewAlarm"]),
        (&json!("too hot"), &json!("true"))
    );

    running.send(&world, device, NOW + 61_000, &[("t", 30.0)]).await;
    eventually("not cleared", async || {
        kinds().contains(&"ALARM_CLEAR".to_owned())
    })
    .await;
    assert!(active().await.is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_other_entities_reach_the_fields_that_look_at_them() {
    let (world, dir, seen) = (World::new().await, tempfile::tempdir().unwrap(), Seen::default());
    let customer: EntityId = world.customer.into();
    let outdoor = world.device("outdoor", json!(null)).await;
    let mut rooms = Vec::new();
    for name in ["a", "b", "c", "d"] {
        rooms.push(world.device(name, json!({"customerId": world.customer})).await);
    }
    let building = world.asset("building", "buildings", json!(null)).await;
    for room in &rooms[..2] {
        world.relate(building, *room, "Contains").await;
    }
    let running = Running::start(&world, &dir, &seen).await;
    let mut other = latest("t");
    other["refEntityId"] = json!(outdoor);
    let offset = json!({
        "refEntityKey": {"key": "offset", "type": "ATTRIBUTE", "scope": "SERVER_SCOPE"},
        "refDynamicSourceConfiguration": {"type": "CURRENT_OWNER"}, "defaultValue": "0",
    });
    let arguments = json!({"t": latest("t"), "o": other, "x": offset});
    let difference = simple(arguments, "t - o + x", immediately("difference"));
    field(
        &world,
        world.profile.into(),
        CalculatedFieldType::Simple,
        "difference",
        difference,
    )
    .await;
    let total = json!({
        "type": "RELATED_ENTITIES_AGGREGATION",
        "relation": {"direction": "FROM", "relationType": "Contains"},
        "arguments": {"t": latest("t")},
        "deduplicationIntervalInSec": 10,
        "metrics": {"total": {"function": "SUM", "input": {"type": "key", "key": "t"}}},
        "output": immediately(""),
    });
    field(
        &world,
        building,
        CalculatedFieldType::RelatedEntitiesAggregation,
        "total",
        total,
    )
    .await;

    for (n, room) in rooms.iter().enumerate() {
        running.send(&world, *room, NOW, &[("t", 20.0 + n as f64)]).await;
    }
    running.send(&world, outdoor, NOW, &[("t", 5.0)]).await;
    for (n, room) in rooms.iter().enumerate() {
        becomes(&world, *room, "difference", 15.0 + n as f64).await;
    }
    running.send(&world, outdoor, NOW + 1000, &[("t", 6.0)]).await;
    becomes(&world, rooms[3], "difference", 17.0).await;
    world
        .attributes(customer, AttributeScope::Server, json!({"offset": 100}))
        .await;
    let scope = [("scope", "SERVER_SCOPE")];
    running
        .tell(
            &world,
            MsgType::AttributesUpdated,
            customer,
            &scope,
            json!({"offset": 100}),
        )
        .await;
    for (n, room) in rooms.iter().enumerate() {
        becomes(&world, *room, "difference", 114.0 + n as f64).await;
    }
    // The building adds its rooms up, at most every ten seconds.
    world.clock.advance(11_000);
    becomes(&world, building, "total", 41.0).await;
    running.stop().await;
}
