//! What lanes that fill up mean to others: people who look for the reason, and devices that go on sending.

use std::time::Instant;

use fieldline_core::ingest::TenantBacklog;
use fieldline_core::overload::{
    OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource,
};
use fieldline_model::TenantId;

use super::SlowLanes;

/// Devices with large records wait from this part of a tenant's backlog on: what was acknowledged before must find room.
const HOLDING_PART: u64 = 4;

impl OverloadSource for SlowLanes {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        let now = Instant::now();
        let accounting = self.accounting.lock();
        for (tenant, lane) in &accounting.tenants {
            let mut report = |subject: &'static str, measure, reason: &'static str| {
                into.push(OverloadSample {
                    kind: OverloadKind::SlowLane,
                    scope: OverloadScope::Tenant(*tenant),
                    subject: subject.into(),
                    measure,
                    limit: Some(self.options.backlog.to_string()),
                    reason: reason.into(),
                });
            };
            if lane.is_slow(now) {
                report(
                    "waiting messages",
                    OverloadMeasure::Level(lane.messages),
                    "Messages take so long that others would wait for them: they are processed apart, one after the other",
                );
            }
            if lane.counts.given_up > 0 {
                report(
                    "messages given up",
                    OverloadMeasure::Total(lane.counts.given_up),
                    "Messages were given up, because too many waited in the slow lane or they failed for too long",
                );
            }
        }
    }
}

impl TenantBacklog for SlowLanes {
    fn holds_back(&self, tenant: TenantId) -> bool {
        let accounting = self.accounting.lock();
        let held = accounting.tenants.get(&tenant).map_or(0, |lane| lane.bytes);
        // Once all lanes together are full, each tenant has less room.
        let are_filling = accounting.bytes > self.options.total_backlog() / HOLDING_PART;
        held > self.options.backlog.0 / HOLDING_PART || are_filling && held > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{ALL_TENANTS, LaneOptions};

    #[test]
    fn a_lane_that_fills_up_holds_back_and_lets_go() {
        let options = LaneOptions::default();
        let lanes = SlowLanes::new(&options);
        let (tenant, other) = (TenantId::new(), TenantId::new());
        let quarter = options.backlog.0 / HOLDING_PART;
        assert!(lanes.try_reserve(tenant, quarter / 2) && !lanes.holds_back(tenant));
        assert!(lanes.try_reserve(tenant, quarter / 2) && lanes.holds_back(tenant));
        assert!(!lanes.holds_back(other));
        lanes.release(tenant, quarter / 2);
        assert!(!lanes.holds_back(tenant));
        // The lanes of others fill up.
        for _ in 0..=ALL_TENANTS {
            assert!(lanes.try_reserve(TenantId::new(), quarter));
        }
        assert!(lanes.holds_back(tenant) && !lanes.holds_back(other));
    }
}
