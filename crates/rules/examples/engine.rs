//! Messages per second per core through the engine, from the journal to the time-series store: `cargo run --release -p
//! fieldline-rules --example engine [-- MESSAGES]`.
//!
//! Each line is a run of one worker over the same records: smart meters that send three values. `us/message` is the CPU
//! time of the worker's thread; the first line is a run without the rule engine.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::clock::SystemClock;
use fieldline_core::ingest::{
    DirectProcessor, IngestService, IngestStores, Options, ProcessorFactory, QueueProducer,
};
use fieldline_core::ports::{
    EntityStores, Journal as _, NoDeviceRpc, NoRestApiResponder, NoRuleEngine, NoRuleNodes, SavedBy,
};
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_devices::downlink::NoDeviceLink;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{ServiceContext, Services};
use fieldline_journal::EmbeddedJournal;
use fieldline_model::entity::{
    Device, DeviceCredentials, DeviceProfile, NodeConnection, RuleChain, RuleChainMetaData, RuleNode, Tenant,
    TenantProfile,
};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::record::RecordBatch;
use fieldline_model::{
    DeviceId, DeviceProfileId, EntityKey, RuleChainId, RuleNodeId, TenantId, TenantProfileId,
};
use fieldline_rules::engine::{EngineDependencies, RuleEngineService};
use fieldline_rules::producer::RuleMessageProducer;
use fieldline_storage::series::SeriesStore;
use fieldline_storage::sql;
use serde_json::{Value, json};

const DEVICES: usize = 1_000;
const BATCH: usize = 64;

/// A node: class, configuration, label to the next one.
type ChainPart = (&'static str, Value, &'static str);

fn save() -> ChainPart {
    let settings =
        json!({"defaultTTL": 0, "useServerTs": false, "processingSettings": {"type": "ON_EVERY_MESSAGE"}});
    ("telemetry.TbMsgTimeseriesNode", settings, "Success")
}

fn switch() -> ChainPart {
    (
        "filter.TbMsgTypeSwitchNode",
        json!({"version": 0}),
        "Post telemetry",
    )
}

fn script(lang: &str) -> ChainPart {
    let body = "msg.energy = msg.energy * 1.8 + 32; return {msg: msg, metadata: metadata, msgType: msgType};";
    let settings = json!({"scriptLang": lang, "jsScript": body, "tbelScript": body});
    ("transform.TbTransformMsgNode", settings, "Success")
}

fn filter() -> ChainPart {
    let settings = json!({"messageTypes": ["POST_TELEMETRY_REQUEST"]});
    ("filter.TbMsgTypeFilterNode", settings, "True")
}

fn alarms() -> ChainPart {
    let settings = json!({"persistAlarmRulesState": false, "fetchAlarmRulesStateOnStart": false});
    ("profile.TbDeviceProfileNode", settings, "Success")
}

/// Five alarms, each with a rule to raise and one to clear it; the load raises none.
fn alarm_rules() -> Value {
    let condition = |key: &str, operation: &str, limit: i64| {
        json!({"condition": {"condition": [{
            "key": {"type": "TIME_SERIES", "key": key}, "valueType": "NUMERIC", "value": null,
            "predicate": {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": limit}},
        }], "spec": {"type": "SIMPLE"}}, "schedule": null, "alarmDetails": null})
    };
    let alarms: Vec<Value> = ["energy", "power", "voltage", "energy", "power"]
        .iter()
        .enumerate()
        .map(|(n, key)| {
            json!({
                "id": format!("rule {n}"), "alarmType": format!("alarm {n}"),
                "createRules": {"CRITICAL": condition(key, "GREATER", 1_000_000_000)},
                "clearRule": condition(key, "LESS", -1), "propagate": false,
            })
        })
        .collect();
    json!({"configuration": {"type": "DEFAULT"}, "transportConfiguration": {"type": "DEFAULT"}, "alarms": alarms})
}

struct EngineFixture {
    stores: EntityStores,
    tenant: TenantId,
    devices: Vec<EntityKey>,
}

impl EngineFixture {
    /// Creates a tenant with devices and that many device profiles.
    async fn new(dir: &Path, profiles: usize) -> Self {
        let stores = sql::open_sqlite(&dir.join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let profile = TenantProfile {
            id: TenantProfileId::new(),
            name: "default".into(),
            is_default: true,
            profile_data: json!({"configuration": {"type": "DEFAULT"}}),
            ..TenantProfile::default()
        };
        let profile = stores.tenant_profiles.insert(profile).await.unwrap();
        let tenant = Tenant {
            id: TenantId::new(),
            title: "t".into(),
            name: "t".into(),
            tenant_profile_id: Some(profile.id),
            ..Tenant::default()
        };
        let tenant = stores.tenants.insert(tenant).await.unwrap().id;
        let mut ids = Vec::new();
        for n in 0..profiles {
            let profile = DeviceProfile {
                id: DeviceProfileId::new(),
                tenant_id: tenant,
                name: format!("profile {n}"),
                profile_data: alarm_rules(),
                ..DeviceProfile::default()
            };
            ids.push(stores.device_profiles.insert(profile).await.unwrap().id);
        }
        let mut devices = Vec::new();
        for n in 0..DEVICES {
            let device = Device {
                id: DeviceId::new(),
                tenant_id: tenant,
                name: format!("meter {n}"),
                device_profile_id: Some(ids[n % profiles]),
                ..Device::default()
            };
            let id = device.id;
            let credentials = DeviceCredentials::access_token(id, format!("token {n}"), 0);
            stores.devices.create(device, credentials).await.unwrap();
            devices.push(EntityKey::device(tenant, id));
        }
        Self {
            stores,
            tenant,
            devices,
        }
    }

    /// Saves a root chain of these nodes, connected in a row.
    async fn chain(&self, parts: &[ChainPart]) {
        let chain = RuleChain {
            id: RuleChainId::new(),
            tenant_id: self.tenant,
            name: "Root".into(),
            root: true,
            ..RuleChain::default()
        };
        let chain = self.stores.rule_chains.insert(chain).await.unwrap();
        let nodes = parts.iter().map(|(class, configuration, _)| RuleNode {
            id: RuleNodeId::new(),
            rule_chain_id: Some(chain.id),
            node_type: format!("org.thingsboard.rule.engine.{class}"),
            name: (*class).into(),
            configuration_version: 100,
            configuration: configuration.clone(),
            ..RuleNode::default()
        });
        let connections = (0..)
            .zip(parts)
            .take(parts.len() - 1)
            .map(|(n, (_, _, label))| NodeConnection {
                from_index: n,
                to_index: n + 1,
                label: (*label).into(),
            });
        let metadata = RuleChainMetaData {
            rule_chain_id: Some(chain.id),
            version: chain.version,
            first_node_index: Some(0),
            nodes: nodes.collect(),
            connections: Some(connections.collect()),
            ..RuleChainMetaData::default()
        };
        self.stores
            .rule_chains
            .save_metadata(self.tenant, metadata, &SavedBy::default())
            .await
            .unwrap();
    }
}

fn cpu_of(thread: &str) -> Duration {
    let mut ticks = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(task.path().join("schedstat")) else {
            continue;
        };
        let Ok(name) = std::fs::read_to_string(task.path().join("comm")) else {
            continue;
        };
        if name.trim() == thread {
            ticks += stat
                .split_whitespace()
                .next()
                .and_then(|ns| ns.parse::<u64>().ok())
                .unwrap_or(0);
        }
    }
    Duration::from_nanos(ticks)
}

async fn measure(name: &str, messages: usize, profiles: usize, parts: Option<Vec<ChainPart>>) {
    let dir = tempfile::tempdir().unwrap();
    let world = EngineFixture::new(dir.path(), profiles).await;
    let clock = Arc::new(SystemClock);
    let journal = Arc::new(EmbeddedJournal::open(&dir.path().join("journal"), &Default::default()).unwrap());
    let series = SeriesStore::open(&dir.path().join("series"), &Default::default(), clock.clone()).unwrap();
    let uplink = QueueProducer::open(journal.clone(), 1).unwrap();
    let mut last = None;
    for first in (0..messages).step_by(BATCH) {
        let mut batch = RecordBatch::new();
        for n in first..(first + BATCH).min(messages) {
            let mut telemetry = batch.begin_telemetry(world.devices[n % DEVICES], n as i64, 0);
            telemetry.begin_row(1_700_000_000_000 + n as i64);
            pack("energy", KvValueRef::Double(n as f64 / 7.0), telemetry.buffer());
            telemetry.count_point();
            pack("power", KvValueRef::Long(n as i64 % 1000), telemetry.buffer());
            telemetry.count_point();
            pack("voltage", KvValueRef::Double(230.0), telemetry.buffer());
            telemetry.count_point();
            telemetry.finish();
        }
        last = Some(uplink.append(world.devices[0], &batch).await.unwrap());
    }
    if let Some(last) = last {
        last.await.unwrap();
    }
    let activity = ActivityTracker::new(
        world.stores.clone(),
        series.clone(),
        Arc::new(NoRuleEngine),
        clock.clone(),
        &Default::default(),
    );
    let (processors, engine): (ProcessorFactory, _) = match parts {
        None => (DirectProcessor::processors(), None),
        Some(parts) => {
            world.chain(&parts).await;
            let options = Default::default();
            let messages = RuleMessageProducer::open(uplink.clone(), world.stores.clone(), &options);
            let services = Services::new(ServiceContext {
                stores: world.stores.clone(),
                series: series.clone(),
                attributes: series.clone(),
                events: Arc::default(),
                clock: clock.clone(),
                passwords: PasswordHashPool::new(1),
                rule_engine: messages.clone(),
                rule_nodes: Arc::new(NoRuleNodes),
                rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
            });
            let deps = EngineDependencies {
                services,
                messages,
                devices: Arc::new(NoDeviceLink),
                rpc: Arc::new(NoDeviceRpc),
                rest_calls: Arc::new(NoRestApiResponder),
                activity: activity.clone(),
                usage: UsageStore::new(world.stores.clone(), series.clone(), clock.clone()),
                egress: Default::default(),
                runtime: tokio::runtime::Handle::current(),
                service_id: "bench".into(),
            };
            let engine = RuleEngineService::new(deps, &options);
            (engine.main_processors(), Some(engine))
        }
    };
    let started = Instant::now();
    let stores = IngestStores {
        store: series.clone(),
        activity,
        processors,
    };
    let options = Options {
        partitions: 1,
        workers: 1,
        ..Options::default()
    };
    let service = IngestService::start(&uplink, stores, &options).await.unwrap();
    let done = service.has_replayed();
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (wall, cpu) = (started.elapsed(), cpu_of("ingest-0"));
    let failed: u64 = engine
        .iter()
        .flat_map(|engine| engine.queues())
        .map(|(_, queue)| {
            queue
                .counts
                .lock()
                .tenants
                .values()
                .map(|(counts, _)| counts.failed + counts.timeout)
                .sum::<u64>()
        })
        .sum();
    println!(
        "| {name} | {:.0} | {:.0} | {:.2} | {failed} |",
        messages as f64 / wall.as_secs_f64(),
        messages as f64 / cpu.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / messages as f64,
    );
    journal.close().await;
    tokio::task::spawn_blocking(move || service.stop(Duration::from_secs(10)))
        .await
        .unwrap();
}

#[tokio::main]
async fn main() {
    let messages = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(400_000);
    println!("| chain | messages/s | messages/s and core | us/message | failed |\n|---|--:|--:|--:|--:|");
    measure("none", messages, 1, None).await;
    measure("default", messages, 1, Some(vec![switch(), save()])).await;
    let mut filters = vec![filter(); 10];
    filters.push(save());
    measure("ten filters", messages, 1, Some(filters)).await;
    measure("JavaScript", messages, 1, Some(vec![script("JS"), save()])).await;
    measure("TBEL", messages, 1, Some(vec![script("TBEL"), save()])).await;
    measure("five alarm rules", messages, 1, Some(vec![alarms(), save()])).await;
    measure(
        "1,000 profiles of five alarm rules",
        messages,
        1_000,
        Some(vec![alarms(), save()]),
    )
    .await;
}
