//! The store: opening, closing, applying, checkpoints, direct writes, and the threads behind them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fieldline_core::clock::SharedClock;
use fieldline_core::directory::create_durably;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{
    AttributeRow, Offset, Partition, StoreEffects, StoreError, StoreErrorKind, StoreResult, TelemetryRow,
    TelemetrySaveStrategy,
};
use fieldline_model::kv::unpack;
use parking_lot::{Condvar, Mutex, RwLock};

use super::block::BlockRow;
use super::checkpoint::{self, CHECKPOINT_KEY, CheckpointPosition, GroupSync, SEQ_KEY};
use super::engine::{RowEpoch, SeriesEngine};
use super::expiry_clock::ExpiryClock;
use super::health::SeriesHealth;
use super::keys::{self, MAX_NAME_BYTES};
use super::latest_cache::{ConflictPolicy, LatestCache};
use super::memtable::Memtable;
use super::metrics as names;
#[cfg(feature = "cassandra")]
use super::options::CassandraOptions;
use super::options::Options;
#[cfg(feature = "sql")]
use super::options::SqlSeriesOptions;
use super::state_rows::StateRowBuffer;
use super::watermark::CheckpointWatermark;
use super::{compaction, error, expire};

/// How far the sequence numbers jump at a restart: more rows than fit between two checkpoints.
const SEQ_JUMP: u64 = 1 << 32;

/// What part of the memtable is full where points are also plain rows.
const PLAIN_ROWS_SHARE: u64 = 16;

/// How often the keeper looks what there is to do. Tests do it by hand.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(if cfg!(test) { 1_000_000 } else { 1 });

static ROW_GATE: LogGate = LogGate::new(1);
static MAINTENANCE_GATE: LogGate = LogGate::new(1);

/// Time series, latest values, attributes and journal positions of one node.
pub struct SeriesStore {
    pub(super) me: Weak<SeriesStore>,
    /// What lies beside the tables of the embedded engine.
    pub(super) files: Option<SeriesFiles>,
    pub(super) options: Options,
    pub(super) clock: SharedClock,
    /// `None` while it is being reopened, and once the store is closed.
    pub(super) engine: RwLock<Option<Arc<SeriesEngine>>>,
    pub(super) health: Mutex<SeriesHealth>,
    pub(super) latest: LatestCache,
    pub(super) attributes: LatestCache,
    pub(super) memtable: Memtable,
    pub(super) positions: Mutex<BTreeMap<Partition, CheckpointPosition>>,
    /// Changed together with the positions, under their lock.
    pub(super) states: StateRowBuffer,
    pub(super) seq: AtomicU64,
    pub(super) checkpoint: AtomicU64,
    pub(super) checkpointing: Mutex<()>,
    pub(super) gate: RwLock<()>,
    pub(super) compacting: Mutex<()>,
    pub(super) expiry_cursor: Mutex<expire::ExpiryCursor>,
    expiry_clock: Mutex<ExpiryClock>,
    pub(super) sync: GroupSync,
    signal: Arc<MaintenanceSignal>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Files of the store that are not the engine's.
pub(super) struct SeriesFiles {
    /// Where the engine is, too.
    pub(super) dir: PathBuf,
    pub(super) watermark: CheckpointWatermark,
}

/// Wakes the background threads.
#[derive(Default)]
pub(super) struct MaintenanceSignal {
    stop: AtomicBool,
    wake: Mutex<u64>,
    changed: Condvar,
}

impl MaintenanceSignal {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn wake(&self) {
        *self.wake.lock() += 1;
        self.changed.notify_all();
    }

    pub(super) fn wait(&self, seen: &mut u64, timeout: Duration) {
        let mut wake = self.wake.lock();
        if *wake == *seen && !self.is_stopped() {
            self.changed.wait_for(&mut wake, timeout);
        }
        *seen = *wake;
    }
}

/// Opens the embedded engine, and makes sure that it has not lost a durable checkpoint.
pub(super) fn open_embedded(
    dir: &Path,
    options: &Options,
    now_ms: i64,
) -> StoreResult<(SeriesEngine, CheckpointWatermark)> {
    create_durably(dir, 0o777).map_err(error::io)?;
    let watermark = CheckpointWatermark::open(dir)?;
    let engine = SeriesEngine::open(dir, options, now_ms).map_err(|error| error::cannot_open(dir, error))?;
    let found = engine.meta_number(CHECKPOINT_KEY)?.unwrap_or(0);
    if found < watermark.get() {
        return Err(checkpoint::lost(dir, found, watermark.get()));
    }
    Ok((engine, watermark))
}

impl SeriesStore {
    /// Opens the store in a directory, creating it if it does not exist, and starts its background threads.
    pub fn open(dir: &Path, options: &Options, clock: SharedClock) -> StoreResult<Arc<Self>> {
        check(options)?;
        let (engine, watermark) = open_embedded(dir, options, clock.now_ms())?;
        let files = SeriesFiles {
            dir: dir.to_owned(),
            watermark,
        };
        Self::over(engine, Some(files), options, clock)
    }

    /// Opens the store over tables in PostgreSQL, making them where there are none. Whoever had them open before can no
    /// longer write to them.
    #[cfg(feature = "sql")]
    pub fn open_sql(
        tables: &SqlSeriesOptions,
        options: &Options,
        clock: SharedClock,
    ) -> StoreResult<Arc<Self>> {
        check(options)?;
        let engine = SeriesEngine::open_sql(tables, clock.now_ms())?;
        Self::over(engine, None, options, clock)
    }

    /// Opens the store over tables in Cassandra, making them where there are none. How far things are, and who owns the
    /// tables, is kept in PostgreSQL: whoever had them open before can no longer write to them.
    #[cfg(feature = "cassandra")]
    pub fn open_cassandra(
        owner: &SqlSeriesOptions,
        tables: &CassandraOptions,
        options: &Options,
        clock: SharedClock,
    ) -> StoreResult<Arc<Self>> {
        check(options)?;
        if let Some(problem) = tables.problem() {
            return Err(StoreError::new(StoreErrorKind::Invalid, problem));
        }
        let engine = SeriesEngine::open_cassandra(owner, tables, clock.now_ms())?;
        Self::over(engine, None, options, clock)
    }

    fn over(
        engine: SeriesEngine,
        files: Option<SeriesFiles>,
        options: &Options,
        clock: SharedClock,
    ) -> StoreResult<Arc<Self>> {
        names::describe();
        let checkpoint = engine.meta_number(CHECKPOINT_KEY)?.unwrap_or(0);
        let seq = engine.meta_number(SEQ_KEY)?.unwrap_or(0).saturating_add(SEQ_JUMP);
        let positions = checkpoint::stored_positions(&engine)?;
        let cells = |newest| LatestCache::new(options.cells_cache.as_usize(), newest);
        let store = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            files,
            options: options.clone(),
            clock,
            engine: RwLock::new(Some(Arc::new(engine))),
            health: Mutex::default(),
            latest: cells(ConflictPolicy::ByTime),
            attributes: cells(ConflictPolicy::ByArrival),
            memtable: Memtable::default(),
            positions: Mutex::new(positions),
            states: StateRowBuffer::default(),
            seq: AtomicU64::new(seq),
            checkpoint: AtomicU64::new(checkpoint),
            checkpointing: Mutex::default(),
            gate: RwLock::default(),
            compacting: Mutex::default(),
            expiry_cursor: Mutex::default(),
            expiry_clock: Mutex::new(ExpiryClock::new(options.clock_grace.0)),
            sync: GroupSync::default(),
            signal: Arc::default(),
            threads: Mutex::default(),
        });
        // From here on numbers are taken from the new range, which must outlive a crash before the first checkpoint.
        store.write_checkpoint(true)?;
        store.spawn("series-keeper", run_maintenance)?;
        store.spawn("series-packer", compaction::run)?;
        Ok(store)
    }

    fn spawn(self: &Arc<Self>, name: &str, run: fn(&Weak<Self>, &Arc<MaintenanceSignal>)) -> StoreResult<()> {
        let (store, signal) = (Arc::downgrade(self), Arc::clone(&self.signal));
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&store, &signal))
            .map_err(error::io)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Makes everything durable, stops the threads and closes the files. Calls made later fail.
    pub fn close(&self) -> StoreResult<()> {
        self.signal.stop.store(true, Ordering::Release);
        self.signal.wake();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the time-series store has panicked");
            }
        }
        let last = self.write_checkpoint(false);
        self.engine.write().take();
        last
    }

    /// The engine, for reading.
    pub(super) fn engine(&self) -> StoreResult<Arc<SeriesEngine>> {
        self.engine.read().clone().ok_or_else(error::closed)
    }

    /// The engine, for writing; refused while it is known to fail.
    pub(super) fn writable(&self) -> StoreResult<Arc<SeriesEngine>> {
        self.health.lock().check()?;
        self.engine()
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// What has expired before this time may be deleted; readers go by [`now_ms`](Self::now_ms).
    pub(super) fn expiry_ms(&self) -> i64 {
        self.expiry_clock
            .lock()
            .now_ms(self.clock.now_ms(), Instant::now())
    }

    /// Stores the effects of records that were not applied yet.
    pub(super) fn apply_effects(
        &self,
        partition: Partition,
        next: Offset,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        if self.position(partition).is_some_and(|applied| next <= applied) {
            return Ok(());
        }
        self.store_effects(partition, Some(next), effects)
    }

    /// Stores effects, and moves the position where there is a new one.
    pub(super) fn store_effects(
        &self,
        partition: Partition,
        next: Option<Offset>,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        if self.latest.is_overfull() || self.attributes.is_overfull() {
            self.write_checkpoint(false)?;
        } else if self.is_memtable_full() {
            self.flush_memtable()?;
        }
        let _shared = self.gate.read();
        let engine = self.writable()?;
        let rows = usable_rows(&effects.telemetry);
        self.load_ahead(&engine, effects);
        for effect in effects.attributes.iter().filter(|effect| effect.strategy.stored) {
            self.put_attributes(&engine, &effect.row)?;
        }
        self.put_telemetry(&engine, &rows)?;
        let mut positions = self.positions.lock();
        self.states.put(partition, &effects.states);
        if next.is_some() {
            positions.entry(partition).or_default().applied = next;
        }
        Ok(())
    }

    /// Brings the values that effects change into memory, where a look into a table is a round trip.
    fn load_ahead(&self, engine: &SeriesEngine, effects: &StoreEffects<'_>) {
        if engine.latest.is_paged() {
            let rows = effects.telemetry.iter().filter(|row| row.strategy.latest);
            let groups: Vec<_> = rows.map(|row| keys::latest_group(row.subject)).collect();
            self.latest.load_ahead(&engine.latest, &groups);
        }
        if engine.attributes.is_paged() {
            let stored = effects.attributes.iter().filter(|effect| effect.strategy.stored);
            let groups: Vec<_> = stored
                .map(|effect| keys::attribute_group(effect.row.subject, effect.row.scope))
                .collect();
            self.attributes.load_ahead(&engine.attributes, &groups);
        }
    }

    /// Puts rows where their parts belong. The gate is held. Where it fails, it may be done again.
    pub(super) fn put_telemetry(&self, engine: &SeriesEngine, rows: &[&TelemetryRow<'_>]) -> StoreResult<()> {
        if rows.iter().all(|row| row.strategy.history && row.strategy.latest) {
            self.put_latest(engine, rows)?;
            self.put_rows(rows);
            return Ok(());
        }
        let having = |has: fn(&TelemetrySaveStrategy) -> bool| -> Vec<_> {
            rows.iter().copied().filter(|row| has(&row.strategy)).collect()
        };
        self.put_latest(engine, &having(|parts| parts.latest))?;
        self.put_rows(&having(|parts| parts.history));
        Ok(())
    }

    /// Takes rows. The gate is held.
    fn put_rows(&self, rows: &[&TelemetryRow<'_>]) {
        let first = self.seq.fetch_add(rows.len() as u64, Ordering::Relaxed);
        for (seq, row) in (first..).zip(rows) {
            let row_of_head = BlockRow {
                ts: row.ts,
                seq,
                ttl: row.ttl_seconds,
                values: row.values,
            };
            self.memtable.put(&keys::subject_key(row.subject), &row_of_head);
        }
        metrics::counter!(names::ROWS).increment(rows.len() as u64);
    }

    fn is_memtable_full(&self) -> bool {
        // Plain rows are many times larger and slower to write, all those of a commit in one transaction.
        let share = if self.options.plain_rows {
            PLAIN_ROWS_SHARE
        } else {
            1
        };
        self.memtable.bytes() as u64 >= self.options.memtable.0 / share
    }

    /// Hands the rows in memory to the engine, without making them durable.
    fn flush_memtable(&self) -> StoreResult<()> {
        let _one = self.checkpointing.lock();
        // Another may have done it while this one waited.
        if !self.is_memtable_full() {
            return Ok(());
        }
        let engine = self.writable()?;
        let mut batch = engine.batch(1024);
        let epoch = engine.active()?;
        let leaving = self.memtable.flush(&epoch, &mut batch, self.now_ms());
        engine
            .commit(batch, &[&epoch.rows])
            .map_err(|error| self.note_write_failure(error))?;
        self.memtable.remove_flushed(leaving);
        self.wake_when_large(&epoch);
        Ok(())
    }

    /// Lets the keeper seal an epoch that has become large.
    pub(super) fn wake_when_large(&self, epoch: &RowEpoch) {
        if epoch.bytes.load(Ordering::Relaxed) >= self.options.pack_bytes.0 {
            self.signal.wake();
        }
    }

    fn put_latest(&self, engine: &SeriesEngine, rows: &[&TelemetryRow<'_>]) -> StoreResult<()> {
        for row in rows {
            let group = keys::latest_group(row.subject);
            let values = unpack(row.values).filter_map(Result::ok);
            self.latest
                .put(&engine.latest, &group, row.ts, row.ttl_seconds, values)?;
        }
        Ok(())
    }

    pub(super) fn put_attributes(&self, engine: &SeriesEngine, row: &AttributeRow<'_>) -> StoreResult<()> {
        let group = keys::attribute_group(row.subject, row.scope);
        let values = unpack(row.values).filter_map(Result::ok);
        let values = values.filter(|(name, _)| name.len() <= MAX_NAME_BYTES);
        self.attributes.put(&engine.attributes, &group, row.ts, 0, values)
    }

    /// Seals the active epoch if it holds anything; the compaction takes it from there. Rows in memory go to the next
    /// one.
    pub(super) fn seal_active(&self) -> StoreResult<()> {
        let _one = self.checkpointing.lock();
        let _alone = self.gate.write();
        let engine = self.writable()?;
        let active = engine.active()?;
        if active.is_empty()? {
            // Its rows were deleted, or all there was is the mark of an earlier one: it must not look due for ever.
            active.begin_anew();
            return Ok(());
        }
        engine.seal()?;
        metrics::gauge!(names::SEALED_EPOCHS).set(engine.sealed_count() as f64);
        self.signal.wake();
        Ok(())
    }

    /// Seals the active epoch when it is large or old enough.
    pub(super) fn seal_when_due(&self) -> StoreResult<()> {
        let epoch = self.engine()?.active()?;
        let age = self
            .now_ms()
            .saturating_sub(epoch.born_ms.load(Ordering::Relaxed));
        let is_old = age >= 0 && Duration::from_millis(age as u64) >= self.options.pack_age.0;
        if is_old || epoch.bytes.load(Ordering::Relaxed) >= self.options.pack_bytes.0 {
            return self.seal_active();
        }
        Ok(())
    }
}

fn check(options: &Options) -> StoreResult<()> {
    match options.problem() {
        Some(problem) => Err(StoreError::new(StoreErrorKind::Invalid, problem)),
        None => Ok(()),
    }
}

/// Rows that can be read back. What devices send is checked long before; skipping a bad row beats being stuck on it.
fn usable_rows<'a, 'b>(rows: &'a [TelemetryRow<'b>]) -> Vec<&'a TelemetryRow<'b>> {
    rows.iter()
        .filter(|row| {
            let usable = is_usable(row.values);
            if !usable && let Some(suppressed) = ROW_GATE.open() {
                tracing::error!(entity = %row.subject.entity, suppressed, "dropped malformed row");
            }
            usable
        })
        .collect()
}

pub(super) fn is_usable(values: &[u8]) -> bool {
    unpack(values).all(|item| item.is_ok_and(|(name, _)| name.len() <= MAX_NAME_BYTES))
}

/// The keeper thread: seals, sweeps, and recovers from a full disk. Checkpoints are made when ingest asks for them.
fn run_maintenance(store: &Weak<SeriesStore>, signal: &Arc<MaintenanceSignal>) {
    let mut seen = 0;
    let mut interval = Duration::ZERO;
    let mut next_sweep = Instant::now();
    while !signal.is_stopped() {
        signal.wait(&mut seen, interval);
        let Some(store) = store.upgrade() else { return };
        interval = MAINTENANCE_INTERVAL;
        store.try_reopen();
        let mut outcome = store.seal_when_due();
        if Instant::now() >= next_sweep {
            next_sweep = Instant::now() + store.options.sweep_interval.0;
            outcome = outcome.and(store.expire_slice());
        }
        if let Err(error) = outcome
            && let Some(suppressed) = MAINTENANCE_GATE.open()
        {
            tracing::warn!(%error, suppressed, "upkeep of the time-series store failed");
        }
    }
}
