//! What a node of a rule chain is.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::StateKey;
use fieldline_core::usage::{ApiFeature, UsageKey, storage_points};
use fieldline_model::budget::BudgetOverrun;
use fieldline_model::configuration_size::CONFIGURATION;
use fieldline_model::kv;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, RuleChainId, RuleNodeId, TenantId};
use fieldline_script::ScriptHost;
use serde_json::Value;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::message::RuleMessage;
use crate::nodes::regex::RegexAllowance;
use crate::script_pool::{ScriptCaller, ScriptPool, ScriptRefusal};
use crate::services::NodeServices;
use crate::value_update::ValueUpdate;
pub use crate::worker::effects::{AttributeValues, TelemetryValues};
use crate::worker::marks::EffectSource;
use crate::worker::worker_state::WorkerState;

/// Name of the connection that a message leaves a node through. Compared regardless of case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLabel(pub Cow<'static, str>);

impl ConnectionLabel {
    /// The node did what it does.
    pub const SUCCESS: Self = Self(Cow::Borrowed("Success"));
    /// The node could not do what it does.
    pub const FAILURE: Self = Self(Cow::Borrowed("Failure"));
    /// A filter holds.
    pub const TRUE: Self = Self(Cow::Borrowed("True"));
    /// A filter does not hold.
    pub const FALSE: Self = Self(Cow::Borrowed("False"));
    /// Whatever has no label of its own.
    pub const OTHER: Self = Self(Cow::Borrowed("Other"));

    /// `True` or `False`.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::TRUE } else { Self::FALSE }
    }

    /// Whether it is the label of failures.
    pub fn is_failure(&self) -> bool {
        self.0.eq_ignore_ascii_case("Failure")
    }
}

impl From<&'static str> for ConnectionLabel {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl From<String> for ConnectionLabel {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

/// Why a node could not do what it does, for the person who reads its debug events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NodeError {
    text: Cow<'static, str>,
    over_budget: bool,
}

impl NodeError {
    /// An error of that text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            over_budget: false,
        }
    }

    /// An evaluation would have gone beyond a limit; the text names the limit, what it would have come to, and what is
    /// allowed.
    pub fn over_budget(limit: &'static str, figure: u64, allowed: u64) -> Self {
        BudgetOverrun {
            limit,
            figure,
            allowed,
        }
        .into()
    }

    /// Whether an evaluation would have gone beyond a limit.
    pub const fn is_over_budget(&self) -> bool {
        self.over_budget
    }
}

impl From<BudgetOverrun> for NodeError {
    fn from(overrun: BudgetOverrun) -> Self {
        Self {
            text: overrun.to_string().into(),
            over_budget: true,
        }
    }
}

impl From<fieldline_core::ports::StoreError> for NodeError {
    fn from(error: fieldline_core::ports::StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<fieldline_entities::services::ServiceError> for NodeError {
    fn from(error: fieldline_entities::services::ServiceError) -> Self {
        Self::new(error.to_string())
    }
}

/// Work that waits for something.
pub type NodeFuture = Pin<Box<dyn Future<Output = NodeResult> + Send>>;

/// Work of a node's own.
pub type NodeBackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that needs the context of the worker.
pub type NodeContinuation = Box<dyn FnOnce(&mut NodeContext<'_>) -> NodeResult + Send>;

/// What a script makes of a message.
type ScriptEvaluation = Box<dyn FnOnce(&mut ScriptHost, RuleMessage) -> NodeResult + Send>;

/// A call of a script on a message.
pub struct ScriptCall {
    /// The message; it fails where the call is refused.
    pub(crate) msg: RuleMessage,
    /// Bytes of the arguments.
    pub(crate) bytes: usize,
    pub(crate) work: ScriptEvaluation,
}

impl ScriptCall {
    /// Has it made. `deliver` takes what has come of it, or why nothing has.
    pub(crate) fn submit(
        self,
        pool: &ScriptPool,
        caller: ScriptCaller,
        deliver: impl FnOnce(Result<NodeResult, ScriptRefusal>) + Send + 'static,
    ) {
        let Self { msg, bytes, work } = self;
        pool.submit(caller, bytes, msg, work, move |result| {
            deliver(match result {
                Ok(step) => Ok(step),
                Err((refusal, Some(msg))) => Ok(NodeResult::Fail(msg, refusal.into())),
                Err((refusal, None)) => Err(refusal),
            });
        });
    }

    /// The same, waiting for it.
    ///
    /// # Errors
    /// The message is lost in a call that was abandoned or has panicked.
    pub(crate) async fn wait(
        self,
        pool: &ScriptPool,
        caller: ScriptCaller,
    ) -> Result<NodeResult, ScriptRefusal> {
        let (answer, answered) = oneshot::channel();
        self.submit(pool, caller, move |result| {
            // Whoever asked may be gone.
            let _ = answer.send(result);
        });
        answered.await.unwrap_or(Err(ScriptRefusal::Stopped))
    }
}

/// What a node makes of a message.
pub enum NodeResult {
    /// It goes on through a connection.
    Next(RuleMessage, ConnectionLabel),
    /// Several go on; the one they came from is acknowledged when all of them are.
    Many(Vec<(RuleMessage, ConnectionLabel)>),
    /// It ends here, acknowledged.
    Done,
    /// It is acknowledged, and goes on through `Success`: what becomes of it no longer matters to its queue.
    Acknowledge(RuleMessage),
    /// It goes on through `Failure`.
    Fail(RuleMessage, NodeError),
    /// The rest waits for something.
    Suspend(Suspension),
    /// The engine does the rest.
    Control(ChainCommand),
}

/// What the rest of a node's work waits for.
pub enum Suspension {
    /// What is ready at once is not suspended.
    Wait(NodeFuture),
    /// The same for what must not be done twice lightly, such as a call of another service: it is not begun anew elsewhere
    /// because it takes its time.
    Outside(NodeFuture),
    /// Nothing that comes after the message may overtake it: the worker does nothing else meanwhile. For short reads of what
    /// a later message will change.
    InOrder(NodeFuture),
    /// The rest is made by a script, on a thread for scripts.
    Script(Box<ScriptCall>),
    /// The rest needs the context again: what a wait leads to where the node then saves or keeps something.
    Continue(NodeContinuation),
}

/// What the engine does with a message for a node.
pub enum ChainCommand {
    /// It belongs to another partition, that of its originator: it comes to this node again there.
    ForwardToOwner(RuleMessage),
    /// It goes to the first node of another chain.
    EnterChain(RuleMessage, RuleChainId),
    /// It goes to the first node of the chain of its originator's profile, or of the root chain where the profile names none.
    EnterDefaultChain(RuleMessage),
    /// It goes back to the node that has called this chain, through its connection of that name.
    Return(RuleMessage, ConnectionLabel),
    /// The alarm rules of its originator's profile are evaluated for it; alarms go through `Alarm Created` and the like, and
    /// then it goes on through `Success`.
    EvaluateAlarmRules(RuleMessage),
    /// The same because time has passed, with what the rules have kept.
    FireAlarmRuleTimer(StateKey, Bytes),
}

impl NodeResult {
    /// It goes on through `Success`.
    pub const fn success(msg: RuleMessage) -> Self {
        Self::Next(msg, ConnectionLabel::SUCCESS)
    }

    /// It goes on through `Success`, or through `Failure` where its work has failed.
    pub fn after<E: Into<NodeError>>(msg: RuleMessage, done: Result<(), E>) -> Self {
        match done {
            Ok(()) => Self::success(msg),
            Err(error) => Self::Fail(msg, error.into()),
        }
    }

    /// It goes on through `True` or `False`, or through `Failure` where that could not be found out.
    pub fn filtered<E: Into<NodeError>>(msg: RuleMessage, holds: Result<bool, E>) -> Self {
        match holds {
            Ok(holds) => Self::Next(msg, ConnectionLabel::of(holds)),
            Err(error) => Self::Fail(msg, error.into()),
        }
    }

    /// It goes on through `Failure`.
    pub fn fail(msg: RuleMessage, text: impl Into<Cow<'static, str>>) -> Self {
        Self::Fail(msg, NodeError::new(text))
    }

    /// Waits for a future.
    pub fn wait(work: impl Future<Output = NodeResult> + Send + 'static) -> Self {
        Self::Suspend(Suspension::Wait(Box::pin(work)))
    }

    /// Waits for a future that must not be begun anew lightly.
    pub fn outside(work: impl Future<Output = NodeResult> + Send + 'static) -> Self {
        Self::Suspend(Suspension::Outside(Box::pin(work)))
    }

    /// Waits for a future, and lets nothing overtake it.
    pub fn in_order(work: impl Future<Output = NodeResult> + Send + 'static) -> Self {
        Self::Suspend(Suspension::InOrder(Box::pin(work)))
    }

    /// Has a script called on a message, with arguments of so many bytes.
    pub fn call(
        msg: RuleMessage,
        bytes: usize,
        work: impl FnOnce(&mut ScriptHost, RuleMessage) -> Self + Send + 'static,
    ) -> Self {
        let work = Box::new(work);
        Self::Suspend(Suspension::Script(Box::new(ScriptCall { msg, bytes, work })))
    }

    /// Goes on with the context of the worker.
    pub fn then(work: impl FnOnce(&mut NodeContext<'_>) -> Self + Send + 'static) -> Self {
        Self::Suspend(Suspension::Continue(Box::new(work)))
    }

    /// It comes to the same node in the partition of its originator.
    pub const fn forward_to_owner(msg: RuleMessage) -> Self {
        Self::Control(ChainCommand::ForwardToOwner(msg))
    }

    /// It goes to the first node of another chain.
    pub const fn enter_chain(msg: RuleMessage, chain: RuleChainId) -> Self {
        Self::Control(ChainCommand::EnterChain(msg, chain))
    }

    /// It goes to the first node of the chain of its originator.
    pub const fn enter_default_chain(msg: RuleMessage) -> Self {
        Self::Control(ChainCommand::EnterDefaultChain(msg))
    }
}

impl fmt::Debug for NodeResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Next(msg, label) => write!(f, "Next({}, {})", msg.kind, label.0),
            Self::Many(many) => write!(f, "Many({})", many.len()),
            Self::Done => f.write_str("Done"),
            Self::Acknowledge(_) => f.write_str("Acknowledge"),
            Self::Fail(_, error) => write!(f, "Fail({error})"),
            Self::Suspend(_) => f.write_str("Suspend"),
            Self::Control(_) => f.write_str("Control"),
        }
    }
}

/// A node of a rule chain, compiled from its configuration. All workers share it.
pub trait Node: Send + Sync {
    /// Handles a message. Must not block; what has to wait is returned as [`NodeResult::Suspend`].
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult;

    /// What it kept with a time has come due, and is kept no longer.
    fn handle_due(&self, _ctx: &mut NodeContext<'_>, _key: StateKey, _value: Bytes) -> NodeResult {
        NodeResult::Done
    }

    /// Work of its own, such as making messages at intervals. It runs while the chain is in force, on one server.
    fn run(self: Arc<Self>, _source: NodeEmitter) -> Option<NodeBackgroundTask> {
        None
    }
}

/// What a node that works by itself has.
#[derive(Clone)]
pub struct NodeEmitter {
    /// Everything it may need.
    pub services: Arc<NodeServices>,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its chain.
    pub chain: RuleChainId,
    /// Its id.
    pub node: RuleNodeId,
    /// Queue that the chain's messages go through where the node names one.
    pub queue: Option<String>,
}

impl NodeEmitter {
    /// Sends a message on from the node, through a connection; durable when it returns.
    ///
    /// # Errors
    /// The queue does not take it.
    pub async fn emit(&self, msg: &RuleMessage, label: &ConnectionLabel) -> Result<(), NodeError> {
        let mut message = msg.to_message();
        message.queue.clone_from(&self.queue);
        message.rule_chain = Some(self.chain);
        message.from = Some((self.node, label.0.to_string()));
        Ok(self.services.engine.push(self.tenant, message).await?)
    }
}

/// What a node may use while it handles a message.
pub struct NodeContext<'a> {
    /// Everything that is the same for all nodes.
    pub services: &'a Arc<NodeServices>,
    /// The tenant.
    pub tenant: TenantId,
    /// The chain.
    pub chain: RuleChainId,
    /// The node.
    pub node: RuleNodeId,
    /// Now, milliseconds.
    pub now_ms: i64,
    pub(crate) runtime: &'a mut WorkerState,
}

/// What becomes of what is saved.
pub use fieldline_core::ports::{AttributeSaveStrategy, TelemetrySaveStrategy};

impl NodeContext<'_> {
    /// Stores or shows values of one time because of a message. What was stored before the message was done again is not
    /// stored again.
    pub fn save_telemetry(&mut self, msg: &RuleMessage, row: TelemetryValues) {
        let points = match row.strategy.history {
            true => storage_points(kv::count(&row.values).into(), row.ttl_seconds.into()),
            false => 0,
        };
        let is_new = self
            .runtime
            .save_telemetry(EffectSource::of(msg, self.node.0), row);
        if is_new && points > 0 {
            self.count(UsageKey::StorageDataPoints, points);
        }
    }

    /// The same for attributes.
    pub fn save_attributes(&mut self, msg: &RuleMessage, values: AttributeValues) {
        self.runtime
            .save_attributes(EffectSource::of(msg, self.node.0), values);
    }

    /// Tells the device of shared attributes that it saves, once they are stored.
    pub fn notify_device(&mut self, subject: EntityKey, scope: AttributeScope, values: Bytes) {
        self.runtime.effects.notify_device(subject, scope, values);
    }

    /// Whether the tenant may use a feature.
    pub fn may_use(&mut self, feature: ApiFeature) -> bool {
        self.runtime.meter.allows(self.tenant, feature)
    }

    /// Counts what the tenant uses.
    pub fn count(&mut self, key: UsageKey, count: u64) {
        self.runtime.meter.add(self.tenant, key, count);
    }

    /// What the node keeps under a number for an entity.
    pub fn state(&self, subject: EntityKey, number: u64) -> Option<Bytes> {
        self.runtime.keyed_states.get(&self.key(subject, number))
    }

    /// Keeps something for an entity, durable together with what the message does. Where `due_ms` is given, [`Node::handle_due`] is
    /// called at that time. At most 1 MiB; together with the entity's other ones bounded by the caller.
    pub fn set_state(&mut self, subject: EntityKey, number: u64, due_ms: Option<i64>, value: &[u8]) {
        let key = self.key(subject, number);
        self.runtime.set_state(key, due_ms, value);
    }

    /// Keeps it no longer.
    pub fn clear_state(&mut self, subject: EntityKey, number: u64) {
        let key = self.key(subject, number);
        self.runtime.clear_state(&key);
    }

    /// Whether what is kept for the entity is kept in the partition that is being worked on. Where not, a node that keeps
    /// something returns [`NodeResult::forward_to_owner`].
    pub fn owns(&self, subject: EntityKey) -> bool {
        self.runtime.owns(subject)
    }

    /// Tells calculated fields and alarm rules that values have changed.
    pub fn notify_fields(&mut self, update: ValueUpdate<'_>) {
        self.runtime.notify_fields(update);
    }

    fn key(&self, subject: EntityKey, number: u64) -> StateKey {
        StateKey {
            subject,
            owner: self.node.0,
            number,
        }
    }
}

/// A wrong configuration: which field, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct NodeConfigError {
    /// Name of the field; dots lead into objects.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

impl NodeConfigError {
    /// An error about a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

/// What a node is made from.
pub struct NodeInitContext<'a> {
    /// Its configuration, upgraded to the newest version.
    pub value: &'a Value,
    /// Name that a person gave it.
    pub name: &'a str,
    /// Its id.
    pub id: Uuid,
    /// Queue set on the node.
    pub queue: Option<&'a str>,
    /// Everything it may need.
    pub services: &'a Arc<NodeServices>,
    /// Its tenant.
    pub tenant: TenantId,
    /// Regular expressions that its chain may still compile.
    pub(crate) regexes: &'a RegexAllowance,
}

impl NodeInitContext<'_> {
    /// Reads the configuration into its type; the error names the field.
    ///
    /// # Errors
    /// A field is missing or of another type.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, NodeConfigError> {
        serde_path_to_error::deserialize(self.value).map_err(|error| {
            let path = error.path().to_string();
            let problem = error.into_inner().to_string();
            // The path of a missing field ends at the object that should have it; the path of the whole is a dot.
            let missing = problem
                .strip_prefix("missing field `")
                .and_then(|rest| rest.strip_suffix('`'));
            let field = match (path.as_str(), missing) {
                (".", Some(name)) => name.to_owned(),
                (_, Some(name)) => format!("{path}.{name}"),
                (".", None) => CONFIGURATION.to_owned(),
                _ => path,
            };
            NodeConfigError::new(field, problem)
        })
    }
}

/// Makes a node.
pub type NodeFactory = fn(&NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError>;

/// Whom a message is about after a node has changed it.
pub fn set_originator(msg: &mut RuleMessage, originator: EntityId) {
    msg.originator = originator;
}
