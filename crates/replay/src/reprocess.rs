//! Reprocessing: a calculated field makes the results of a time that has passed, and they are stored.
//!
//! It is the engine's own worker once more, over stores that show what was stored up to the time that is being played. It
//! is told the values of the field's arguments in the order of their times, and what is due between them comes due. Its
//! results go straight to the store of time series: no message goes through a rule chain, no relation is changed and no
//! other field evaluated. Entities are played a batch at a time, so that memory does not grow with their number.

mod batch;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_entities::ports::FieldReprocess;
use fieldline_entities::services::{ServiceError, ServiceErrorKind, ServiceResult};
use fieldline_model::entity::calculated_field::{
    CalculatedFieldConfiguration, OutputStrategyType, OutputType,
};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_model::reprocess::{ReprocessReport, ReprocessRequest, ReprocessStatus};
use fieldline_model::{CalculatedFieldId, EntityId, TenantId};
use fieldline_rules::engine::EngineShared;
use fieldline_rules::fields::{FieldLogic, ProfilePage, RegisteredField, is_profile};
use fieldline_rules::worker::fields::fan_out::page_of;
use fieldline_rules::worker::node_activity::NodeActivityLog;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::{info, warn};

use self::batch::{ReprocessBatch, ReprocessSources};
use super::dry::{DryEngine, ReplaySetup};
use super::entities::ReplayDrafts;
use super::plan::times;
use super::play::{CancelOnDrop, on_thread};

/// Fields that are reprocessed at the same time, each of another tenant.
const MAX_CONCURRENT_JOBS: usize = 2;
/// Longest work for one request.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// Requests that are remembered after their end.
const MAX_KNOWN_JOBS: usize = 1000;

/// Reprocesses history beside an engine.
pub struct FieldReprocessor {
    shared: Arc<EngineShared>,
    permits: Arc<Semaphore>,
    jobs: Mutex<FieldReprocessJobs>,
}

type FieldReprocessJobs = HashMap<(TenantId, CalculatedFieldId), Arc<FieldReprocessJob>>;

/// What was asked for, and how far it is.
struct FieldReprocessJob {
    tenant: TenantId,
    progress: Arc<Mutex<ReprocessReport>>,
    cancelled: Arc<AtomicBool>,
}

impl FieldReprocessJob {
    fn is_running(&self) -> bool {
        self.progress.lock().status == ReprocessStatus::Running
    }
}

impl FieldReprocessor {
    /// A reprocessor beside an engine.
    pub fn new(shared: Arc<EngineShared>) -> Self {
        Self {
            shared,
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_JOBS)),
            jobs: Mutex::default(),
        }
    }

    /// Takes the place of a job; a tenant has one at a time.
    fn register_job(&self, job: &Arc<FieldReprocessJob>) -> ServiceResult<OwnedSemaphorePermit> {
        let too_many = |text: String| ServiceError::new(ServiceErrorKind::TooManyRequests, text);
        let mut jobs = self.jobs.lock();
        let running = jobs
            .values()
            .find(|other| other.tenant == job.tenant && other.is_running());
        if let Some(running) = running {
            let id = running.progress.lock().calculated_field_id;
            return Err(too_many(format!(
                "Calculated field {id} is being reprocessed: wait for its end, or cancel it!"
            )));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| {
            too_many(format!(
                "{MAX_CONCURRENT_JOBS} tenants reprocess fields already, try again when one has ended!"
            ))
        })?;
        if jobs.len() >= MAX_KNOWN_JOBS {
            let oldest = jobs
                .iter()
                .filter_map(|(key, job)| Some((job.progress.lock().finished_at?, *key)))
                .min();
            if let Some((_, key)) = oldest {
                jobs.remove(&key);
            }
        }
        let id = job.progress.lock().calculated_field_id;
        jobs.insert((job.tenant, id), Arc::clone(job));
        Ok(permit)
    }
}

#[async_trait]
impl FieldReprocess for FieldReprocessor {
    async fn begin(
        &self,
        field: &CalculatedField,
        request: ReprocessRequest,
    ) -> ServiceResult<ReprocessReport> {
        let now = self.shared.services.now_ms();
        let (start, end) = bounds(request, now)?;
        let draft = with_immediate_output(field)?;
        let job = Arc::new(FieldReprocessJob {
            tenant: field.tenant_id,
            progress: Arc::new(Mutex::new(ReprocessReport {
                calculated_field_id: field.id,
                status: ReprocessStatus::Running,
                start_ts: start,
                end_ts: end,
                entities: 0,
                processed_entities: 0,
                values: 0,
                results: 0,
                without_result: 0,
                last_problem: None,
                error: None,
                started_at: now,
                finished_at: None,
            })),
            cancelled: Arc::default(),
        });
        let permit = self.register_job(&job)?;
        let begun = job.progress.lock().clone();
        let (shared, work) = (Arc::clone(&self.shared), Arc::clone(&job));
        self.shared.services.runtime.spawn(async move {
            let _permit = permit;
            work.run(&shared, draft).await;
        });
        Ok(begun)
    }

    fn progress(&self, tenant: TenantId, field: CalculatedFieldId) -> Option<ReprocessReport> {
        let job = self.jobs.lock().get(&(tenant, field))?.clone();
        let progress = job.progress.lock().clone();
        Some(progress)
    }

    fn cancel(&self, tenant: TenantId, field: CalculatedFieldId) -> Option<ReprocessReport> {
        let job = self.jobs.lock().get(&(tenant, field))?.clone();
        job.cancelled.store(true, Ordering::Release);
        let progress = job.progress.lock().clone();
        Some(progress)
    }
}

/// The time that is asked for; what has not passed yet cannot be.
fn bounds(request: ReprocessRequest, now: i64) -> ServiceResult<(i64, i64)> {
    let (start, end) = times(request.start_ts, request.end_ts)?;
    if start >= now {
        let text = format!("startTs ({start}) must be before now ({now})!");
        return Err(ServiceError::invalid(text));
    }
    Ok((start, end.min(now)))
}

/// The field with results that are stored as they are.
fn with_immediate_output(field: &CalculatedField) -> ServiceResult<CalculatedField> {
    let invalid = |text: &str| Err(ServiceError::invalid(text));
    if field.field_type == CalculatedFieldType::Alarm {
        return invalid("Alarm rules are not reprocessed: a replay says what they would have done!");
    }
    let configuration = CalculatedFieldConfiguration::parse(field.field_type, &field.configuration)
        .map_err(|error| ServiceError::invalid(error.to_string()))?;
    let Some(output) = configuration
        .output()
        .filter(|output| output.kind == OutputType::TimeSeries)
    else {
        return invalid("configuration.output.type must be TIME_SERIES: attributes have no history!");
    };
    let (mut latest, mut ttl) = (true, 0);
    if output.strategy.kind == OutputStrategyType::Immediate {
        if !output.strategy.save_time_series {
            return invalid(
                "configuration.output.strategy.saveTimeSeries is false: nothing would be stored!",
            );
        }
        (latest, ttl) = (output.strategy.save_latest, output.strategy.ttl);
    }
    let strategy = json!({
        "type": "IMMEDIATE", "saveTimeSeries": true, "saveLatest": latest, "ttl": ttl,
        "sendWsUpdate": false, "processCfs": false,
    });
    let mut field = field.clone();
    field.debug_settings = None;
    if let Some(Value::Object(output)) = field.configuration.get_mut("output") {
        output.insert("strategy".to_owned(), strategy);
    }
    Ok(field)
}

impl FieldReprocessJob {
    async fn run(&self, shared: &Arc<EngineShared>, field: CalculatedField) {
        let id = field.id;
        let _guard = CancelOnDrop(Arc::clone(&self.cancelled));
        let work = self.all(shared, field);
        let (status, error) = match tokio::time::timeout(MAX_TIME, work).await {
            Ok(Ok(())) if self.cancelled.load(Ordering::Acquire) => (ReprocessStatus::Cancelled, None),
            Ok(Ok(())) => (ReprocessStatus::Completed, None),
            Ok(Err(error)) => (ReprocessStatus::Failed, Some(error.to_string())),
            Err(_) => {
                let text = format!("it has taken {} s: choose a shorter time!", MAX_TIME.as_secs());
                (ReprocessStatus::Failed, Some(text))
            }
        };
        let mut progress = self.progress.lock();
        let (tenant, results) = (self.tenant, progress.results);
        if let Some(error) = &error {
            warn!(%tenant, field = %id, error, "cannot reprocess a calculated field");
        } else {
            info!(%tenant, field = %id, ?status, results, "calculated field reprocessed");
        }
        progress.status = status;
        progress.error = error;
        progress.finished_at = Some(shared.services.now_ms());
    }

    async fn all(&self, shared: &Arc<EngineShared>, field: CalculatedField) -> ServiceResult<()> {
        let (start, end) = {
            let progress = self.progress.lock();
            (progress.start_ts, progress.end_ts)
        };
        let real = &shared.services;
        let id = field.id;
        let setup = ReplaySetup {
            start,
            drafts: ReplayDrafts {
                fields: vec![field],
                ..ReplayDrafts::default()
            },
            active: Vec::new(),
            replayed: Default::default(),
            usage: Some(Arc::clone(&real.usage)),
        };
        let dry = DryEngine::new(real, setup);
        let fields = dry.shared.chains.fields().tenant(self.tenant).await?;
        let gone = || ServiceError::not_found(format!("Calculated field with id [{id}] is not found"));
        let entry = fields.get(id).cloned().ok_or_else(gone)?;
        if let FieldLogic::Broken(problem) = &entry.kind {
            return Err(ServiceError::invalid(problem.to_string()));
        }
        let play = ReprocessRun {
            shared,
            dry: &dry,
            entry: &entry,
            bounds: (start, end),
            watch: Arc::default(),
        };
        if !is_profile(entry.entity) {
            return self.play(&play, &[entry.entity]).await;
        }
        for number in 0.. {
            let page = ProfilePage { number, owner: None };
            let (entities, has_next) = page_of(real, self.tenant, entry.entity, page).await?;
            self.play(&play, &entities).await?;
            if !has_next || self.cancelled.load(Ordering::Acquire) {
                break;
            }
        }
        Ok(())
    }

    /// Plays entities, as many at a time as their series allow.
    async fn play(&self, play: &ReprocessRun<'_>, entities: &[EntityId]) -> ServiceResult<()> {
        self.progress.lock().entities += entities.len() as u64;
        let mut left = entities;
        while !left.is_empty() && !self.cancelled.load(Ordering::Acquire) {
            let services = &play.dry.shared.services;
            let (sources, count) = ReprocessSources::gather(services, self.tenant, play.entry, left).await?;
            let batch = ReprocessBatch {
                shared: Arc::clone(&play.dry.shared),
                real: Arc::clone(&play.shared.services),
                clock: Arc::clone(&play.dry.clock),
                pushes: Arc::clone(&play.dry.pushes),
                watch: Arc::clone(&play.watch),
                tenant: self.tenant,
                field: play.entry.id,
                sources,
                bounds: play.bounds,
                progress: Arc::clone(&self.progress),
                cancelled: Arc::clone(&self.cancelled),
            };
            on_thread("reprocess", || batch.run()).await?;
            left = left.get(count..).unwrap_or_default();
            self.progress.lock().processed_entities += count as u64;
        }
        Ok(())
    }
}

/// What all batches of a job work with.
struct ReprocessRun<'a> {
    shared: &'a Arc<EngineShared>,
    dry: &'a DryEngine,
    entry: &'a Arc<RegisteredField>,
    bounds: (i64, i64),
    watch: Arc<Mutex<NodeActivityLog>>,
}
