//! Stores in a directory of their own with a tenant, and the parts of an engine over them.
//!
//! Tests of replays use this file, too.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::events::EntityEvents;
use fieldline_core::ports::{NoRuleEngine, NoRuleNodes};
use fieldline_core::usage::UsageStore;
use fieldline_devices::activity::ActivityTracker;
use fieldline_entities::password::PasswordHashPool;
use fieldline_entities::services::{ServiceContext, Services as Rules};
use fieldline_model::entity::{Customer, Tenant, TenantProfile};
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::{CustomerId, TenantId, TenantProfileId};
use fieldline_storage::{series, sql};
use fieldline_testkit::clock::ManualClock;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::ports::{Callers, Queue};
use crate::chain_registry::ChainRegistry;
use crate::engine::{EngineShared, Options};
use crate::events::{DebugLimit, EventRecorder};
use crate::external::ExternalNodeSettings;
use crate::node_types::{self, NodeType, PREFIX};
use crate::originators::OriginatorCache;
use crate::script_pool::ScriptPool;
use crate::services::NodeServices;

/// The time at which every test begins.
pub(crate) const NOW: i64 = 1_760_000_000_000;

/// Stores, a tenant with a customer, and the parts of an engine.
pub(crate) struct TestPlatform {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) services: Arc<NodeServices>,
    pub(crate) store: Arc<series::SeriesStore>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) callers: Arc<Callers>,
    pub(crate) events: Arc<EntityEvents>,
    pub(crate) tenant: TenantId,
    pub(crate) customer: CustomerId,
    pub(crate) shared: Arc<EngineShared>,
    pub(crate) dir: TempDir,
}

/// A tenant of that title, not stored yet.
fn tenant(title: &str, profile: TenantProfileId) -> Tenant {
    Tenant {
        id: TenantId::new(),
        created_time: NOW,
        title: title.into(),
        name: title.into(),
        tenant_profile_id: Some(profile),
        ..Tenant::default()
    }
}

impl TestPlatform {
    pub(crate) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let stores = sql::open_sqlite(&dir.path().join("entities.db"), &sql::Options::default())
            .await
            .unwrap();
        let store = series::SeriesStore::open(
            &dir.path().join("series"),
            &series::Options::default(),
            clock.clone(),
        )
        .unwrap();
        let tenant_profile = TenantProfile {
            id: TenantProfileId::new(),
            created_time: NOW,
            name: "default".into(),
            is_default: true,
            profile_data: json!({"configuration": {"type": "DEFAULT"}}),
            ..TenantProfile::default()
        };
        let tenant_profile = stores.tenant_profiles.insert(tenant_profile).await.unwrap().id;
        let tenant = stores
            .tenants
            .insert(tenant("Acme", tenant_profile))
            .await
            .unwrap()
            .id;
        let customer = Customer {
            id: CustomerId::new(),
            created_time: NOW,
            tenant_id: tenant,
            title: "Shop".into(),
            name: "Shop".into(),
            ..Customer::default()
        };
        let customer = stores.customers.insert(customer).await.unwrap().id;
        let queue = Arc::new(Queue::default());
        let events = Arc::new(EntityEvents::default());
        let context = ServiceContext {
            stores: stores.clone(),
            series: store.clone(),
            attributes: store.clone(),
            events: Arc::clone(&events),
            clock: clock.clone(),
            passwords: PasswordHashPool::new(1),
            rule_engine: queue.clone(),
            rule_nodes: Arc::new(NoRuleNodes),
            rest_endpoints: Arc::new(fieldline_core::ports::NoRestEndpoints),
        };
        let callers = Arc::new(Callers::default());
        let runtime = tokio::runtime::Handle::current();
        let originators = OriginatorCache::new(stores.clone(), 1000);
        events.listen(originators.clone());
        let activity = ActivityTracker::new(
            stores.clone(),
            store.clone(),
            Arc::new(NoRuleEngine),
            clock.clone(),
            &Default::default(),
        );
        let debug = EventRecorder::start(
            stores.events.clone(),
            clock.clone(),
            "here",
            DebugLimit::default(),
            &runtime,
        );
        let usage = UsageStore::new(stores.clone(), store.clone(), clock.clone());
        let rules = Rules::new(context);
        let recorder = debug.clone();
        let options = Options {
            script_threads: 2,
            ..Options::default()
        };
        let switched_off = Box::new(move |tenant, owner, time| recorder.switched_off(tenant, owner, time));
        let scripts = ScriptPool::start(&options, Arc::default(), switched_off);
        let make_services = || {
            Arc::new(NodeServices {
                stores: stores.clone(),
                rules: rules.clone(),
                series: store.clone(),
                attributes: store.clone(),
                engine: queue.clone(),
                devices: callers.clone(),
                rpc: callers.clone(),
                rest_calls: callers.clone(),
                activity: activity.clone(),
                usage: usage.clone(),
                external: ExternalNodeSettings::default(),
                scripts: scripts.clone(),
                originators: originators.clone(),
                clock: clock.clone(),
                runtime: runtime.clone(),
                service_id: "here".into(),
            })
        };
        // Those of the worker are its own, so that a test may change what nodes see.
        let (services, of_worker) = (make_services(), make_services());
        let shared = Arc::new(EngineShared {
            chains: ChainRegistry::new(of_worker.clone(), debug.clone()),
            services: of_worker,
            events: debug,
        });
        Self {
            clock,
            services,
            store,
            queue,
            callers,
            events,
            tenant,
            customer,
            shared,
            dir,
        }
    }
}

/// The type of a class.
pub(crate) fn node_type(class: &str) -> &'static NodeType {
    node_types::find(&format!("{PREFIX}{class}")).unwrap_or_else(|| panic!("no node {class}"))
}

/// Default configuration of a class with some fields replaced; those that are null are removed.
pub(crate) fn configuration(class: &str, patch: Value) -> Value {
    let mut configuration = (node_type(class).default_configuration)();
    let fields = configuration.as_object_mut().unwrap();
    for (name, value) in patch.as_object().into_iter().flatten() {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    configuration
}

/// Key-values of a JSON object, packed.
pub(crate) fn packed(values: &Value) -> Bytes {
    let mut out = Vec::new();
    for (key, value) in values.as_object().unwrap() {
        let json = value.to_string();
        let value = match value {
            Value::Bool(value) => KvValueRef::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(value) => KvValueRef::Long(value),
                None => KvValueRef::Double(number.as_f64().unwrap()),
            },
            Value::String(text) => KvValueRef::Text(text),
            _ => KvValueRef::Json(&json),
        };
        kv::pack(key, value, &mut out);
    }
    out.into()
}
