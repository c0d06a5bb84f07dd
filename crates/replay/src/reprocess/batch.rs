//! Some entities of a field, played side by side in the order of time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ingest::{EffectSink, EffectWriter, MAIN_QUEUE};
use fieldline_core::ports::{StoreEffects, StoreResult};
use fieldline_entities::services::{ServiceError, ServiceResult};
use fieldline_model::kv::unpack;
use fieldline_model::message::MsgType;
use fieldline_model::reprocess::ReprocessReport;
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, TenantId};
use fieldline_rules::engine::{EngineShared, QueueHandle};
use fieldline_rules::fields::{
    DependencySource, FieldEvent, FieldEventKind, FieldLogic, FieldTask, RegisteredField,
};
use fieldline_rules::message::{MessageBody, RuleMessage};
use fieldline_rules::services::NodeServices;
use fieldline_rules::strategy::QueueStrategy;
use fieldline_rules::worker::MessagePlayer;
use fieldline_rules::worker::effects::{PendingEffects, TelemetryValues};
use fieldline_rules::worker::fields::fan_out::walk_path;
use fieldline_rules::worker::fields::owner_of;
use fieldline_rules::worker::node_activity::NodeActivityLog;
use parking_lot::Mutex;

use super::super::history::{HistoryReader, HistorySource};
use super::super::play::{FollowUpQueue, ReplayClock, ReplayError, runtime};

/// Entities that are played side by side.
pub(super) const MAX_BATCH_ENTITIES: usize = 50;
/// Series that are read side by side.
const MAX_SERIES: usize = 20_000;
/// Rows of results that are stored together.
const MAX_PENDING_ROWS: usize = 2_000;
/// Values after which the progress is told.
const PROGRESS_INTERVAL: u64 = 1_000;

/// Whose series are read for some entities.
#[derive(Default)]
pub(super) struct ReprocessSources {
    history: Vec<HistorySource>,
    /// The entities that a source has to be told to.
    targets: BTreeMap<EntityId, BTreeSet<EntityId>>,
}

impl ReprocessSources {
    /// Looks up the sources of as many of these entities as can be played together, and returns how many these are.
    ///
    /// # Errors
    /// One entity alone has too many, or a store failed.
    pub(super) async fn gather(
        services: &Arc<NodeServices>,
        tenant: TenantId,
        entry: &RegisteredField,
        entities: &[EntityId],
    ) -> ServiceResult<(Self, usize)> {
        let mut found = Self::default();
        let mut series: BTreeMap<EntityId, BTreeSet<&str>> = BTreeMap::new();
        let mut count = 0;
        for entity in entities.iter().take(MAX_BATCH_ENTITIES) {
            let of_entity = sources(services, tenant, entry, *entity).await?;
            let known = |series: &BTreeMap<EntityId, BTreeSet<&str>>| {
                series.values().map(BTreeSet::len).sum::<usize>()
            };
            if known(&series) + of_entity.len() > MAX_SERIES {
                if count > 0 {
                    break;
                }
                return Err(ServiceError::invalid(format!(
                    "The arguments of {entity} are more than {MAX_SERIES} series!"
                )));
            }
            for (source, key) in of_entity {
                series.entry(source).or_default().insert(key);
                found.targets.entry(source).or_default().insert(*entity);
            }
            count += 1;
        }
        for (entity, keys) in series {
            let subject = EntityKey { tenant, entity };
            if let Some(originator) = services.originators.get(subject).await? {
                found.history.push(HistorySource {
                    subject,
                    originator,
                    keys: keys.into_iter().map(str::to_owned).collect(),
                });
            }
        }
        Ok((found, count))
    }
}

/// The series that the field of one entity looks at.
async fn sources<'a>(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    entry: &'a RegisteredField,
    entity: EntityId,
) -> ServiceResult<BTreeSet<(EntityId, &'a str)>> {
    let mut found = BTreeSet::new();
    let Some(originator) = services.originators.get(EntityKey { tenant, entity }).await? else {
        return Ok(found);
    };
    let result = match &entry.kind {
        FieldLogic::Values(field) => field.result_name(),
        _ => None,
    };
    let mut reached: Vec<(&DependencySource, Vec<EntityId>)> = Vec::new();
    for watch in entry.dependencies.iter().filter(|watch| watch.scope.is_none()) {
        if !reached.iter().any(|(of, _)| **of == watch.source) {
            let entities = match (&watch.source, &entry.kind) {
                (DependencySource::Own, _) => vec![entity],
                (DependencySource::Entity(named), _) => vec![*named],
                (DependencySource::Owner, _) => vec![owner_of(&originator, tenant)],
                (DependencySource::Path(path), _) => walk_path(services, tenant, entity, path).await?,
                (DependencySource::Related, FieldLogic::Values(field)) => {
                    let level = field.relation().map(std::slice::from_ref);
                    walk_path(services, tenant, entity, level.unwrap_or_default()).await?
                }
                (DependencySource::Related, _) => Vec::new(),
            };
            reached.push((&watch.source, entities));
        }
        let entities = reached.iter().find(|(of, _)| **of == watch.source);
        for source in entities.map(|(_, entities)| entities).into_iter().flatten() {
            // A field is never evaluated because of its own results.
            let is_result = *source == entity && result == Some(&*watch.key);
            if !is_result {
                found.insert((*source, &*watch.key));
            }
        }
    }
    Ok(found)
}

/// Results that wait to be stored; those of other times are left out.
struct ReprocessResults {
    rows: Mutex<PendingEffects>,
    bounds: (i64, i64),
}

impl ReprocessResults {
    /// Whether it is time to store them.
    fn are_many(&self) -> bool {
        self.rows.lock().rows() >= MAX_PENDING_ROWS
    }
}

#[async_trait]
impl EffectSink for ReprocessResults {
    async fn take(&self, effects: &StoreEffects<'_>) -> StoreResult<()> {
        let mut rows = self.rows.lock();
        let (start, end) = self.bounds;
        for row in effects
            .telemetry
            .iter()
            .filter(|row| (start..end).contains(&row.ts))
        {
            let values = TelemetryValues {
                subject: row.subject,
                ts: row.ts,
                ttl_seconds: row.ttl_seconds,
                strategy: row.strategy,
                values: Bytes::copy_from_slice(row.values),
            };
            rows.telemetry(values, None);
        }
        Ok(())
    }
}

/// What is played.
pub(super) struct ReprocessBatch {
    /// The engine's parts, over stores that are not written.
    pub(super) shared: Arc<EngineShared>,
    /// Where values come from and results go.
    pub(super) real: Arc<NodeServices>,
    pub(super) clock: Arc<ReplayClock>,
    pub(super) pushes: Arc<FollowUpQueue>,
    pub(super) watch: Arc<Mutex<NodeActivityLog>>,
    pub(super) tenant: TenantId,
    pub(super) field: CalculatedFieldId,
    pub(super) sources: ReprocessSources,
    pub(super) bounds: (i64, i64),
    pub(super) progress: Arc<Mutex<ReprocessReport>>,
    pub(super) cancelled: Arc<AtomicBool>,
}

impl ReprocessBatch {
    /// Plays until the end, or until it is cancelled.
    pub(super) fn run(self) -> Result<(), ReplayError> {
        runtime()?.block_on(self.go())
    }

    async fn go(mut self) -> Result<(), ReplayError> {
        let (start, end) = self.bounds;
        let queue = QueueHandle::new(MAIN_QUEUE, 1, QueueStrategy::default());
        let results = Arc::new(ReprocessResults {
            rows: Mutex::default(),
            bounds: self.bounds,
        });
        let writer = EffectWriter::detached(results.clone());
        let (shared, watch) = (Arc::clone(&self.shared), Arc::clone(&self.watch));
        let mut player = MessagePlayer::new(shared, queue, watch, writer);
        let sources = std::mem::take(&mut self.sources.history);
        let mut history = HistoryReader::new(Arc::clone(&self.real.series), sources, start, end);
        self.clock.set(start);
        let mut values = 0;
        while let Some(msg) = history.next().await? {
            self.run_timers(&mut player, msg.ts, &results).await?;
            self.clock.forward(msg.ts);
            let targets = self.sources.targets.get(&msg.originator).into_iter().flatten();
            let task = self.task(&msg);
            for target in targets {
                let subject = EntityKey {
                    tenant: self.tenant,
                    entity: *target,
                };
                // What fails is noted by the watch.
                let _ = player.play_task(subject, &task).await;
                self.pushes.drop_all();
                values += 1;
            }
            if values >= PROGRESS_INTERVAL || results.are_many() {
                self.store(&results, std::mem::take(&mut values)).await?;
            }
            if self.is_over() {
                break;
            }
        }
        // What is made of the last values when the time ends.
        self.run_timers(&mut player, end, &results).await?;
        Ok(self.store(&results, values).await?)
    }

    fn is_over(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Lets everything come due that is due by a time. Where values are rare, that may be far more than they are.
    async fn run_timers(
        &self,
        player: &mut MessagePlayer,
        until: i64,
        results: &ReprocessResults,
    ) -> StoreResult<()> {
        while let Some(due) = player.next_due().filter(|due| *due <= until) {
            if self.is_over() {
                break;
            }
            self.clock.forward(due);
            let _ = player.play_due().await;
            self.pushes.drop_all();
            if results.are_many() {
                self.store(results, 0).await?;
            }
        }
        Ok(())
    }

    /// Stores results, unless the field was deleted meanwhile, maybe with its entity or tenant: that ends it.
    async fn store(&self, results: &ReprocessResults, values: u64) -> StoreResult<()> {
        let rows = std::mem::take(&mut *results.rows.lock());
        let effects = rows.with(Vec::new());
        if !self.is_field_there().await? {
            self.cancelled.store(true, Ordering::Release);
            return Ok(());
        }
        if !effects.telemetry.is_empty() {
            self.real.series.save(&effects.telemetry).await?;
        }
        let (without_result, last_problem) = self.watch.lock().fields.clone();
        let mut progress = self.progress.lock();
        progress.values += values;
        progress.results += effects.telemetry.len() as u64;
        progress.without_result = without_result;
        progress.last_problem = last_problem;
        Ok(())
    }

    async fn is_field_there(&self) -> StoreResult<bool> {
        let (real, tenant, field) = (Arc::clone(&self.real), self.tenant, self.field);
        // The database's driver wants its own runtime.
        let looking = self
            .real
            .runtime
            .spawn(async move { real.stores.calculated_fields.get(tenant, field).await });
        match looking.await {
            Ok(found) => Ok(found?.is_some()),
            // The program stops.
            Err(_) => Ok(false),
        }
    }

    /// What the field is told about values of one time.
    fn task(&self, msg: &RuleMessage) -> FieldTask {
        let values = match &msg.data {
            MessageBody::Packed(values) => unpack(values)
                .filter_map(Result::ok)
                .map(|(key, value)| (msg.ts, key.into(), value.to_value()))
                .collect(),
            _ => Vec::new(),
        };
        FieldTask {
            field: Some(self.field),
            event: FieldEvent {
                subject: msg.subject(),
                change: FieldEventKind::Values { scope: None, values },
                msg: msg.id,
                kind: MsgType::PostTelemetry.name().into(),
                previous: Arc::default(),
            },
            page: None,
        }
    }
}
