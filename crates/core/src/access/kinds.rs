//! The declarations of all kinds of entities.

use fieldline_model::entity::{
    Alarm, Asset, AssetProfile, Authority, CalculatedField, Customer, DashboardInfo, Device, DeviceProfile,
    EntityView, OtaPackageInfo, Queue, QueueStats, RuleChain, RuleNode, Tenant, TenantProfile, User,
};
use fieldline_model::{
    AlarmId, ApiUsageStateId, AssetId, AssetProfileId, CalculatedFieldId, CustomerId, DashboardId, DeviceId,
    DeviceProfileId, EntityType, EntityViewId, OtaPackageId, QueueId, QueueStatsId, RuleChainId, RuleNodeId,
    TenantId, TenantProfileId, UserId,
};
use serde::Serialize;

use super::{
    AccessGrant as Grant, AccessResource, AccessRights, EntityKind, EntityTextField as Field,
    KindDeclaration, KindLimit, KindPolicy, Principal, QueryFields, QueryText,
};
use crate::ports::{AssignableEntity, EntityProfile, EntityStores, StoreResult};
use crate::queue_stats;
use crate::services::owner_of;
use crate::usage::ApiUsageState;

const fn rights(system: Grant, tenant: Grant, customer: Grant) -> AccessRights {
    AccessRights {
        system,
        tenant,
        customer,
    }
}

/// What is a tenant's alone, found by its name or not at all.
const fn of_tenant(customer: Grant) -> KindPolicy {
    KindPolicy {
        rights: rights(Grant::Nothing, Grant::Anything, customer),
        beyond_tenants: false,
        of_customers: false,
        related: false,
        limit: None,
    }
}

/// What may be assigned to a customer.
const fn assignable<E: AssignableEntity>(
    id: fn(&E) -> Option<E::Id>,
    limit: Option<KindLimit>,
    query: QueryFields<E>,
) -> KindDeclaration<E> {
    KindDeclaration {
        policy: KindPolicy {
            rights: rights(Grant::Nothing, Grant::Anything, Grant::UseOwn),
            beyond_tenants: false,
            of_customers: true,
            related: true,
            limit,
        },
        id,
        resource: |it| {
            let fields = it.fields();
            AccessResource::new(it.id().unwrap_or_default(), fields.tenant, fields.customer)
        },
        shared_with: |_| &[],
        name: |it| it.fields().name,
        created_time: |it| it.fields().created_time,
        query,
        find: |stores, who, id| E::store(stores).get(who.tenant, id),
        find_all: Some(|stores, tenant, ids| {
            Box::pin(async move { E::store(stores).by_ids(tenant, &ids).await })
        }),
    }
}

impl EntityKind for Device {
    type Id = DeviceId;
    const TYPE: EntityType = EntityType::Device;
    const DECLARED: KindDeclaration<Self> = assignable(
        |it| it.id,
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
    type Id = AssetId;
    const TYPE: EntityType = EntityType::Asset;
    const DECLARED: KindDeclaration<Self> = assignable(
        |it| it.id,
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
    type Id = EntityViewId;
    const TYPE: EntityType = EntityType::EntityView;
    const DECLARED: KindDeclaration<Self> = assignable(
        |it| it.id,
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

impl EntityKind for DeviceProfile {
    type Id = DeviceProfileId;
    const TYPE: EntityType = EntityType::DeviceProfile;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::Read),
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.name,
        created_time: |it| it.created_time,
        query: QueryFields {
            texts: &[QueryText::new("type", Field::Type, |it: &Self| {
                it.profile_type.as_deref()
            })],
            ..QueryFields::NAME_ONLY
        },
        find: |stores, who, id| stores.device_profiles.get(who.tenant, id),
        find_all: Some(|stores, tenant, ids| Box::pin(profiles::<Self>(stores, tenant, ids))),
    };
}

impl EntityKind for AssetProfile {
    type Id = AssetProfileId;
    const TYPE: EntityType = EntityType::AssetProfile;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::Read),
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.name,
        created_time: |it| it.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, who, id| stores.asset_profiles.get(who.tenant, id),
        find_all: Some(|stores, tenant, ids| Box::pin(profiles::<Self>(stores, tenant, ids))),
    };
}

async fn profiles<P: EntityProfile>(
    stores: &EntityStores,
    tenant: TenantId,
    ids: Vec<P::Id>,
) -> StoreResult<Vec<P>> {
    P::store(stores).by_ids(tenant, &ids).await
}

/// The texts of those who have an address, and some more.
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

impl EntityKind for Tenant {
    type Id = TenantId;
    const TYPE: EntityType = EntityType::Tenant;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            rights: rights(Grant::Anything, Grant::ReadValuesOrDelete, Grant::Nothing),
            beyond_tenants: true,
            related: true,
            ..of_tenant(Grant::Nothing)
        },
        id: |it| it.id,
        // A tenant belongs to itself.
        resource: |it| {
            let id = it.id.unwrap_or_default();
            AccessResource::new(id, id, CustomerId::NULL)
        },
        shared_with: |_| &[],
        name: |it| &it.title,
        created_time: |it| it.created_time,
        query: QueryFields {
            name_aliases: &["label", "displayName"],
            texts: contact_texts!(QueryText::new("region", Field::Region, |it: &Self| it
                .region
                .as_deref())),
            info: |it| it.additional_info.as_ref(),
        },
        find: |stores, _, id| stores.tenants.get(id),
        find_all: None,
    };
}

impl EntityKind for TenantProfile {
    type Id = TenantProfileId;
    const TYPE: EntityType = EntityType::TenantProfile;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            rights: rights(Grant::Anything, Grant::Nothing, Grant::Nothing),
            beyond_tenants: true,
            ..of_tenant(Grant::Nothing)
        },
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), TenantId::NULL, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.name,
        created_time: |it| it.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, _, id| stores.tenant_profiles.get(id),
        find_all: None,
    };
}

impl EntityKind for Customer {
    type Id = CustomerId;
    const TYPE: EntityType = EntityType::Customer;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            related: true,
            limit: Some(KindLimit {
                setting: "maxCustomers",
                count: |stores, tenant| stores.customers.count(tenant),
            }),
            ..of_tenant(Grant::ReadOwn)
        },
        id: |it| it.id,
        // A customer belongs to itself.
        resource: |it| {
            let id = it.id.unwrap_or_default();
            AccessResource::new(id, it.tenant_id, id)
        },
        shared_with: |_| &[],
        name: |it| &it.title,
        created_time: |it| it.created_time,
        query: QueryFields {
            name_aliases: &["label", "displayName"],
            texts: contact_texts!(),
            info: |it| it.additional_info.as_ref(),
        },
        find: |stores, who, id| stores.customers.get(who.tenant, id),
        find_all: Some(|stores, tenant, ids| {
            Box::pin(async move { stores.customers.by_ids(tenant, &ids).await })
        }),
    };
}

impl EntityKind for User {
    type Id = UserId;
    const TYPE: EntityType = EntityType::User;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            rights: rights(Grant::Users, Grant::Users, Grant::Users),
            beyond_tenants: true,
            of_customers: true,
            related: true,
            limit: Some(KindLimit {
                setting: "maxUsers",
                count: |stores, tenant| stores.users.count(tenant),
            }),
        },
        id: |it| it.id,
        resource: |it| AccessResource {
            user_authority: Some(it.authority),
            ..AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, it.customer_id)
        },
        shared_with: |_| &[],
        name: |it| &it.email,
        created_time: |it| it.created_time,
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
        find: |stores, _, id| stores.users.by_id(id),
        find_all: None,
    };
}

impl EntityKind for Alarm {
    type Id = AlarmId;
    const TYPE: EntityType = EntityType::Alarm;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::AnythingOwn),
        id: |it| it.id,
        resource: |it| {
            AccessResource::new(
                it.id.unwrap_or_default(),
                it.tenant_id,
                it.customer_id.unwrap_or_default(),
            )
        },
        shared_with: |_| &[],
        name: |it| &it.alarm_type,
        created_time: |it| it.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, who, id| stores.alarms.get(who.tenant, id),
        find_all: None,
    };
}

impl EntityKind for DashboardInfo {
    type Id = DashboardId;
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
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |it| it.assigned_customers.as_deref().unwrap_or_default(),
        name: |it| &it.title,
        created_time: |it| it.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, who, id| stores.dashboards.info(who.tenant, id),
        find_all: None,
    };
}

impl EntityKind for RuleChain {
    type Id = RuleChainId;
    const TYPE: EntityType = EntityType::RuleChain;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            limit: Some(KindLimit {
                setting: "maxRuleChains",
                count: |stores, tenant| stores.rule_chains.count(tenant),
            }),
            ..of_tenant(Grant::Nothing)
        },
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.name,
        created_time: |it| it.created_time,
        query: QueryFields {
            info: |it| it.additional_info.as_ref(),
            ..QueryFields::NAME_ONLY
        },
        find: |stores, who, id| stores.rule_chains.get(who.tenant, id),
        find_all: Some(|stores, tenant, ids| {
            Box::pin(async move { stores.rule_chains.by_ids(tenant, &ids).await })
        }),
    };
}

/// A node of a rule chain, with the tenant that it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct TenantRuleNode {
    #[serde(skip)]
    tenant: TenantId,
    node: RuleNode,
}

impl EntityKind for TenantRuleNode {
    type Id = RuleNodeId;
    const TYPE: EntityType = EntityType::RuleNode;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::Nothing),
        id: |it| it.node.id,
        resource: |it| AccessResource::new(it.node.id.unwrap_or_default(), it.tenant, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.node.name,
        created_time: |it| it.node.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, who, id| {
            Box::pin(async move {
                let tenant = who.tenant;
                let node = stores.rule_chains.node(tenant, id).await?;
                Ok(node.map(|node| Self { tenant, node }))
            })
        },
        find_all: None,
    };
}

impl EntityKind for Queue {
    type Id = QueueId;
    const TYPE: EntityType = EntityType::Queue;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            rights: rights(Grant::Shared, Grant::Anything, Grant::Nothing),
            beyond_tenants: true,
            ..of_tenant(Grant::Nothing)
        },
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.name,
        created_time: |it| it.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, who, id| Box::pin(queue(stores, who, id)),
        find_all: None,
    };
}

/// The queue, where it is one that the messages of the principal's tenant go through.
async fn queue(stores: &EntityStores, who: &Principal, id: QueueId) -> StoreResult<Option<Queue>> {
    if let Some(queue) = stores.queues.get(who.tenant, id).await? {
        return Ok(Some(queue));
    }
    if who.authority != Authority::TenantAdmin {
        return Ok(None);
    }
    let owner = owner_of(stores, who.tenant).await?;
    if !owner.is_null() {
        return Ok(None);
    }
    stores.queues.get(TenantId::NULL, id).await
}

impl EntityKind for QueueStats {
    type Id = QueueStatsId;
    const TYPE: EntityType = EntityType::QueueStats;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            // The platform writes them.
            rights: rights(Grant::Nothing, Grant::ReadValues, Grant::Nothing),
            beyond_tenants: true,
            ..of_tenant(Grant::Nothing)
        },
        id: |it| Some(it.id),
        resource: |it| AccessResource::new(it.id, it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.queue_name,
        created_time: |it| it.created_time,
        query: QueryFields {
            texts: &[
                QueryText::new("queueName", Field::QueueName, |it: &Self| Some(&it.queue_name)),
                QueryText::new("serviceId", Field::ServiceId, |it: &Self| Some(&it.service_id)),
            ],
            ..QueryFields::NAME_ONLY
        },
        find: |stores, who, id| Box::pin(queue_stats::get(stores, who.tenant, id)),
        find_all: None,
    };
}

impl EntityKind for ApiUsageState {
    type Id = ApiUsageStateId;
    const TYPE: EntityType = EntityType::ApiUsageState;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: KindPolicy {
            // The platform writes it.
            rights: rights(Grant::Nothing, Grant::ReadValues, Grant::Nothing),
            ..of_tenant(Grant::Nothing)
        },
        id: |it| Some(it.id),
        resource: |it| AccessResource::new(it.id, it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |_| "",
        created_time: |_| 0,
        query: QueryFields::NAME_ONLY,
        find: |_, who, id| {
            let usage = Some(ApiUsageState::of(who.tenant)).filter(|usage| usage.id == id);
            Box::pin(std::future::ready(Ok(usage)))
        },
        find_all: None,
    };
}

impl EntityKind for CalculatedField {
    type Id = CalculatedFieldId;
    const TYPE: EntityType = EntityType::CalculatedField;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::Nothing),
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.name,
        created_time: |it| it.created_time,
        query: QueryFields::NAME_ONLY,
        find: |stores, who, id| stores.calculated_fields.get(who.tenant, id),
        find_all: None,
    };
}

impl EntityKind for OtaPackageInfo {
    type Id = OtaPackageId;
    const TYPE: EntityType = EntityType::OtaPackage;
    const DECLARED: KindDeclaration<Self> = KindDeclaration {
        policy: of_tenant(Grant::Nothing),
        id: |it| it.id,
        resource: |it| AccessResource::new(it.id.unwrap_or_default(), it.tenant_id, CustomerId::NULL),
        shared_with: |_| &[],
        name: |it| &it.title,
        created_time: |it| it.created_time,
        query: QueryFields {
            info: |it| it.additional_info.as_ref(),
            ..QueryFields::NAME_ONLY
        },
        find: |stores, who, id| stores.ota_packages.get(who.tenant, id),
        find_all: None,
    };
}
