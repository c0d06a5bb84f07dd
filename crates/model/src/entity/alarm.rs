//! Alarms and what people write under them.

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use super::draft::stored_entity;
use crate::{AlarmId, CustomerId, EntityId, NULL_UUID, TenantId, UserId};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema, utoipa::ToSchema,
        )]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        #[allow(missing_docs, reason = "the names are their own documentation")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in the REST API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

names! {
    /// How bad it is, the worst first.
    AlarmSeverity {
        Critical = "CRITICAL",
        Major = "MAJOR",
        Minor = "MINOR",
        Warning = "WARNING",
        Indeterminate = "INDETERMINATE",
    }
}

names! {
    /// Whether an alarm is over, and whether somebody has seen it.
    AlarmStatus {
        ActiveUnack = "ACTIVE_UNACK",
        ActiveAck = "ACTIVE_ACK",
        ClearedUnack = "CLEARED_UNACK",
        ClearedAck = "CLEARED_ACK",
    }
}

names! {
    /// What a list of alarms is narrowed to.
    AlarmSearchStatus {
        Any = "ANY",
        Active = "ACTIVE",
        Cleared = "CLEARED",
        Ack = "ACK",
        Unack = "UNACK",
    }
}

impl AlarmStatus {
    /// The status of an alarm.
    pub const fn of(cleared: bool, acknowledged: bool) -> Self {
        match (cleared, acknowledged) {
            (false, false) => Self::ActiveUnack,
            (false, true) => Self::ActiveAck,
            (true, false) => Self::ClearedUnack,
            (true, true) => Self::ClearedAck,
        }
    }
}

/// An alarm. Its JSON also has `name`, which is its type, and `status`, which follows from `cleared` and `acknowledged`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Alarm {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<AlarmId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: AlarmId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The customer of its originator when it was raised.
    #[serde(deserialize_with = "deserialize_customer_id")]
    pub customer_id: Option<CustomerId>,
    /// Its type, a free text; one alarm of a type is active at an originator at a time.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub alarm_type: String,
    /// Whom it is about.
    pub originator: Option<EntityId>,
    /// How bad it is.
    pub severity: Option<AlarmSeverity>,
    /// Whether somebody has seen it.
    #[serde(deserialize_with = "super::null_as_default")]
    pub acknowledged: bool,
    /// Whether it is over.
    #[serde(deserialize_with = "super::null_as_default")]
    pub cleared: bool,
    /// Who takes care of it.
    pub assignee_id: Option<UserId>,
    /// When it began, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub start_ts: i64,
    /// When it was last raised, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub end_ts: i64,
    /// When it was acknowledged, milliseconds; 0 for never.
    #[serde(deserialize_with = "super::null_as_default")]
    pub ack_ts: i64,
    /// When it was cleared, milliseconds; 0 for never.
    #[serde(deserialize_with = "super::null_as_default")]
    pub clear_ts: i64,
    /// When it was last assigned or unassigned, milliseconds; 0 for never.
    #[serde(deserialize_with = "super::null_as_default")]
    pub assign_ts: i64,
    /// Free-form JSON.
    pub details: Option<Value>,
    /// Whether it shows at entities that its originator is related to.
    #[serde(deserialize_with = "super::null_as_default")]
    pub propagate: bool,
    /// Whether it shows at the customer of its originator, or the tenant where that has none.
    #[serde(deserialize_with = "super::null_as_default")]
    pub propagate_to_owner: bool,
    /// Whether it shows at the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub propagate_to_tenant: bool,
    /// Types of the relations it propagates along; all where empty.
    #[serde(deserialize_with = "super::null_as_default")]
    pub propagate_relation_types: Vec<String>,
}

stored_entity!(Alarm: AlarmId);

impl Alarm {
    /// Its status.
    pub const fn status(&self) -> AlarmStatus {
        AlarmStatus::of(self.cleared, self.acknowledged)
    }

    /// Where it shows besides its originator.
    pub fn propagation(&self) -> (bool, bool, bool, &[String]) {
        (
            self.propagate,
            self.propagate_to_owner,
            self.propagate_to_tenant,
            &self.propagate_relation_types,
        )
    }
}

impl Serialize for Alarm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Alarm", 22)?;
        let id = (!self.id.is_null()).then_some(self.id);
        fields.serialize_field("id", &id)?;
        fields.serialize_field("createdTime", &self.created_time)?;
        fields.serialize_field("tenantId", &self.tenant_id)?;
        // Clients compare with the null id, as they do with devices.
        let customer = self.customer_id.unwrap_or(CustomerId::NULL);
        fields.serialize_field("customerId", &customer)?;
        fields.serialize_field("type", &self.alarm_type)?;
        fields.serialize_field("name", &self.alarm_type)?;
        fields.serialize_field("originator", &self.originator)?;
        fields.serialize_field("severity", &self.severity)?;
        fields.serialize_field("status", &self.status())?;
        fields.serialize_field("acknowledged", &self.acknowledged)?;
        fields.serialize_field("cleared", &self.cleared)?;
        fields.serialize_field("assigneeId", &self.assignee_id)?;
        fields.serialize_field("startTs", &self.start_ts)?;
        fields.serialize_field("endTs", &self.end_ts)?;
        fields.serialize_field("ackTs", &self.ack_ts)?;
        fields.serialize_field("clearTs", &self.clear_ts)?;
        fields.serialize_field("assignTs", &self.assign_ts)?;
        fields.serialize_field("details", &self.details)?;
        fields.serialize_field("propagate", &self.propagate)?;
        fields.serialize_field("propagateToOwner", &self.propagate_to_owner)?;
        fields.serialize_field("propagateToTenant", &self.propagate_to_tenant)?;
        fields.serialize_field("propagateRelationTypes", &self.propagate_relation_types)?;
        fields.end()
    }
}

/// Reads the null id as absent.
fn deserialize_customer_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CustomerId>, D::Error> {
    let id: Option<CustomerId> = Option::deserialize(deserializer)?;
    Ok(id.filter(|id| !id.is_null()))
}

/// Who takes care of an alarm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlarmAssignee {
    /// The user.
    pub id: UserId,
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// E-mail address.
    pub email: String,
}

/// An alarm with what lists show beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlarmInfo {
    /// The alarm.
    #[serde(flatten)]
    pub alarm: Alarm,
    /// Name of its originator; `Deleted` where that is gone.
    pub originator_name: Option<String>,
    /// Label of its originator.
    pub originator_label: Option<String>,
    /// Label of its originator, or its name.
    pub originator_display_name: Option<String>,
    /// Who takes care of it.
    pub assignee: Option<AlarmAssignee>,
}

/// Id of a comment, a bare row id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AlarmCommentId {
    /// The row id.
    pub id: Uuid,
}

impl Default for AlarmCommentId {
    fn default() -> Self {
        NULL_UUID.into()
    }
}

impl From<Uuid> for AlarmCommentId {
    fn from(id: Uuid) -> Self {
        Self { id }
    }
}

names! {
    /// Who wrote a comment.
    AlarmCommentType {
        System = "SYSTEM",
        Other = "OTHER",
    }
}

/// A comment under an alarm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AlarmComment {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<AlarmCommentId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: AlarmCommentId,
    /// When it was written, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The alarm it is about.
    pub alarm_id: Option<AlarmId>,
    /// Who wrote it; absent for what the platform writes.
    pub user_id: Option<UserId>,
    /// Whether a person wrote it.
    #[serde(rename = "type")]
    pub comment_type: Option<AlarmCommentType>,
    /// `{"text": "…"}`.
    pub comment: Option<Value>,
}

stored_entity!(AlarmComment: AlarmCommentId);

/// A comment with the name of who wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlarmCommentInfo {
    /// The comment.
    #[serde(flatten)]
    pub comment: AlarmComment,
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_status_follow_from_the_rest() {
        let alarm: Alarm = serde_json::from_str(
            r#"{"type":"Hot","name":"other","status":"ACTIVE_UNACK","cleared":true,"severity":"MAJOR",
                "customerId":{"entityType":"CUSTOMER","id":"13814000-1dd2-11b2-8080-808080808080"},
                "propagateRelationTypes":null}"#,
        )
        .unwrap();
        let json = serde_json::to_value(&alarm).unwrap();
        assert_eq!(json["name"], "Hot");
        assert_eq!(json["status"], "CLEARED_UNACK");
        assert_eq!(alarm.customer_id, None);
        assert_eq!(json["customerId"]["id"], "13814000-1dd2-11b2-8080-808080808080");
        assert_eq!(json["propagateRelationTypes"], serde_json::json!([]));
    }
}
