//! The entities here that those of ThingsBoard have become: those of the same kind and name, in the tenant of the same
//! title.

use std::collections::{HashMap, HashSet};

use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_model::page::PageLink;
use fieldline_model::{DeviceProfileId, EntityId, EntityKey, EntityType, TenantId};
use fieldline_storage::thingsboard::{ThingsBoardDatabase, ThingsBoardEntity};

use super::{MigrateHistoryError, PAGE_ENTITIES};

/// An entity here that gets a history.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistorySubject {
    pub(super) key: EntityKey,
    /// Seconds that its points are kept; 0 for ever.
    pub(super) ttl_seconds: u32,
}

/// The entities here.
pub(super) struct TargetEntities {
    stores: EntityStores,
    /// Tenants there, and what they are here.
    tenants: HashMap<TenantId, TargetTenant>,
}

struct TargetTenant {
    id: TenantId,
    ttl_seconds: u32,
}

impl TargetEntities {
    /// Finds the tenants. `renamed` has titles there and here, `there=here`.
    pub(super) async fn open(
        stores: EntityStores,
        thingsboard: &ThingsBoardDatabase,
        renamed: &[String],
    ) -> Result<Self, MigrateHistoryError> {
        let here = tenants_by_title(&stores).await?;
        let mut titles = HashMap::new();
        for text in renamed {
            let pair = text.split_once('=').filter(|(_, to)| here.contains_key(*to));
            let (from, to) = pair.ok_or_else(|| MigrateHistoryError::UnknownTenant(text.clone()))?;
            titles.insert(from, (to, text));
        }
        let mut tenants = HashMap::new();
        let mut seen = HashSet::new();
        let mut after = None;
        loop {
            let page = thingsboard
                .entities(EntityType::Tenant, after, PAGE_ENTITIES)
                .await
                .map_err(MigrateHistoryError::Read)?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.id);
            for tenant in page {
                let title = titles.remove(&*tenant.name).map_or(&*tenant.name, |(to, _)| to);
                if let Some(id) = here.get(title) {
                    // Devices of the same name would be mixed.
                    if !seen.insert(*id) {
                        return Err(MigrateHistoryError::TenantTitleTwice(tenant.name));
                    }
                    let ttl_seconds = stores.storage_ttl(*id).await?;
                    let found = TargetTenant { id: *id, ttl_seconds };
                    tenants.insert(TenantId(tenant.id.id), found);
                }
            }
        }
        match titles.into_values().next() {
            Some((_, text)) => Err(MigrateHistoryError::UnknownTenant(text.clone())),
            None => Ok(Self { stores, tenants }),
        }
    }

    /// The entities here of a page of entities of a kind there.
    pub(super) async fn find(
        &self,
        kind: EntityType,
        page: &[ThingsBoardEntity],
    ) -> StoreResult<HashMap<EntityId, HistorySubject>> {
        let mut by_tenant: HashMap<TenantId, Vec<&ThingsBoardEntity>> = HashMap::new();
        for entity in page {
            by_tenant.entry(entity.tenant).or_default().push(entity);
        }
        let mut found = HashMap::new();
        for (tenant, entities) in by_tenant {
            let Some(tenant) = self.tenants.get(&tenant) else {
                continue;
            };
            let names: Vec<&str> = entities.iter().map(|entity| &*entity.name).collect();
            let here = self.of_names(kind, tenant, &names).await?;
            for entity in entities {
                if let Some(subject) = here.get(&entity.name) {
                    found.insert(entity.id, *subject);
                }
            }
        }
        Ok(found)
    }

    async fn of_names(
        &self,
        kind: EntityType,
        tenant: &TargetTenant,
        names: &[&str],
    ) -> StoreResult<HashMap<String, HistorySubject>> {
        let subject = |id, ttl_seconds| HistorySubject {
            key: EntityKey {
                tenant: tenant.id,
                entity: EntityId::new(kind, id),
            },
            ttl_seconds,
        };
        let plain = |id| subject(id, tenant.ttl_seconds);
        let stores = &self.stores;
        let mut found = HashMap::with_capacity(names.len());
        match kind {
            EntityType::Tenant => {
                found.extend(names.iter().map(|name| ((*name).to_owned(), plain(tenant.id.0))));
            }
            EntityType::Device => {
                let mut lifetimes = HashMap::new();
                for device in stores.devices.by_names(tenant.id, names).await? {
                    let lifetime = self
                        .lifetime(tenant, device.device_profile_id, &mut lifetimes)
                        .await?;
                    let subject = subject(device.id.0, lifetime);
                    found.insert(device.name, subject);
                }
            }
            EntityType::Asset => {
                let assets = stores.assets.by_names(tenant.id, names).await?.into_iter();
                found.extend(assets.map(|asset| (asset.name, plain(asset.id.0))));
            }
            EntityType::EntityView => {
                let views = stores.entity_views.by_names(tenant.id, names).await?.into_iter();
                found.extend(views.map(|view| (view.name, plain(view.id.0))));
            }
            EntityType::Customer => {
                for name in names {
                    let customer = stores.customers.by_title(tenant.id, name).await?;
                    found.extend(customer.map(|customer| ((*name).to_owned(), plain(customer.id.0))));
                }
            }
            EntityType::User => {
                for name in names {
                    let user = stores.users.by_email(name).await?;
                    let user = user.filter(|user| user.tenant_id == tenant.id);
                    found.extend(user.map(|user| ((*name).to_owned(), plain(user.id.0))));
                }
            }
            _ => {}
        }
        Ok(found)
    }

    /// Seconds that points of devices of a profile are kept.
    async fn lifetime(
        &self,
        tenant: &TargetTenant,
        profile: Option<DeviceProfileId>,
        known: &mut HashMap<Option<DeviceProfileId>, u32>,
    ) -> StoreResult<u32> {
        if let Some(seconds) = known.get(&profile) {
            return Ok(*seconds);
        }
        let of_profile = match profile {
            Some(id) => self.stores.device_profiles.get(tenant.id, id).await?,
            None => None,
        };
        let seconds = of_profile
            .and_then(|profile| profile.storage_ttl_seconds())
            .unwrap_or(tenant.ttl_seconds);
        known.insert(profile, seconds);
        Ok(seconds)
    }
}

async fn tenants_by_title(stores: &EntityStores) -> StoreResult<HashMap<String, TenantId>> {
    let mut found = HashMap::new();
    let mut link = PageLink::first(PAGE_ENTITIES);
    loop {
        let page = stores.tenants.list(&link).await?;
        let tenants = page.data.into_iter();
        found.extend(tenants.map(|tenant| (tenant.title, tenant.id)));
        if !page.has_next {
            return Ok(found);
        }
        link.page += 1;
    }
}
