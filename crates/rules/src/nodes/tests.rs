//! What tests of nodes share: stores in a directory of their own, a tenant, and messages that go through one node.

mod entities;
mod platform;
mod ports;
pub(crate) mod table;

use std::sync::Arc;

use fieldline_core::events::EntityEvents;
use fieldline_core::ports::{IngestStore as _, Offset, Partition, QueueId};
use fieldline_model::message::{DataType, MetadataMap, MsgType, QueueMessage};
use fieldline_model::{
    CustomerId, DeviceId, DeviceProfileId, EntityId, RuleChainId, RuleNodeId, TenantId, new_uuid,
};
use fieldline_storage::series;
use fieldline_testkit::clock::ManualClock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use self::platform::{NOW, configuration, packed};
use self::platform::{TestPlatform, node_type};
pub(crate) use self::ports::{Callers, Queue};
use crate::engine::EngineShared;
use crate::message::{MessageBody, MessageMetadata, RuleMessage};
use crate::node::{
    ConnectionLabel, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult, Suspension,
};
use crate::node_types::NodeType;
use crate::nodes::regex::RegexAllowance;
use crate::script_pool::ScriptCaller;
use crate::services::NodeServices;
use crate::worker::keyed_states::KeyedStates;
use crate::worker::worker_state::WorkerState;

/// Stores, a tenant with a customer, and what a worker has.
pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) services: Arc<NodeServices>,
    pub(crate) store: Arc<series::SeriesStore>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) callers: Arc<Callers>,
    /// Who is told about changed entities.
    pub(crate) events: Arc<EntityEvents>,
    pub(crate) tenant: TenantId,
    pub(crate) customer: CustomerId,
    pub(crate) profile: DeviceProfileId,
    pub(crate) chain: RuleChainId,
    /// Id of the node that messages are sent to.
    pub(crate) node: RuleNodeId,
    /// Partition that messages come from, of [`WorkerState::partitions`].
    pub(crate) parts: WorkerState,
    pub(crate) common: Arc<EngineShared>,
    /// The nodes that were made, and their types.
    made: Mutex<Vec<(Arc<dyn Node>, &'static NodeType)>>,
    applied: u64,
    _dir: TempDir,
}

/// What left a node.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) label: String,
    pub(crate) msg: RuleMessage,
    /// Why it left through `Failure`.
    pub(crate) error: Option<String>,
}

impl Out {
    /// The body as JSON.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.msg.data.to_text()).unwrap()
    }

    /// A value of the metadata.
    pub(crate) fn meta(&self, key: &str) -> Option<String> {
        self.msg.meta.get(key).map(|value| value.into_owned())
    }
}

impl World {
    /// A tenant with a customer and a device profile `default`.
    pub(crate) async fn new() -> Self {
        let TestPlatform {
            clock,
            services,
            store,
            queue,
            callers,
            events,
            tenant,
            customer,
            shared: common,
            dir,
        } = TestPlatform::open().await;
        let partition = Partition {
            queue: QueueId(0),
            index: 0,
        };
        let parts = WorkerState::new(1, partition, &common);
        let mut world = Self {
            clock,
            services,
            store,
            queue,
            callers,
            events,
            tenant,
            customer,
            profile: DeviceProfileId::NULL,
            chain: RuleChainId::new(),
            node: RuleNodeId::new(),
            parts,
            common,
            made: Mutex::default(),
            applied: 0,
            _dir: dir,
        };
        world.profile = world.device_profile("default", json!(null)).await;
        world
    }

    /// Makes a node, from a configuration that is complete and of the current version.
    pub(crate) fn make(&self, class: &str, configuration: &Value) -> Result<Arc<dyn Node>, NodeConfigError> {
        self.make_named(class, "the node", None, configuration)
    }

    /// Makes a node with a name and a queue.
    pub(crate) fn make_named(
        &self,
        class: &str,
        name: &str,
        queue: Option<&str>,
        configuration: &Value,
    ) -> Result<Arc<dyn Node>, NodeConfigError> {
        let node_type = node_type(class);
        let node = (node_type.make)(&NodeInitContext {
            value: configuration,
            name,
            id: self.node.0,
            queue,
            services: &self.services,
            tenant: self.tenant,
            regexes: &RegexAllowance::default(),
        })?;
        self.made.lock().push((node.clone(), node_type));
        Ok(node)
    }

    /// Messages leave a node by connections that its descriptor names, or that people name.
    fn check_labels(&self, node: &Arc<dyn Node>, step: &NodeResult) {
        let made = self.made.lock();
        let Some((_, node_type)) = made.iter().find(|(it, _)| Arc::ptr_eq(it, node)) else {
            return;
        };
        let labels: Vec<&ConnectionLabel> = match step {
            NodeResult::Next(_, label) => vec![label],
            NodeResult::Many(many) => many.iter().map(|(_, label)| label).collect(),
            NodeResult::Acknowledge(_) => vec![&ConnectionLabel::SUCCESS],
            NodeResult::Fail(..) => vec![&ConnectionLabel::FAILURE],
            _ => Vec::new(),
        };
        for label in labels {
            let is_listed = node_type.relations.iter().any(|name| *name == label.0);
            assert!(
                is_listed || node_type.custom_relations && !label.is_failure(),
                "{} emits {}",
                node_type.class,
                label.0
            );
        }
    }

    /// Makes a node from its default configuration with some fields replaced.
    pub(crate) fn node(&self, class: &str, patch: Value) -> Arc<dyn Node> {
        self.make(class, &configuration(class, patch)).unwrap()
    }

    /// Which field of a wrong configuration is named: the defaults with some fields replaced.
    #[track_caller]
    pub(crate) fn wrong(&self, class: &str, patch: Value) -> String {
        match self.make(class, &configuration(class, patch)) {
            Ok(_) => panic!("the configuration is taken"),
            Err(error) => error.field,
        }
    }

    /// A message with a body of JSON and the metadata `{"deviceName": "thing"}`.
    pub(crate) fn msg(&self, kind: MsgType, originator: impl Into<EntityId>, body: &Value) -> RuleMessage {
        self.msg_with(
            kind,
            originator,
            body,
            [("deviceName", "thing")].into_iter().collect(),
        )
    }

    /// A message with a body of JSON.
    pub(crate) fn msg_with(
        &self,
        kind: MsgType,
        originator: impl Into<EntityId>,
        body: &Value,
        metadata: MetadataMap,
    ) -> RuleMessage {
        RuleMessage {
            data: MessageBody::text(body.to_string()),
            meta: MessageMetadata::from(metadata),
            ..RuleMessage::of(
                self.tenant,
                QueueMessage {
                    data_type: DataType::Json,
                    ..QueueMessage::new(
                        kind,
                        originator.into(),
                        self.services.now_ms(),
                        MetadataMap::new(),
                        String::new(),
                    )
                },
            )
        }
    }

    /// A telemetry message whose body is packed, as that of a device.
    pub(crate) fn packed(&self, originator: impl Into<EntityId>, body: &Value) -> RuleMessage {
        RuleMessage {
            data: MessageBody::Packed(packed(body)),
            ..self.msg(MsgType::PostTelemetry, originator, body)
        }
    }

    /// Sends a message to a node, waits where it waits, and applies what it saves.
    pub(crate) async fn send(&mut self, node: &Arc<dyn Node>, msg: RuleMessage) -> Vec<Out> {
        let step = self.step(node, msg).await;
        outs(step)
    }

    /// As [`World::send`], where one message comes out.
    pub(crate) async fn one(&mut self, node: &Arc<dyn Node>, msg: RuleMessage) -> Out {
        let mut outs = self.send(node, msg).await;
        assert_eq!(outs.len(), 1, "{outs:?}");
        outs.remove(0)
    }

    /// As [`World::send`], but returns the step itself, which is neither `Wait` nor `Then`.
    pub(crate) async fn step(&mut self, node: &Arc<dyn Node>, msg: RuleMessage) -> NodeResult {
        let step = node.handle(&mut self.ctx(), msg);
        let step = self.finish(step).await;
        self.check_labels(node, &step);
        step
    }

    /// Lets everything come due that is due by the clock; returns what came out.
    pub(crate) async fn due(&mut self, node: &Arc<dyn Node>) -> Vec<Out> {
        let mut all = Vec::new();
        while let Some((_, due)) = self.parts.keyed_states.take_due(self.services.now_ms()) {
            let step = node.handle_due(&mut self.ctx(), due.key, due.value);
            let step = self.finish(step).await;
            self.check_labels(node, &step);
            all.extend(outs(step));
        }
        all
    }

    /// Stores what is kept, and reads it back, as after a restart.
    pub(crate) fn restart(&mut self) {
        let partition = self.parts.partition;
        let rows = self.parts.keyed_states.take_changes(partition);
        self.parts.keyed_states = KeyedStates::default();
        self.parts.keyed_states.load(
            partition,
            rows.into_iter().filter(|row| !row.value.is_empty()).collect(),
        );
    }

    /// What a node may use.
    pub(crate) fn ctx(&mut self) -> NodeContext<'_> {
        NodeContext {
            services: &self.services,
            tenant: self.tenant,
            chain: self.chain,
            node: self.node,
            now_ms: self.services.now_ms(),
            runtime: &mut self.parts,
        }
    }

    async fn finish(&mut self, mut step: NodeResult) -> NodeResult {
        loop {
            self.apply().await;
            step = match step {
                NodeResult::Suspend(Suspension::Wait(work))
                | NodeResult::Suspend(Suspension::Outside(work))
                | NodeResult::Suspend(Suspension::InOrder(work)) => work.await,
                NodeResult::Suspend(Suspension::Script(call)) => {
                    let caller = ScriptCaller::of(self.tenant, self.node.into());
                    call.wait(&self.services.scripts, caller).await.unwrap()
                }
                NodeResult::Suspend(Suspension::Continue(work)) => work(&mut self.ctx()),
                step => {
                    self.apply().await;
                    return step;
                }
            };
        }
    }

    /// Stores what the nodes have done so far.
    pub(crate) async fn apply_all(&mut self) {
        self.apply().await;
    }

    async fn apply(&mut self) {
        if self.parts.effects.is_empty() {
            return;
        }
        self.applied += 1;
        let effects = self.parts.effects.with(Vec::new());
        let done = self
            .store
            .apply(self.parts.partition, Offset(self.applied), &effects)
            .await;
        done.unwrap();
        self.parts.effects.complete(&*self.services.devices);
    }
}

/// The configuration of an older version, brought up to date.
pub(crate) fn upgraded(class: &str, from_version: i32, old: Value) -> Value {
    (node_type(class).upgrade)(from_version, old)
}

fn outs(step: NodeResult) -> Vec<Out> {
    let out = |(msg, label): (RuleMessage, ConnectionLabel)| Out {
        label: label.0.into_owned(),
        msg,
        error: None,
    };
    match step {
        NodeResult::Next(msg, label) => vec![out((msg, label))],
        NodeResult::Many(many) => many.into_iter().map(out).collect(),
        NodeResult::Done => Vec::new(),
        NodeResult::Fail(msg, error) => vec![Out {
            error: Some(NodeError::to_string(&error)),
            ..out((msg, ConnectionLabel::FAILURE))
        }],
        other => panic!("{other:?} has to be looked at with World::step"),
    }
}

/// An id of a device that does not exist.
pub(crate) fn nobody() -> EntityId {
    DeviceId(new_uuid()).into()
}
