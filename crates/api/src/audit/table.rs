//! Which requests the audit log keeps, and as what.

use axum::http::Method;
use fieldline_entities::access::Principal;
use fieldline_entities::audit::hide_secrets;
use fieldline_model::entity::ActionType;
use fieldline_model::{EntityId, EntityType};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{RequestParams, nothing};

/// Kinds of entities as paths name them.
const KINDS: [(&str, EntityType); 14] = [
    ("tenant", EntityType::Tenant),
    ("tenantProfile", EntityType::TenantProfile),
    ("customer", EntityType::Customer),
    ("user", EntityType::User),
    ("device", EntityType::Device),
    ("deviceProfile", EntityType::DeviceProfile),
    ("asset", EntityType::Asset),
    ("assetProfile", EntityType::AssetProfile),
    ("entityView", EntityType::EntityView),
    ("dashboard", EntityType::Dashboard),
    ("ruleChain", EntityType::RuleChain),
    ("alarm", EntityType::Alarm),
    ("calculatedField", EntityType::CalculatedField),
    ("otaPackage", EntityType::OtaPackage),
];

/// A path whose requests are kept, by its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuditedPath {
    /// `POST /api/<kind>`.
    Save(EntityType),
    /// `DELETE /api/<kind>/{id}`.
    Delete(EntityType),
    /// `POST` and `DELETE /api/customer/…/<kind>/{id}`.
    Assign(EntityType),
    /// What is done with an alarm: the last word of the path.
    Alarm(ActionType),
    SaveWithCredentials,
    Credentials,
    Relation,
    Relations,
    Data,
    Rpc,
    RuleEngine,
    SetEnabled,
    TestSms,
    Logout,
}

/// A path whose requests are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditRule {
    path: AuditedPath,
    /// Whether they are kept if they succeed, too: nobody else does.
    pub(super) also_success: bool,
}

/// What somebody tried to do.
pub(super) struct AuditedAction {
    pub(super) action: ActionType,
    pub(super) entity: EntityId,
    pub(super) data: Value,
}

fn kind(name: &str) -> Option<EntityType> {
    let found = KINDS.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind)
}

impl AuditRule {
    /// Whether requests to a path are kept; by the path of its description.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let shape = match parts.as_slice() {
            ["api", "auth", "logout"] => AuditedPath::Logout,
            ["api", "device-with-credentials"] => AuditedPath::SaveWithCredentials,
            ["api", "device", "credentials"] => AuditedPath::Credentials,
            ["api", "relation"] | ["api", "v2", "relation"] => AuditedPath::Relation,
            ["api", "relations"] => AuditedPath::Relations,
            ["api", "plugins", "telemetry", ..] => AuditedPath::Data,
            ["api", "rpc", "oneway" | "twoway", _] | ["api", "plugins", "rpc", "oneway" | "twoway", _] => {
                AuditedPath::Rpc
            }
            ["api", "rule-engine", ..] => AuditedPath::RuleEngine,
            ["api", "user", _, "userCredentialsEnabled"] => AuditedPath::SetEnabled,
            ["api", "admin", "settings", "testSms"] => AuditedPath::TestSms,
            ["api", "alarm", _, "ack"] => AuditedPath::Alarm(ActionType::AlarmAck),
            ["api", "alarm", _, "clear"] => AuditedPath::Alarm(ActionType::AlarmClear),
            ["api", "alarm", _, "assign", _] => AuditedPath::Alarm(ActionType::AlarmAssigned),
            ["api", "alarm", _, "assign"] => AuditedPath::Alarm(ActionType::AlarmUnassigned),
            ["api", "ruleChain", "metadata"] => AuditedPath::Save(EntityType::RuleChain),
            ["api", "customer", name, id] if id.starts_with('{') => AuditedPath::Assign(kind(name)?),
            ["api", "customer", _, name, id] if id.starts_with('{') => AuditedPath::Assign(kind(name)?),
            ["api", name] => AuditedPath::Save(kind(name)?),
            ["api", name, id] if id.starts_with('{') => AuditedPath::Delete(kind(name)?),
            _ => return None,
        };
        let also_success = matches!(
            shape,
            AuditedPath::Credentials
                | AuditedPath::Rpc
                | AuditedPath::RuleEngine
                | AuditedPath::SetEnabled
                | AuditedPath::TestSms
                | AuditedPath::Logout
        );
        Some(Self {
            path: shape,
            also_success,
        })
    }

    /// Whether requests of a method may be kept: reading changes nothing, except that the rule engine is called by any.
    pub(super) fn may_keep(&self, method: &Method) -> bool {
        !method.is_safe() || self.path == AuditedPath::RuleEngine
    }

    /// Whether a request brings a file, which is not looked into.
    pub(super) fn is_upload(&self, method: &Method) -> bool {
        self.path == AuditedPath::Delete(EntityType::OtaPackage) && *method == Method::POST
    }

    /// What a request tried to do; `None` for requests that change nothing.
    pub(super) fn describe(
        &self,
        method: &Method,
        params: &RequestParams<'_>,
        body: &Value,
        who: &Principal,
    ) -> Option<AuditedAction> {
        let (posts, deletes) = (*method == Method::POST, *method == Method::DELETE);
        Some(match self.path {
            AuditedPath::Save(kind) if posts => save(kind, body),
            AuditedPath::SaveWithCredentials if posts => save(EntityType::Device, body.get("device")?),
            AuditedPath::Delete(kind) if deletes => {
                let id = last(params)?;
                let data = json!({ "entityId": id.to_string() });
                new_action(ActionType::Deleted, EntityId::new(kind, id), data)
            }
            AuditedPath::Delete(EntityType::OtaPackage) if posts => {
                let id = last(params)?;
                let data = json!({ "entityId": id.to_string() });
                new_action(
                    ActionType::Updated,
                    EntityId::new(EntityType::OtaPackage, id),
                    data,
                )
            }
            AuditedPath::Assign(kind) => assign(kind, posts, params)?,
            AuditedPath::Alarm(action) => {
                let id = params.id("alarmId")?;
                new_action(action, EntityId::new(EntityType::Alarm, id), json!({}))
            }
            AuditedPath::Credentials if posts => {
                let device = entity(body.get("deviceId")?)?;
                let kind = body.get("credentialsType").cloned().unwrap_or_default();
                // Which ones is nobody's business who reads the log.
                let data = json!({ "entityId": device.id.to_string(), "credentialsType": kind });
                new_action(ActionType::CredentialsUpdated, device, data)
            }
            AuditedPath::Relation if posts => {
                let data = json!({ "relation": body });
                new_action(ActionType::RelationAddOrUpdate, entity(body.get("from")?)?, data)
            }
            AuditedPath::Relation => {
                let from = of_query(params, "fromType", "fromId")?;
                new_action(ActionType::RelationDeleted, from, json!({}))
            }
            AuditedPath::Relations if deletes => {
                let of = of_query(params, "entityType", "entityId")?;
                new_action(ActionType::RelationsDeleted, of, json!({}))
            }
            AuditedPath::Data => data(posts, params, body)?,
            AuditedPath::Rpc if posts => {
                let device = EntityId::new(EntityType::Device, last(params)?);
                let data = json!({
                    "entityId": device.id.to_string(),
                    "oneWay": params.pattern.contains("/oneway/"),
                    "method": body.get("method"),
                    "params": body.get("params"),
                });
                new_action(ActionType::RpcCall, device, data)
            }
            AuditedPath::RuleEngine => rule_engine(params, who),
            AuditedPath::SetEnabled if posts => {
                let user = EntityId::new(EntityType::User, params.id("userId")?);
                let action = match params.query("userCredentialsEnabled") {
                    Some("false") => ActionType::Suspended,
                    _ => ActionType::Activated,
                };
                new_action(action, user, json!({ "entityId": user.id.to_string() }))
            }
            AuditedPath::TestSms if posts => {
                let data = json!({ "number": body.get("numberTo") });
                new_action(ActionType::SmsSent, who.user.into(), data)
            }
            AuditedPath::Logout => new_action(ActionType::Logout, who.user.into(), json!({})),
            _ => return None,
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
    // What a dashboard shows is large, and no help.
    let mut shown = body.clone();
    if let Some(fields) = shown.as_object_mut().filter(|_| kind == EntityType::Dashboard) {
        fields.insert("configuration".to_owned(), "".into());
    }
    // Nodes talk to others with credentials under any name.
    let nodes = shown.get_mut("nodes").and_then(Value::as_array_mut);
    for node in nodes.into_iter().flatten().filter_map(Value::as_object_mut) {
        node.remove("configuration");
    }
    hide_secrets(&mut shown);
    let entity = known.unwrap_or_else(|| nothing(kind));
    new_action(action, entity, json!({ "entity": shown }))
}

fn assign(kind: EntityType, posts: bool, params: &RequestParams<'_>) -> Option<AuditedAction> {
    let id = last(params)?;
    let mut data = Map::new();
    data.insert("entityId".to_owned(), id.to_string().into());
    let (action, field) = match posts {
        true => (ActionType::AssignedToCustomer, "assignedCustomerId"),
        false => (ActionType::UnassignedFromCustomer, "unassignedCustomerId"),
    };
    if let Some(customer) = params.path("customerId") {
        data.insert(field.to_owned(), customer.into());
    }
    Some(new_action(action, EntityId::new(kind, id), data.into()))
}

fn data(posts: bool, params: &RequestParams<'_>, body: &Value) -> Option<AuditedAction> {
    let entity = match (params.path("entityType"), params.id("entityId")) {
        (Some(kind), Some(id)) => EntityId::new(kind.parse().ok()?, id),
        _ => EntityId::new(EntityType::Device, params.id("deviceId")?),
    };
    let timeseries = params.path.split('/').any(|part| part == "timeseries");
    let action = match (timeseries, posts) {
        (true, true) => ActionType::TimeseriesUpdated,
        (true, false) => ActionType::TimeseriesDeleted,
        (false, true) => ActionType::AttributesUpdated,
        (false, false) => ActionType::AttributesDeleted,
    };
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

/// The id at the end of a path.
fn last(params: &RequestParams<'_>) -> Option<Uuid> {
    params.path.rsplit('/').next()?.parse().ok()
}

/// An id with its type, as JSON has it.
fn entity(value: &Value) -> Option<EntityId> {
    serde_json::from_value(value.clone()).ok()
}

fn of_query(params: &RequestParams<'_>, kind: &str, id: &str) -> Option<EntityId> {
    let kind = params.query(kind)?.parse().ok()?;
    Some(EntityId::new(kind, params.query(id)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_recognized_by_their_shape() {
        let shape = |path: &str| AuditRule::of(path).map(|audited| audited.path);
        assert_eq!(shape("/api/device"), Some(AuditedPath::Save(EntityType::Device)));
        assert_eq!(
            shape("/api/device/{deviceId}"),
            Some(AuditedPath::Delete(EntityType::Device))
        );
        assert_eq!(
            shape("/api/customer/{customerId}/asset/{assetId}"),
            Some(AuditedPath::Assign(EntityType::Asset))
        );
        assert_eq!(
            shape("/api/customer/public/dashboard/{dashboardId}"),
            Some(AuditedPath::Assign(EntityType::Dashboard))
        );
        assert_eq!(
            shape("/api/customer/entityView/{entityViewId}"),
            Some(AuditedPath::Assign(EntityType::EntityView))
        );
        assert_eq!(
            shape("/api/plugins/telemetry/{deviceId}/{scope}"),
            Some(AuditedPath::Data)
        );
        assert_eq!(shape("/api/rpc/twoway/{deviceId}"), Some(AuditedPath::Rpc));
        for path in [
            "/api/tenant/devices",
            "/api/devices",
            "/api/auth/login",
            "/api/device/info/{deviceId}",
            "/api/queues",
        ] {
            assert_eq!(shape(path), None, "{path}");
        }
    }
}
