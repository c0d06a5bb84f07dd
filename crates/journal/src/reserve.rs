//! The reserve for appends of the platform itself, when devices have no room left.
//!
//! Rule chains put messages into queues while they process records of the log. If these messages were refused like
//! those of devices, a log of the largest size would never shrink: its records could not be completed, so no segment
//! could be freed.

use std::collections::HashMap;

use fieldline_model::TenantId;

use crate::options::Options;

/// The part of the reserve left to other tenants, however much one takes: a quarter.
const OTHERS_DIVISOR: u64 = 4;

/// The use of the reserve by tenants.
#[derive(Debug)]
pub(crate) struct InternalReserve {
    /// The limit when the log has reached its largest size.
    limit: u64,
    /// The limit when the disk is full: the stores keep the other half of the space that devices leave.
    limit_when_full: u64,
    charges: HashMap<TenantId, u64>,
    used: u64,
}

impl InternalReserve {
    pub(crate) fn new(options: &Options) -> Self {
        let limit = options.reserve_bytes();
        Self {
            limit,
            limit_when_full: limit.min(options.min_free_disk.0 / 2),
            charges: HashMap::new(),
            used: 0,
        }
    }

    /// Returns whether a tenant may take this many bytes.
    pub(crate) fn has_room(&self, tenant: TenantId, bytes: u64, is_full: bool) -> bool {
        let limit = if is_full { self.limit_when_full } else { self.limit };
        let share = limit - limit / OTHERS_DIVISOR;
        let mine = self.charges.get(&tenant).copied().unwrap_or(0);
        self.used + bytes <= limit && mine + bytes <= share
    }

    /// Charges a tenant.
    pub(crate) fn charge(&mut self, tenant: TenantId, bytes: u64) {
        *self.charges.entry(tenant).or_default() += bytes;
        self.used += bytes;
    }

    /// Bytes taken.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Sets how far the log exceeds the limit for devices. If that is less than the bytes taken, the difference was
    /// freed, and is credited to the tenants in proportion. Returns whether there was any.
    pub(crate) fn shrink_to(&mut self, beyond: u64) -> bool {
        let before = self.used;
        if before <= beyond {
            return false;
        }
        self.charges.retain(|_, charge| {
            // Both factors are sizes of logs on one disk: the product needs more than 64 bits.
            *charge = (u128::from(*charge) * u128::from(beyond) / u128::from(before)) as u64;
            *charge > 0
        });
        self.used = self.charges.values().sum();
        true
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::options::ByteSize;

    use super::*;

    #[test]
    fn no_tenant_gets_all_of_it_and_what_is_given_back_is_given_back_to_all() {
        let (greedy, modest) = (TenantId::new(), TenantId::new());
        let mut reserve = InternalReserve::new(&Options {
            internal_reserve: Some(ByteSize(1000)),
            min_free_disk: ByteSize(200),
            ..Options::default()
        });
        assert!(reserve.has_room(greedy, 750, false));
        assert!(!reserve.has_room(greedy, 751, false));
        assert!(reserve.has_room(greedy, 75, true) && !reserve.has_room(greedy, 76, true));
        reserve.charge(greedy, 750);
        assert!(!reserve.has_room(greedy, 1, false));
        assert!(reserve.has_room(modest, 250, false) && !reserve.has_room(modest, 251, false));
        reserve.charge(modest, 250);
        assert!(!reserve.shrink_to(1000), "nothing was given back");
        assert!(reserve.shrink_to(500));
        assert_eq!(reserve.used(), 500);
        assert!(reserve.has_room(greedy, 375, false) && !reserve.has_room(greedy, 376, false));
        assert!(reserve.shrink_to(0));
        assert!(reserve.charges.is_empty());
    }
}
