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

macro_rules! entity_actions {
    ($($(#[$doc:meta])* $variant:ident = $action_type:ident, $msg_type:ident;)*) => {
        /// What was done with an entity: what the audit log keeps of it, and what message the rule engine gets.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum EntityAction { $($(#[$doc])* $variant,)* }

        impl EntityAction {
            /// What the audit log calls it.
            pub const fn action_type(self) -> ActionType {
                match self { $(Self::$variant => ActionType::$action_type,)* }
            }

            /// The type of the message about it.
            pub const fn msg_type(self) -> MsgType {
                match self { $(Self::$variant => MsgType::$msg_type,)* }
            }
        }
    };
}

entity_actions! {
    /// It was created.
    Created = Added, EntityCreated;
    /// It was updated.
    Updated = Updated, EntityUpdated;
    /// It was deleted.
    Deleted = Deleted, EntityDeleted;
    /// It was assigned to a customer.
    Assigned = AssignedToCustomer, EntityAssigned;
    /// It was taken from a customer.
    Unassigned = UnassignedFromCustomer, EntityUnassigned;
    /// It came from another tenant.
    AssignedFromTenant = AssignedFromTenant, AssignedFromTenant;
    /// It went to another tenant.
    AssignedToTenant = AssignedToTenant, AssignedToTenant;
    /// A device was provisioned.
    Provisioned = ProvisionSuccess, ProvisionSuccess;
    /// A device was not provisioned.
    ProvisionFailed = ProvisionFailure, ProvisionFailure;
    /// A relation of it was saved.
    RelationSaved = RelationAddOrUpdate, RelationAddOrUpdate;
    /// A relation of it was deleted.
    RelationDeleted = RelationDeleted, RelationDeleted;
    /// Its relations were deleted.
    RelationsDeleted = RelationsDeleted, RelationsDeleted;
    /// Attributes of it were saved.
    AttributesUpdated = AttributesUpdated, AttributesUpdated;
    /// Attributes of it were deleted.
    AttributesDeleted = AttributesDeleted, AttributesDeleted;
    /// Points of it were saved.
    TimeseriesUpdated = TimeseriesUpdated, TimeseriesUpdated;
    /// Points of it were deleted.
    TimeseriesDeleted = TimeseriesDeleted, TimeseriesDeleted;
    /// An alarm was acknowledged.
    AlarmAcknowledged = AlarmAck, AlarmAck;
    /// An alarm was cleared.
    AlarmCleared = AlarmClear, AlarmClear;
    /// An alarm was deleted.
    AlarmDeleted = AlarmDelete, AlarmDelete;
    /// An alarm was assigned to a user.
    AlarmAssigned = AlarmAssigned, AlarmAssigned;
    /// An alarm was taken from its assignee.
    AlarmUnassigned = AlarmUnassigned, AlarmUnassigned;
    /// A comment was written.
    CommentCreated = AddedComment, CommentCreated;
    /// A comment was changed.
    CommentUpdated = UpdatedComment, CommentUpdated;
}

/// What one message is made of.
struct ActionMessage<'a> {
    action: EntityAction,
    who: Option<&'a Principal>,
    tenant: TenantId,
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

    /// An entity was deleted.
    pub async fn push_deleted(&self, who: &Principal, entity: &AnyEntity) {
        self.push_about(Some(who), EntityAction::Deleted, entity, Vec::new())
            .await;
    }

    /// An entity was saved; `created` tells new ones from updated ones.
    pub async fn push_saved(&self, who: &Principal, created: bool, entity: &AnyEntity) {
        let action = match created {
            true => EntityAction::Created,
            false => EntityAction::Updated,
        };
        self.push_about(Some(who), action, entity, Vec::new()).await;
    }

    /// An entity was assigned to a customer.
    pub async fn push_assigned(&self, who: &Principal, entity: &AnyEntity, customer: &Customer) {
        let texts = vec![
            ("assignedCustomerId", customer.id.to_string()),
            ("assignedCustomerName", customer.title.clone()),
        ];
        self.push_about(Some(who), EntityAction::Assigned, entity, texts)
            .await;
    }

    /// An entity was taken back from a customer.
    pub async fn push_unassigned(&self, who: &Principal, entity: &AnyEntity, customer: &Customer) {
        let texts = vec![
            ("unassignedCustomerId", customer.id.to_string()),
            ("unassignedCustomerName", customer.title.clone()),
        ];
        self.push_about(Some(who), EntityAction::Unassigned, entity, texts)
            .await;
    }

    /// A device went from one tenant to another: told to the chains of both, and kept in the audit log of the former.
    pub async fn push_transferred(&self, who: &Principal, device: &Device, from: &Tenant, to: &Tenant) {
        let texts = |id: &'static str, name: &'static str, tenant: &Tenant| {
            vec![(id, tenant.id.to_string()), (name, tenant.title.clone())]
        };
        let arrived = ActionMessage {
            action: EntityAction::AssignedFromTenant,
            who: None,
            tenant: device.tenant_id,
            originator: device.id.into(),
            customer: device.customer_id,
            name: None,
            texts: texts("assignedFromTenantId", "assignedFromTenantName", from),
        };
        self.push(arrived, device).await;
        let left = ActionMessage {
            texts: texts("assignedToTenantId", "assignedToTenantName", to),
            name: Some(&device.name),
            ..bare(who, EntityAction::AssignedToTenant, device.id.into())
        };
        self.push(left, device).await;
    }

    async fn push_about(
        &self,
        who: Option<&Principal>,
        action: EntityAction,
        entity: &AnyEntity,
        texts: Vec<(&'static str, String)>,
    ) {
        let resource = entity.resource();
        let message = ActionMessage {
            action,
            who,
            tenant: resource.tenant,
            originator: resource.entity,
            customer: resource.customer,
            name: Some(entity.name()),
            texts,
        };
        self.push(message, &entity.to_json()).await;
    }

    /// The platform itself has created an entity.
    pub async fn push_created_by_platform(&self, entity: &AnyEntity) {
        self.push_about(None, EntityAction::Created, entity, Vec::new())
            .await;
    }

    /// The platform has provisioned a device, or has not.
    pub async fn push_about_device(&self, action: EntityAction, device: &Device, body: &serde_json::Value) {
        let message = ActionMessage {
            action,
            who: None,
            tenant: device.tenant_id,
            originator: device.id.into(),
            customer: device.customer_id,
            name: Some(&device.name),
            texts: Vec::new(),
        };
        self.push(message, body).await;
    }

    /// A relation was saved or deleted; told about both of its ends.
    pub async fn push_relation(&self, who: &Principal, action: EntityAction, relation: &EntityRelation) {
        for end in [relation.from, relation.to] {
            self.push(bare(who, action, end), relation).await;
        }
    }

    /// All relations of an entity were deleted.
    pub async fn push_relations_deleted(&self, who: &Principal, entity: EntityId) {
        self.push(bare(who, EntityAction::RelationsDeleted, entity), &json!({}))
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
        let message = ActionMessage {
            texts: vec![("scope", scope.name().to_owned())],
            ..bare(who, EntityAction::AttributesUpdated, entity)
        };
        self.push(message, &values).await;
    }

    /// A person has deleted attributes.
    pub async fn push_attributes_deleted(
        &self,
        who: &Principal,
        entity: EntityId,
        scope: AttributeScope,
        keys: &[String],
    ) {
        let message = ActionMessage {
            texts: vec![("scope", scope.name().to_owned())],
            ..bare(who, EntityAction::AttributesDeleted, entity)
        };
        self.push(message, &json!({ "attributes": keys })).await;
    }

    /// A person has saved points: `points` is a list of `{"ts", "values"}`.
    pub async fn push_timeseries_updated(&self, who: &Principal, entity: EntityId, points: &RawValue) {
        let message = bare(who, EntityAction::TimeseriesUpdated, entity);
        self.push(message, &TimeseriesBody { timeseries: points }).await;
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
        self.push(bare(who, EntityAction::TimeseriesDeleted, entity), &body)
            .await;
    }

    /// Something was done with an alarm; told about its originator. Without a person where the platform did it.
    pub async fn push_alarm(&self, who: Option<&Principal>, action: EntityAction, info: &AlarmInfo) {
        let alarm = &info.alarm;
        let Some(originator) = alarm.originator else {
            return;
        };
        let message = ActionMessage {
            action,
            who,
            tenant: alarm.tenant_id,
            originator,
            customer: alarm.customer_id.unwrap_or_default(),
            name: Some(&alarm.alarm_type),
            texts: Vec::new(),
        };
        self.push(message, info).await;
    }

    /// A comment was written or changed; told about the alarm.
    pub async fn push_comment(
        &self,
        who: Option<&Principal>,
        action: EntityAction,
        info: &AlarmInfo,
        comment: &AlarmComment,
    ) {
        let alarm = &info.alarm;
        let message = ActionMessage {
            action,
            who,
            tenant: alarm.tenant_id,
            originator: alarm.id.into(),
            customer: alarm.customer_id.unwrap_or_default(),
            name: Some(&alarm.alarm_type),
            texts: vec![("comment", serde_json::to_string(comment).unwrap_or_default())],
        };
        self.push(message, info).await;
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

    async fn push(&self, about: ActionMessage<'_>, body: &impl Serialize) {
        let body = serde_json::to_string(body);
        if let (Some(trail), Some(who), Ok(body)) = (self.audit.get(), about.who, &body) {
            let entry = audit_entry(who, &about, body, self.context.now());
            trail.record(entry).await;
        }
        if about.tenant.is_null() {
            return;
        }
        let mut metadata = MetadataMap::new();
        if let Some(who) = about.who {
            self.add_principal(who, &mut metadata).await;
        }
        let own = about.who.map_or(CustomerId::NULL, |who| who.customer);
        let customer = Some(about.customer)
            .filter(|customer| !customer.is_null())
            .or(Some(own))
            .filter(|customer| !customer.is_null());
        if let Some(customer) = customer {
            metadata.set("customerId", customer.to_string());
        }
        metadata.extend(about.texts);
        if let Some(name) = about.name {
            metadata.set("entityName", name);
            metadata.set("entityType", about.originator.entity_type.name());
        }
        let msg_type = about.action.msg_type();
        let queued = match body {
            Ok(body) => {
                let message = QueueMessage {
                    customer,
                    ..QueueMessage::new(
                        msg_type.clone(),
                        about.originator,
                        self.context.now(),
                        metadata,
                        body,
                    )
                };
                let pushed = self.context.rule_engine.push(about.tenant, message).await;
                pushed.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = queued
            && let Some(suppressed) = GATE.open()
        {
            tracing::warn!(
                originator = %about.originator, msg_type = %msg_type, %error, suppressed,
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
fn bare<'a>(who: &'a Principal, action: EntityAction, originator: EntityId) -> ActionMessage<'a> {
    ActionMessage {
        action,
        who: Some(who),
        tenant: who.tenant,
        originator,
        customer: CustomerId::NULL,
        name: None,
        texts: Vec::new(),
    }
}

/// What the audit log says about an action of a person.
fn audit_entry(who: &Principal, about: &ActionMessage<'_>, body: &str, now: i64) -> AuditLog {
    let entity = about.originator;
    // Of alarms, the name is that of their originator, which is looked up.
    let names_entity = entity.entity_type != EntityType::Alarm && !is_about_alarm(about.action);
    AuditLog {
        id: AuditLogId(new_uuid()),
        created_time: now,
        tenant_id: who.tenant,
        customer_id: if about.customer.is_null() {
            who.customer
        } else {
            about.customer
        },
        entity_id: entity,
        entity_name: about.name.filter(|_| names_entity).map(str::to_owned),
        user_id: who.user,
        user_name: None,
        action_type: about.action.action_type(),
        action_data: raw(audit_data(about, body)),
        succeeded: true,
        action_failure_details: String::new(),
    }
}

fn audit_data(about: &ActionMessage<'_>, body: &str) -> String {
    use EntityAction as Action;
    let id = about.originator.id;
    let text = |name: &str| {
        let found = about.texts.iter().find(|(key, _)| *key == name);
        found.map(|(_, text)| text.as_str())
    };
    let assigned = |of: &str, name: &str| {
        json!({ "entityId": id.to_string(), of: text(of), name: text(name) }).to_string()
    };
    let scope = || text("scope").unwrap_or_default();
    // The members of an entry of which the body, an object, brings the last ones.
    let with_members = |first: String| {
        let members = body.strip_prefix('{').map_or("", str::trim_start);
        match members {
            "" | "}" => format!("{{{first}}}"),
            members => format!("{{{first},{members}"),
        }
    };
    match about.action {
        Action::Created
        | Action::Updated
        | Action::AssignedFromTenant
        | Action::AssignedToTenant
        | Action::Provisioned
        | Action::ProvisionFailed
        | Action::AlarmAcknowledged
        | Action::AlarmCleared
        | Action::AlarmAssigned
        | Action::AlarmUnassigned => format!("{{\"entity\":{}}}", text_without_secrets(body)),
        Action::Deleted | Action::AlarmDeleted => format!("{{\"entityId\":\"{id}\"}}"),
        Action::Assigned => assigned("assignedCustomerId", "assignedCustomerName"),
        Action::Unassigned => assigned("unassignedCustomerId", "unassignedCustomerName"),
        Action::RelationSaved | Action::RelationDeleted => format!("{{\"relation\":{body}}}"),
        Action::RelationsDeleted => "{}".to_owned(),
        Action::AttributesUpdated => {
            let scope = scope();
            format!("{{\"entityId\":\"{id}\",\"scope\":\"{scope}\",\"attributes\":{body}}}")
        }
        Action::AttributesDeleted => {
            let scope = scope();
            with_members(format!("\"entityId\":\"{id}\",\"scope\":\"{scope}\""))
        }
        Action::TimeseriesUpdated | Action::TimeseriesDeleted => {
            with_members(format!("\"entityId\":\"{id}\""))
        }
        Action::CommentCreated | Action::CommentUpdated => comment(text("comment")),
    }
}

const fn is_about_alarm(action: EntityAction) -> bool {
    matches!(
        action,
        EntityAction::AlarmAcknowledged
            | EntityAction::AlarmCleared
            | EntityAction::AlarmDeleted
            | EntityAction::AlarmAssigned
            | EntityAction::AlarmUnassigned
    )
}

/// The text of a comment, out of the whole comment.
fn comment(whole: Option<&str>) -> String {
    let whole: serde_json::Value = whole
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    json!({ "comment": whole.get("comment") }).to_string()
}
