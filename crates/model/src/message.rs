//! Messages of the rule engine: what a record of a device becomes, and what the platform itself tells about its entities.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::{CustomerId, EntityId, RuleChainId, RuleNodeId};

macro_rules! message_types {
    ($($variant:ident $name:literal $label:literal;)*) => {
        /// What a message is about. The names are those of exported rule chains and of the REST API.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are their own documentation")]
        pub enum MsgType {
            $($variant,)*
            /// A type that a rule chain or a client has made up.
            Custom(Arc<str>),
        }

        impl MsgType {
            /// Every type with a name of its own.
            pub const ALL: &[MsgType] = &[$(MsgType::$variant,)*];

            /// The name, such as `POST_TELEMETRY_REQUEST`.
            pub fn name(&self) -> &str {
                match self { $(MsgType::$variant => $name,)* MsgType::Custom(name) => name }
            }

            /// The label of the connection that a message type switch sends it through.
            pub fn label(&self) -> &'static str {
                match self { $(MsgType::$variant => $label,)* MsgType::Custom(_) => "Other" }
            }
        }

        impl From<&str> for MsgType {
            fn from(name: &str) -> Self {
                match name { $($name => MsgType::$variant,)* other => MsgType::Custom(other.into()) }
            }
        }
    };
}

message_types! {
    PostAttributes "POST_ATTRIBUTES_REQUEST" "Post attributes";
    PostTelemetry "POST_TELEMETRY_REQUEST" "Post telemetry";
    ToServerRpc "TO_SERVER_RPC_REQUEST" "RPC Request from Device";
    RpcFromServer "RPC_CALL_FROM_SERVER_TO_DEVICE" "RPC Request to Device";
    Activity "ACTIVITY_EVENT" "Activity Event";
    Inactivity "INACTIVITY_EVENT" "Inactivity Event";
    Connect "CONNECT_EVENT" "Connect Event";
    Disconnect "DISCONNECT_EVENT" "Disconnect Event";
    EntityCreated "ENTITY_CREATED" "Entity Created";
    EntityUpdated "ENTITY_UPDATED" "Entity Updated";
    EntityDeleted "ENTITY_DELETED" "Entity Deleted";
    EntityAssigned "ENTITY_ASSIGNED" "Entity Assigned";
    EntityUnassigned "ENTITY_UNASSIGNED" "Entity Unassigned";
    AttributesUpdated "ATTRIBUTES_UPDATED" "Attributes Updated";
    AttributesDeleted "ATTRIBUTES_DELETED" "Attributes Deleted";
    TimeseriesUpdated "TIMESERIES_UPDATED" "Timeseries Updated";
    TimeseriesDeleted "TIMESERIES_DELETED" "Timeseries Deleted";
    Alarm "ALARM" "Alarm";
    AlarmCreated "ALARM_CREATED" "Alarm Created";
    AlarmUpdated "ALARM_UPDATED" "Alarm Updated";
    AlarmSeverityUpdated "ALARM_SEVERITY_UPDATED" "Alarm Severity Updated";
    AlarmAck "ALARM_ACK" "Alarm Acknowledged";
    AlarmClear "ALARM_CLEAR" "Alarm Cleared";
    AlarmDelete "ALARM_DELETE" "Other";
    AlarmAssigned "ALARM_ASSIGNED" "Alarm Assigned";
    AlarmUnassigned "ALARM_UNASSIGNED" "Alarm Unassigned";
    CommentCreated "COMMENT_CREATED" "Comment Created";
    CommentUpdated "COMMENT_UPDATED" "Comment Updated";
    AssignedFromTenant "ENTITY_ASSIGNED_FROM_TENANT" "Entity Assigned From Tenant";
    AssignedToTenant "ENTITY_ASSIGNED_TO_TENANT" "Entity Assigned To Tenant";
    RpcQueued "RPC_QUEUED" "RPC Queued";
    RpcSent "RPC_SENT" "RPC Sent";
    RpcDelivered "RPC_DELIVERED" "RPC Delivered";
    RpcSuccessful "RPC_SUCCESSFUL" "RPC Successful";
    RpcTimeout "RPC_TIMEOUT" "RPC Timeout";
    RpcExpired "RPC_EXPIRED" "RPC Expired";
    RpcFailed "RPC_FAILED" "RPC Failed";
    RpcDeleted "RPC_DELETED" "RPC Deleted";
    RelationAddOrUpdate "RELATION_ADD_OR_UPDATE" "Relation Added or Updated";
    RelationDeleted "RELATION_DELETED" "Relation Deleted";
    RelationsDeleted "RELATIONS_DELETED" "All Relations Deleted";
    RestApiRequest "REST_API_REQUEST" "REST API request";
    ProvisionSuccess "PROVISION_SUCCESS" "Other";
    ProvisionFailure "PROVISION_FAILURE" "Other";
    SendEmail "SEND_EMAIL" "Other";
    AssignedToEdge "ENTITY_ASSIGNED_TO_EDGE" "Other";
    UnassignedFromEdge "ENTITY_UNASSIGNED_FROM_EDGE" "Other";
}

impl fmt::Display for MsgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the body of a message is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataType {
    /// JSON text.
    #[default]
    Json,
    /// Any text.
    Text,
    /// Bytes, written as base64 text.
    Binary,
}

/// Texts by name, in the order in which they were first set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetadataMap(Vec<(String, String)>);

impl MetadataMap {
    /// No entry.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a name.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Sets a name, replacing what it had.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Removes a name, and returns what it had.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    /// Keeps the names that a test holds for.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The entries as a slice.
    pub fn entries(&self) -> &[(String, String)] {
        &self.0
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for MetadataMap {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut metadata = Self::new();
        metadata.extend(entries);
        metadata
    }
}

/// Entries from which on names are looked up by their hash when many are set.
const MANY_ENTRIES: usize = 32;

impl<K: Into<String>, V: Into<String>> Extend<(K, V)> for MetadataMap {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let mut entries = entries.into_iter();
        while self.0.len() < MANY_ENTRIES {
            let Some((key, value)) = entries.next() else {
                return;
            };
            self.set(key, value);
        }
        let known = self.0.iter().enumerate();
        let mut places: HashMap<String, usize> = known.map(|(at, (name, _))| (name.clone(), at)).collect();
        for (key, value) in entries {
            let (key, value) = (key.into(), value.into());
            match places.get(&key).and_then(|at| self.0.get_mut(*at)) {
                Some((_, old)) => *old = value,
                None => {
                    places.insert(key.clone(), self.0.len());
                    self.0.push((key, value));
                }
            }
        }
    }
}

/// A message as it waits in a queue: everything of it is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMessage {
    /// Identity; keeps across queues.
    pub id: Uuid,
    /// Time it was made, milliseconds.
    pub ts: i64,
    /// What it is about.
    pub msg_type: MsgType,
    /// Whom it is about.
    pub originator: EntityId,
    /// The customer of the originator.
    pub customer: Option<CustomerId>,
    /// Texts beside the body.
    pub metadata: MetadataMap,
    /// How the body is to be read.
    pub data_type: DataType,
    /// The body.
    pub data: String,
    /// Queue it goes through; the default queue of the originator's profile where absent.
    pub queue: Option<String>,
    /// Rule chain it starts in; that of the originator's profile, or the root chain, where absent.
    pub rule_chain: Option<RuleChainId>,
    /// Node that it continues from, and the label of the connection it takes.
    pub from: Option<(RuleNodeId, String)>,
}

impl QueueMessage {
    /// A new message about an entity, with a JSON body.
    pub fn new(
        msg_type: MsgType,
        originator: EntityId,
        ts: i64,
        metadata: MetadataMap,
        data: String,
    ) -> Self {
        Self {
            id: crate::new_uuid(),
            ts,
            msg_type,
            originator,
            customer: None,
            metadata,
            data_type: DataType::Json,
            data,
            queue: None,
            rule_chain: None,
            from: None,
        }
    }
}
