//! Events for calculated fields, within a worker and from one partition to another.

use std::sync::Arc;

use fieldline_model::kv::{KvValue, unpack};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, TenantId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::fields::TenantFields;
use crate::message::{MessageBody, RuleMessage, derive_id};
use crate::value_update::{UpdatedValues, ValueUpdate};
use crate::values;

/// Type of the messages that bring events to the partition of an entity. They do not reach rule chains.
pub const FIELD_MESSAGE: &str = "CALCULATED_FIELD_SELF_MSG";

/// The kind of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldEventKind {
    /// New values of series, or of attributes of a scope, with their times.
    Values {
        /// Scope of attributes.
        scope: Option<AttributeScope>,
        /// Time, name, value.
        values: Vec<(i64, Box<str>, KvValue)>,
    },
    /// Series or attributes of a scope were deleted, or a part of a series.
    Removed {
        /// Scope of attributes.
        scope: Option<AttributeScope>,
        /// Their names.
        keys: Vec<Box<str>>,
    },
    /// The field or the entity is new or has changed: the known values are evaluated.
    Started,
    /// The entity may have come under other fields, as after a change of its profile.
    Moved,
    /// The entity has another owner.
    Owner,
    /// Relations of the entity have changed.
    Relations,
    /// The entity was deleted.
    Gone,
    /// A user acknowledged this alarm.
    Acknowledged(Uuid),
    /// A user cleared this alarm.
    Cleared(Uuid),
    /// A user deleted this alarm.
    Deleted(Uuid),
}

/// A change, the entity concerned, and the message that caused it.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldEvent {
    /// The changed entity.
    pub subject: EntityKey,
    /// The kind of change.
    pub change: FieldEventKind,
    /// The message that brought the change.
    pub msg: Uuid,
    /// Type of that message.
    pub kind: Box<str>,
    /// Fields whose results led to the change.
    pub previous: Arc<[Uuid]>,
}

impl FieldEvent {
    /// The event of an update, with the values that fields of the tenant read; `None` if no field reads any.
    pub fn of_update(fields: &TenantFields, update: &ValueUpdate<'_>) -> Option<Self> {
        let change = match update.values {
            UpdatedValues::Telemetry { ts, values } => FieldEventKind::Values {
                scope: None,
                values: watched(fields, None, ts, values),
            },
            UpdatedValues::Attributes { scope, values } => FieldEventKind::Values {
                scope: Some(scope),
                values: watched(fields, Some(scope), update.msg.ts, values),
            },
            UpdatedValues::AttributesDeleted { scope, keys } => FieldEventKind::Removed {
                scope: Some(scope),
                keys: keys
                    .iter()
                    .filter(|key| fields.watches(Some(scope), key))
                    .map(|key| key.as_str().into())
                    .collect(),
            },
        };
        change
            .is_some_thing()
            .then(|| Self::because_of(update.msg, update.subject, change))
    }

    /// The event of a message from inside the platform, before its chain handles it; `None` if the message means no
    /// change, or its change has been reported already.
    pub fn of_message(fields: &TenantFields, msg: &mut RuleMessage) -> Option<Self> {
        // Messages of rule nodes and fields about values they have saved name no user.
        let by_user = |msg: &RuleMessage| msg.meta.get("userId").is_some();
        let scope = |msg: &RuleMessage| {
            let named = msg.meta.get("scope");
            named
                .and_then(|name| AttributeScope::from_name(&name))
                .unwrap_or(AttributeScope::Server)
        };
        let change = match msg.kind {
            MsgType::TimeseriesUpdated if by_user(msg) => FieldEventKind::Values {
                scope: None,
                values: points_of(fields, msg)?,
            },
            MsgType::AttributesUpdated if by_user(msg) => of_attributes(fields, scope(msg), msg)?,
            MsgType::Activity | MsgType::Inactivity => of_attributes(fields, scope(msg), msg)?,
            MsgType::AttributesDeleted if by_user(msg) => {
                let scope = scope(msg);
                removed(fields, Some(scope), "attributes", msg)?
            }
            MsgType::TimeseriesDeleted if by_user(msg) => removed(fields, None, "timeseries", msg)?,
            MsgType::EntityCreated => FieldEventKind::Started,
            MsgType::EntityUpdated => FieldEventKind::Moved,
            MsgType::EntityAssigned | MsgType::EntityUnassigned => FieldEventKind::Owner,
            MsgType::EntityDeleted => FieldEventKind::Gone,
            MsgType::RelationAddOrUpdate | MsgType::RelationDeleted | MsgType::RelationsDeleted => {
                FieldEventKind::Relations
            }
            MsgType::AlarmAck => FieldEventKind::Acknowledged(alarm_of(msg)?),
            MsgType::AlarmClear => FieldEventKind::Cleared(alarm_of(msg)?),
            MsgType::AlarmDelete => FieldEventKind::Deleted(alarm_of(msg)?),
            _ => return None,
        };
        change
            .is_some_thing()
            .then(|| Self::because_of(msg, msg.subject(), change))
    }

    fn because_of(msg: &RuleMessage, subject: EntityKey, change: FieldEventKind) -> Self {
        Self {
            subject,
            change,
            msg: msg.id,
            kind: msg.kind.name().into(),
            previous: msg.previous_fields.clone().unwrap_or_default(),
        }
    }

    /// Whether a result of this field led to the event.
    pub fn comes_from(&self, field: CalculatedFieldId) -> bool {
        self.previous.contains(&field.0)
    }
}

impl FieldEventKind {
    fn is_some_thing(&self) -> bool {
        match self {
            Self::Values { values, .. } => !values.is_empty(),
            Self::Removed { keys, .. } => !keys.is_empty(),
            _ => true,
        }
    }
}

fn watched(
    fields: &TenantFields,
    scope: Option<AttributeScope>,
    ts: i64,
    values: &[u8],
) -> Vec<(i64, Box<str>, KvValue)> {
    unpack(values)
        .filter_map(Result::ok)
        .filter(|(key, _)| fields.watches(scope, key))
        .map(|(key, value)| (ts, key.into(), value.to_value()))
        .collect()
}

fn of_object(
    fields: &TenantFields,
    scope: Option<AttributeScope>,
    ts: i64,
    body: &serde_json::Value,
) -> Vec<(i64, Box<str>, KvValue)> {
    let entries = body.as_object().into_iter().flatten();
    entries
        .filter(|(key, _)| fields.watches(scope, key))
        .filter_map(|(key, value)| Some((ts, key.as_str().into(), values::of_json(value)?)))
        .collect()
}

fn of_attributes(
    fields: &TenantFields,
    scope: AttributeScope,
    msg: &mut RuleMessage,
) -> Option<FieldEventKind> {
    let body = msg.data.to_json().ok()?;
    Some(FieldEventKind::Values {
        scope: Some(scope),
        values: of_object(fields, Some(scope), msg.ts, &body),
    })
}

fn points_of(fields: &TenantFields, msg: &mut RuleMessage) -> Option<Vec<(i64, Box<str>, KvValue)>> {
    let body = msg.data.to_json().ok()?;
    let rows = body.get("timeseries")?.as_array()?.iter();
    let of_row = |row: &serde_json::Value| {
        let ts = row
            .get("ts")
            .and_then(serde_json::Value::as_i64)
            .unwrap_or(msg.ts);
        row.get("values")
            .map(|values| of_object(fields, None, ts, values))
            .unwrap_or_default()
    };
    Some(rows.flat_map(of_row).collect())
}

fn removed(
    fields: &TenantFields,
    scope: Option<AttributeScope>,
    name: &str,
    msg: &mut RuleMessage,
) -> Option<FieldEventKind> {
    let body = msg.data.to_json().ok()?;
    let keys = body
        .get(name)?
        .as_array()?
        .iter()
        .filter_map(serde_json::Value::as_str);
    Some(FieldEventKind::Removed {
        scope,
        keys: keys
            .filter(|key| fields.watches(scope, key))
            .map(Into::into)
            .collect(),
    })
}

fn alarm_of(msg: &mut RuleMessage) -> Option<Uuid> {
    let body = msg.data.to_json().ok()?;
    body.pointer("/id/id")?.as_str()?.parse().ok()
}

/// Work for the partition of an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldTask {
    /// The field it concerns; `None` for all fields that read the entity.
    pub field: Option<CalculatedFieldId>,
    /// The event.
    pub event: FieldEvent,
    /// If the originator of the message is a profile, the page of its entities that gets the event.
    pub page: Option<ProfilePage>,
}

/// A page of the entities of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePage {
    /// Its number, from 0.
    pub number: u32,
    /// Only entities of this owner.
    pub owner: Option<EntityId>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FieldTaskWire {
    field: Option<Uuid>,
    entity: EntityId,
    what: Box<str>,
    scope: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<(i64, Box<str>, serde_json::Value)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Box<str>>,
    alarm: Option<Uuid>,
    msg: Uuid,
    kind: Box<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    previous: Vec<Uuid>,
    page: Option<ProfilePage>,
}

impl FieldTask {
    /// The message that carries the task to an entity. Equal tasks make equal messages.
    pub fn message(&self, to: EntityId, now_ms: i64) -> QueueMessage {
        let (mut scope, mut values, mut keys, mut alarm) = (None, Vec::new(), Vec::new(), None);
        let what = match &self.event.change {
            FieldEventKind::Values {
                scope: of,
                values: all,
            } => {
                scope = *of;
                values = all
                    .iter()
                    .map(|(ts, key, value)| (*ts, key.clone(), value.to_json()))
                    .collect();
                "values"
            }
            FieldEventKind::Removed { scope: of, keys: all } => {
                scope = *of;
                keys.clone_from(all);
                "removed"
            }
            FieldEventKind::Started => "started",
            FieldEventKind::Moved => "moved",
            FieldEventKind::Owner => "owner",
            FieldEventKind::Relations => "relations",
            FieldEventKind::Gone => "gone",
            FieldEventKind::Acknowledged(id) | FieldEventKind::Cleared(id) | FieldEventKind::Deleted(id) => {
                alarm = Some(*id);
                match self.event.change {
                    FieldEventKind::Acknowledged(_) => "acknowledged",
                    FieldEventKind::Cleared(_) => "cleared",
                    _ => "deleted",
                }
            }
        };
        let wire = FieldTaskWire {
            field: self.field.map(|field| field.0),
            entity: self.event.subject.entity,
            what: what.into(),
            scope: scope.map(|scope| scope.name().into()),
            values,
            keys,
            alarm,
            msg: self.event.msg,
            kind: self.event.kind.clone(),
            previous: self.event.previous.to_vec(),
            page: self.page,
        };
        // A structure of texts and numbers always serializes.
        let body = serde_json::to_string(&wire).unwrap_or_default();
        let kind = MsgType::Custom(FIELD_MESSAGE.into());
        let mut message = QueueMessage::new(kind, to, now_ms, MetadataMap::new(), body);
        let (high, low) = to.id.as_u64_pair();
        let salt = self.field.map_or(0, |field| field.0.as_u64_pair().1);
        message.id = derive_id(self.event.msg, high ^ low.rotate_left(21) ^ salt);
        message
    }

    /// The task in a message; `None` if it is damaged.
    pub fn of_message(tenant: TenantId, data: &MessageBody) -> Option<Self> {
        let wire: FieldTaskWire = serde_json::from_str(&data.to_text()).ok()?;
        let scope = match wire.scope {
            Some(name) => Some(AttributeScope::from_name(&name)?),
            None => None,
        };
        let change = match &*wire.what {
            "values" => {
                let values = wire.values.into_iter();
                FieldEventKind::Values {
                    scope,
                    values: values
                        .filter_map(|(ts, key, value)| Some((ts, key, values::of_json(&value)?)))
                        .collect(),
                }
            }
            "removed" => FieldEventKind::Removed {
                scope,
                keys: wire.keys,
            },
            "started" => FieldEventKind::Started,
            "moved" => FieldEventKind::Moved,
            "owner" => FieldEventKind::Owner,
            "relations" => FieldEventKind::Relations,
            "gone" => FieldEventKind::Gone,
            "acknowledged" => FieldEventKind::Acknowledged(wire.alarm?),
            "cleared" => FieldEventKind::Cleared(wire.alarm?),
            "deleted" => FieldEventKind::Deleted(wire.alarm?),
            _ => return None,
        };
        Some(Self {
            field: wire.field.map(CalculatedFieldId),
            event: FieldEvent {
                subject: EntityKey {
                    tenant,
                    entity: wire.entity,
                },
                change,
                msg: wire.msg,
                kind: wire.kind,
                previous: wire.previous.into(),
            },
            page: wire.page,
        })
    }
}
