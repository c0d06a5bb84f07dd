//! "Generator": makes messages at intervals.

use std::sync::Arc;
use std::time::Duration;

use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::{EntityId, EntityKey, EntityType, RuleNodeId};
use fieldline_script::{Script, ScriptArg, ScriptHost};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{
    ConnectionLabel, Node, NodeBackgroundTask, NodeConfigError, NodeContext, NodeEmitter, NodeError,
    NodeInitContext, NodeResult,
};
use crate::node_types::NodeType;
use crate::nodes::script::ScriptConfig;
use crate::nodes::{entities, script};
use crate::script_pool::ScriptCaller;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "debug.TbMsgGeneratorNode",
    name: "generator",
    description: "Generates messages periodically, with a script.",
    version: 2,
    has_input: false,
    has_queue: true,
    default_configuration: || {
        json!({
            "msgCount": 0, "periodInSeconds": 1, "originatorId": null, "originatorType": "RULE_NODE",
            "scriptLang": "TBEL", "jsScript": SCRIPT, "tbelScript": SCRIPT,
        })
    },
    schema: config_schema::of_both::<Config, ScriptConfig>,
    upgrade,
    make,
    ..NodeType::ACTION
}];

const SCRIPT: &str = "var msg = { temp: 42, humidity: 77 };\n\
    var metadata = { data: 40 };\n\
    var msgType = \"POST_TELEMETRY_REQUEST\";\n\n\
    return { msg: msg, metadata: metadata, msgType: msgType };";

const PARAMS: &[&str] = &["prevMsg", "prevMetadata", "prevMsgType"];

/// Types of entities that messages can be about.
const TYPES: [EntityType; 9] = [
    EntityType::Device,
    EntityType::Asset,
    EntityType::EntityView,
    EntityType::Tenant,
    EntityType::Customer,
    EntityType::User,
    EntityType::Dashboard,
    EntityType::Edge,
    EntityType::RuleNode,
];

/// Those of them that are refused.
const UNSUPPORTED: [EntityType; 2] = [EntityType::Dashboard, EntityType::Edge];

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(title = "Messages", description = "0 stands for no end.", range(min = 0))]
    msg_count: i64,
    #[schemars(title = "Period", range(min = 1), extend("x-unit" = "s"))]
    period_in_seconds: i64,
    #[schemars(extend("x-editor" = "entityId"))]
    originator_id: Option<String>,
    #[schemars(schema_with = "originator_types")]
    originator_type: Option<String>,
}

fn originator_types(_: &mut SchemaGenerator) -> Schema {
    let supported = TYPES.into_iter().filter(|known| !UNSUPPORTED.contains(known));
    let mut schema = config_schema::choice(supported.map(EntityType::name));
    schema.insert("x-editor".to_owned(), "entityType".into());
    schema
}

struct MsgGeneratorNode {
    /// 0 stands for no end.
    count: u64,
    period: Duration,
    originator: EntityId,
    script: Script,
    queue: Option<String>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let script = script::compile::<ScriptConfig>(config, PARAMS)?;
    let fields: Config = config.parse()?;
    let Ok(period) = u64::try_from(fields.period_in_seconds) else {
        return Err(NodeConfigError::new("periodInSeconds", "must not be negative"));
    };
    if period == 0 {
        return Err(NodeConfigError::new(
            "periodInSeconds",
            "must be at least 1 second",
        ));
    }
    Ok(Arc::new(MsgGeneratorNode {
        count: u64::try_from(fields.msg_count)
            .map_err(|_| NodeConfigError::new("msgCount", "must not be negative"))?,
        period: Duration::from_secs(period),
        originator: originator(config, &fields)?,
        script,
        queue: config.queue.map(str::to_owned),
    }))
}

fn originator(config: &NodeInitContext<'_>, fields: &Config) -> Result<EntityId, NodeConfigError> {
    let name = fields.originator_type.as_deref().unwrap_or_default();
    let unsupported = || {
        NodeConfigError::new(
            "originatorType",
            format!("Originator type '{name}' is not supported."),
        )
    };
    let entity_type = TYPES
        .into_iter()
        .find(|known| known.name() == name)
        .ok_or_else(unsupported)?;
    match entity_type {
        EntityType::RuleNode => return Ok(RuleNodeId(config.id).into()),
        EntityType::Tenant => return Ok(config.tenant.into()),
        unknown if UNSUPPORTED.contains(&unknown) => return Err(unsupported()),
        _ => {}
    }
    let id = fields
        .originator_id
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| NodeConfigError::new("originatorId", "Originator entity must be selected."))?;
    let id =
        Uuid::parse_str(id).map_err(|_| NodeConfigError::new("originatorId", format!("`{id}` is no id")))?;
    Ok(EntityId::new(entity_type, id))
}

fn upgrade(from: i32, mut configuration: Value) -> Value {
    let Some(fields) = configuration.as_object_mut() else {
        return configuration;
    };
    if from < 1 {
        fields.remove("queueName");
    }
    if from < 2 {
        let text = |name: &str| {
            fields
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .trim()
        };
        if text("originatorType").is_empty() || text("originatorId").is_empty() {
            fields.insert("originatorType".to_owned(), "RULE_NODE".into());
        }
    }
    configuration
}

impl Node for MsgGeneratorNode {
    fn handle(&self, _: &mut NodeContext<'_>, _: RuleMessage) -> NodeResult {
        NodeResult::Done
    }

    fn run(self: Arc<Self>, source: NodeEmitter) -> Option<NodeBackgroundTask> {
        Some(Box::pin(async move {
            let source = NodeEmitter {
                queue: self.queue.clone().or(source.queue),
                ..source
            };
            let mut ticks = tokio::time::interval_at(Instant::now() + self.period, self.period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut made = 0;
            let mut last = self.message(&source);
            while self.count == 0 || made < self.count {
                ticks.tick().await;
                made += 1;
                let (msg, label) = match self.generate(&source, &last).await {
                    Ok(next) => {
                        last = next;
                        (last.clone(), ConnectionLabel::SUCCESS)
                    }
                    Err(error) => {
                        tracing::debug!(node = %source.node, %error, "a generator has failed");
                        (self.failure(&source, &error), ConnectionLabel::FAILURE)
                    }
                };
                if let Err(error) = source.emit(&msg, &label).await {
                    tracing::warn!(node = %source.node, %error, "cannot queue a generated message");
                }
            }
        }))
    }
}

impl MsgGeneratorNode {
    async fn generate(&self, source: &NodeEmitter, last: &RuleMessage) -> Result<RuleMessage, NodeError> {
        self.check_originator(source).await?;
        let metadata = last.meta.to_metadata().entries().to_vec();
        let body = last.data.to_text().into_owned();
        let kind = last.kind.name().to_owned();
        let (feature, key) = script::usage_of(&self.script);
        if !source.services.usage.is_allowed(source.tenant, feature) {
            return Err(NodeError::new(script::SCRIPTS_DISABLED));
        }
        source.services.usage.count(source.tenant, key, 1);
        let caller = ScriptCaller::of(source.tenant, source.node.into());
        let bytes = body.len()
            + metadata
                .iter()
                .map(|(key, value)| key.len() + value.len())
                .sum::<usize>();
        let script = self.script.clone();
        let call = move |host: &mut ScriptHost| {
            host.transform(
                &script,
                &[
                    ScriptArg::Json(&body),
                    ScriptArg::Map(&metadata),
                    ScriptArg::Text(&kind),
                ],
            )
        };
        let mut made = source.services.scripts.call(caller, bytes, call).await??;
        if made.len() != 1 {
            return Err(NodeError::new(
                "wrong result: the script has to return one message",
            ));
        }
        let mut next = RuleMessage {
            kind: last.kind.clone(),
            meta: last.meta.clone(),
            data: last.data.clone(),
            ..self.message(source)
        };
        script::put(made.pop().unwrap_or_default(), &mut next);
        Ok(next)
    }

    /// Messages are only made about what the tenant has.
    async fn check_originator(&self, source: &NodeEmitter) -> Result<(), NodeError> {
        if self.originator.entity_type == EntityType::RuleNode {
            return Ok(());
        }
        let subject = EntityKey {
            tenant: source.tenant,
            entity: self.originator,
        };
        match entities::fields(&source.services, subject).await? {
            Some(_) => Ok(()),
            None => Err(NodeError::new(format!(
                "Entity with id: '{}' specified in the configuration doesn't belong to the current tenant.",
                self.originator.id
            ))),
        }
    }

    /// A new message about the originator, with nothing in it.
    fn message(&self, source: &NodeEmitter) -> RuleMessage {
        let now_ms = source.services.now_ms();
        let message = QueueMessage::new(
            MsgType::from(""),
            self.originator,
            now_ms,
            MetadataMap::new(),
            "{}".to_owned(),
        );
        RuleMessage::of(source.tenant, message)
    }

    fn failure(&self, source: &NodeEmitter, error: &NodeError) -> RuleMessage {
        let now_ms = source.services.now_ms();
        let metadata = MetadataMap::from_iter([("error", error.to_string())]);
        let kind = MsgType::from("GENERATOR_NODE_SELF_MSG");
        RuleMessage::of(
            source.tenant,
            QueueMessage::new(kind, source.node.into(), now_ms, metadata, "{}".to_owned()),
        )
    }
}
