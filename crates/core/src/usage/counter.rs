//! A usage counter local to one thread.

use std::sync::Arc;

use fieldline_model::TenantId;
use rustc_hash::FxHashMap;

use super::{ApiFeature, KEYS, TenantUsage, UsageKey, UsageStore};

/// Most tenants that a counter remembers.
const REMEMBERED: usize = 4_096;

/// Counts for one thread without touching shared data, until [`flush`](Self::flush) is called or the tenant changes.
pub struct UsageCounter {
    store: Arc<UsageStore>,
    known: FxHashMap<TenantId, Arc<TenantUsage>>,
    tenant: TenantId,
    usage: Arc<TenantUsage>,
    counts: [u64; KEYS],
    is_dirty: bool,
}

impl UsageCounter {
    /// Creates a counter at zero.
    pub fn new(book: Arc<UsageStore>) -> Self {
        let usage = book.of(TenantId::NULL);
        Self {
            store: book,
            known: FxHashMap::default(),
            tenant: TenantId::NULL,
            usage,
            counts: [0; KEYS],
            is_dirty: false,
        }
    }

    /// Adds to a count of a tenant.
    pub fn add(&mut self, tenant: TenantId, key: UsageKey, count: u64) {
        self.turn_to(tenant);
        if let Some(counter) = self.counts.get_mut(key.index()) {
            *counter += count;
            self.is_dirty = true;
        }
    }

    /// Returns whether a tenant may use a feature.
    pub fn allows(&mut self, tenant: TenantId, feature: ApiFeature) -> bool {
        self.turn_to(tenant);
        self.usage.allows(feature)
    }

    /// Adds the local counts to the shared ones.
    pub fn flush(&mut self) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        for (key, count) in UsageKey::ALL.into_iter().zip(&mut self.counts) {
            if *count > 0 {
                self.usage.add(key, std::mem::take(count));
            }
        }
    }

    fn turn_to(&mut self, tenant: TenantId) {
        if self.tenant == tenant {
            return;
        }
        self.flush();
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let book = &self.store;
        self.usage = Arc::clone(self.known.entry(tenant).or_insert_with(|| book.of(tenant)));
        self.tenant = tenant;
    }
}

impl Drop for UsageCounter {
    fn drop(&mut self) {
        self.flush();
    }
}
