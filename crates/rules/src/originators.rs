//! Whom messages are about: names, profiles and customers, kept in a bounded cache.

use std::sync::{Arc, OnceLock};

use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::in_flight::{InFlightTracker, LoadInHand};
use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_model::{
    AssetId, AssetProfileId, CustomerId, DeviceId, DeviceProfileId, EntityId, EntityKey, EntityType,
    RuleChainId, TenantId,
};
use quick_cache::sync::Cache;
use serde_json::Value;
use tracing::warn;
use uuid::Uuid;

use fieldline_alarm_rules::AlarmRuleSet;

/// What the engine knows of an originator.
#[derive(Debug)]
pub struct Originator {
    /// Its id.
    pub id: EntityId,
    /// Name.
    pub name: Box<str>,
    /// Label, empty for none.
    pub label: Box<str>,
    /// Name of its profile: the type of a device or asset; empty where it has none.
    pub profile_name: Arc<str>,
    /// Its customer.
    pub customer: Option<CustomerId>,
    /// Its profile, where it has one.
    pub profile: Option<Arc<OriginatorProfile>>,
}

/// What the engine knows of a profile.
#[derive(Debug)]
pub struct OriginatorProfile {
    /// Its id.
    pub id: EntityId,
    /// Chain that messages start in; the root chain where absent.
    pub rule_chain: Option<RuleChainId>,
    /// Queue that messages go through; the main one where absent.
    pub queue: Option<Box<str>>,
    /// Alarm rules and whatever else the profile says, as JSON.
    pub data: Value,
    alarm_rules: OnceLock<Option<Arc<AlarmRuleSet>>>,
    /// Where it is noted that they are compiled.
    load: Option<(Arc<InFlightTracker>, LoadInHand)>,
}

impl OriginatorProfile {
    /// The alarm rules of the profile, compiled when first asked for; `None` where it has none that work.
    pub fn alarm_rules(&self) -> Option<&Arc<AlarmRuleSet>> {
        let compile = || {
            if self
                .data
                .get("alarms")
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
            {
                return None;
            }
            let noted = self
                .load
                .as_ref()
                .map(|(in_hand, load)| in_hand.begin_load_now(*load));
            // A refusal was logged, and there is nobody else to tell.
            let Ok(note) = noted.transpose() else {
                return None;
            };
            let compiled = AlarmRuleSet::from_device_profile(&self.data);
            if let Some(note) = note {
                note.finish();
            }
            compiled
                .inspect_err(
                    |error| warn!(profile = %self.id, %error, "the alarm rules of a profile cannot be used"),
                )
                .ok()
        };
        self.alarm_rules.get_or_init(compile).as_ref()
    }
}

/// Looks originators up.
pub struct OriginatorCache {
    stores: EntityStores,
    known: Cache<EntityKey, Arc<Originator>>,
    profiles: Cache<(TenantId, Uuid), (Arc<str>, Arc<OriginatorProfile>)>,
    in_flight: OnceLock<Arc<InFlightTracker>>,
}

impl OriginatorCache {
    /// A cache of that many originators; register it as a listener of entity events.
    pub fn new(stores: EntityStores, cached: usize) -> Arc<Self> {
        Arc::new(Self {
            stores,
            known: Cache::new(cached.max(64)),
            profiles: Cache::new(4096),
            in_flight: OnceLock::new(),
        })
    }

    /// Has it noted whose alarm rules are compiled, and leaves out those that the process has died of.
    pub(crate) fn note_loads(&self, in_hand: &Arc<InFlightTracker>) {
        // Whoever calls it twice changes nothing.
        let _ = self.in_flight.set(in_hand.clone());
    }

    /// The originator, if it is in memory.
    pub fn peek(&self, subject: EntityKey) -> Option<Arc<Originator>> {
        self.known.get(&subject)
    }

    /// The rule chain of an originator's profile, where it is known.
    pub(crate) fn chain_of(&self, subject: EntityKey) -> Option<RuleChainId> {
        self.peek(subject)?.profile.as_ref()?.rule_chain
    }

    /// The originator, if the tenant has it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn get(&self, subject: EntityKey) -> StoreResult<Option<Arc<Originator>>> {
        if let Some(known) = self.known.get(&subject) {
            return Ok(Some(known));
        }
        let Some(found) = self.load(subject).await? else {
            return Ok(None);
        };
        let found = Arc::new(found);
        self.known.insert(subject, found.clone());
        Ok(Some(found))
    }

    /// Brings devices into memory, many with one query.
    ///
    /// # Errors
    /// The store failed.
    pub async fn load_devices(&self, tenant: TenantId, ids: &[DeviceId]) -> StoreResult<()> {
        for device in self.stores.devices.by_ids(tenant, ids).await? {
            let subject = EntityKey::device(tenant, device.id);
            let originator = self.of_device(tenant, device.id, device).await?;
            self.known.insert(subject, Arc::new(originator));
        }
        Ok(())
    }

    async fn of_device(
        &self,
        tenant: TenantId,
        id: DeviceId,
        device: fieldline_model::entity::Device,
    ) -> StoreResult<Originator> {
        let profile = match device.device_profile_id {
            Some(profile) => self.device_profile(tenant, profile).await?,
            None => None,
        };
        Ok(Originator {
            id: id.into(),
            name: device.name.into(),
            label: device.label.unwrap_or_default().into(),
            profile_name: profile
                .as_ref()
                .map_or_else(|| Arc::from(""), |(name, _)| name.clone()),
            customer: Some(device.customer_id).filter(|id| !id.is_null()),
            profile: profile.map(|(_, profile)| profile),
        })
    }

    async fn device_profile(
        &self,
        tenant: TenantId,
        id: DeviceProfileId,
    ) -> StoreResult<Option<(Arc<str>, Arc<OriginatorProfile>)>> {
        if let Some(known) = self.profiles.get(&(tenant, id.0)) {
            return Ok(Some(known));
        }
        let Some(profile) = self.stores.device_profiles.get(tenant, id).await? else {
            return Ok(None);
        };
        let found = (
            Arc::from(profile.name.as_str()),
            Arc::new(OriginatorProfile {
                id: id.into(),
                rule_chain: profile.default_rule_chain_id.map(|id| RuleChainId(id.id)),
                queue: profile
                    .default_queue_name
                    .filter(|name| !name.is_empty())
                    .map(Into::into),
                data: profile.profile_data,
                alarm_rules: OnceLock::new(),
                load: self.in_flight.get().map(|in_hand| {
                    let load = LoadInHand {
                        tenant,
                        id: id.0,
                        version: profile.version.unwrap_or_default(),
                    };
                    (in_hand.clone(), load)
                }),
            }),
        );
        self.profiles.insert((tenant, id.0), found.clone());
        Ok(Some(found))
    }

    async fn asset_profile(
        &self,
        tenant: TenantId,
        id: AssetProfileId,
    ) -> StoreResult<Option<Arc<OriginatorProfile>>> {
        if let Some((_, known)) = self.profiles.get(&(tenant, id.0)) {
            return Ok(Some(known));
        }
        let Some(profile) = self.stores.asset_profiles.get(tenant, id).await? else {
            return Ok(None);
        };
        let found = Arc::new(OriginatorProfile {
            id: id.into(),
            rule_chain: profile.default_rule_chain_id.map(|id| RuleChainId(id.id)),
            queue: profile
                .default_queue_name
                .filter(|name| !name.is_empty())
                .map(Into::into),
            data: Value::Null,
            alarm_rules: OnceLock::new(),
            load: None,
        });
        self.profiles
            .insert((tenant, id.0), (Arc::from(profile.name.as_str()), found.clone()));
        Ok(Some(found))
    }

    async fn load(&self, subject: EntityKey) -> StoreResult<Option<Originator>> {
        let (tenant, id) = (subject.tenant, subject.entity.id);
        let plain = |name: String| Originator {
            id: subject.entity,
            name: name.into(),
            label: "".into(),
            profile_name: Arc::from(""),
            customer: None,
            profile: None,
        };
        Ok(match subject.entity.entity_type {
            EntityType::Device => {
                let id = DeviceId(id);
                match self.stores.devices.get(tenant, id).await? {
                    Some(device) => Some(self.of_device(tenant, id, device).await?),
                    None => None,
                }
            }
            EntityType::Asset => {
                let Some(asset) = self.stores.assets.get(tenant, AssetId(id)).await? else {
                    return Ok(None);
                };
                let profile = match asset.asset_profile_id {
                    Some(profile) => self.asset_profile(tenant, profile).await?,
                    None => None,
                };
                Some(Originator {
                    label: asset.label.unwrap_or_default().into(),
                    profile_name: asset.asset_type.as_str().into(),
                    customer: Some(asset.customer_id).filter(|id| !id.is_null()),
                    profile,
                    ..plain(asset.name)
                })
            }
            EntityType::Customer => {
                let found = self.stores.customers.get(tenant, CustomerId(id)).await?;
                found.map(|customer| Originator {
                    customer: Some(customer.id),
                    ..plain(customer.title)
                })
            }
            EntityType::Tenant => {
                let found = self
                    .stores
                    .tenants
                    .get(TenantId(id))
                    .await?
                    .filter(|_| id == tenant.0);
                found.map(|tenant| plain(tenant.title))
            }
            _ => None,
        })
    }

    fn forget_profile(&self, tenant: TenantId, id: Uuid) {
        self.profiles.remove(&(tenant, id));
        self.known.retain(|subject, known| {
            subject.tenant != tenant || known.profile.as_ref().is_none_or(|it| it.id.id != id)
        });
    }
}

impl EntityListener for OriginatorCache {
    fn on_change(&self, change: EntityChange) {
        let EntityKey { tenant, entity } = change.subject;
        match (entity.entity_type, change.what) {
            (EntityType::Device | EntityType::Asset, ChangeKind::Saved | ChangeKind::Deleted) => {
                self.known.remove(&change.subject);
            }
            (
                EntityType::DeviceProfile | EntityType::AssetProfile,
                ChangeKind::Saved | ChangeKind::Deleted,
            ) => {
                self.forget_profile(tenant, entity.id);
            }
            (EntityType::Customer, ChangeKind::Deleted) => {
                let customer = Some(CustomerId(entity.id));
                self.known
                    .retain(|subject, known| subject.tenant != tenant || known.customer != customer);
            }
            (EntityType::Tenant, ChangeKind::Deleted) => {
                self.known.retain(|subject, _| subject.tenant != tenant);
            }
            _ => {}
        }
    }
}
