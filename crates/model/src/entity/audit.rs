//! The audit log: what people did, and what came of it.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{AuditLogId, CustomerId, EntityId, TenantId, UserId};

macro_rules! action_types {
    ($($variant:ident = $name:literal;)*) => {
        /// What somebody did.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are their own documentation")]
        pub enum ActionType { $($variant,)* }

        impl ActionType {
            /// The name in the REST API and in the database.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The action of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

action_types! {
    Added = "ADDED";
    Deleted = "DELETED";
    Updated = "UPDATED";
    AttributesUpdated = "ATTRIBUTES_UPDATED";
    AttributesDeleted = "ATTRIBUTES_DELETED";
    AttributesRead = "ATTRIBUTES_READ";
    TimeseriesUpdated = "TIMESERIES_UPDATED";
    TimeseriesDeleted = "TIMESERIES_DELETED";
    RpcCall = "RPC_CALL";
    CredentialsUpdated = "CREDENTIALS_UPDATED";
    CredentialsRead = "CREDENTIALS_READ";
    AssignedToCustomer = "ASSIGNED_TO_CUSTOMER";
    UnassignedFromCustomer = "UNASSIGNED_FROM_CUSTOMER";
    Activated = "ACTIVATED";
    Suspended = "SUSPENDED";
    RelationAddOrUpdate = "RELATION_ADD_OR_UPDATE";
    RelationDeleted = "RELATION_DELETED";
    RelationsDeleted = "RELATIONS_DELETED";
    RestApiRuleEngineCall = "REST_API_RULE_ENGINE_CALL";
    AlarmAck = "ALARM_ACK";
    AlarmClear = "ALARM_CLEAR";
    AlarmDelete = "ALARM_DELETE";
    AlarmAssigned = "ALARM_ASSIGNED";
    AlarmUnassigned = "ALARM_UNASSIGNED";
    Login = "LOGIN";
    Logout = "LOGOUT";
    Lockout = "LOCKOUT";
    AssignedFromTenant = "ASSIGNED_FROM_TENANT";
    AssignedToTenant = "ASSIGNED_TO_TENANT";
    ProvisionSuccess = "PROVISION_SUCCESS";
    ProvisionFailure = "PROVISION_FAILURE";
    AssignedToEdge = "ASSIGNED_TO_EDGE";
    UnassignedFromEdge = "UNASSIGNED_FROM_EDGE";
    AddedComment = "ADDED_COMMENT";
    UpdatedComment = "UPDATED_COMMENT";
    DeletedComment = "DELETED_COMMENT";
    SmsSent = "SMS_SENT";
}

impl ActionType {
    /// Whether it is about data rather than about what there is; such actions come by the thousand.
    pub const fn is_about_data(self) -> bool {
        matches!(
            self,
            Self::AttributesUpdated
                | Self::AttributesDeleted
                | Self::TimeseriesUpdated
                | Self::TimeseriesDeleted
                | Self::RpcCall
                | Self::RestApiRuleEngineCall
        )
    }
}

impl Serialize for ActionType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One thing that somebody did.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLog {
    /// Id.
    pub id: AuditLogId,
    /// When, milliseconds.
    pub created_time: i64,
    /// The tenant of the one who did it; the null id for a system administrator.
    pub tenant_id: TenantId,
    /// The customer it concerns; the null id for none.
    pub customer_id: CustomerId,
    /// What it was done with; of the null id where there is no such thing (yet).
    pub entity_id: EntityId,
    /// What that was called; absent until it is looked up.
    pub entity_name: Option<String>,
    /// Who did it.
    pub user_id: UserId,
    /// What they were called; absent until it is looked up.
    pub user_name: Option<String>,
    /// What was done.
    #[schema(value_type = String)]
    pub action_type: ActionType,
    /// What came with it, by the kind of action.
    #[schema(value_type = Object)]
    pub action_data: Box<RawValue>,
    /// Whether it succeeded.
    #[serde(serialize_with = "status", rename = "actionStatus")]
    #[schema(value_type = String)]
    pub succeeded: bool,
    /// Why it did not.
    pub action_failure_details: String,
}

/// The name of a status.
pub const fn status_name(succeeded: bool) -> &'static str {
    if succeeded { "SUCCESS" } else { "FAILURE" }
}

fn status<S: Serializer>(succeeded: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status_name(*succeeded))
}
