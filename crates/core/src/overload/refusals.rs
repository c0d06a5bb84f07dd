//! Counts of what was refused to one tenant.

use std::borrow::Cow;
use std::fmt;

use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{OverloadKind, OverloadMeasure, OverloadSample, OverloadScope};
use crate::rate_limits::RateLimit;

/// The limit that refused something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedLimit {
    /// So many in a time.
    Rate(RateLimit),
    /// So many at once.
    Count(u64),
}

impl fmt::Display for RefusedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(limit) => limit.fmt(f),
            Self::Count(limit) => limit.fmt(f),
        }
    }
}

#[derive(Debug)]
struct RefusalCount {
    count: u64,
    limit: RefusedLimit,
}

/// How often limits have refused something to one tenant since the program started.
#[derive(Debug, Default)]
pub struct RefusalCounts(Mutex<FxHashMap<(&'static str, &'static str), RefusalCount>>);

impl RefusalCounts {
    /// Counts a refusal: by whose limit (a device's, the tenant's), of what (messages, sessions), and the limit.
    pub fn add(&self, whose: &'static str, of: &'static str, limit: RefusedLimit) {
        let mut counts = self.0.lock();
        let counted = counts.entry((whose, of)).or_insert_with(|| RefusalCount {
            count: 0,
            limit: limit.clone(),
        });
        counted.count += 1;
        counted.limit = limit;
    }

    /// Adds the counts to the samples of a look.
    pub(crate) fn collect(&self, tenant: TenantId, into: &mut Vec<OverloadSample>) {
        for ((whose, of), counted) in &*self.0.lock() {
            let limit = counted.limit.to_string();
            let (kind, reason) = match counted.limit {
                RefusedLimit::Rate(_) => (
                    OverloadKind::RateLimit,
                    format!(
                        "The rate limit of {of} of a {whose} ({limit}) was exceeded: what came beyond it was refused"
                    ),
                ),
                RefusedLimit::Count(_) => (
                    OverloadKind::CountLimit,
                    format!("A {whose} has as many {of} as it may have ({limit}): further ones were refused"),
                ),
            };
            into.push(OverloadSample {
                kind,
                scope: OverloadScope::Tenant(tenant),
                subject: Cow::Owned(format!("{whose}: {of}")),
                measure: OverloadMeasure::Total(counted.count),
                limit: Some(limit),
                reason: reason.into(),
            });
        }
    }
}
