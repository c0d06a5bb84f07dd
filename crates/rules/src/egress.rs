//! The addresses that a tenant's external nodes may connect to: those that the operator allows to all tenants, and
//! those that the tenant's profile adds.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_connectors::egress::{Egress, EgressFuture, EgressRules, EgressSource};
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_entities::services::ALLOWED_EGRESS;
use fieldline_model::{EntityType, TenantId};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Addresses that external nodes may connect to beyond public ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Ranges of addresses that external nodes of all tenants may connect to although they are not public, such as
    /// `10.1.0.0/16`. Without them loopback, link-local, private, metadata and other special addresses are refused, and those
    /// of this machine. A tenant profile may allow more to its tenants: `profileData.configuration.allowedEgress`.
    pub allow: Vec<String>,
    /// Hosts that external nodes of all tenants may connect to wherever their names lead, such as `mqtt.corp.example`,
    /// `*.corp.example` or `mqtt.corp.example:1883`.
    pub allow_hosts: Vec<String>,
}

impl Options {
    /// The rules that these settings stand for.
    ///
    /// # Errors
    /// An entry is no range or no host; the text names the key.
    pub fn rules(&self) -> Result<EgressRules, String> {
        let ranges = EgressRules::parse(&self.allow).map_err(|problem| format!("`allow`: {problem}"))?;
        if ranges.has_hosts() {
            return Err("`allow` takes ranges of addresses, hosts go to `allow-hosts`".to_owned());
        }
        let hosts =
            EgressRules::parse(&self.allow_hosts).map_err(|problem| format!("`allow-hosts`: {problem}"))?;
        Ok(ranges.with(&hosts))
    }
}

/// The rules of all tenants that have connected to something, reloaded when the tenant or its profile has changed.
pub struct EgressRegistry {
    operator: EgressRules,
    stores: EntityStores,
    known: Mutex<EgressRuleCache>,
}

#[derive(Default)]
struct EgressRuleCache {
    of: HashMap<TenantId, Arc<EgressRules>>,
    /// Grows with every change; rules read before a change are not cached after it.
    changes: u64,
}

impl EgressRegistry {
    /// Forgets rules that have changed; a read that is under way is not cached.
    fn forget(&self, forget: impl FnOnce(&mut HashMap<TenantId, Arc<EgressRules>>)) {
        let mut known = self.known.lock();
        known.changes += 1;
        forget(&mut known.of);
    }

    /// A registry that starts with the operator's rules alone.
    pub fn new(operator: EgressRules, stores: EntityStores) -> Arc<Self> {
        Arc::new(Self {
            operator,
            stores,
            known: Mutex::default(),
        })
    }

    /// The guarded connections of a tenant.
    pub fn tenant_egress(self: &Arc<Self>, tenant: TenantId) -> Egress {
        Egress::guarded(Arc::new(TenantEgressSource {
            registry: Arc::clone(self),
            tenant,
        }))
    }

    async fn rules(&self, tenant: TenantId) -> Result<Arc<EgressRules>, String> {
        let changes = {
            let known = self.known.lock();
            if let Some(rules) = known.of.get(&tenant) {
                return Ok(Arc::clone(rules));
            }
            known.changes
        };
        let allowed = self
            .allowed(tenant)
            .await
            .map_err(|error| format!("cannot read what may be connected to: {error}"))?;
        let own = EgressRules::parse(&allowed)
            .map_err(|problem| format!("{ALLOWED_EGRESS} of the tenant profile: {problem}"))?;
        let rules = Arc::new(self.operator.clone().with(&own));
        let mut known = self.known.lock();
        if known.changes == changes {
            known.of.insert(tenant, Arc::clone(&rules));
        }
        Ok(rules)
    }

    /// The entries that the tenant's profile allows.
    async fn allowed(&self, tenant: TenantId) -> StoreResult<Vec<String>> {
        let tenant = self.stores.tenants.get(tenant).await?;
        let Some(profile) = tenant.and_then(|tenant| tenant.tenant_profile_id) else {
            return Ok(Vec::new());
        };
        let profile = self.stores.tenant_profiles.get(profile).await?;
        let allowed = profile
            .as_ref()
            .and_then(|profile| profile.setting(ALLOWED_EGRESS)?.as_array());
        let texts = allowed.into_iter().flatten().filter_map(Value::as_str);
        Ok(texts.map(str::to_owned).collect())
    }
}

impl EntityListener for EgressRegistry {
    fn on_change(&self, change: EntityChange) {
        if !matches!(change.what, ChangeKind::Saved | ChangeKind::Deleted) {
            return;
        }
        match change.entity_type() {
            EntityType::TenantProfile => self.forget(|of| of.clear()),
            EntityType::Tenant => self.forget(|of| drop(of.remove(&change.subject.tenant))),
            _ => {}
        }
    }
}

struct TenantEgressSource {
    registry: Arc<EgressRegistry>,
    tenant: TenantId,
}

impl EgressSource for TenantEgressSource {
    fn rules(&self) -> EgressFuture<'_, Result<Arc<EgressRules>, String>> {
        Box::pin(self.registry.rules(self.tenant))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::nodes::tests::World;

    #[tokio::test]
    async fn a_profile_opens_what_it_says_to_its_tenants_until_it_says_otherwise() {
        let world = World::new().await;
        let stores = world.services.stores.clone();
        let operator = Options {
            allow: vec!["127.0.0.1".into()],
            ..Options::default()
        };
        let registry = EgressRegistry::new(operator.rules().unwrap(), stores.clone());
        let mut profile = stores.tenant_profiles.default_profile().await.unwrap().unwrap();
        let id = profile.id;
        let reached = async |tenant: TenantId, address: &str| {
            let error = registry
                .tenant_egress(tenant)
                .connect(address, 9)
                .await
                .unwrap_err();
            error.kind() != std::io::ErrorKind::PermissionDenied
        };
        assert!(reached(world.tenant, "127.0.0.1").await, "of the operator");
        assert!(!reached(world.tenant, "127.0.0.2").await);
        profile.profile_data["configuration"][ALLOWED_EGRESS] = json!(["127.0.0.2/31"]);
        let mut profile = stores.tenant_profiles.update(profile).await.unwrap();
        registry.on_change(EntityChange::saved(TenantId::NULL, id));
        assert!(reached(world.tenant, "127.0.0.2").await);
        assert!(
            !reached(TenantId::new(), "127.0.0.2").await,
            "others have another profile"
        );
        profile.profile_data["configuration"][ALLOWED_EGRESS] = json!(["127.0.0.2/31", "no host"]);
        stores.tenant_profiles.update(profile).await.unwrap();
        registry.on_change(EntityChange::saved(TenantId::NULL, id));
        let error = registry
            .tenant_egress(world.tenant)
            .connect("127.0.0.2", 9)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("`no host`"), "{error}");
    }

    #[test]
    fn ranges_and_hosts_have_keys_of_their_own() {
        let options = |allow: &str, hosts: &str| Options {
            allow: vec![allow.to_owned()],
            allow_hosts: vec![hosts.to_owned()],
        };
        assert!(options("10.0.0.0/8", "a.example").rules().is_ok());
        assert!(options("a.example", "a.example").rules().is_err());
        assert!(options("10.0.0.1/8", "a.example").rules().is_err());
        assert!(
            options("10.0.0.0/8", "http://a.example")
                .rules()
                .unwrap_err()
                .contains("allow-hosts")
        );
    }
}
