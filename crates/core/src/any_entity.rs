//! An entity of any kind, and what the kinds have in common.

mod kind;

use fieldline_model::entity::{
    Alarm, Asset, AssetProfile, Authority, CalculatedField, Customer, DashboardInfo, Device, DeviceProfile,
    EntityView, OtaPackageInfo, Queue, QueueStats, RuleChain, RuleNode, Tenant, TenantProfile, User,
};
use fieldline_model::{CustomerId, EntityId, EntityKey, TenantId};
use serde_json::Value;

pub use kind::EntityKind;

use crate::ports::AssignableEntity as _;
use crate::usage::ApiUsageState;

/// What the table of roles needs to know about an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessResource {
    /// The entity.
    pub entity: EntityId,
    /// The tenant it belongs to; a tenant belongs to itself, what the system owns to the null id.
    pub tenant: TenantId,
    /// The customer it is assigned to; the null id for none. A customer belongs to itself.
    pub customer: CustomerId,
    /// The authority of a user, `None` for everything else.
    pub user_authority: Option<Authority>,
}

/// An entity of one of the kinds.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum AnyEntity {
    Tenant(Tenant),
    TenantProfile(TenantProfile),
    Customer(Customer),
    User(User),
    Device(Device),
    DeviceProfile(DeviceProfile),
    Asset(Asset),
    AssetProfile(AssetProfile),
    EntityView(EntityView),
    Alarm(Alarm),
    RuleChain(RuleChain),
    RuleNode(TenantId, RuleNode),
    Queue(Queue),
    QueueStats(QueueStats),
    ApiUsageState(ApiUsageState),
    CalculatedField(CalculatedField),
    Dashboard(DashboardInfo),
    OtaPackage(OtaPackageInfo),
}

impl AnyEntity {
    /// What the table of roles needs to know about it.
    pub fn resource(&self) -> AccessResource {
        let resource = |entity: EntityId, tenant, customer| AccessResource {
            entity,
            tenant,
            customer,
            user_authority: None,
        };
        match self {
            Self::Tenant(tenant) => {
                let id = tenant.id;
                resource(id.into(), id, CustomerId::NULL)
            }
            Self::TenantProfile(profile) => resource(profile.id.into(), TenantId::NULL, CustomerId::NULL),
            Self::Customer(customer) => {
                let id = customer.id;
                resource(id.into(), customer.tenant_id, id)
            }
            Self::User(user) => AccessResource {
                user_authority: Some(user.authority),
                ..resource(user.id.into(), user.tenant_id, user.customer_id)
            },
            Self::Device(device) => device.resource(),
            Self::Asset(asset) => asset.resource(),
            Self::AssetProfile(profile) => resource(profile.id.into(), profile.tenant_id, CustomerId::NULL),
            Self::EntityView(view) => view.resource(),
            Self::Alarm(alarm) => resource(
                alarm.id.into(),
                alarm.tenant_id,
                alarm.customer_id.unwrap_or_default(),
            ),
            Self::RuleChain(chain) => resource(chain.id.into(), chain.tenant_id, CustomerId::NULL),
            Self::RuleNode(tenant, node) => resource(node.id.into(), *tenant, CustomerId::NULL),
            Self::CalculatedField(field) => resource(field.id.into(), field.tenant_id, CustomerId::NULL),
            Self::Queue(queue) => resource(queue.id.into(), queue.tenant_id, CustomerId::NULL),
            Self::QueueStats(stats) => resource(stats.id.into(), stats.tenant_id, CustomerId::NULL),
            Self::ApiUsageState(usage) => resource(usage.id.into(), usage.tenant_id, CustomerId::NULL),
            Self::DeviceProfile(profile) => resource(profile.id.into(), profile.tenant_id, CustomerId::NULL),
            Self::Dashboard(dashboard) => {
                resource(dashboard.id.into(), dashboard.tenant_id, CustomerId::NULL)
            }
            Self::OtaPackage(package) => resource(package.id.into(), package.tenant_id, CustomerId::NULL),
        }
    }

    /// The same when somebody of this customer asks: what is assigned to several customers counts as that of the one who
    /// asks, if it is among them.
    pub fn resource_for(&self, customer: CustomerId) -> AccessResource {
        let resource = self.resource();
        match self {
            Self::Dashboard(dashboard) if dashboard.is_assigned_to(customer) => {
                AccessResource { customer, ..resource }
            }
            _ => resource,
        }
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Tenant(tenant) => &tenant.title,
            Self::TenantProfile(profile) => &profile.name,
            Self::Customer(customer) => &customer.title,
            Self::User(user) => &user.email,
            Self::Device(device) => &device.name,
            Self::DeviceProfile(profile) => &profile.name,
            Self::Asset(asset) => &asset.name,
            Self::AssetProfile(profile) => &profile.name,
            Self::EntityView(view) => &view.name,
            Self::Alarm(alarm) => &alarm.alarm_type,
            Self::RuleChain(chain) => &chain.name,
            Self::RuleNode(_, node) => &node.name,
            Self::Queue(queue) => &queue.name,
            Self::QueueStats(stats) => &stats.queue_name,
            Self::ApiUsageState(_) => "",
            Self::CalculatedField(field) => &field.name,
            Self::Dashboard(dashboard) => &dashboard.title,
            Self::OtaPackage(package) => &package.title,
        }
    }

    /// It in the shape of the REST API; null where it cannot be shown.
    pub fn to_json(&self) -> Value {
        let shown = match self {
            Self::Tenant(tenant) => serde_json::to_value(tenant),
            Self::TenantProfile(profile) => serde_json::to_value(profile),
            Self::Customer(customer) => serde_json::to_value(customer),
            Self::User(user) => serde_json::to_value(user),
            Self::Device(device) => serde_json::to_value(device),
            Self::DeviceProfile(profile) => serde_json::to_value(profile),
            Self::Asset(asset) => serde_json::to_value(asset),
            Self::AssetProfile(profile) => serde_json::to_value(profile),
            Self::EntityView(view) => serde_json::to_value(view),
            Self::Alarm(alarm) => serde_json::to_value(alarm),
            Self::RuleChain(chain) => serde_json::to_value(chain),
            Self::RuleNode(_, node) => serde_json::to_value(node),
            Self::Queue(queue) => serde_json::to_value(queue),
            Self::QueueStats(stats) => serde_json::to_value(stats),
            Self::ApiUsageState(usage) => serde_json::to_value(usage),
            Self::CalculatedField(field) => serde_json::to_value(field),
            Self::Dashboard(dashboard) => serde_json::to_value(dashboard),
            Self::OtaPackage(package) => serde_json::to_value(package),
        };
        shown.unwrap_or_default()
    }

    /// What reads and writes of its data are addressed to.
    pub fn subject(&self) -> EntityKey {
        let resource = self.resource();
        EntityKey {
            tenant: resource.tenant,
            entity: resource.entity,
        }
    }
}
