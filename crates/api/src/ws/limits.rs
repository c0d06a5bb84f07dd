//! Limits for the sessions and commands of a tenant, customer or user, set in the tenant profile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_core::clock::SharedClock;
use fieldline_core::overload::RefusedLimit;
use fieldline_core::ports::{EntityStores, StoreError};
use fieldline_core::rate_limits::{RateLimit, RateLimiter};
use fieldline_core::usage::UsageStore;
use fieldline_entities::access::Principal;
use fieldline_model::entity::{Authority, TenantProfile};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::Value;
use uuid::Uuid;

/// Most unauthenticated sockets of the whole installation.
const MAX_UNAUTHENTICATED: usize = 1_000;
/// Most sessions of the whole installation.
const MAX_SESSIONS: u64 = 50_000;

/// The resource that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WsLimitKind {
    Sessions,
    Commands,
}

/// A scope that resources are counted for, with the names of its limits.
struct WsScope {
    name: &'static str,
    max_sessions: &'static str,
    max_commands: &'static str,
}

const TENANT: WsScope = WsScope {
    name: "tenant",
    max_sessions: "maxWsSessionsPerTenant",
    max_commands: "maxWsSubscriptionsPerTenant",
};
const CUSTOMER: WsScope = WsScope {
    name: "customer",
    max_sessions: "maxWsSessionsPerCustomer",
    max_commands: "maxWsSubscriptionsPerCustomer",
};
const REGULAR_USER: WsScope = WsScope {
    name: "regular user",
    max_sessions: "maxWsSessionsPerRegularUser",
    max_commands: "maxWsSubscriptionsPerRegularUser",
};
const PUBLIC_USER: WsScope = WsScope {
    name: "public user",
    max_sessions: "maxWsSessionsPerPublicUser",
    max_commands: "maxWsSubscriptionsPerPublicUser",
};

/// Why a session was refused.
#[derive(Debug)]
pub(super) enum SessionRefusal {
    /// There are too many; the reason for the client.
    TooMany(String),
    /// The limits could not be read.
    Store(StoreError),
}

impl From<StoreError> for SessionRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Counts open sockets, sessions and commands.
pub(crate) struct WsLimits {
    /// Where refusals are counted.
    usage: Arc<UsageStore>,
    counts: Mutex<FxHashMap<(WsLimitKind, &'static str, Uuid), u64>>,
    unauthenticated: AtomicUsize,
}

/// A socket that is not authenticated yet.
pub(super) struct UnauthenticatedSocket(Arc<WsLimits>);

impl Drop for UnauthenticatedSocket {
    fn drop(&mut self) {
        self.0.unauthenticated.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The quota of a session, and what it has used.
pub(super) struct SessionQuota {
    limits: Arc<WsLimits>,
    who: Principal,
    profile: Option<TenantProfile>,
    rate: Option<RateLimiter>,
    /// Whether the session is counted; a refused one is not.
    is_counted: bool,
    commands: u64,
}

impl WsLimits {
    pub(crate) fn new(usage: &Arc<UsageStore>) -> Arc<Self> {
        Arc::new(Self {
            usage: Arc::clone(usage),
            counts: Mutex::default(),
            unauthenticated: AtomicUsize::new(0),
        })
    }

    /// Counts a socket until it is authenticated; `None` if there are too many.
    pub(super) fn try_admit_socket(self: &Arc<Self>) -> Option<UnauthenticatedSocket> {
        let unknown = UnauthenticatedSocket(Arc::clone(self));
        let before = self.unauthenticated.fetch_add(1, Ordering::AcqRel);
        (before < MAX_UNAUTHENTICATED).then_some(unknown)
    }

    /// Counts a session.
    ///
    /// # Errors
    /// There are too many, or the store failed.
    pub(super) async fn open(
        self: &Arc<Self>,
        stores: &EntityStores,
        clock: &SharedClock,
        who: Principal,
    ) -> Result<SessionQuota, SessionRefusal> {
        let profile = stores.profile_of(who.tenant).await?;
        let rate = profile
            .as_ref()
            .and_then(|profile| profile.setting("wsUpdatesPerSessionRateLimit"))
            .and_then(Value::as_str)
            .and_then(|text| RateLimit::parse(text).ok().flatten())
            .map(|limit| RateLimiter::new(limit, clock.clone()));
        let mut allowance = SessionQuota {
            limits: Arc::clone(self),
            who,
            profile,
            rate,
            is_counted: false,
            commands: 0,
        };
        allowance
            .try_acquire(WsLimitKind::Sessions)
            .map_err(SessionRefusal::TooMany)?;
        allowance.is_counted = true;
        Ok(allowance)
    }
}

impl SessionQuota {
    /// Counts a command.
    ///
    /// # Errors
    /// The reason: there are too many.
    pub(super) fn add_command(&mut self) -> Result<(), String> {
        self.try_acquire(WsLimitKind::Commands)?;
        self.commands += 1;
        Ok(())
    }

    /// Releases the count of a command.
    pub(super) fn end_command(&mut self) {
        if self.commands > 0 {
            self.commands -= 1;
            self.release(WsLimitKind::Commands, 1);
        }
    }

    /// Whether one more update is within the rate limit.
    pub(super) fn try_acquire_update(&self) -> bool {
        let Some(rate) = &self.rate else {
            return true;
        };
        let is_within = rate.try_take(1);
        if !is_within {
            let usage = self.limits.usage.of(self.who.tenant);
            let limit = RefusedLimit::Rate(rate.limit().clone());
            usage.refusals().add("WebSocket session", "updates", limit);
        }
        is_within
    }

    /// Returns the scopes that the session counts for, with their ids.
    fn scopes(&self) -> impl Iterator<Item = (WsScope, Uuid)> {
        let who = self.who;
        let is_customer = who.authority == Authority::CustomerUser;
        let is_public = is_customer && who.user.0 == who.customer.0;
        let scopes = [
            Some((TENANT, who.tenant.0)),
            is_customer.then_some((CUSTOMER, who.customer.0)),
            (is_customer && !is_public).then_some((REGULAR_USER, who.user.0)),
            is_public.then_some((PUBLIC_USER, who.tenant.0)),
        ];
        scopes.into_iter().flatten()
    }

    fn try_acquire(&self, what: WsLimitKind) -> Result<(), String> {
        let mut counts = self.limits.counts.lock();
        let limit_of = |name: &str| self.profile.as_ref().map_or(0, |profile| profile.limit(name));
        for (scope, id) in self.scopes() {
            let (name, things) = match what {
                WsLimitKind::Sessions => (scope.max_sessions, "sessions"),
                WsLimitKind::Commands => (scope.max_commands, "subscriptions"),
            };
            let limit = limit_of(name);
            let held = counts.get(&(what, scope.name, id)).copied().unwrap_or(0);
            if limit > 0 && held >= limit {
                let usage = self.limits.usage.of(self.who.tenant);
                usage
                    .refusals()
                    .add(scope.name, things, RefusedLimit::Count(limit));
                return Err(format!("Max {} {things} limit reached!", scope.name));
            }
        }
        if what == WsLimitKind::Sessions {
            let all = counts.entry((what, "all", Uuid::nil())).or_default();
            if *all >= MAX_SESSIONS {
                return Err("Max sessions limit reached!".to_owned());
            }
            *all += 1;
        }
        for (scope, id) in self.scopes() {
            *counts.entry((what, scope.name, id)).or_default() += 1;
        }
        Ok(())
    }

    fn release(&self, what: WsLimitKind, count: u64) {
        let mut counts = self.limits.counts.lock();
        let all = (what == WsLimitKind::Sessions).then_some(("all", Uuid::nil()));
        let own = self.scopes().map(|(scope, id)| (scope.name, id));
        for (scope, id) in own.chain(all) {
            let key = (what, scope, id);
            let left = counts.get(&key).copied().unwrap_or(0).saturating_sub(count);
            if left == 0 {
                counts.remove(&key);
            } else {
                counts.insert(key, left);
            }
        }
    }
}

impl Drop for SessionQuota {
    fn drop(&mut self) {
        if self.is_counted {
            self.release(WsLimitKind::Sessions, 1);
            if self.commands > 0 {
                self.release(WsLimitKind::Commands, self.commands);
            }
        }
    }
}
