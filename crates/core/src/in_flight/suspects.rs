//! The possible causes of earlier crashes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::kept::KeptSuspects;
use super::{BatchIsolation, InFlightBatch, InFlightKept, InFlightWork, LoadInHand};
use crate::ports::{Offset, Partition};

/// Crashes with an item alone in flight after which it is not tried again, provided that at least once nothing else was
/// running at all.
const MIN_CRASHES: u32 = 2;
/// The same limit if other work was running each time: that work was suspected as well, and has been cleared since.
const MIN_CRASHES_WITH_OTHERS: u32 = 5;
/// Most suspected loads remembered: beyond it, the oldest that may be innocent is dropped.
const MAX_LOADS: usize = 1_000;

/// The number of crashes with an item in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashCount {
    /// Crashes with no other item of the suspected kind in flight.
    pub alone: u32,
    /// Of these, crashes with nothing else in flight at all.
    pub sole: u32,
}

impl CrashCount {
    /// Returns whether the item must not be tried again.
    pub const fn is_proof(self) -> bool {
        (self.alone >= MIN_CRASHES && self.sole > 0) || self.alone >= MIN_CRASHES_WITH_OTHERS
    }

    pub(super) fn add(&mut self, sole: bool) {
        self.alone = self.alone.saturating_add(1);
        self.sole = self.sole.saturating_add(sole.into());
    }
}

/// A range of records, one of which may have crashed the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SuspectRange {
    queue: u16,
    partition: u16,
    first: u64,
    next: u64,
}

impl SuspectRange {
    const fn is_of(&self, partition: Partition) -> bool {
        self.queue == partition.queue.0 && self.partition == partition.index
    }
}

/// A record that was alone in flight at a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SuspectRecord {
    queue: u16,
    partition: u16,
    offset: u64,
    deaths: CrashCount,
}

impl SuspectRecord {
    const fn is_of(&self, partition: Partition) -> bool {
        self.queue == partition.queue.0 && self.partition == partition.index
    }
}

/// An item that was being loaded at a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SuspectLoad {
    tenant: Uuid,
    id: Uuid,
    version: i64,
    deaths: CrashCount,
}

/// How a record is to be processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordTreatment {
    /// Together with others.
    Usual,
    /// With no other suspect in flight.
    Apart,
    /// With nothing else running: it was alone in flight at a crash.
    Exclusively,
    /// Not at all: it is set aside.
    SetAside(CrashCount),
}

/// All suspects; handed from one process to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrashSuspects {
    ranges: Vec<SuspectRange>,
    records: Vec<SuspectRecord>,
    loads: Vec<SuspectLoad>,
    pub(super) kept: KeptSuspects,
}

impl CrashSuspects {
    /// Counts a crash with this work in flight.
    pub fn count(&mut self, left: &[InFlightWork]) {
        let packs: Vec<InFlightBatch> = left.iter().filter_map(InFlightWork::pack).collect();
        let loads: Vec<LoadInHand> = left.iter().filter_map(InFlightWork::load).collect();
        for pack in &packs {
            self.add_range(pack);
            // Of several batches in flight in the usual way, any may be the cause.
            let is_alone = packs.len() == 1 || pack.isolation != BatchIsolation::Usual;
            if pack.is_single() && is_alone {
                let is_sole = packs.len() == 1 && loads.is_empty();
                self.record(pack.partition, pack.first).add(is_sole);
            }
        }
        let is_undisturbed = packs
            .iter()
            .all(|pack| pack.isolation == BatchIsolation::Exclusively);
        for load in &loads {
            let deaths = self.load(*load);
            if loads.len() == 1 {
                deaths.add(is_undisturbed);
            }
        }
        self.bound_loads();
        let kept: Vec<InFlightKept> = left.iter().filter_map(InFlightWork::kept).collect();
        self.kept.count(&kept, is_undisturbed && loads.is_empty());
    }

    fn add_range(&mut self, pack: &InFlightBatch) {
        let mut added = SuspectRange {
            queue: pack.partition.queue.0,
            partition: pack.partition.index,
            first: pack.first.0,
            next: pack.end.0,
        };
        // Overlapping or adjacent ranges are merged.
        self.ranges.retain(|range| {
            let apart = !range.is_of(pack.partition) || range.next < added.first || range.first > added.next;
            if !apart {
                added.first = added.first.min(range.first);
                added.next = added.next.max(range.next);
            }
            apart
        });
        self.ranges.push(added);
    }

    fn record(&mut self, partition: Partition, offset: Offset) -> &mut CrashCount {
        let known = self
            .records
            .iter()
            .position(|record| record.is_of(partition) && record.offset == offset.0);
        let at = known.unwrap_or_else(|| {
            self.records.push(SuspectRecord {
                queue: partition.queue.0,
                partition: partition.index,
                offset: offset.0,
                deaths: CrashCount::default(),
            });
            self.records.len() - 1
        });
        &mut self.records[at].deaths
    }

    fn load(&mut self, load: LoadInHand) -> &mut CrashCount {
        let (tenant, id) = (load.tenant.0, load.id);
        // Another version counts as another item.
        self.loads
            .retain(|known| known.id != id || known.tenant != tenant || known.version == load.version);
        let known = self
            .loads
            .iter()
            .position(|known| known.id == id && known.tenant == tenant);
        let at = known.unwrap_or_else(|| {
            self.loads.push(SuspectLoad {
                tenant,
                id,
                version: load.version,
                deaths: CrashCount::default(),
            });
            self.loads.len() - 1
        });
        &mut self.loads[at].deaths
    }

    fn bound_loads(&mut self) {
        while self.loads.len() > MAX_LOADS {
            let innocent = self.loads.iter().position(|load| !load.deaths.is_proof());
            self.loads.remove(innocent.unwrap_or_default());
        }
    }

    /// Returns how the record at a position is to be processed, and the position up to which this holds, at most
    /// `next`.
    pub(crate) fn treatment(
        &self,
        partition: Partition,
        at: Offset,
        next: Offset,
    ) -> (RecordTreatment, Offset) {
        let mut until = next.0;
        for range in self.ranges.iter().filter(|range| range.is_of(partition)) {
            if range.first <= at.0 && at.0 < range.next {
                let known = self
                    .records
                    .iter()
                    .find(|record| record.is_of(partition) && record.offset == at.0);
                let treatment = match known.map(|record| record.deaths) {
                    Some(deaths) if deaths.is_proof() => RecordTreatment::SetAside(deaths),
                    Some(_) => RecordTreatment::Exclusively,
                    None => RecordTreatment::Apart,
                };
                return (treatment, Offset(at.0 + 1));
            }
            if range.first > at.0 {
                until = until.min(range.first);
            }
        }
        (RecordTreatment::Usual, Offset(until))
    }

    /// The number of crashes while this item was loaded; `None` if there was none.
    pub(crate) fn deaths_of(&self, load: LoadInHand) -> Option<CrashCount> {
        self.loads
            .iter()
            .find(|known| {
                known.id == load.id && known.tenant == load.tenant.0 && known.version == load.version
            })
            .map(|known| known.deaths)
    }

    /// Clears the suspects before a position, because they are stored. Returns whether one of them was a record that
    /// was alone in flight at a crash.
    pub(crate) fn clear_before(&mut self, partition: Partition, position: Offset) -> bool {
        for range in self.ranges.iter_mut().filter(|range| range.is_of(partition)) {
            range.first = range.first.max(position.0);
        }
        self.ranges.retain(|range| range.first < range.next);
        let before = self.records.len();
        self.records
            .retain(|record| !record.is_of(partition) || record.offset >= position.0);
        self.records.len() < before
    }

    /// Clears the suspects from a position on: the journal ends there, and later records are new.
    pub(crate) fn cut_off(&mut self, partition: Partition, end: Offset) {
        for range in self.ranges.iter_mut().filter(|range| range.is_of(partition)) {
            range.next = range.next.min(end.0);
        }
        self.ranges.retain(|range| range.first < range.next);
        self.records
            .retain(|record| !record.is_of(partition) || record.offset < end.0);
    }

    /// Ends the suspicion of an item that was loaded. Returns whether it was suspected.
    pub(crate) fn acquit(&mut self, load: LoadInHand) -> bool {
        let before = self.loads.len();
        self.loads
            .retain(|known| known.id != load.id || known.tenant != load.tenant.0);
        self.loads.len() < before
    }

    /// Returns whether any record is suspected.
    pub(crate) fn has_records(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Returns whether any load is suspected.
    pub(crate) fn has_loads(&self) -> bool {
        !self.loads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::TenantId;

    use super::*;
    use crate::ports::QueueId;

    const HERE: Partition = Partition {
        queue: QueueId(0),
        index: 1,
    };
    const THERE: Partition = Partition {
        queue: QueueId(0),
        index: 2,
    };

    fn pack(partition: Partition, first: u64, next: u64, taken: BatchIsolation) -> InFlightWork {
        InFlightWork::Pack(InFlightBatch {
            partition,
            first: Offset(first),
            end: Offset(next),
            isolation: taken,
        })
    }

    fn chain(version: i64) -> LoadInHand {
        LoadInHand {
            tenant: TenantId(Uuid::from_u128(1)),
            id: Uuid::from_u128(2),
            version,
        }
    }

    fn after(deaths: &[&[InFlightWork]]) -> CrashSuspects {
        let mut suspects = CrashSuspects::default();
        for left in deaths {
            suspects.count(left);
        }
        suspects
    }

    fn treated(suspects: &CrashSuspects, partition: Partition, at: u64) -> RecordTreatment {
        suspects.treatment(partition, Offset(at), Offset(1_000)).0
    }

    const PROVEN: RecordTreatment = RecordTreatment::SetAside(CrashCount { alone: 2, sole: 2 });

    #[test]
    fn a_pack_is_suspected_record_by_record_and_what_is_around_it_is_not() {
        let suspects = after(&[&[pack(HERE, 10, 20, BatchIsolation::Usual)]]);
        let at = |at| suspects.treatment(HERE, Offset(at), Offset(100));
        assert_eq!(at(3), (RecordTreatment::Usual, Offset(10)));
        assert_eq!(at(10), (RecordTreatment::Apart, Offset(11)));
        assert_eq!(at(19), (RecordTreatment::Apart, Offset(20)));
        assert_eq!(at(20), (RecordTreatment::Usual, Offset(100)));
        assert_eq!(treated(&suspects, THERE, 10), RecordTreatment::Usual);
    }

    #[test]
    fn a_record_alone_at_two_deaths_is_set_aside_and_at_one_it_is_not() {
        let once: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Usual)];
        assert_eq!(treated(&after(&[once]), HERE, 10), RecordTreatment::Exclusively);
        let again: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Exclusively)];
        assert_eq!(treated(&after(&[once, again]), HERE, 10), PROVEN);
        // In a batch of many, the record has to be found first.
        let many: &[InFlightWork] = &[pack(HERE, 0, 50, BatchIsolation::Usual)];
        let apart: &[InFlightWork] = &[
            pack(HERE, 10, 11, BatchIsolation::Apart),
            pack(THERE, 0, 9, BatchIsolation::Usual),
        ];
        let found = after(&[many, apart]);
        assert_eq!(treated(&found, HERE, 10), RecordTreatment::Exclusively);
        assert_eq!(treated(&found, HERE, 11), RecordTreatment::Apart);
        assert_eq!(treated(&found, THERE, 3), RecordTreatment::Apart);
        assert!(matches!(
            treated(&after(&[many, apart, again]), HERE, 10),
            RecordTreatment::SetAside(_)
        ));
    }

    #[test]
    fn packs_that_were_in_hand_together_prove_nothing() {
        let both: &[InFlightWork] = &[
            pack(HERE, 10, 11, BatchIsolation::Usual),
            pack(THERE, 5, 6, BatchIsolation::Usual),
        ];
        let suspects = after(&[both, both, both]);
        assert_eq!(treated(&suspects, HERE, 10), RecordTreatment::Apart);
        assert_eq!(treated(&suspects, THERE, 5), RecordTreatment::Apart);
    }

    #[test]
    fn a_record_that_always_has_company_is_tried_five_times() {
        let company: &[InFlightWork] = &[
            pack(HERE, 10, 11, BatchIsolation::Exclusively),
            pack(THERE, 5, 9, BatchIsolation::Usual),
        ];
        let four = after(&[company; 4]);
        assert_eq!(treated(&four, HERE, 10), RecordTreatment::Exclusively);
        assert!(matches!(
            treated(&after(&[company; 5]), HERE, 10),
            RecordTreatment::SetAside(_)
        ));
    }

    #[test]
    fn what_was_stored_is_no_longer_suspected() {
        let once: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Usual)];
        let mut suspects = after(&[once]);
        assert!(!suspects.clear_before(HERE, Offset(10)));
        assert!(suspects.has_records());
        assert!(suspects.clear_before(HERE, Offset(11)));
        assert_eq!(suspects, CrashSuspects::default());
        // Records that the journal lost are replaced by others.
        let mut suspects = after(&[&[pack(HERE, 10, 20, BatchIsolation::Usual)], once]);
        suspects.cut_off(HERE, Offset(15));
        assert_eq!(treated(&suspects, HERE, 14), RecordTreatment::Apart);
        assert_eq!(treated(&suspects, HERE, 15), RecordTreatment::Usual);
        suspects.cut_off(HERE, Offset(10));
        assert_eq!(suspects, CrashSuspects::default());
    }

    #[test]
    fn what_kills_while_it_is_loaded_is_told_from_the_record_that_needs_it() {
        let load = InFlightWork::Load(chain(3));
        let first: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Usual), load];
        let suspects = after(&[first]);
        assert_eq!(
            suspects.deaths_of(chain(3)),
            Some(CrashCount { alone: 1, sole: 0 })
        );
        assert_eq!(treated(&suspects, HERE, 10), RecordTreatment::Exclusively);
        let second: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Exclusively), load];
        let mut suspects = after(&[first, second]);
        assert!(suspects.deaths_of(chain(3)).unwrap().is_proof());
        assert_eq!(
            treated(&suspects, HERE, 10),
            RecordTreatment::Exclusively,
            "the record is not to blame"
        );
        // A changed version is loaded again.
        assert_eq!(suspects.deaths_of(chain(4)), None);
        assert!(suspects.acquit(chain(4)));
        assert!(!suspects.has_loads());
    }

    #[test]
    fn what_is_loaded_while_a_record_kills_is_not_to_blame() {
        let load = InFlightWork::Load(chain(3));
        let first: &[InFlightWork] = &[
            pack(HERE, 10, 11, BatchIsolation::Apart),
            pack(THERE, 0, 5, BatchIsolation::Usual),
            load,
        ];
        // The record gets its second try with nothing else running.
        let second: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Exclusively)];
        let suspects = after(&[first, second]);
        assert!(matches!(
            treated(&suspects, HERE, 10),
            RecordTreatment::SetAside(_)
        ));
        assert!(!suspects.deaths_of(chain(3)).unwrap().is_proof());
    }

    #[test]
    fn what_is_remembered_of_loads_is_bounded() {
        let mut suspects = CrashSuspects::default();
        let proven = chain(1);
        for _ in 0..2 {
            suspects.count(&[InFlightWork::Load(proven)]);
        }
        for id in 100..100 + MAX_LOADS as u128 {
            let load = LoadInHand {
                id: Uuid::from_u128(id),
                ..proven
            };
            suspects.count(&[InFlightWork::Load(load)]);
        }
        assert_eq!(suspects.loads.len(), MAX_LOADS);
        assert!(suspects.deaths_of(proven).is_some(), "what is proven stays");
    }

    #[test]
    fn what_waits_in_a_lane_is_no_alibi_for_a_record_that_is_tried_by_itself() {
        let kept = InFlightWork::Kept(InFlightKept {
            tenant: chain(1).tenant,
            id: Uuid::from_u128(3),
        });
        let beside: &[InFlightWork] = &[pack(HERE, 10, 11, BatchIsolation::Exclusively), kept];
        assert_eq!(treated(&after(&[beside, beside]), HERE, 10), PROVEN);
    }
}
