//! The audit log rules of the endpoints; each endpoint names its rule where it is registered.

use fieldline_entities::access::Principal;
use fieldline_entities::audit::hide_secrets;
use fieldline_model::entity::ActionType;
use fieldline_model::{EntityId, EntityType};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{RequestParams, nothing};

/// The requests to an endpoint that the audit log records: failed ones, and for some rules successful ones, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditRule {
    /// Nothing.
    Nothing,
    /// To create or update the entity of the body.
    Save(EntityType),
    /// To create or update the `device` of the body.
    SaveWithCredentials,
    /// To delete the entity at the end of the path.
    Delete(EntityType),
    /// To upload a file to the entity at the end of the path; the file is not inspected.
    Upload(EntityType),
    /// To upload, change or delete the resource that the path names by id or key; a file is not inspected.
    File(ActionType),
    /// To assign the entity at the end of the path to a customer.
    Assign(EntityType),
    /// To unassign the entity at the end of the path from its customer.
    Unassign(EntityType),
    /// To apply an action to the alarm of the path.
    Alarm(ActionType),
    /// To change the credentials of the device of the body; recorded on success, too.
    Credentials,
    /// To save the relation of the body.
    SaveRelation,
    /// To delete the relation of the query.
    DeleteRelation,
    /// To delete the relations of the entity of the query.
    DeleteRelations,
    /// To save or delete attributes or time series of the entity of the path.
    Data(ActionType),
    /// To call the device at the end of the path; recorded on success, too.
    Rpc {
        /// Whether the caller expects no response.
        oneway: bool,
    },
    /// To send a message to the rule engine; recorded on success, too.
    RuleEngine,
    /// To activate or suspend the user of the path; recorded on success, too.
    SetEnabled,
    /// To send a text message to a phone; recorded on success, too.
    TestSms,
    /// To log out; recorded on success, too.
    Logout,
}

/// The action that a request attempted.
pub(super) struct AuditedAction {
    pub(super) action: ActionType,
    pub(super) entity: EntityId,
    pub(super) data: Value,
}

impl AuditRule {
    /// Whether successful requests are recorded, too, because no service reports them.
    pub(super) const fn keeps_success(self) -> bool {
        match self {
            Self::Credentials
            | Self::Rpc { .. }
            | Self::RuleEngine
            | Self::SetEnabled
            | Self::TestSms
            | Self::Logout => true,
            Self::Nothing
            | Self::Save(_)
            | Self::SaveWithCredentials
            | Self::Delete(_)
            | Self::Upload(_)
            | Self::File(_)
            | Self::Assign(_)
            | Self::Unassign(_)
            | Self::Alarm(_)
            | Self::SaveRelation
            | Self::DeleteRelation
            | Self::DeleteRelations
            | Self::Data(_) => false,
        }
    }

    /// Describes the attempted action; `None` if the request names no entity.
    pub(super) fn describe(
        self,
        params: &RequestParams<'_>,
        body: &Value,
        who: &Principal,
    ) -> Option<AuditedAction> {
        Some(match self {
            Self::Nothing => return None,
            Self::Save(kind) => save(kind, body),
            Self::SaveWithCredentials => save(EntityType::Device, body.get("device")?),
            Self::Delete(kind) => of_last(ActionType::Deleted, kind, params)?,
            Self::Upload(kind) => of_last(ActionType::Updated, kind, params)?,
            Self::File(action) => {
                let id = params
                    .id("id")
                    .map(|id| EntityId::new(EntityType::TbResource, id));
                let entity = id.unwrap_or_else(|| nothing(EntityType::TbResource));
                let data = match id {
                    Some(id) => json!({ "entityId": id.id.to_string() }),
                    None => json!({ "resourceKey": params.path("key") }),
                };
                new_action(action, entity, data)
            }
            Self::Assign(kind) => {
                let (action, field) = (ActionType::AssignedToCustomer, "assignedCustomerId");
                assign(action, kind, field, params)?
            }
            Self::Unassign(kind) => {
                let (action, field) = (ActionType::UnassignedFromCustomer, "unassignedCustomerId");
                assign(action, kind, field, params)?
            }
            Self::Alarm(action) => {
                let id = params.id("alarmId")?;
                new_action(action, EntityId::new(EntityType::Alarm, id), json!({}))
            }
            Self::Credentials => {
                let device = entity(body.get("deviceId")?)?;
                let kind = body.get("credentialsType").cloned().unwrap_or_default();
                // The credentials themselves must not get into the log.
                let data = json!({ "entityId": device.id.to_string(), "credentialsType": kind });
                new_action(ActionType::CredentialsUpdated, device, data)
            }
            Self::SaveRelation => {
                let data = json!({ "relation": body });
                new_action(ActionType::RelationAddOrUpdate, entity(body.get("from")?)?, data)
            }
            Self::DeleteRelation => {
                let from = of_query(params, "fromType", "fromId")?;
                new_action(ActionType::RelationDeleted, from, json!({}))
            }
            Self::DeleteRelations => {
                let of = of_query(params, "entityType", "entityId")?;
                new_action(ActionType::RelationsDeleted, of, json!({}))
            }
            Self::Data(action) => data(action, params, body)?,
            Self::Rpc { oneway } => {
                let device = EntityId::new(EntityType::Device, last(params)?);
                let data = json!({
                    "entityId": device.id.to_string(),
                    "oneWay": oneway,
                    "method": body.get("method"),
                    "params": body.get("params"),
                });
                new_action(ActionType::RpcCall, device, data)
            }
            Self::RuleEngine => rule_engine(params, who),
            Self::SetEnabled => {
                let user = EntityId::new(EntityType::User, params.id("userId")?);
                let action = match params.query("userCredentialsEnabled") {
                    Some("false") => ActionType::Suspended,
                    _ => ActionType::Activated,
                };
                new_action(action, user, json!({ "entityId": user.id.to_string() }))
            }
            Self::TestSms => {
                let data = json!({ "number": body.get("numberTo") });
                new_action(ActionType::SmsSent, who.user.into(), data)
            }
            Self::Logout => new_action(ActionType::Logout, who.user.into(), json!({})),
        })
    }
}

fn new_action(action: ActionType, entity: EntityId, data: Value) -> AuditedAction {
    AuditedAction { action, entity, data }
}

fn save(kind: EntityType, body: &Value) -> AuditedAction {
    let known = body
        .get("id")
        .or_else(|| body.get("ruleChainId"))
        .and_then(entity);
    let known = known.filter(|id| id.entity_type == kind);
    let action = match known {
        Some(_) => ActionType::Updated,
        None => ActionType::Added,
    };
    // The configuration of a dashboard is large and does not help a reader of the log.
    let mut shown = body.clone();
    if let Some(fields) = shown.as_object_mut().filter(|_| kind == EntityType::Dashboard) {
        fields.insert("configuration".to_owned(), "".into());
    }
    // So are files.
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("resources");
        if kind == EntityType::TbResource {
            fields.remove("data");
        }
    }
    // Node configurations hold credentials under any name.
    let nodes = shown.get_mut("nodes").and_then(Value::as_array_mut);
    for node in nodes.into_iter().flatten().filter_map(Value::as_object_mut) {
        node.remove("configuration");
    }
    hide_secrets(&mut shown);
    let entity = known.unwrap_or_else(|| nothing(kind));
    new_action(action, entity, json!({ "entity": shown }))
}

/// Describes an action on the entity at the end of the path.
fn of_last(action: ActionType, kind: EntityType, params: &RequestParams<'_>) -> Option<AuditedAction> {
    let id = last(params)?;
    let data = json!({ "entityId": id.to_string() });
    Some(new_action(action, EntityId::new(kind, id), data))
}

fn assign(
    action: ActionType,
    kind: EntityType,
    customer_field: &str,
    params: &RequestParams<'_>,
) -> Option<AuditedAction> {
    let mut found = of_last(action, kind, params)?;
    if let Some(customer) = params.path("customerId") {
        found.data[customer_field] = customer.into();
    }
    Some(found)
}

fn data(action: ActionType, params: &RequestParams<'_>, body: &Value) -> Option<AuditedAction> {
    let entity = match (params.path("entityType"), params.id("entityId")) {
        (Some(kind), Some(id)) => EntityId::new(kind.parse().ok()?, id),
        _ => EntityId::new(EntityType::Device, params.id("deviceId")?),
    };
    let timeseries = matches!(
        action,
        ActionType::TimeseriesUpdated | ActionType::TimeseriesDeleted
    );
    let mut data = Map::new();
    data.insert("entityId".to_owned(), entity.id.to_string().into());
    if let Some(scope) = params.path("scope").filter(|_| !timeseries) {
        data.insert("scope".to_owned(), scope.into());
    }
    let name = if timeseries { "timeseries" } else { "attributes" };
    let value = match params.query("keys").or(params.query("key")) {
        Some(keys) => keys.split(',').collect::<Vec<_>>().into(),
        None => body.clone(),
    };
    data.insert(name.to_owned(), value);
    Some(new_action(action, entity, data.into()))
}

fn rule_engine(params: &RequestParams<'_>, who: &Principal) -> AuditedAction {
    let named = params
        .path("entityType")
        .and_then(|kind| kind.parse().ok())
        .zip(params.id("entityId"));
    let entity = named.map_or_else(|| who.user.into(), |(kind, id)| EntityId::new(kind, id));
    new_action(
        ActionType::RestApiRuleEngineCall,
        entity,
        json!({ "entityId": entity.id.to_string() }),
    )
}

/// Returns the id at the end of a path.
fn last(params: &RequestParams<'_>) -> Option<Uuid> {
    params.path.rsplit('/').next()?.parse().ok()
}

/// Parses an id with its type from JSON.
fn entity(value: &Value) -> Option<EntityId> {
    serde_json::from_value(value.clone()).ok()
}

fn of_query(params: &RequestParams<'_>, kind: &str, id: &str) -> Option<EntityId> {
    let kind = params.query(kind)?.parse().ok()?;
    Some(EntityId::new(kind, params.query(id)?.parse().ok()?))
}
