//! The compiled schemas of the device profiles in use.

use std::sync::{Arc, Weak};

use fieldline_core::logging::LogGate;
use fieldline_model::DeviceProfileId;
use fieldline_model::entity::DeviceProfile;
use fieldline_protobuf::PayloadSchemas;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tracing::warn;

static WRONG_GATE: LogGate = LogGate::new(5);

/// So many profiles before those that nobody uses any more are forgotten.
const PRUNE_AT: usize = 64;

/// Holds the schemas that some device's settings hold, so that thousands of sessions which read their profile again at the
/// same time compile them once.
#[derive(Default)]
pub(super) struct PayloadSchemaCache(Mutex<PayloadSchemaTable>);

#[derive(Default)]
struct PayloadSchemaTable {
    profiles: FxHashMap<DeviceProfileId, Weak<PayloadSchemas>>,
    prune_at: usize,
}

impl PayloadSchemaCache {
    /// The schemas of a profile; `None` where its payloads are JSON. Compiles, a few milliseconds at most, while others wait.
    pub(super) fn of(&self, id: DeviceProfileId, profile: &DeviceProfile) -> Option<Arc<PayloadSchemas>> {
        let configuration = profile.payload_configuration()?;
        let mut known = self.0.lock();
        let same = known.profiles.get(&id).and_then(Weak::upgrade);
        if let Some(same) = same.filter(|same| same.is_compiled_from(configuration)) {
            return Some(same);
        }
        let compiled = match PayloadSchemas::compile(configuration) {
            Ok(compiled) => Arc::new(compiled?),
            Err(error) => {
                // It was stored by a program that did not look at it.
                if let Some(suppressed) = WRONG_GATE.open() {
                    warn!(profile = %id, %error, suppressed, "the schemas of a device profile are wrong, its payloads are read as JSON");
                }
                return None;
            }
        };
        if known.profiles.len() >= known.prune_at.max(PRUNE_AT) {
            known.profiles.retain(|_, known| known.strong_count() > 0);
            known.prune_at = known.profiles.len() * 2;
        }
        known.profiles.insert(id, Arc::downgrade(&compiled));
        Some(compiled)
    }
}
