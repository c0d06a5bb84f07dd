//! Settings as devices share them, and how their devices learn that they have changed: whatever they are made of has a mark
//! that says when that was. A change sets one mark, however many devices there are; each device compares it with what it
//! has read when it is asked.

use std::hash::{BuildHasher as _, Hash};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_model::{DeviceProfileId, EntityType, TenantId, TenantProfileId};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::handle::DeviceSettings;

/// What settings are made of, and what has changes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SettingsSource {
    Tenant(TenantId),
    DeviceProfile(DeviceProfileId),
    TenantProfile(TenantProfileId),
}

impl SettingsSource {
    /// What a change is one of, if it is one of these.
    pub(super) const fn of(change: EntityChange) -> Option<Self> {
        let entity = change.subject.entity;
        match (entity.entity_type, change.what) {
            (EntityType::DeviceProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
                Some(Self::DeviceProfile(DeviceProfileId(entity.id)))
            }
            (EntityType::TenantProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
                Some(Self::TenantProfile(TenantProfileId(entity.id)))
            }
            (EntityType::Tenant, ChangeKind::Saved | ChangeKind::Deleted) => {
                Some(Self::Tenant(TenantId(entity.id)))
            }
            _ => None,
        }
    }
}

/// When something was changed last.
#[derive(Debug, Default)]
pub(super) struct SourceVersion {
    /// The number of that change.
    changed: AtomicU64,
    ended: AtomicBool,
}

impl SourceVersion {
    /// Whether it is gone, with everything that belongs to it.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// Settings with the marks of what they are made of.
#[derive(Debug)]
pub(super) struct VersionedSettings {
    pub(super) settings: Arc<DeviceSettings>,
    /// Of the tenant, the device profile and the tenant profile.
    of: [Arc<SourceVersion>; 3],
    /// How many changes there had been when the settings were known to be current.
    seen: u64,
}

impl VersionedSettings {
    pub(super) fn tenant(&self) -> &Arc<SourceVersion> {
        &self.of[0]
    }

    /// Whether they may have changed since.
    pub(super) fn is_stale(&self) -> bool {
        self.of
            .iter()
            .any(|mark| mark.changed.load(Ordering::Acquire) > self.seen)
    }
}

/// The marks that somebody goes by.
#[derive(Default)]
pub(super) struct SourceVersions {
    marks: FxHashMap<SettingsSource, Weak<SourceVersion>>,
    prune_at: usize,
}

impl SourceVersions {
    /// Settings of a tenant that are current after so many changes.
    pub(super) fn attach(
        &mut self,
        tenant: TenantId,
        settings: Arc<DeviceSettings>,
        seen: u64,
    ) -> VersionedSettings {
        let makers = [
            SettingsSource::Tenant(tenant),
            SettingsSource::DeviceProfile(settings.profile),
            SettingsSource::TenantProfile(settings.tenant_profile),
        ];
        let of = makers.map(|maker| self.mark(maker));
        VersionedSettings { settings, of, seen }
    }

    fn mark(&mut self, maker: SettingsSource) -> Arc<SourceVersion> {
        if let Some(mark) = self.marks.get(&maker).and_then(Weak::upgrade) {
            return mark;
        }
        if self.marks.len() >= self.prune_at {
            self.marks.retain(|_, mark| mark.strong_count() > 0);
            self.prune_at = (self.marks.len() * 2).max(1_024);
        }
        let mark = Arc::default();
        self.marks.insert(maker, Arc::downgrade(&mark));
        mark
    }

    /// Notes the change of a number.
    pub(super) fn note(&mut self, change: EntityChange, number: u64) {
        let known = SettingsSource::of(change).and_then(|maker| self.marks.get(&maker)?.upgrade());
        let Some(mark) = known else { return };
        mark.changed.store(number, Ordering::Release);
        if change.deleted_tenant().is_some() {
            mark.ended.store(true, Ordering::Release);
        }
    }
}

/// When what was changed last, for those who were reading meanwhile: exact as to who has not changed, unless something
/// else with the same place in the table has. It takes the same room however much is changed.
pub(super) struct ChangeTable(Box<[u64]>);

/// How many places there are: of ten thousand devices that are changed while one is read, one in 26 times one is taken for
/// it, which is then read again.
const PLACES: usize = 1 << 18;

impl Default for ChangeTable {
    fn default() -> Self {
        Self(vec![0; PLACES].into_boxed_slice())
    }
}

impl ChangeTable {
    fn place(of: &impl Hash) -> usize {
        FxBuildHasher.hash_one(of) as usize % PLACES
    }

    /// Notes the change of a number.
    pub(super) fn note(&mut self, of: &impl Hash, number: u64) {
        self.0[Self::place(of)] = number;
    }

    /// Whether it may have changed after so many changes.
    pub(super) fn has_changed(&self, of: &impl Hash, since: u64) -> bool {
        self.0[Self::place(of)] > since
    }
}
