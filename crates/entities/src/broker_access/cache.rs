//! What log-ins ask for: read from the stores once in a while, and again after a change.

use std::sync::Arc;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::MqttClientCredentials;
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tracing::warn;

use super::AccessState;
use super::blocked::BlockedClients;
use super::prepared::{PasswordDigester, PreparedCredentials};
use super::prepared_providers::PreparedProviders;
use super::provider_store;
use super::refused::MOST_BLOCKED;
use super::snapshot::{ChangeCount, Snapshot, is_true};

static UNREADABLE_GATE: LogGate = LogGate::new(2);

/// Memory of cached credentials, bytes.
pub(super) const CACHED_BYTES: u64 = 64 << 20;
/// About how many credentials that is.
const CACHED: usize = 50_000;
/// Most credentials for certificates whose common name is an expression: each log-in with a certificate asks all of them.
const MOST_CERTIFICATES: u32 = 1_000;

/// What is known of a credentials id: its credentials, or that there are none.
#[derive(Clone)]
struct CachedCredentials {
    found: Option<Arc<PreparedCredentials>>,
    read_at: i64,
}

#[derive(Clone)]
struct CredentialsWeighter;

impl Weighter<String, CachedCredentials> for CredentialsWeighter {
    fn weight(&self, id: &String, cached: &CachedCredentials) -> u64 {
        let found = cached.found.as_ref().map_or(0, |found| found.cost());
        (size_of::<CachedCredentials>() + 64 + id.len()) as u64 + found
    }
}

/// See the module.
pub(super) struct AccessCache {
    credentials: Cache<String, CachedCredentials, CredentialsWeighter>,
    changes: ChangeCount,
    certificates: Snapshot<Vec<Arc<PreparedCredentials>>>,
    providers: Snapshot<PreparedProviders>,
    /// What was made of the settings last: connections to servers and fetched keys stay as long as those are the same.
    last_providers: Mutex<Option<PreparedProviders>>,
    blocked: Snapshot<BlockedClients>,
    pub(super) digester: PasswordDigester,
}

impl AccessCache {
    pub(super) fn new() -> Self {
        Self {
            credentials: Cache::with_weighter(CACHED, CACHED_BYTES, CredentialsWeighter),
            changes: ChangeCount::default(),
            certificates: Snapshot::default(),
            providers: Snapshot::default(),
            last_providers: Mutex::default(),
            blocked: Snapshot::default(),
            digester: PasswordDigester::new(),
        }
    }

    /// Credentials have changed: those that are found by one of these ids.
    pub(super) fn forget_credentials<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        self.changes.increment();
        for id in ids {
            self.credentials.remove(id);
        }
        self.certificates.forget();
    }

    pub(super) fn forget_providers(&self) {
        self.providers.forget();
    }

    pub(super) fn forget_blocked(&self) {
        self.blocked.forget();
    }
}

/// Compiles stored credentials; those that cannot be let nobody in.
fn prepared(stored: MqttClientCredentials) -> Option<Arc<PreparedCredentials>> {
    let (id, name) = (stored.id, stored.name.clone());
    match PreparedCredentials::new(stored) {
        Ok(prepared) => Some(Arc::new(prepared)),
        Err(error) => {
            if let Some(suppressed) = UNREADABLE_GATE.open() {
                warn!(%id, name, error, suppressed, "credentials of an MQTT client cannot be used");
            }
            None
        }
    }
}

/// Compiles many expressions, where that keeps nobody else waiting.
async fn compiled<T: Send + 'static>(compile: impl FnOnce() -> T + Send + 'static) -> StoreResult<T> {
    tokio::task::spawn_blocking(compile).await.map_err(|cause| {
        StoreError::new(StoreErrorKind::Unavailable, "cannot compile expressions").caused_by(cause)
    })
}

impl AccessState {
    /// The credentials with these ids, in the order of the ids.
    pub(super) async fn credentials(&self, ids: &[String]) -> StoreResult<Vec<Arc<PreparedCredentials>>> {
        let cache = &self.cache;
        let now = self.now();
        let cached: Vec<Option<CachedCredentials>> =
            ids.iter().map(|id| cache.credentials.get(id.as_str())).collect();
        let missing: Vec<String> = ids
            .iter()
            .zip(&cached)
            .filter(|(_, cached)| cached.as_ref().is_none_or(|cached| !is_true(cached.read_at, now)))
            .map(|(id, _)| id.clone())
            .collect();
        if missing.is_empty() {
            return Ok(cached.into_iter().filter_map(|cached| cached?.found).collect());
        }
        let version = cache.changes.get();
        let mut read = self
            .context
            .stores
            .mqtt_clients
            .by_credentials_ids(&missing)
            .await?;
        let mut all = Vec::with_capacity(ids.len());
        for (id, cached) in ids.iter().zip(cached) {
            if !missing.contains(id) {
                all.extend(cached.and_then(|cached| cached.found));
                continue;
            }
            let place = read.iter().position(|stored| stored.credentials_id == *id);
            let stored = place.map(|place| read.swap_remove(place));
            let before = cached.and_then(|cached| cached.found);
            let found = match (stored, before) {
                // Nothing has changed: what is compiled stays, and which password was right.
                (Some(stored), Some(before)) if before.stored == stored => Some(before),
                (Some(stored), _) => prepared(stored),
                (None, _) => None,
            };
            let entry = CachedCredentials {
                found: found.clone(),
                read_at: now,
            };
            cache.credentials.insert(id.clone(), entry);
            if cache.changes.get() != version {
                cache.credentials.remove(id.as_str());
            }
            all.extend(found);
        }
        Ok(all)
    }

    /// The credentials for certificates whose common name is an expression, oldest first.
    pub(super) async fn certificate_patterns(&self) -> StoreResult<Arc<Vec<Arc<PreparedCredentials>>>> {
        let clients = &self.context.stores.mqtt_clients;
        let read = async {
            let stored = clients.certificate_patterns(MOST_CERTIFICATES).await?;
            compiled(move || stored.into_iter().filter_map(prepared).collect::<Vec<_>>()).await
        };
        self.cache.certificates.get_or_read(|| self.now(), read).await
    }

    /// The ways in which clients show who they are.
    pub(super) async fn auth_providers(&self) -> StoreResult<Arc<PreparedProviders>> {
        let settings = &self.context.stores.settings;
        let read = async {
            let (providers, order) = futures::future::try_join(
                provider_store::load(settings),
                provider_store::load_order(settings),
            )
            .await?;
            let last = self.cache.last_providers.lock().clone();
            let prepared =
                PreparedProviders::new(providers, order, last.as_ref(), &*self.context.rest_endpoints);
            *self.cache.last_providers.lock() = Some(prepared.clone());
            Ok(prepared)
        };
        self.cache.providers.get_or_read(|| self.now(), read).await
    }

    /// The clients that may not connect.
    pub(super) async fn blocked(&self) -> StoreResult<Arc<BlockedClients>> {
        let clients = &self.context.stores.mqtt_clients;
        let read = async {
            let stored = clients.blocked(MOST_BLOCKED).await?;
            compiled(move || BlockedClients::new(stored)).await
        };
        self.cache.blocked.get_or_read(|| self.now(), read).await
    }
}
