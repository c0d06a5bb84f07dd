//! How many sessions and commands a tenant, customer or user may have, as the tenant's profile says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{EntityStores, StoreResult};
use fieldline_core::rate_limits::{RateLimit, RateLimiter};
use fieldline_entities::access::Principal;
use fieldline_model::entity::{Authority, TenantProfile};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::Value;
use uuid::Uuid;

/// Sockets of the whole installation that have not said yet who is there.
const MAX_UNAUTHENTICATED: usize = 1_000;
/// Sessions of the whole installation.
const MAX_SESSIONS: u64 = 50_000;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WsLimitKind {
    Sessions,
    Commands,
}

/// Whose it is counted for, and the names of the limits on sessions and commands.
const SCOPES: [(&str, &str, &str); 4] = [
    ("tenant", "maxWsSessionsPerTenant", "maxWsSubscriptionsPerTenant"),
    (
        "customer",
        "maxWsSessionsPerCustomer",
        "maxWsSubscriptionsPerCustomer",
    ),
    (
        "regular user",
        "maxWsSessionsPerRegularUser",
        "maxWsSubscriptionsPerRegularUser",
    ),
    (
        "public user",
        "maxWsSessionsPerPublicUser",
        "maxWsSubscriptionsPerPublicUser",
    ),
];

/// Counts what is open.
#[derive(Default)]
pub(crate) struct WsLimits {
    counts: Mutex<FxHashMap<(WsLimitKind, &'static str, Uuid), u64>>,
    unauthenticated: AtomicUsize,
}

/// A socket that has not said yet who is there.
pub(super) struct UnauthenticatedSocket(Arc<WsLimits>);

impl Drop for UnauthenticatedSocket {
    fn drop(&mut self) {
        self.0.unauthenticated.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a session may do, and has counted.
pub(super) struct SessionQuota {
    limits: Arc<WsLimits>,
    who: Principal,
    profile: Option<TenantProfile>,
    rate: Option<RateLimiter>,
    /// Whether the session is counted; one that was refused is not.
    is_counted: bool,
    commands: u64,
}

impl WsLimits {
    /// Counts a socket until it has said who is there; `None` where there are too many.
    pub(super) fn try_admit_socket(self: &Arc<Self>) -> Option<UnauthenticatedSocket> {
        let unknown = UnauthenticatedSocket(Arc::clone(self));
        let before = self.unauthenticated.fetch_add(1, Ordering::AcqRel);
        (before < MAX_UNAUTHENTICATED).then_some(unknown)
    }

    /// Counts a session.
    ///
    /// # Errors
    /// The reason why there are too many.
    pub(super) async fn open(
        self: &Arc<Self>,
        stores: &EntityStores,
        clock: &SharedClock,
        who: Principal,
    ) -> StoreResult<Result<SessionQuota, String>> {
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
        if let Err(reason) = allowance.try_acquire(WsLimitKind::Sessions) {
            return Ok(Err(reason));
        }
        allowance.is_counted = true;
        Ok(Ok(allowance))
    }
}

impl SessionQuota {
    /// Counts a command.
    ///
    /// # Errors
    /// The reason why there are too many.
    pub(super) fn add_command(&mut self) -> Result<(), String> {
        self.try_acquire(WsLimitKind::Commands)?;
        self.commands += 1;
        Ok(())
    }

    /// Counts a command no longer.
    pub(super) fn end_command(&mut self) {
        if self.commands > 0 {
            self.commands -= 1;
            self.release(WsLimitKind::Commands, 1);
        }
    }

    /// Whether one more update may be sent.
    pub(super) fn try_acquire_update(&self) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.try_take(1))
    }

    /// Those whom something counts for.
    fn scopes(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, Uuid)> {
        let who = self.who;
        let is_customer = who.authority == Authority::CustomerUser;
        let is_public = is_customer && who.user.0 == who.customer.0;
        SCOPES.into_iter().filter_map(move |(scope, sessions, commands)| {
            let id = match scope {
                "tenant" => Some(who.tenant.0),
                "customer" => is_customer.then_some(who.customer.0),
                "regular user" => (is_customer && !is_public).then_some(who.user.0),
                _ => is_public.then_some(who.tenant.0),
            };
            id.map(|id| (scope, sessions, commands, id))
        })
    }

    fn try_acquire(&self, what: WsLimitKind) -> Result<(), String> {
        let mut counts = self.limits.counts.lock();
        let limit_of = |name: &str| self.profile.as_ref().map_or(0, |profile| profile.limit(name));
        for (scope, sessions, commands, id) in self.scopes() {
            let (name, things) = match what {
                WsLimitKind::Sessions => (sessions, "sessions"),
                WsLimitKind::Commands => (commands, "subscriptions"),
            };
            let limit = limit_of(name);
            let held = counts.get(&(what, scope, id)).copied().unwrap_or(0);
            if limit > 0 && held >= limit {
                return Err(format!("Max {scope} {things} limit reached!"));
            }
        }
        if what == WsLimitKind::Sessions {
            let all = counts.entry((what, "all", Uuid::nil())).or_default();
            if *all >= MAX_SESSIONS {
                return Err("Max sessions limit reached!".to_owned());
            }
            *all += 1;
        }
        for (scope, _, _, id) in self.scopes() {
            *counts.entry((what, scope, id)).or_default() += 1;
        }
        Ok(())
    }

    fn release(&self, what: WsLimitKind, count: u64) {
        let mut counts = self.limits.counts.lock();
        let all = (what == WsLimitKind::Sessions).then_some(("all", Uuid::nil()));
        let own = self.scopes().map(|(scope, _, _, id)| (scope, id));
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
