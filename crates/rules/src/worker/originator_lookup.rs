//! Looking up whom messages are about.

use std::sync::Arc;

use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreError;
use fieldline_model::{DeviceId, EntityKey, EntityType};
use rustc_hash::{FxHashMap, FxHashSet};
use tracing::{error, warn};

use super::retry::{spawn_attempt, with_retry};
use crate::originators::Originator;
use crate::services::NodeServices;

/// Originators that are looked up with one query.
const LOOKUP_BATCH: usize = 500;
static LOOK_UP_GATE: LogGate = LogGate::new(2);

/// The originator of a record. Those that the records after it need are looked up together with it.
pub(super) async fn find_originator_among(
    services: &NodeServices,
    subject: EntityKey,
    delivered: &DeliveredBatch<'_>,
    from: u32,
    writer: &EffectWriter,
) -> Result<Option<Arc<Originator>>, IngestShutdown> {
    let originators = &services.originators;
    if let Some(known) = originators.peek(subject) {
        return Ok(Some(known));
    }
    let mut missing: FxHashMap<_, FxHashSet<DeviceId>> = FxHashMap::default();
    let mut count = 0;
    for (_, record) in delivered.readable.iter().skip(from as usize) {
        let subject = record.subject;
        if subject.entity.entity_type == EntityType::Device && originators.peek(subject).is_none() {
            count += usize::from(
                missing
                    .entry(subject.tenant)
                    .or_default()
                    .insert(DeviceId(subject.entity.id)),
            );
            if count >= LOOKUP_BATCH {
                break;
            }
        }
    }
    let originators = originators.clone();
    let loading = services.runtime.spawn(async move {
        for (tenant, ids) in missing {
            let ids: Vec<DeviceId> = ids.into_iter().collect();
            originators.load_devices(tenant, &ids).await?;
        }
        Ok::<_, StoreError>(())
    });
    if let Ok(Err(error)) = loading.await {
        warn!(%error, "cannot look devices up");
    }
    find_originator(services, subject, writer).await
}

/// The originator of a message, waiting until it can be looked up. One that can never be read has no name: its messages
/// go on as those of somebody without one.
pub(super) async fn find_originator(
    services: &NodeServices,
    subject: EntityKey,
    writer: &EffectWriter,
) -> Result<Option<Arc<Originator>>, IngestShutdown> {
    let originators = &services.originators;
    if let Some(known) = originators.peek(subject) {
        return Ok(Some(known));
    }
    let look_up = async || {
        let originators = originators.clone();
        spawn_attempt(services, async move { originators.get(subject).await }).await
    };
    let found = with_retry(writer, look_up, |error| {
        let Some(suppressed) = LOOK_UP_GATE.open() else {
            return error.decide();
        };
        if error.is_retryable() {
            warn!(%error, suppressed, "cannot look an originator up, trying again");
        } else {
            error!(entity = %subject.entity, %error, suppressed, "an originator cannot be read");
        }
        error.decide()
    });
    Ok(Box::pin(found).await?.unwrap_or_else(|| Some(nameless(subject))))
}

fn nameless(subject: EntityKey) -> Arc<Originator> {
    Arc::new(Originator {
        id: subject.entity,
        name: "".into(),
        label: "".into(),
        profile_name: "".into(),
        customer: None,
        profile: None,
    })
}
