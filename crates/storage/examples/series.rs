//! Measures the time-series store with a smart-meter payload: rows a second, bytes a point on disk, and the time of
//! aggregations over a million points.
//!
//! `cargo run --release -p fieldline-storage --example series -- [interval seconds] [devices] [points a device]`
//!
//! It measures the embedded engine, or the tables in the PostgreSQL database that `FIELDLINE_TEST_POSTGRES_URL` names, or
//! those in the Cassandra cluster of `FIELDLINE_TEST_CASSANDRA_NODES` beside that database: `tests/services/with-postgres.sh`
//! and `with-cassandra.sh` start them; neither waits for its disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fieldline_core::clock::SystemClock;
use fieldline_core::ports::{
    IngestStore, Offset, Partition, QueueId, StoreEffects, TelemetryRow, TelemetrySaveStrategy,
    TimeSeriesStore,
};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::timeseries::{Aggregation, AggregationBucket, PointOrder, RangeQuery};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use fieldline_storage::series::{Options, SeriesStore};
use uuid::Uuid;

const START_MS: i64 = 1_700_000_000_000;
/// Rows that one batch of the ingest brings.
const BATCH: usize = 2000;

type SeriesBenchError = Box<dyn std::error::Error>;

/// A small, fast generator; good enough for noise.
struct NoiseGenerator(u64);

impl NoiseGenerator {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

struct SimulatedMeter {
    subject: EntityKey,
    energy_wh: i64,
    volts: f64,
    watts: f64,
    phase_ms: i64,
}

impl SimulatedMeter {
    fn new(at: u64, tenant: TenantId, noise: &mut NoiseGenerator, interval_ms: i64) -> Self {
        let id = Uuid::from_u64_pair(at.wrapping_mul(0x9e37_79b9_7f4a_7c15), at);
        Self {
            subject: EntityKey::device(tenant, DeviceId(id)),
            energy_wh: noise.next(10_000_000) as i64,
            volts: 225.0 + noise.next(100) as f64 / 10.0,
            watts: noise.next(3_000) as f64,
            phase_ms: noise.next(interval_ms as u64) as i64,
        }
    }

    /// The next reading: a counter, a voltage with one decimal, a power with two.
    fn read(&mut self, noise: &mut NoiseGenerator, interval_ms: i64) -> Vec<u8> {
        self.volts = (self.volts + noise.next(21) as f64 / 10.0 - 1.0).clamp(215.0, 240.0);
        self.watts = (self.watts + noise.next(20_001) as f64 / 100.0 - 100.0).clamp(0.0, 9_000.0);
        self.energy_wh += (self.watts * interval_ms as f64 / 3_600_000.0) as i64;
        let mut out = Vec::with_capacity(48);
        pack("energy", KvValueRef::Long(self.energy_wh), &mut out);
        pack(
            "voltage",
            KvValueRef::Double((self.volts * 10.0).round() / 10.0),
            &mut out,
        );
        pack(
            "power",
            KvValueRef::Double((self.watts * 100.0).round() / 100.0),
            &mut out,
        );
        out
    }
}

fn main() -> Result<(), SeriesBenchError> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut argument = |default| arguments.next().unwrap_or(Ok(default));
    let (interval, devices, points) = (argument(900)?, argument(300)?, argument(3500)?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(run(interval as i64 * 1000, devices, points as usize))
}

async fn run(interval_ms: i64, devices: u64, points: usize) -> Result<(), SeriesBenchError> {
    let dir = std::env::temp_dir().join(format!("series-bench-{}", std::process::id()));
    let store = open(&dir)?;
    let tenant = TenantId(Uuid::from_u128(1));
    let mut noise = NoiseGenerator(88_172_645_463_325_252);
    let mut meters: Vec<SimulatedMeter> = (0..devices)
        .map(|at| SimulatedMeter::new(at, tenant, &mut noise, interval_ms))
        .collect();

    let started = Instant::now();
    let rows = ingest(&store, &mut meters, &mut noise, points, interval_ms).await?;
    store.checkpoint().await?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{rows} rows, {} points in {seconds:.1} s: {:.0} rows/s",
        rows * 3,
        rows as f64 / seconds
    );

    let started = Instant::now();
    store.compact_now()?;
    println!("the rest packed in {:.1} s", started.elapsed().as_secs_f64());
    print_memory();
    store.write_tables()?;
    print_size(&dir, rows * 3)?;
    aggregate(&store, interval_ms, tenant).await?;
    store.write_tables()?;
    store.close()?;
    drop(store);
    print_size(&dir, rows * 3 + 3_000_000)?;
    if dir.exists() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

fn open(dir: &Path) -> Result<Arc<SeriesStore>, SeriesBenchError> {
    let (options, clock) = (Options::default(), Arc::new(SystemClock));
    let url = std::env::var("FIELDLINE_TEST_POSTGRES_URL").ok();
    let nodes = std::env::var("FIELDLINE_TEST_CASSANDRA_NODES").ok();
    let store = match url {
        #[cfg(feature = "cassandra")]
        Some(url) => {
            let connections = options.connections;
            let tables = fieldline_storage::series::SqlSeriesOptions {
                url,
                connections,
                plain_rows: options.plain_rows,
            };
            match nodes {
                Some(nodes) => {
                    let cluster = fieldline_storage::series::CassandraOptions {
                        nodes,
                        replication: Some("SimpleStrategy:1".to_owned()),
                        ..Default::default()
                    };
                    SeriesStore::open_cassandra(&tables, &cluster, &options, clock)?
                }
                None => SeriesStore::open_sql(&tables, &options, clock)?,
            }
        }
        _ => SeriesStore::open(dir, &options, clock)?,
    };
    Ok(store)
}

/// Prints what the embedded engine's tables take.
fn print_size(dir: &Path, points: u64) -> Result<(), SeriesBenchError> {
    if dir.exists() {
        let size = table_bytes(dir)?;
        println!(
            "{size} bytes in tables: {:.2} bytes a point",
            size as f64 / points as f64
        );
    }
    Ok(())
}

async fn ingest(
    store: &SeriesStore,
    meters: &mut [SimulatedMeter],
    noise: &mut NoiseGenerator,
    points: usize,
    interval_ms: i64,
) -> Result<u64, SeriesBenchError> {
    let partition = Partition {
        queue: QueueId(1),
        index: 0,
    };
    let mut total = 0u64;
    for round in 0..points as i64 {
        for some in meters.chunks_mut(BATCH) {
            let read: Vec<(EntityKey, i64, Vec<u8>)> = some
                .iter_mut()
                .map(|meter| {
                    // Meters report in step with the clock, give or take what the network adds.
                    let ts = START_MS + round * interval_ms + meter.phase_ms + noise.next(40) as i64;
                    (meter.subject, ts, meter.read(noise, interval_ms))
                })
                .collect();
            let telemetry = read
                .iter()
                .map(|(subject, ts, values)| TelemetryRow {
                    strategy: TelemetrySaveStrategy::ALL,
                    subject: *subject,
                    ts: *ts,
                    ttl_seconds: 0,
                    values,
                })
                .collect();
            total += read.len() as u64;
            let effects = StoreEffects {
                states: Vec::new(),
                telemetry,
                attributes: Vec::new(),
            };
            store.apply(partition, Offset(total), &effects).await?;
        }
    }
    Ok(total)
}

/// A device with a million points, aggregated as a dashboard would.
async fn aggregate(store: &SeriesStore, interval_ms: i64, tenant: TenantId) -> Result<(), SeriesBenchError> {
    let mut noise = NoiseGenerator(1);
    let mut meter = [SimulatedMeter::new(u64::MAX, tenant, &mut noise, interval_ms)];
    ingest_alone(store, &mut meter, &mut noise, interval_ms).await?;
    let [meter] = meter;
    let end = START_MS + 1_000_001 * interval_ms;
    let width = (end - START_MS) / 700 + 1;
    let buckets: Vec<AggregationBucket> = (0..700)
        .map(|at| AggregationBucket {
            start: START_MS + at * width,
            end: START_MS + (at + 1) * width,
        })
        .collect();
    let whole = [AggregationBucket { start: START_MS, end }];
    for (name, buckets) in [("700 buckets", buckets.as_slice()), ("1 bucket", &whole)] {
        for key in ["energy", "voltage", "power"] {
            for _warm_up in 0..2 {
                store
                    .aggregate(meter.subject, key, Aggregation::Avg, buckets)
                    .await?;
            }
            let started = Instant::now();
            let count = store
                .aggregate(meter.subject, key, Aggregation::Avg, buckets)
                .await?
                .len();
            println!(
                "1,000,000 points of {key} in {name}: {:.1} ms, {count} points",
                millis(started)
            );
        }
    }
    let newest = RangeQuery {
        start: i64::MIN,
        end: i64::MAX,
        limit: 100,
        order: PointOrder::Descending,
    };
    let started = Instant::now();
    store.range(meter.subject, "voltage", newest).await?;
    println!("newest 100 points: {:.2} ms", millis(started));
    let started = Instant::now();
    let all = RangeQuery {
        limit: usize::MAX,
        ..newest
    };
    let count = store.range(meter.subject, "voltage", all).await?.len();
    println!("all {count} points raw: {:.1} ms", millis(started));
    Ok(())
}

async fn ingest_alone(
    store: &SeriesStore,
    meter: &mut [SimulatedMeter; 1],
    noise: &mut NoiseGenerator,
    interval_ms: i64,
) -> Result<(), SeriesBenchError> {
    let partition = Partition {
        queue: QueueId(1),
        index: 1,
    };
    for from in (0..1_000_000i64).step_by(BATCH) {
        let [meter] = meter;
        let read: Vec<(i64, Vec<u8>)> = (from..from + BATCH as i64)
            .map(|round| {
                let ts = START_MS + round * interval_ms + noise.next(40) as i64;
                (ts, meter.read(noise, interval_ms))
            })
            .collect();
        let telemetry = read
            .iter()
            .map(|(ts, values)| TelemetryRow {
                strategy: TelemetrySaveStrategy::ALL,
                subject: meter.subject,
                ts: *ts,
                ttl_seconds: 0,
                values,
            })
            .collect();
        let effects = StoreEffects {
            states: Vec::new(),
            telemetry,
            attributes: Vec::new(),
        };
        store.apply(partition, Offset(from as u64 + 1), &effects).await?;
    }
    store.compact_now()?;
    Ok(())
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn print_memory() {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        for line in status
            .lines()
            .filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"))
        {
            println!("{line}");
        }
    }
}

/// Bytes of all tables, without the engine's journal, which is preallocated.
fn table_bytes(dir: &Path) -> Result<u64, SeriesBenchError> {
    let mut total = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_dir() {
            total += table_bytes(&entry.path())?;
        } else if entry.path().extension().is_none_or(|kind| kind != "jnl") {
            total += about.len();
        }
    }
    Ok(total)
}
