//! All entity kinds: the list, and the declaration of each.

use fieldline_model::entity::{
    Alarm, Asset, AssetProfile, Authority, CalculatedField, Customer, DashboardInfo, Device, DeviceProfile,
    EntityView, OtaPackageInfo, Queue, QueueStats, RuleChain, RuleNode, StoredEntity, Tenant, TenantProfile,
    User,
};
use fieldline_model::{ApiUsageStateId, CustomerId, EntityId, EntityType, QueueId, RuleNodeId, TenantId};
use serde::Serialize;

use super::{
    AccessGrant as Grant, AccessResource, AccessRights, EntityKind, EntityTextField as Field,
    KindDeclaration, KindLimit, KindPolicy, QueryFields, QueryText,
};
use crate::ports::{AssignableEntity, EntityProfile, EntityStores, StoreResult};
use crate::queue_stats;
use crate::usage::ApiUsageState;

/// Calls a macro with all entity kinds, each as `Type(Rust type)`.
#[macro_export]
macro_rules! for_each_entity_kind {
    ($callback:ident) => {
        $callback! {
            Tenant(fieldline_model::entity::Tenant)
            TenantProfile(fieldline_model::entity::TenantProfile)
            Customer(fieldline_model::entity::Customer)
            User(fieldline_model::entity::User)
            Device(fieldline_model::entity::Device)
            DeviceProfile(fieldline_model::entity::DeviceProfile)
            Asset(fieldline_model::entity::Asset)
            AssetProfile(fieldline_model::entity::AssetProfile)
            EntityView(fieldline_model::entity::EntityView)
            Alarm(fieldline_model::entity::Alarm)
            RuleChain(fieldline_model::entity::RuleChain)
            RuleNode($crate::any_entity::TenantRuleNode)
            Queue(fieldline_model::entity::Queue)
            QueueStats(fieldline_model::entity::QueueStats)
            ApiUsageState($crate::usage::ApiUsageState)
            CalculatedField(fieldline_model::entity::CalculatedField)
            Dashboard(fieldline_model::entity::DashboardInfo)
            OtaPackage(fieldline_model::entity::OtaPackageInfo)
            WidgetType(fieldline_model::entity::WidgetTypeInfo)
            WidgetsBundle(fieldline_model::entity::WidgetsBundle)
            TbResource(fieldline_model::entity::TbResourceInfo)
        }
    };
}

const fn rights(system: Grant, tenant: Grant, customer: Grant) -> AccessRights {
    AccessRights {
        system,
        tenant,
        customer,
    }
}

/// Policy of a kind that belongs to a tenant alone, and that relation queries find only if they name the kind.
const fn of_tenant(customer: Grant) -> KindPolicy {
    KindPolicy {
        rights: rights(Grant::Nothing, Grant::Anything, customer),
        beyond_tenants: false,
        shared_readers: &[],
        of_customers: false,
        related: false,
        limit: None,
    }
}

/// Resource of an entity that belongs to no customer.
fn of_nobody(entity: impl Into<EntityId>, tenant: TenantId) -> AccessResource {
    AccessResource::new(entity, tenant, CustomerId::NULL)
}

/// Declares a kind whose entities are not assigned to several customers.
macro_rules! declare {
    (
        $kind:ident as $name:ident;
        policy: $policy:expr,
        resource: $resource:expr,
        name: $title:expr,
        query: $query:expr,
        find: $find:expr,
        find_all: $find_all:expr,
    ) => {
        impl EntityKind for $kind {
            const TYPE: EntityType = EntityType::$name;
            const DECLARED: KindDeclaration<Self> = KindDeclaration {
                policy: $policy,
                resource: $resource,
                shared_with: |_| &[],
                name: $title,
                query: $query,
                find: $find,
                find_all: $find_all,
            };
        }
    };
}

mod library;

/// Declaration of a kind whose entities may be assigned to a customer.
const fn assignable<E: AssignableEntity>(
    limit: Option<KindLimit>,
    query: QueryFields<E>,
) -> KindDeclaration<E> {
    KindDeclaration {
        policy: KindPolicy {
            rights: rights(Grant::Nothing, Grant::Anything, Grant::UseOwn),
            beyond_tenants: false,
            shared_readers: &[],
            of_customers: true,
            related: true,
            limit,
        },
        resource: |it| {
            let fields = it.fields();
            AccessResource::new(it.id(), fields.tenant, fields.customer)
        },
        shared_with: |_| &[],
        name: |it| it.fields().name,
        query,
        find: |stores, tenant, _, id| E::store(stores).get(tenant, id),
        find_all: Some(|stores, tenant, ids| {
            Box::pin(async move { E::store(stores).by_ids(tenant, &ids).await })
        }),
    }
}

impl EntityKind for Device {
    const TYPE: EntityType = EntityType::Device;
    const DECLARED: KindDeclaration<Self> = assignable(
        Some(KindLimit {
            setting: "maxDevices",
            count: |stores, tenant| stores.devices.count(tenant),
        }),
        QueryFields {
            name_aliases: &[],
            texts: &[
                QueryText::new("type", Field::Type, |it: &Self| Some(&it.device_type)),
                QueryText::new("label", Field::Label, |it: &Self| it.label.as_deref()),
            ],
            info: |it| it.additional_info.as_ref(),
        },
    );
}

impl EntityKind for Asset {
    const TYPE: EntityType = EntityType::Asset;
    const DECLARED: KindDeclaration<Self> = assignable(
        Some(KindLimit {
            setting: "maxAssets",
            count: |stores, tenant| stores.assets.count(tenant),
        }),
        QueryFields {
            name_aliases: &[],
            texts: &[
                QueryText::new("type", Field::Type, |it: &Self| Some(&it.asset_type)),
                QueryText::new("label", Field::Label, |it: &Self| it.label.as_deref()),
            ],
            info: |it| it.additional_info.as_ref(),
        },
    );
}

impl EntityKind for EntityView {
    const TYPE: EntityType = EntityType::EntityView;
    const DECLARED: KindDeclaration<Self> = assignable(
        None,
        QueryFields {
            name_aliases: &["displayName"],
            texts: &[QueryText::new("type", Field::Type, |it: &Self| {
                Some(&it.view_type)
            })],
            info: |it| it.additional_info.as_ref(),
        },
    );
}

declare! {
    DeviceProfile as DeviceProfile;
    policy: of_tenant(Grant::Read),
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.name,
    query: QueryFields {
        texts: &[QueryText::new("type", Field::Type, |it: &Self| {
            it.profile_type.as_deref()
        })],
        ..QueryFields::NAME_ONLY
    },
    find: |stores, tenant, _, id| stores.device_profiles.get(tenant, id),
    find_all: Some(|stores, tenant, ids| Box::pin(profiles::<Self>(stores, tenant, ids))),
}

declare! {
    AssetProfile as AssetProfile;
    policy: of_tenant(Grant::Read),
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.name,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, _, id| stores.asset_profiles.get(tenant, id),
    find_all: Some(|stores, tenant, ids| Box::pin(profiles::<Self>(stores, tenant, ids))),
}

async fn profiles<P: EntityProfile>(
    stores: &EntityStores,
    tenant: TenantId,
    ids: Vec<P::Id>,
) -> StoreResult<Vec<P>> {
    P::store(stores).by_ids(tenant, &ids).await
}

/// The texts of kinds with contact data, and optionally more.
macro_rules! contact_texts {
    ($($more:expr)?) => {
        &[
            $($more,)?
            QueryText::new("email", Field::Email, |it: &Self| it.contact.email.as_deref()),
            QueryText::new("country", Field::Country, |it: &Self| it.contact.country.as_deref()),
            QueryText::new("state", Field::State, |it: &Self| it.contact.state.as_deref()),
            QueryText::new("city", Field::City, |it: &Self| it.contact.city.as_deref()),
            QueryText::new("address", Field::Address, |it: &Self| it.contact.address.as_deref()),
            QueryText::new("address2", Field::Address2, |it: &Self| it.contact.address2.as_deref()),
            QueryText::new("zip", Field::Zip, |it: &Self| it.contact.zip.as_deref()),
            QueryText::new("phone", Field::Phone, |it: &Self| it.contact.phone.as_deref()),
        ]
    };
}

declare! {
    Tenant as Tenant;
    policy: KindPolicy {
        rights: rights(Grant::Anything, Grant::ReadValuesOrDelete, Grant::Nothing),
        beyond_tenants: true,
        related: true,
        ..of_tenant(Grant::Nothing)
    },
    // A tenant belongs to itself.
    resource: |it| {
        let id = it.id;
        AccessResource::new(id, id, CustomerId::NULL)
    },
    name: |it| &it.title,
    query: QueryFields {
        name_aliases: &["label", "displayName"],
        texts: contact_texts!(QueryText::new("region", Field::Region, |it: &Self| it
            .region
            .as_deref())),
        info: |it| it.additional_info.as_ref(),
    },
    find: |stores, _, _, id| stores.tenants.get(id),
    find_all: None,
}

declare! {
    TenantProfile as TenantProfile;
    policy: KindPolicy {
        rights: rights(Grant::Anything, Grant::Nothing, Grant::Nothing),
        beyond_tenants: true,
        ..of_tenant(Grant::Nothing)
    },
    resource: |it| AccessResource::new(it.id, TenantId::NULL, CustomerId::NULL),
    name: |it| &it.name,
    query: QueryFields::NAME_ONLY,
    find: |stores, _, _, id| stores.tenant_profiles.get(id),
    find_all: None,
}

declare! {
    Customer as Customer;
    policy: KindPolicy {
        related: true,
        limit: Some(KindLimit {
            setting: "maxCustomers",
            count: |stores, tenant| stores.customers.count(tenant),
        }),
        ..of_tenant(Grant::ReadOwn)
    },
    // A customer belongs to itself.
    resource: |it| {
        let id = it.id;
        AccessResource::new(id, it.tenant_id, id)
    },
    name: |it| &it.title,
    query: QueryFields {
        name_aliases: &["label", "displayName"],
        texts: contact_texts!(),
        info: |it| it.additional_info.as_ref(),
    },
    find: |stores, tenant, _, id| stores.customers.get(tenant, id),
    find_all: Some(|stores, tenant, ids| {
        Box::pin(async move { stores.customers.by_ids(tenant, &ids).await })
    }),
}

declare! {
    User as User;
    policy: KindPolicy {
        rights: rights(Grant::Users, Grant::Users, Grant::Users),
        beyond_tenants: true,
        shared_readers: &[],
        of_customers: true,
        related: true,
        limit: Some(KindLimit {
            setting: "maxUsers",
            count: |stores, tenant| stores.users.count(tenant),
        }),
    },
    resource: |it| AccessResource {
        user_authority: Some(it.authority),
        ..AccessResource::new(it.id, it.tenant_id, it.customer_id)
    },
    name: |it| &it.email,
    query: QueryFields {
        name_aliases: &["label", "email"],
        texts: &[
            QueryText::new("firstName", Field::FirstName, |it: &Self| {
                it.first_name.as_deref()
            }),
            QueryText::new("lastName", Field::LastName, |it: &Self| it.last_name.as_deref()),
            QueryText::new("phone", Field::Phone, |it: &Self| it.phone.as_deref()),
        ],
        info: |it| it.additional_info.as_ref(),
    },
    find: |stores, _, _, id| stores.users.by_id(id),
    find_all: None,
}

declare! {
    Alarm as Alarm;
    policy: of_tenant(Grant::AnythingOwn),
    resource: |it| {
        AccessResource::new(
            it.id,
            it.tenant_id,
            it.customer_id.unwrap_or_default(),
        )
    },
    name: |it| &it.alarm_type,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, _, id| stores.alarms.get(tenant, id),
    find_all: None,
}

impl EntityKind for DashboardInfo {
    const TYPE: EntityType = EntityType::Dashboard;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            of_customers: true,
            related: true,
            limit: Some(KindLimit {
                setting: "maxDashboards",
                count: |stores, tenant| stores.dashboards.count(tenant),
            }),
            ..of_tenant(Grant::ReadOwn)
        },
        resource: |it| of_nobody(it.id, it.tenant_id),
        shared_with: |it| it.assigned_customers.as_deref().unwrap_or_default(),
        name: |it| &it.title,
        query: QueryFields::NAME_ONLY,
        find: |stores, tenant, _, id| stores.dashboards.info(tenant, id),
        find_all: None,
    };
}

declare! {
    RuleChain as RuleChain;
    policy: KindPolicy {
        limit: Some(KindLimit {
            setting: "maxRuleChains",
            count: |stores, tenant| stores.rule_chains.count(tenant),
        }),
        ..of_tenant(Grant::Nothing)
    },
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.name,
    query: QueryFields {
        info: |it| it.additional_info.as_ref(),
        ..QueryFields::NAME_ONLY
    },
    find: |stores, tenant, _, id| stores.rule_chains.get(tenant, id),
    find_all: Some(|stores, tenant, ids| {
        Box::pin(async move { stores.rule_chains.by_ids(tenant, &ids).await })
    }),
}

/// A node of a rule chain, together with its tenant.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct TenantRuleNode {
    #[serde(skip)]
    tenant: TenantId,
    node: RuleNode,
}

impl StoredEntity for TenantRuleNode {
    type Id = RuleNodeId;

    fn id(&self) -> RuleNodeId {
        self.node.id
    }

    fn created_time(&self) -> i64 {
        self.node.created_time
    }

    fn set_identity(&mut self, id: RuleNodeId, created_time: i64) {
        (self.node.id, self.node.created_time) = (id, created_time);
    }
}

impl EntityKind for TenantRuleNode {
    const TYPE: EntityType = EntityType::RuleNode;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::Nothing),
        resource: |it| AccessResource::new(it.node.id, it.tenant, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.node.name,
        query: QueryFields::NAME_ONLY,
        find: |stores, tenant, _, id| {
            Box::pin(async move {
                let node = stores.rule_chains.node(tenant, id).await?;
                Ok(node.map(|node| Self { tenant, node }))
            })
        },
        find_all: None,
    };
}

declare! {
    Queue as Queue;
    policy: KindPolicy {
        rights: rights(Grant::Shared, Grant::Anything, Grant::Nothing),
        beyond_tenants: true,
        // Tenants without queues of their own use those of the system.
        shared_readers: &[Authority::TenantAdmin],
        ..of_tenant(Grant::Nothing)
    },
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.name,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, authority, id| Box::pin(queue(stores, tenant, authority, id)),
    find_all: None,
}

/// Finds a queue that the tenant owns, or that its messages use.
async fn queue(
    stores: &EntityStores,
    tenant: TenantId,
    authority: Authority,
    id: QueueId,
) -> StoreResult<Option<Queue>> {
    if let Some(queue) = stores.queues.get(tenant, id).await? {
        return Ok(Some(queue));
    }
    if authority != Authority::TenantAdmin || !stores.queue_owner(tenant).await?.is_null() {
        return Ok(None);
    }
    stores.queues.get(TenantId::NULL, id).await
}

impl EntityKind for QueueStats {
    const TYPE: EntityType = EntityType::QueueStats;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            // Only the platform writes the values.
            rights: rights(Grant::Nothing, Grant::ReadValues, Grant::Nothing),
            beyond_tenants: true,
            ..of_tenant(Grant::Nothing)
        },
        resource: |it| of_nobody(it.id, it.tenant_id),
        shared_with: |_| &[],
        name: |it| &it.queue_name,
        query: QueryFields {
            texts: &[
                QueryText::new("queueName", Field::QueueName, |it: &Self| Some(&it.queue_name)),
                QueryText::new("serviceId", Field::ServiceId, |it: &Self| Some(&it.service_id)),
            ],
            ..QueryFields::NAME_ONLY
        },
        find: |stores, tenant, _, id| Box::pin(queue_stats::get(stores, tenant, id)),
        find_all: None,
    };
}

impl StoredEntity for ApiUsageState {
    type Id = ApiUsageStateId;

    fn id(&self) -> ApiUsageStateId {
        self.id
    }

    fn created_time(&self) -> i64 {
        0
    }

    fn set_identity(&mut self, id: ApiUsageStateId, _: i64) {
        self.id = id;
    }
}

impl EntityKind for ApiUsageState {
    const TYPE: EntityType = EntityType::ApiUsageState;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            // Only the platform writes the values. System administrators find no other than that of all tenants together.
            rights: rights(Grant::ReadValues, Grant::ReadValues, Grant::Nothing),
            ..of_tenant(Grant::Nothing)
        },
        resource: |it| of_nobody(it.id, it.tenant_id),
        shared_with: |_| &[],
        name: |_| "",
        query: QueryFields::NAME_ONLY,
        find: |_, tenant, _, id| {
            let usage = Some(ApiUsageState::of(tenant)).filter(|usage| usage.id == id);
            Box::pin(std::future::ready(Ok(usage)))
        },
        find_all: None,
    };
}

declare! {
    CalculatedField as CalculatedField;
    policy: of_tenant(Grant::Nothing),
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.name,
    query: QueryFields::NAME_ONLY,
    find: |stores, tenant, _, id| stores.calculated_fields.get(tenant, id),
    find_all: None,
}

declare! {
    OtaPackageInfo as OtaPackage;
    policy: of_tenant(Grant::Nothing),
    resource: |it| of_nobody(it.id, it.tenant_id),
    name: |it| &it.title,
    query: QueryFields {
        info: |it| it.additional_info.as_ref(),
        ..QueryFields::NAME_ONLY
    },
    find: |stores, tenant, _, id| stores.ota_packages.get(tenant, id),
    find_all: None,
}
