//! Entities as a replay sees them: as they are now. What would change them is noted, and not done.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::ports::{
    AlarmStore, AssetFilter, AssetImportRow, AssetProfileStore, AssetStore, CalculatedFieldFilter,
    CalculatedFieldStore, CustomerStore, DeviceCredentialsStore, DeviceFilter, DeviceImportRow,
    DeviceProfileStore, DeviceStore, EntityStores, EntityViewFilter, EntityViewStore, EventFilter,
    EventStore, QueueStore, RelationEnds, RelationKey, RelationStore, RuleChainStore, StoreResult,
    TenantProfileStore, TenantStore, UserFilter, UserStore,
};
use fieldline_model::entity::{
    Asset, AssetInfo, AssetProfile, CalculatedField, CalculatedFieldInfo, CalculatedFieldType,
    CredentialsType, Customer, Device, DeviceCredentials, DeviceInfo, DeviceProfile, EntityRelation,
    EntityRelationInfo, EntityView, EntityViewInfo, Event, EventKind, Queue, RelationTypeGroup,
    RelationsQuery, RuleChain, RuleChainMetaData, RuleChainType, RuleNode, Tenant, TenantProfile, User,
    UserCredentials,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{
    AssetId, AssetProfileId, CalculatedFieldId, CustomerId, DeviceId, DeviceProfileId, EntityId,
    EntityViewId, QueueId, RuleChainId, RuleNodeId, Subject, TenantId, TenantProfileId, UserId,
};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde_json::Value;

use super::record::Record;

/// What is there instead of what is stored.
pub(super) struct Drafts {
    /// The profiles that have the alarm rules.
    pub(super) profiles: FxHashSet<DeviceProfileId>,
    /// `profileData.alarms`.
    pub(super) alarms: Option<Value>,
    /// Calculated fields, those of other ids besides the stored ones.
    pub(super) fields: Vec<CalculatedField>,
}

/// One store, that is read only.
struct Dry<S: ?Sized> {
    real: Arc<S>,
    record: Arc<Mutex<Record>>,
    drafts: Arc<Drafts>,
}

impl<S: ?Sized> Dry<S> {
    fn note(&self, what: &'static str) {
        self.record.lock().change(what);
    }
}

/// Stores that pass reads on, and note writes.
pub(super) fn dry_stores(
    real: &EntityStores,
    record: &Arc<Mutex<Record>>,
    alarms: Arc<dyn AlarmStore>,
    drafts: &Arc<Drafts>,
) -> EntityStores {
    macro_rules! dry {
        ($($field:ident),*) => {
            EntityStores {
                $($field: Arc::new(Dry {
                    real: real.$field.clone(),
                    record: record.clone(),
                    drafts: drafts.clone(),
                }),)*
                alarms,
                // Nothing that a chain does changes these.
                dashboards: real.dashboards.clone(),
                settings: real.settings.clone(),
                audit: real.audit.clone(),
                api_keys: real.api_keys.clone(),
            }
        };
    }
    dry!(
        tenants,
        tenant_profiles,
        customers,
        calculated_fields,
        users,
        devices,
        device_profiles,
        device_credentials,
        rule_chains,
        queues,
        events,
        assets,
        asset_profiles,
        entity_views,
        relations
    )
}

macro_rules! dry {
    ($store:ident {
        $(fn $read:ident($($name:ident: $type:ty),*) -> $out:ty;)*
        $(note $what:literal fn $write:ident($($wname:ident: $wtype:ty),*) -> $wout:ty { $result:expr })*
    }) => {
        #[async_trait]
        impl $store for Dry<dyn $store> {
            $(async fn $read(&self, $($name: $type),*) -> StoreResult<$out> {
                self.real.$read($($name),*).await
            })*
            $(async fn $write(&self, $($wname: $wtype),*) -> StoreResult<$wout> {
                self.note($what);
                Ok($result)
            })*
        }
    };
}

dry!(TenantStore {
    fn get(id: TenantId) -> Option<Tenant>;
    fn list(page: &PageLink) -> PageData<Tenant>;
    fn by_ids(ids: &[TenantId]) -> Vec<Tenant>;
    note "tenants saved" fn save(tenant: Tenant, _create: bool) -> Tenant { tenant }
    note "tenants deleted" fn delete(_id: TenantId) -> bool { true }
});

dry!(TenantProfileStore {
    fn get(id: TenantProfileId) -> Option<TenantProfile>;
    fn default_profile() -> Option<TenantProfile>;
    fn list(page: &PageLink) -> PageData<TenantProfile>;
    note "tenant profiles saved" fn save(profile: TenantProfile, _create: bool) -> TenantProfile { profile }
    note "tenant profiles saved" fn set_default(_id: TenantProfileId) -> bool { true }
    note "tenant profiles deleted" fn delete(_id: TenantProfileId) -> bool { true }
});

dry!(CustomerStore {
    fn get(tenant: TenantId, id: CustomerId) -> Option<Customer>;
    fn by_title(tenant: TenantId, title: &str) -> Option<Customer>;
    fn public(id: CustomerId) -> Option<Customer>;
    fn list(tenant: TenantId, page: &PageLink) -> PageData<Customer>;
    fn by_ids(tenant: TenantId, ids: &[CustomerId]) -> Vec<Customer>;
    fn count(tenant: TenantId) -> u64;
    note "customers saved" fn save(customer: Customer, _create: bool) -> Customer { customer }
    note "customers deleted" fn delete(_tenant: TenantId, _id: CustomerId) -> bool { true }
});

dry!(UserStore {
    fn get(tenant: TenantId, id: UserId) -> Option<User>;
    fn by_id(id: UserId) -> Option<User>;
    fn by_email(email: &str) -> Option<User>;
    fn list(filter: UserFilter, page: &PageLink) -> PageData<User>;
    fn count(tenant: TenantId) -> u64;
    fn credentials(id: UserId) -> Option<UserCredentials>;
    fn credentials_by_activate_token(token: &str) -> Option<UserCredentials>;
    fn credentials_by_reset_token(token: &str) -> Option<UserCredentials>;
    note "users saved" fn save(user: User, _create: bool) -> User { user }
    note "users deleted" fn delete(_tenant: TenantId, _id: UserId) -> bool { true }
    note "users saved" fn note_login(_id: UserId, _right: bool) -> u32 { 0 }
    note "users saved" fn save_credentials(_credentials: UserCredentials) -> () { () }
});

dry!(DeviceStore {
    fn get(tenant: TenantId, id: DeviceId) -> Option<Device>;
    fn info(tenant: TenantId, id: DeviceId) -> Option<DeviceInfo>;
    fn by_name(tenant: TenantId, name: &str) -> Option<Device>;
    fn by_ids(tenant: TenantId, ids: &[DeviceId]) -> Vec<Device>;
    fn list(tenant: TenantId, filter: &DeviceFilter, page: &PageLink) -> PageData<DeviceInfo>;
    fn count(tenant: TenantId) -> u64;
    fn by_names(tenant: TenantId, names: &[&str]) -> Vec<Device>;
    note "devices saved" fn save(device: Device, _create: bool) -> Device { device }
    note "devices saved" fn import(rows: Vec<DeviceImportRow>) -> Vec<StoreResult<Device>> {
        rows.into_iter().map(|row| Ok(row.device)).collect()
    }
    note "devices saved" fn create(device: Device, _credentials: DeviceCredentials) -> Device { device }
    note "devices deleted" fn delete(_tenant: TenantId, _id: DeviceId) -> bool { true }
    note "device states saved" fn set_active(_changes: &[(DeviceId, bool)]) -> () { () }
});

dry!(DeviceCredentialsStore {
    fn get(tenant: TenantId, device: DeviceId) -> Option<DeviceCredentials>;
    fn find(kind: CredentialsType, credentials_id: &str) -> Option<(Device, DeviceCredentials)>;
    note "credentials saved"
        fn save(_tenant: TenantId, credentials: DeviceCredentials) -> DeviceCredentials { credentials }
});

dry!(RuleChainStore {
    fn get(tenant: TenantId, id: RuleChainId) -> Option<RuleChain>;
    fn by_ids(tenant: TenantId, ids: &[RuleChainId]) -> Vec<RuleChain>;
    fn by_name(tenant: TenantId, chain_type: RuleChainType, name: &str) -> Option<RuleChain>;
    fn root(tenant: TenantId, chain_type: RuleChainType) -> Option<RuleChain>;
    fn list(tenant: TenantId, chain_type: Option<RuleChainType>, page: &PageLink) -> PageData<RuleChain>;
    fn count(tenant: TenantId) -> u64;
    fn metadata(tenant: TenantId, id: RuleChainId) -> Option<RuleChainMetaData>;
    fn node(tenant: TenantId, id: RuleNodeId) -> Option<RuleNode>;
    fn nodes_of_type(tenant: TenantId, class: &str) -> Vec<RuleNode>;
    note "rule chains saved" fn save(chain: RuleChain, _create: bool) -> RuleChain { chain }
    note "rule chains saved" fn set_root(_tenant: TenantId, _id: RuleChainId) -> bool { true }
    note "rule chains deleted" fn delete(_tenant: TenantId, _id: RuleChainId) -> bool { true }
    note "rule chains saved"
        fn save_metadata(_tenant: TenantId, metadata: RuleChainMetaData) -> RuleChainMetaData { metadata }
});

dry!(QueueStore {
    fn get(tenant: TenantId, id: QueueId) -> Option<Queue>;
    fn by_name(tenant: TenantId, name: &str) -> Option<Queue>;
    fn all(tenant: TenantId) -> Vec<Queue>;
    fn of_all_tenants() -> Vec<Queue>;
    fn list(tenant: TenantId, page: &PageLink) -> PageData<Queue>;
    note "queues saved" fn save(queue: Queue, _create: bool) -> Queue { queue }
    note "queues deleted" fn delete(_tenant: TenantId, _id: QueueId) -> bool { true }
});

dry!(AssetStore {
    fn get(tenant: TenantId, id: AssetId) -> Option<Asset>;
    fn info(tenant: TenantId, id: AssetId) -> Option<AssetInfo>;
    fn by_name(tenant: TenantId, name: &str) -> Option<Asset>;
    fn by_names(tenant: TenantId, names: &[&str]) -> Vec<Asset>;
    fn by_ids(tenant: TenantId, ids: &[AssetId]) -> Vec<Asset>;
    fn list(tenant: TenantId, filter: &AssetFilter, page: &PageLink) -> PageData<AssetInfo>;
    fn count(tenant: TenantId) -> u64;
    note "assets saved" fn import(rows: Vec<AssetImportRow>) -> Vec<StoreResult<Asset>> {
        rows.into_iter().map(|row| Ok(row.asset)).collect()
    }
    note "assets saved" fn save(asset: Asset, _create: bool) -> Asset { asset }
    note "assets deleted" fn delete(_tenant: TenantId, _id: AssetId) -> bool { true }
});

dry!(AssetProfileStore {
    fn get(tenant: TenantId, id: AssetProfileId) -> Option<AssetProfile>;
    fn by_name(tenant: TenantId, name: &str) -> Option<AssetProfile>;
    fn default_profile(tenant: TenantId) -> Option<AssetProfile>;
    fn by_ids(tenant: TenantId, ids: &[AssetProfileId]) -> Vec<AssetProfile>;
    fn list(tenant: TenantId, page: &PageLink) -> PageData<AssetProfile>;
    note "asset profiles saved" fn save(profile: AssetProfile, _create: bool) -> AssetProfile { profile }
    note "asset profiles saved" fn set_default(_tenant: TenantId, _id: AssetProfileId) -> bool { true }
    note "asset profiles deleted" fn delete(_tenant: TenantId, _id: AssetProfileId) -> bool { true }
});

dry!(EntityViewStore {
    fn get(tenant: TenantId, id: EntityViewId) -> Option<EntityView>;
    fn info(tenant: TenantId, id: EntityViewId) -> Option<EntityViewInfo>;
    fn by_name(tenant: TenantId, name: &str) -> Option<EntityView>;
    fn by_ids(tenant: TenantId, ids: &[EntityViewId]) -> Vec<EntityView>;
    fn list(tenant: TenantId, filter: &EntityViewFilter, page: &PageLink) -> PageData<EntityViewInfo>;
    fn types(tenant: TenantId) -> Vec<String>;
    note "entity views saved" fn save(view: EntityView, _create: bool) -> EntityView { view }
    note "entity views deleted" fn delete(_tenant: TenantId, _id: EntityViewId) -> bool { true }
});

/// Debug and lifecycle events of a replay are nobody's business: its report says what happened.
#[async_trait]
impl EventStore for Dry<dyn EventStore> {
    async fn append(&self, _: &[Event]) -> StoreResult<()> {
        Ok(())
    }

    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        filter: &EventFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<Event>> {
        self.real.list(tenant, entity, filter, page).await
    }

    async fn delete(&self, _: TenantId, _: EntityId, _: &EventFilter) -> StoreResult<u64> {
        self.note("events deleted");
        Ok(0)
    }

    async fn delete_subject(&self, _: Subject) -> StoreResult<()> {
        self.note("events deleted");
        Ok(())
    }

    async fn delete_before(&self, _: EventKind, _: i64) -> StoreResult<u64> {
        self.note("events deleted");
        Ok(0)
    }
}

#[async_trait]
impl RelationStore for Dry<dyn RelationStore> {
    async fn save(&self, _: TenantId, relation: EntityRelation) -> StoreResult<EntityRelation> {
        self.note("relations saved");
        Ok(relation)
    }

    async fn get(&self, tenant: TenantId, key: &RelationKey) -> StoreResult<Option<EntityRelation>> {
        self.real.get(tenant, key).await
    }

    async fn delete(&self, tenant: TenantId, key: &RelationKey) -> StoreResult<Option<EntityRelation>> {
        let existing = self.real.get(tenant, key).await?;
        if existing.is_some() {
            self.note("relations deleted");
        }
        Ok(existing)
    }

    async fn find(&self, tenant: TenantId, ends: &RelationEnds) -> StoreResult<Vec<EntityRelation>> {
        self.real.find(tenant, ends).await
    }

    async fn with_names(
        &self,
        tenant: TenantId,
        relations: Vec<EntityRelation>,
    ) -> StoreResult<Vec<EntityRelationInfo>> {
        self.real.with_names(tenant, relations).await
    }

    async fn delete_of(&self, _: TenantId, _: EntityId, _: Option<RelationTypeGroup>) -> StoreResult<u64> {
        self.note("relations deleted");
        Ok(0)
    }

    async fn search(&self, tenant: TenantId, query: &RelationsQuery) -> StoreResult<Vec<EntityRelation>> {
        self.real.search(tenant, query).await
    }
}

#[async_trait]
impl DeviceProfileStore for Dry<dyn DeviceProfileStore> {
    async fn save(&self, profile: DeviceProfile, _create: bool) -> StoreResult<DeviceProfile> {
        self.note("device profiles saved");
        Ok(profile)
    }

    async fn get(&self, tenant: TenantId, id: DeviceProfileId) -> StoreResult<Option<DeviceProfile>> {
        let mut profile = self.real.get(tenant, id).await?;
        if let (Some(profile), Some(alarms)) = (&mut profile, &self.drafts.alarms)
            && self.drafts.profiles.contains(&id)
        {
            if !profile.profile_data.is_object() {
                profile.profile_data = Value::Object(serde_json::Map::new());
            }
            if let Some(data) = profile.profile_data.as_object_mut() {
                data.insert("alarms".to_owned(), alarms.clone());
            }
        }
        Ok(profile)
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<DeviceProfile>> {
        self.real.by_name(tenant, name).await
    }

    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<DeviceProfile>> {
        self.real.default_profile(tenant).await
    }

    async fn set_default(&self, _: TenantId, _: DeviceProfileId) -> StoreResult<bool> {
        self.note("device profiles saved");
        Ok(true)
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<DeviceProfile>> {
        self.real.list(tenant, page).await
    }

    async fn delete(&self, _: TenantId, _: DeviceProfileId) -> StoreResult<bool> {
        self.note("device profiles deleted");
        Ok(true)
    }
}

impl Dry<dyn CalculatedFieldStore> {
    fn draft(&self, id: Option<CalculatedFieldId>) -> Option<&CalculatedField> {
        self.drafts.fields.iter().find(|field| field.id == id)
    }
}

#[async_trait]
impl CalculatedFieldStore for Dry<dyn CalculatedFieldStore> {
    async fn save(&self, field: CalculatedField, _create: bool) -> StoreResult<CalculatedField> {
        self.note("calculated fields saved");
        Ok(field)
    }

    async fn get(&self, tenant: TenantId, id: CalculatedFieldId) -> StoreResult<Option<CalculatedField>> {
        match self.draft(Some(id)) {
            Some(draft) => Ok(Some(draft.clone())),
            None => self.real.get(tenant, id).await,
        }
    }

    /// The drafts come with the first page, which they make longer.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &CalculatedFieldFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<CalculatedFieldInfo>> {
        let mut found = self.real.list(tenant, filter, page).await?;
        found.data.retain(|info| self.draft(info.field.id).is_none());
        if page.page == 0 {
            found
                .data
                .extend(self.drafts.fields.iter().map(|field| CalculatedFieldInfo {
                    field: field.clone(),
                    entity_name: None,
                }));
        }
        Ok(found)
    }

    async fn names(
        &self,
        tenant: TenantId,
        kind: CalculatedFieldType,
        page: &PageLink,
    ) -> StoreResult<PageData<String>> {
        self.real.names(tenant, kind, page).await
    }

    async fn of_entity(&self, tenant: TenantId, entity: EntityId) -> StoreResult<Vec<CalculatedField>> {
        let mut fields = self.real.of_entity(tenant, entity).await?;
        fields.retain(|field| self.draft(field.id).is_none());
        fields.extend(
            self.drafts
                .fields
                .iter()
                .filter(|field| field.entity_id == Some(entity))
                .cloned(),
        );
        Ok(fields)
    }

    async fn count(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64> {
        self.real.count(tenant, entity).await
    }

    async fn is_referenced(&self, tenant: TenantId, entity: EntityId) -> StoreResult<bool> {
        self.real.is_referenced(tenant, entity).await
    }

    async fn delete(&self, _: TenantId, _: CalculatedFieldId) -> StoreResult<bool> {
        self.note("calculated fields deleted");
        Ok(true)
    }

    async fn delete_of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<CalculatedFieldId>> {
        self.note("calculated fields deleted");
        Ok(Vec::new())
    }
}
