//! Entities as a replay sees them: as they are now. What would change them is noted, and not done.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::any_entity::{AnyEntity, EntityKind, EntityVariant as _};
use fieldline_core::ports::{
    AlarmStore, AssignableEntity, AssignableStore, CalculatedFieldFilter, CalculatedFieldStore,
    CustomerStore, DeviceCredentialsStore, DeviceProfileStore, DeviceStore, EntityProfile, EntityStore,
    EntityStores, EntityViewStore, EventFilter, EventStore, ImportRow, ImportValueStore, LoginAttemptResult,
    ProfileStore, QueueStore, RelationEnds, RelationKey, RelationStore, RuleChainStore, SavedBy, StoreResult,
    TenantEntityStore, TenantProfileStore, TenantStore, UserFilter, UserStore,
};
use fieldline_entities::access::noun;
use fieldline_model::entity::{
    CalculatedField, CalculatedFieldInfo, CalculatedFieldType, CredentialsType, Customer, Device,
    DeviceCredentials, DeviceProfile, EntityEvent, EntityRelation, EntityRelationInfo, EventKind, Queue,
    RelationTypeGroup, RelationsQuery, RuleChain, RuleChainMetaData, RuleChainType, RuleNode, Tenant,
    TenantProfile, User, UserCredentials,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{
    CalculatedFieldId, CustomerId, DeviceId, DeviceProfileId, EntityId, EntityKey, EntityType, RuleChainId,
    RuleNodeId, TenantId, TenantProfileId, UserId,
};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde_json::Value;

use super::record::ReplayRecord;

/// What is there instead of what is stored.
#[derive(Default)]
pub(super) struct ReplayDrafts {
    /// The profiles that have the alarm rules.
    pub(super) profiles: FxHashSet<DeviceProfileId>,
    /// `profileData.alarms`.
    pub(super) alarms: Option<Value>,
    /// Calculated fields, those of other ids besides the stored ones.
    pub(super) fields: Vec<CalculatedField>,
}

/// One store, that is read only.
struct DryStore<S: ?Sized> {
    real: Arc<S>,
    record: Arc<Mutex<ReplayRecord>>,
    drafts: Arc<ReplayDrafts>,
}

impl<S: ?Sized> DryStore<S> {
    fn note(&self, what: impl Into<Cow<'static, str>>) {
        self.record.lock().count_change(what);
    }
}

/// Stores that pass reads on, and note writes.
pub(super) fn dry_stores(
    real: &EntityStores,
    record: &Arc<Mutex<ReplayRecord>>,
    alarms: Arc<dyn AlarmStore>,
    drafts: &Arc<ReplayDrafts>,
) -> EntityStores {
    macro_rules! dry {
        ($($field:ident),*) => {
            EntityStores {
                $($field: Arc::new(DryStore {
                    real: real.$field.clone(),
                    record: record.clone(),
                    drafts: drafts.clone(),
                }),)*
                alarms,
                // No node asks for it.
                rpcs: real.rpcs.clone(),
                // Nothing that a chain does changes these.
                dashboards: real.dashboards.clone(),
                versions: real.versions.clone(),
                set_aside: real.set_aside.clone(),
                settings: real.settings.clone(),
                audit: real.audit.clone(),
                api_keys: real.api_keys.clone(),
                sign_ins: real.sign_ins.clone(),
                mqtt_clients: real.mqtt_clients.clone(),
                shared_subscriptions: real.shared_subscriptions.clone(),
                device_transfers: real.device_transfers.clone(),
                housekeeper: real.housekeeper.clone(),
                ota_packages: real.ota_packages.clone(),
                ota_updates: real.ota_updates.clone(),
                resources: real.resources.clone(),
                widget_types: real.widget_types.clone(),
                widgets_bundles: real.widgets_bundles.clone(),
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
        impl $store for DryStore<dyn $store> {
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
    note "tenants deleted" fn delete(_id: TenantId) -> bool { true }
});

dry!(TenantProfileStore {
    fn get(id: TenantProfileId) -> Option<TenantProfile>;
    fn default_profile() -> Option<TenantProfile>;
    fn list(page: &PageLink) -> PageData<TenantProfile>;
    note "tenant profiles saved" fn set_default(_id: TenantProfileId) -> bool { true }
    note "tenant profiles deleted" fn delete(_id: TenantProfileId) -> bool { true }
});

dry!(CustomerStore {
    fn by_title(tenant: TenantId, title: &str) -> Option<Customer>;
    fn public(id: CustomerId) -> Option<Customer>;
    fn list(tenant: TenantId, page: &PageLink) -> PageData<Customer>;
});

dry!(UserStore {
    fn by_id(id: UserId) -> Option<User>;
    fn by_email(email: &str) -> Option<User>;
    fn list(filter: UserFilter, page: &PageLink) -> PageData<User>;
    fn credentials(id: UserId) -> Option<UserCredentials>;
    fn credentials_by_activate_token(token: &str) -> Option<UserCredentials>;
    fn credentials_by_reset_token(token: &str) -> Option<UserCredentials>;
    note "users saved" fn note_login(_id: UserId, _login: LoginAttemptResult) -> u32 { 0 }
    note "users saved" fn save_credentials(_credentials: UserCredentials) -> () { () }
});

dry!(DeviceStore {
    fn active_after(tenant: TenantId, after: Option<(i64, DeviceId)>, limit: u32) -> Vec<(i64, DeviceId)>;
    note "devices saved" fn create(device: Device, _credentials: DeviceCredentials) -> Device { device }
    note "device states saved" fn set_active(_changes: &[(DeviceId, bool)]) -> () { () }
});

dry!(DeviceCredentialsStore {
    fn get(tenant: TenantId, device: DeviceId) -> Option<DeviceCredentials>;
    fn find(kind: CredentialsType, credentials_id: &str) -> Option<(Device, DeviceCredentials)>;
    note "credentials saved"
        fn save(_tenant: TenantId, credentials: DeviceCredentials) -> DeviceCredentials { credentials }
});

dry!(RuleChainStore {
    fn by_name(tenant: TenantId, chain_type: RuleChainType, name: &str) -> Option<RuleChain>;
    fn root(tenant: TenantId, chain_type: RuleChainType) -> Option<RuleChain>;
    fn list(tenant: TenantId, chain_type: Option<RuleChainType>, page: &PageLink) -> PageData<RuleChain>;
    fn metadata(tenant: TenantId, id: RuleChainId) -> Option<RuleChainMetaData>;
    fn node(tenant: TenantId, id: RuleNodeId) -> Option<RuleNode>;
    fn nodes_of_type(tenant: TenantId, class: &str) -> Vec<RuleNode>;
    note "rule chains saved" fn set_root(_tenant: TenantId, _id: RuleChainId) -> bool { true }
    note "rule chains saved"
        fn save_metadata(
            _tenant: TenantId,
            metadata: RuleChainMetaData,
            _by: &SavedBy
        ) -> RuleChainMetaData { metadata }
});

dry!(QueueStore {
    fn by_name(tenant: TenantId, name: &str) -> Option<Queue>;
    fn all(tenant: TenantId) -> Vec<Queue>;
    fn of_all_tenants() -> Vec<Queue>;
    fn list(tenant: TenantId, page: &PageLink) -> PageData<Queue>;
});

dry!(EntityViewStore {
    fn types(tenant: TenantId) -> Vec<String>;
});

#[async_trait]
impl<E: EntityKind, S: EntityStore<E> + ?Sized> EntityStore<E> for DryStore<S> {
    async fn insert(&self, entity: E) -> StoreResult<E> {
        self.note(saved::<E>());
        Ok(entity)
    }

    async fn update(&self, entity: E) -> StoreResult<E> {
        self.note(saved::<E>());
        Ok(entity)
    }
}

/// What is noted where an entity of a kind is saved.
fn saved<E: EntityKind>() -> String {
    format!("{}s saved", noun(E::TYPE))
}

#[async_trait]
impl<E: EntityKind, S: TenantEntityStore<E> + ?Sized> TenantEntityStore<E> for DryStore<S> {
    async fn get(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E>> {
        if let Some(draft) = self.draft::<E>(id) {
            return Ok(Some(draft));
        }
        let found = self.real.get(tenant, id).await?;
        Ok(found.map(|entity| self.with_draft(entity)))
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[E::Id]) -> StoreResult<Vec<E>> {
        self.real.by_ids(tenant, ids).await
    }

    async fn delete(&self, _: TenantId, _: E::Id) -> StoreResult<bool> {
        self.note(format!("{}s deleted", noun(E::TYPE)));
        Ok(true)
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        self.real.count(tenant).await
    }
}

#[async_trait]
impl<E: AssignableEntity, S: AssignableStore<E> + ?Sized> AssignableStore<E> for DryStore<S> {
    async fn info(&self, tenant: TenantId, id: E::Id) -> StoreResult<Option<E::AssignableInfo>> {
        self.real.info(tenant, id).await
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<E>> {
        self.real.by_name(tenant, name).await
    }

    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<E>> {
        self.real.by_names(tenant, names).await
    }

    async fn import(
        &self,
        rows: Vec<ImportRow<E>>,
        _: &dyn ImportValueStore,
    ) -> StoreResult<Vec<StoreResult<E>>> {
        if !rows.is_empty() {
            self.note(saved::<E>());
        }
        Ok(rows.into_iter().map(|row| Ok(row.entity)).collect())
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &E::AssignableFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<E::AssignableInfo>> {
        self.real.list(tenant, filter, page).await
    }
}

/// Debug and lifecycle events of a replay are nobody's business: its report says what happened.
#[async_trait]
impl EventStore for DryStore<dyn EventStore> {
    async fn append(&self, _: &[EntityEvent]) -> StoreResult<()> {
        Ok(())
    }

    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        filter: &EventFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityEvent>> {
        self.real.list(tenant, entity, filter, page).await
    }

    async fn delete(&self, _: TenantId, _: EntityId, _: &EventFilter) -> StoreResult<u64> {
        self.note("events deleted");
        Ok(0)
    }

    async fn delete_subject(&self, _: EntityKey) -> StoreResult<()> {
        self.note("events deleted");
        Ok(())
    }

    async fn delete_before(&self, _: EventKind, _: i64) -> StoreResult<u64> {
        self.note("events deleted");
        Ok(0)
    }
}

#[async_trait]
impl RelationStore for DryStore<dyn RelationStore> {
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

impl<S: ?Sized> DryStore<S> {
    fn has_draft(&self, id: CalculatedFieldId) -> bool {
        self.drafts.fields.iter().any(|field| field.id == id)
    }

    /// The calculated field that is there instead of what is stored.
    fn draft<E: EntityKind>(&self, id: E::Id) -> Option<E> {
        let is_meant = |field: &&CalculatedField| EntityId::from(field.id) == id.into();
        let draft = self.drafts.fields.iter().find(is_meant)?;
        E::of(draft.clone().into_entity())
    }

    /// An entity as the replay shall see it: a profile may have other alarm rules.
    fn with_draft<E: EntityKind>(&self, entity: E) -> E {
        let Some(alarms) = self
            .drafts
            .alarms
            .as_ref()
            .filter(|_| E::TYPE == EntityType::DeviceProfile)
        else {
            return entity;
        };
        let AnyEntity::DeviceProfile(mut drafted) = entity.clone().into_entity() else {
            return entity;
        };
        if !self.drafts.profiles.contains(&drafted.id) {
            return entity;
        }
        if !drafted.profile_data.is_object() {
            drafted.profile_data = Value::Object(serde_json::Map::new());
        }
        if let Some(data) = drafted.profile_data.as_object_mut() {
            data.insert("alarms".to_owned(), alarms.clone());
        }
        E::of(AnyEntity::DeviceProfile(drafted)).unwrap_or(entity)
    }
}

#[async_trait]
impl<P: EntityProfile, S: ProfileStore<P> + ?Sized> ProfileStore<P> for DryStore<S> {
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<P>> {
        self.real.by_name(tenant, name).await
    }

    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<P>> {
        self.real.default_profile(tenant).await
    }

    async fn set_default(&self, _: TenantId, _: P::Id) -> StoreResult<bool> {
        self.note(saved::<P>());
        Ok(true)
    }

    async fn names(&self, tenant: TenantId, in_use_only: bool) -> StoreResult<Vec<(P::Id, String)>> {
        self.real.names(tenant, in_use_only).await
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<P>> {
        self.real.list(tenant, page).await
    }
}

#[async_trait]
impl DeviceProfileStore for DryStore<dyn DeviceProfileStore> {
    async fn by_provision_key(&self, key: &str) -> StoreResult<Option<DeviceProfile>> {
        let found = self.real.by_provision_key(key).await?;
        Ok(found.map(|profile| self.with_draft(profile)))
    }
}

#[async_trait]
impl CalculatedFieldStore for DryStore<dyn CalculatedFieldStore> {
    /// The drafts come with the first page, which they make longer.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &CalculatedFieldFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<CalculatedFieldInfo>> {
        let mut found = self.real.list(tenant, filter, page).await?;
        found.data.retain(|info| !self.has_draft(info.field.id));
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
        fields.retain(|field| !self.has_draft(field.id));
        fields.extend(
            self.drafts
                .fields
                .iter()
                .filter(|field| field.entity_id == Some(entity))
                .cloned(),
        );
        Ok(fields)
    }

    async fn count_of_entity(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64> {
        self.real.count_of_entity(tenant, entity).await
    }

    async fn is_referenced(&self, tenant: TenantId, entity: EntityId) -> StoreResult<bool> {
        self.real.is_referenced(tenant, entity).await
    }

    async fn delete_of_entity(&self, _: TenantId, _: EntityId) -> StoreResult<Vec<CalculatedFieldId>> {
        self.note("calculated fields deleted");
        Ok(Vec::new())
    }
}
