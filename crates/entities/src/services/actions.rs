//! Tells the rule engine what people do with entities.
//!
//! What is told is done already: a message that cannot be queued is logged, and nothing is undone for it.

use std::sync::{Arc, OnceLock};

use fieldline_core::any_entity::AnyEntity;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{DeviceRpcRequest, ORIGIN_RUN, StoreResult};
use fieldline_model::entity::{
    ActionType, AlarmComment, AlarmInfo, AuditLog, Customer, Device, EntityRelation, Tenant,
};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{AuditLogId, CustomerId, EntityId, EntityType, TenantId, UserId, new_uuid};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::ServiceContext;
use crate::access::Principal;
use crate::audit::{AuditTrail, raw, text_without_secrets};

static GATE: LogGate = LogGate::new(2);

/// Messages about what people do with entities, which the audit log keeps as well.
#[derive(Clone)]
pub struct EntityActionService {
    context: Arc<ServiceContext>,
    audit: Arc<OnceLock<AuditTrail>>,
    /// Who does many things in a row, and what messages say of them.
    known: Option<Arc<(UserId, MetadataMap)>>,
}

/// The body that tells of points.
#[derive(Serialize)]
struct TimeseriesBody<'a> {
    timeseries: &'a RawValue,
}

/// What one message is made of.
struct EntityAction<'a> {
    who: Option<&'a Principal>,
    tenant: TenantId,
    msg_type: MsgType,
    originator: EntityId,
    /// The customer it concerns; that of the user where this is the null id.
    customer: CustomerId,
    /// Name of the entity, where the body shows one.
    name: Option<&'a str>,
    /// Texts of this kind of message.
    texts: Vec<(&'static str, String)>,
}

impl EntityActionService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self {
            context: Arc::clone(context),
            audit: Arc::default(),
            known: None,
        }
    }

    /// The same for somebody who does many things in a row: who it is is looked up once.
    pub(super) async fn with_principal(&self, who: &Principal) -> Self {
        let mut metadata = MetadataMap::new();
        self.add_principal(who, &mut metadata).await;
        Self {
            known: Some(Arc::new((who.user, metadata))),
            ..self.clone()
        }
    }

    /// Has what people do kept from now on.
    pub fn set_audit_trail(&self, trail: AuditTrail) {
        // Set once, when the program starts.
        let _ = self.audit.set(trail);
    }

    /// An entity was created, updated or deleted: `EntityCreated`, `EntityUpdated`, `EntityDeleted`.
    pub async fn push_entity(&self, who: &Principal, msg_type: MsgType, entity: &AnyEntity) {
        self.push_about(who, msg_type, entity, Vec::new()).await;
    }

    /// An entity was saved; `created` tells new ones from updated ones.
    pub async fn push_saved(&self, who: &Principal, created: bool, entity: &AnyEntity) {
        let msg_type = if created {
            MsgType::EntityCreated
        } else {
            MsgType::EntityUpdated
        };
        self.push_entity(who, msg_type, entity).await;
    }

    /// An entity was assigned to a customer.
    pub async fn push_assigned(&self, who: &Principal, entity: &AnyEntity, customer: &Customer) {
        let texts = vec![
            ("assignedCustomerId", customer.id.to_string()),
            ("assignedCustomerName", customer.title.clone()),
        ];
        self.push_about(who, MsgType::EntityAssigned, entity, texts).await;
    }

    /// An entity was taken back from a customer.
    pub async fn push_unassigned(&self, who: &Principal, entity: &AnyEntity, customer: &Customer) {
        let texts = vec![
            ("unassignedCustomerId", customer.id.to_string()),
            ("unassignedCustomerName", customer.title.clone()),
        ];
        self.push_about(who, MsgType::EntityUnassigned, entity, texts)
            .await;
    }

    /// A device went from one tenant to another: told to the chains of both, and kept in the audit log of the former.
    pub async fn push_transferred(&self, who: &Principal, device: &Device, from: &Tenant, to: &Tenant) {
        let texts = |id: &'static str, name: &'static str, tenant: &Tenant| {
            vec![(id, tenant.id.to_string()), (name, tenant.title.clone())]
        };
        let arrived = EntityAction {
            who: None,
            tenant: device.tenant_id,
            msg_type: MsgType::AssignedFromTenant,
            originator: device.id.into(),
            customer: device.customer_id,
            name: None,
            texts: texts("assignedFromTenantId", "assignedFromTenantName", from),
        };
        self.push(arrived, device).await;
        let left = EntityAction {
            texts: texts("assignedToTenantId", "assignedToTenantName", to),
            name: Some(&device.name),
            ..bare(who, MsgType::AssignedToTenant, device.id.into())
        };
        self.push(left, device).await;
    }

    async fn push_about(
        &self,
        who: &Principal,
        msg_type: MsgType,
        entity: &AnyEntity,
        texts: Vec<(&'static str, String)>,
    ) {
        let resource = entity.resource();
        let action = EntityAction {
            who: Some(who),
            tenant: resource.tenant,
            msg_type,
            originator: resource.entity,
            customer: resource.customer,
            name: Some(entity.name()),
            texts,
        };
        self.push(action, &entity.to_json()).await;
    }

    /// The same, done by the platform itself.
    pub async fn push_by_platform(&self, msg_type: MsgType, entity: &AnyEntity) {
        let resource = entity.resource();
        let action = EntityAction {
            who: None,
            tenant: resource.tenant,
            msg_type,
            originator: resource.entity,
            customer: resource.customer,
            name: Some(entity.name()),
            texts: Vec::new(),
        };
        self.push(action, &entity.to_json()).await;
    }

    /// Something that the platform tells about a device: `ProvisionSuccess`, `ProvisionFailure`.
    pub async fn push_about_device(&self, msg_type: MsgType, device: &Device, body: &serde_json::Value) {
        let action = EntityAction {
            who: None,
            tenant: device.tenant_id,
            msg_type,
            originator: device.id.into(),
            customer: device.customer_id,
            name: Some(&device.name),
            texts: Vec::new(),
        };
        self.push(action, body).await;
    }

    /// A relation was saved or deleted: `RelationAddOrUpdate`, `RelationDeleted`; told about both of its ends.
    pub async fn push_relation(&self, who: &Principal, msg_type: MsgType, relation: &EntityRelation) {
        for end in [relation.from, relation.to] {
            self.push(bare(who, msg_type.clone(), end), relation).await;
        }
    }

    /// All relations of an entity were deleted.
    pub async fn push_relations_deleted(&self, who: &Principal, entity: EntityId) {
        self.push(bare(who, MsgType::RelationsDeleted, entity), &json!({}))
            .await;
    }

    /// A person has saved attributes: `values` is a JSON object of names and values.
    pub async fn push_attributes_updated(
        &self,
        who: &Principal,
        entity: EntityId,
        scope: AttributeScope,
        values: &RawValue,
    ) {
        let action = EntityAction {
            texts: vec![("scope", scope.name().to_owned())],
            ..bare(who, MsgType::AttributesUpdated, entity)
        };
        self.push(action, &values).await;
    }

    /// A person has deleted attributes.
    pub async fn push_attributes_deleted(
        &self,
        who: &Principal,
        entity: EntityId,
        scope: AttributeScope,
        keys: &[String],
    ) {
        let action = EntityAction {
            texts: vec![("scope", scope.name().to_owned())],
            ..bare(who, MsgType::AttributesDeleted, entity)
        };
        self.push(action, &json!({ "attributes": keys })).await;
    }

    /// A person has saved points: `points` is a list of `{"ts", "values"}`.
    pub async fn push_timeseries_updated(&self, who: &Principal, entity: EntityId, points: &RawValue) {
        let action = bare(who, MsgType::TimeseriesUpdated, entity);
        self.push(action, &TimeseriesBody { timeseries: points }).await;
    }

    /// A person has deleted points of these series; of a range of time where one is given.
    pub async fn push_timeseries_deleted(
        &self,
        who: &Principal,
        entity: EntityId,
        keys: &[String],
        range: Option<(i64, i64)>,
    ) {
        // Without a range, everything up to now goes.
        let (start, end) = range.unwrap_or((0, self.context.now()));
        let body = json!({ "timeseries": keys, "startTs": start, "endTs": end });
        self.push(bare(who, MsgType::TimeseriesDeleted, entity), &body)
            .await;
    }

    /// Something was done with an alarm; told about its originator. Without a person where the platform did it.
    pub async fn push_alarm(&self, who: Option<&Principal>, msg_type: MsgType, info: &AlarmInfo) {
        let alarm = &info.alarm;
        let Some(originator) = alarm.originator else {
            return;
        };
        let action = EntityAction {
            who,
            tenant: alarm.tenant_id,
            msg_type,
            originator,
            customer: alarm.customer_id.unwrap_or_default(),
            name: Some(&alarm.alarm_type),
            texts: Vec::new(),
        };
        self.push(action, info).await;
    }

    /// A comment was written or changed: `CommentCreated`, `CommentUpdated`; told about the alarm.
    pub async fn push_comment(
        &self,
        who: Option<&Principal>,
        msg_type: MsgType,
        info: &AlarmInfo,
        comment: &AlarmComment,
    ) {
        let alarm = &info.alarm;
        let action = EntityAction {
            who,
            tenant: alarm.tenant_id,
            msg_type,
            originator: alarm.id.into(),
            customer: alarm.customer_id.unwrap_or_default(),
            name: Some(&alarm.alarm_type),
            texts: vec![("comment", serde_json::to_string(comment).unwrap_or_default())],
        };
        self.push(action, info).await;
    }

    /// A person calls a device: whoever is told hands the call on.
    ///
    /// # Errors
    /// The rule engine cannot be told.
    pub async fn push_rpc(
        &self,
        who: &Principal,
        device: &Device,
        call: &DeviceRpcRequest,
    ) -> StoreResult<()> {
        let customer = Some(who.customer).filter(|customer| !customer.is_null());
        push_device_rpc(&self.context, customer, device, call).await
    }

    async fn push(&self, action: EntityAction<'_>, body: &impl Serialize) {
        let body = serde_json::to_string(body);
        if let (Some(trail), Some(who), Ok(body)) = (self.audit.get(), action.who, &body)
            && let Some(entry) = audit_entry(who, &action, body, self.context.now())
        {
            trail.record(entry).await;
        }
        if action.tenant.is_null() {
            return;
        }
        let mut metadata = MetadataMap::new();
        if let Some(who) = action.who {
            self.add_principal(who, &mut metadata).await;
        }
        let own = action.who.map_or(CustomerId::NULL, |who| who.customer);
        let customer = Some(action.customer)
            .filter(|customer| !customer.is_null())
            .or(Some(own))
            .filter(|customer| !customer.is_null());
        if let Some(customer) = customer {
            metadata.set("customerId", customer.to_string());
        }
        metadata.extend(action.texts);
        if let Some(name) = action.name {
            metadata.set("entityName", name);
            metadata.set("entityType", action.originator.entity_type.name());
        }
        let queued = match body {
            Ok(body) => {
                let message = QueueMessage {
                    customer,
                    ..QueueMessage::new(
                        action.msg_type.clone(),
                        action.originator,
                        self.context.now(),
                        metadata,
                        body,
                    )
                };
                let pushed = self.context.rule_engine.push(action.tenant, message).await;
                pushed.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = queued
            && let Some(suppressed) = GATE.open()
        {
            tracing::warn!(
                originator = %action.originator, msg_type = %action.msg_type, %error, suppressed,
                "could not tell the rule engine about an action"
            );
        }
    }

    /// Says who did it.
    async fn add_principal(&self, who: &Principal, metadata: &mut MetadataMap) {
        if let Some((_, known)) = self.known.as_deref().filter(|(user, _)| *user == who.user) {
            *metadata = known.clone();
            return;
        }
        metadata.set("userId", who.user.to_string());
        // A public session has no user behind it.
        let Ok(Some(user)) = self.context.stores.users.by_id(who.user).await else {
            return;
        };
        metadata.set("userName", user.email.as_str());
        metadata.set("userEmail", user.email.as_str());
        if let Some(name) = user.first_name {
            metadata.set("userFirstName", name);
        }
        if let Some(name) = user.last_name {
            metadata.set("userLastName", name);
        }
    }
}

/// Hands a call to a device to the rule engine, on behalf of a customer or of nobody.
///
/// # Errors
/// The rule engine cannot be told.
pub(super) async fn push_device_rpc(
    context: &ServiceContext,
    customer: Option<CustomerId>,
    device: &Device,
    call: &DeviceRpcRequest,
) -> StoreResult<()> {
    let mut metadata = MetadataMap::from_iter([
        ("requestUUID", call.id.to_string()),
        ("originServiceId", call.rest_origin.clone().unwrap_or_default()),
        ("expirationTime", call.expires_ms.to_string()),
        ("oneway", call.oneway.to_string()),
        ("persistent", call.persistent.to_string()),
    ]);
    if let Some(run) = call.origin_run {
        metadata.set(ORIGIN_RUN, run.to_string());
    }
    if let Some(retries) = call.retries {
        metadata.set("retries", retries.to_string());
    }
    metadata.set("deviceName", device.name.as_str());
    metadata.set("deviceType", device.device_type.as_str());
    let body = json!({
        "method": call.method, "params": call.params, "additionalInfo": call.additional_info,
    });
    let message = QueueMessage {
        customer,
        ..QueueMessage::new(
            MsgType::RpcFromServer,
            call.device.into(),
            context.now(),
            metadata,
            body.to_string(),
        )
    };
    context.rule_engine.push(call.tenant, message).await
}

/// A message about an entity that its body does not show.
fn bare<'a>(who: &'a Principal, msg_type: MsgType, originator: EntityId) -> EntityAction<'a> {
    EntityAction {
        who: Some(who),
        tenant: who.tenant,
        msg_type,
        originator,
        customer: CustomerId::NULL,
        name: None,
        texts: Vec::new(),
    }
}

/// What the audit log says about an action; `None` for messages that are no action of a person.
fn audit_entry(who: &Principal, action: &EntityAction<'_>, body: &str, now: i64) -> Option<AuditLog> {
    let entity = action.originator;
    let id = entity.id;
    let text = |name: &str| {
        action
            .texts
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, text)| text.as_str())
    };
    // Members of the body, an object, beside those that every entry of its kind has.
    let members = |body: &str| body.strip_prefix('{').map(|rest| rest.to_owned());
    let about = |rest: &str| match rest {
        "}" => format!("{{\"entityId\":\"{id}\"}}"),
        rest => format!("{{\"entityId\":\"{id}\",{rest}"),
    };
    let shown = || format!("{{\"entity\":{}}}", text_without_secrets(body));
    let assigned = |of: &str, name: &str| {
        json!({ "entityId": id.to_string(), of: text(of), name: text(name) }).to_string()
    };
    let (action_type, data) = match action.msg_type {
        MsgType::EntityCreated => (ActionType::Added, shown()),
        MsgType::EntityUpdated => (ActionType::Updated, shown()),
        MsgType::EntityDeleted => (ActionType::Deleted, about("}")),
        MsgType::EntityAssigned => (
            ActionType::AssignedToCustomer,
            assigned("assignedCustomerId", "assignedCustomerName"),
        ),
        MsgType::EntityUnassigned => (
            ActionType::UnassignedFromCustomer,
            assigned("unassignedCustomerId", "unassignedCustomerName"),
        ),
        MsgType::AssignedToTenant => (ActionType::AssignedToTenant, shown()),
        MsgType::RelationAddOrUpdate => (
            ActionType::RelationAddOrUpdate,
            format!("{{\"relation\":{body}}}"),
        ),
        MsgType::RelationDeleted => (ActionType::RelationDeleted, format!("{{\"relation\":{body}}}")),
        MsgType::RelationsDeleted => (ActionType::RelationsDeleted, "{}".to_owned()),
        MsgType::AttributesUpdated => {
            let scope = text("scope").unwrap_or_default();
            (
                ActionType::AttributesUpdated,
                about(&format!("\"scope\":\"{scope}\",\"attributes\":{body}}}")),
            )
        }
        MsgType::AttributesDeleted => {
            let scope = text("scope").unwrap_or_default();
            (
                ActionType::AttributesDeleted,
                about(&format!("\"scope\":\"{scope}\",{}", members(body)?)),
            )
        }
        MsgType::TimeseriesUpdated => (ActionType::TimeseriesUpdated, about(&members(body)?)),
        MsgType::TimeseriesDeleted => (ActionType::TimeseriesDeleted, about(&members(body)?)),
        MsgType::AlarmCreated => (ActionType::Added, shown()),
        MsgType::AlarmUpdated | MsgType::AlarmSeverityUpdated => (ActionType::Updated, shown()),
        MsgType::AlarmAck => (ActionType::AlarmAck, shown()),
        MsgType::AlarmClear => (ActionType::AlarmClear, shown()),
        MsgType::AlarmDelete => (ActionType::AlarmDelete, about("}")),
        MsgType::AlarmAssigned => (ActionType::AlarmAssigned, shown()),
        MsgType::AlarmUnassigned => (ActionType::AlarmUnassigned, shown()),
        MsgType::CommentCreated => (ActionType::AddedComment, comment(text("comment"))),
        MsgType::CommentUpdated => (ActionType::UpdatedComment, comment(text("comment"))),
        _ => return None,
    };
    // Of alarms, the name is that of their originator, which is looked up.
    let names_entity = !matches!(entity.entity_type, EntityType::Alarm) && !is_about_alarm(action_type);
    Some(AuditLog {
        id: AuditLogId(new_uuid()),
        created_time: now,
        tenant_id: who.tenant,
        customer_id: if action.customer.is_null() {
            who.customer
        } else {
            action.customer
        },
        entity_id: entity,
        entity_name: action.name.filter(|_| names_entity).map(str::to_owned),
        user_id: who.user,
        user_name: None,
        action_type,
        action_data: raw(data),
        succeeded: true,
        action_failure_details: String::new(),
    })
}

const fn is_about_alarm(action: ActionType) -> bool {
    matches!(
        action,
        ActionType::AlarmAck
            | ActionType::AlarmClear
            | ActionType::AlarmDelete
            | ActionType::AlarmAssigned
            | ActionType::AlarmUnassigned
    )
}

/// The text of a comment, out of the whole comment.
fn comment(whole: Option<&str>) -> String {
    let whole: serde_json::Value = whole
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    json!({ "comment": whole.get("comment") }).to_string()
}
