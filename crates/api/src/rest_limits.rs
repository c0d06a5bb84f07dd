//! Rate limits for the requests of a tenant and a customer, set in the tenant profile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_core::clock::SharedClock;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::overload::RefusedLimit;
use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_core::rate_limits::{RateLimit, RateLimiter};
use fieldline_core::usage::UsageStore;
use fieldline_entities::access::Principal;
use fieldline_model::{CustomerId, EntityType, TenantId};
use quick_cache::sync::Cache;
use serde_json::Value;

use crate::error::{ApiError, ApiResult, ErrorCode};

/// Most tenants and customers counted; beyond that the count of the least recently used starts again.
const MAX_COUNTED: usize = 20_000;

/// Counts requests, and refuses those above the rate limit.
pub(crate) struct RestLimits {
    stores: EntityStores,
    clock: SharedClock,
    /// Where refusals are counted.
    usage: Arc<UsageStore>,
    tenants: Cache<TenantId, Arc<TenantRequestLimits>>,
    /// Counters of customers, with the limit they were created for.
    customers: Cache<(TenantId, CustomerId), Arc<CustomerRequestLimit>>,
    /// Counts the changes, so that a limit read before a change is not cached after it.
    changes: AtomicU64,
}

/// The limits of a tenant; an absent limit allows everything.
struct TenantRequestLimits {
    all: Option<RateLimiter>,
    per_customer: Option<RateLimit>,
}

struct CustomerRequestLimit {
    limit: RateLimit,
    limiter: RateLimiter,
}

impl RestLimits {
    pub(crate) fn new(stores: &EntityStores, clock: &SharedClock, usage: &Arc<UsageStore>) -> Self {
        Self {
            stores: stores.clone(),
            clock: Arc::clone(clock),
            usage: Arc::clone(usage),
            tenants: Cache::new(MAX_COUNTED),
            customers: Cache::new(MAX_COUNTED),
            changes: AtomicU64::new(0),
        }
    }

    /// Counts a request; system administrators have no limit.
    pub(crate) async fn try_acquire(&self, who: &Principal) -> ApiResult<()> {
        let refuse = |of: &'static str, limit: &RateLimit| {
            let limit = RefusedLimit::Rate(limit.clone());
            self.usage.of(who.tenant).refusals().add(of, "requests", limit);
            ApiError::new(
                ErrorCode::TooManyRequests,
                format!("Too many requests for current {of}!"),
            )
        };
        if who.tenant.is_null() {
            return Ok(());
        }
        let limits = self.of(who.tenant).await?;
        if let Some(all) = limits.all.as_ref().filter(|all| !all.try_take(1)) {
            return Err(refuse("tenant", all.limit()));
        }
        if let Some(limit) = limits.per_customer.as_ref().filter(|_| !who.customer.is_null()) {
            let of_customer = self.of_customer((who.tenant, who.customer), limit);
            if !of_customer.limiter.try_take(1) {
                return Err(refuse("customer", limit));
            }
        }
        Ok(())
    }

    /// Returns the counter of a customer; a new one if the limit has changed.
    fn of_customer(&self, key: (TenantId, CustomerId), limit: &RateLimit) -> Arc<CustomerRequestLimit> {
        let known = self.customers.get(&key);
        if let Some(known) = known.as_ref().filter(|known| known.limit == *limit) {
            return Arc::clone(known);
        }
        if known.is_some() {
            self.customers.remove(&key);
        }
        let made = Arc::new(CustomerRequestLimit {
            limit: limit.clone(),
            limiter: RateLimiter::new(limit.clone(), Arc::clone(&self.clock)),
        });
        // If several requests create a counter at the same time, all use the first one.
        self.customers
            .get_or_insert_with(&key, || Ok::<_, std::convert::Infallible>(Arc::clone(&made)))
            .unwrap_or(made)
    }

    async fn of(&self, tenant: TenantId) -> StoreResult<Arc<TenantRequestLimits>> {
        if let Some(known) = self.tenants.get(&tenant) {
            return Ok(known);
        }
        let before = self.changes.load(Ordering::Acquire);
        let profile = self.stores.profile_of(tenant).await?;
        let limit = |name: &str| {
            let text = profile.as_ref()?.setting(name).and_then(Value::as_str)?;
            RateLimit::parse(text).ok().flatten()
        };
        let all = limit("tenantServerRestLimitsConfiguration");
        let made = Arc::new(TenantRequestLimits {
            all: all.map(|limit| RateLimiter::new(limit, Arc::clone(&self.clock))),
            per_customer: limit("customerServerRestLimitsConfiguration"),
        });
        // If several requests create the limits at the same time, all use the first ones.
        let kept = self
            .tenants
            .get_or_insert_with(&tenant, || Ok::<_, std::convert::Infallible>(Arc::clone(&made)))
            .unwrap_or(made);
        if self.changes.load(Ordering::Acquire) != before {
            self.tenants.remove(&tenant);
        }
        Ok(kept)
    }
}

impl EntityListener for RestLimits {
    fn on_change(&self, change: EntityChange) {
        if !matches!(change.what, ChangeKind::Saved | ChangeKind::Deleted) {
            return;
        }
        match change.entity_type() {
            EntityType::Tenant => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.tenants.remove(&change.subject.tenant);
            }
            EntityType::TenantProfile => {
                self.changes.fetch_add(1, Ordering::AcqRel);
                self.tenants.clear();
            }
            _ => {}
        }
    }
}
