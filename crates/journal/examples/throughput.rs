//! Measures appends and commits per second: many tasks, each with one append of 150 bytes in flight, and a consumer
//! group.
//!
//! `cargo run --release -p fieldline-journal --example throughput -- [DIRECTORY] [fsync|interval:MS|os]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fieldline_core::ports::{AppendError, AppendOrigin, ConsumerEvent, Journal, Partition, QueueId};
use fieldline_journal::{EmbeddedJournal, Options, metrics as names};
use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

const PARTITIONS: u16 = 10;
const RECORD_BYTES: usize = 146;
const RUN: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(
        || std::env::temp_dir().join("fieldline-throughput"),
        PathBuf::from,
    );
    let durability = arguments.next().unwrap_or_else(|| "fsync".to_owned()).parse()?;
    let options = Options {
        durability,
        ..Options::default()
    };
    let metrics = PrometheusBuilder::new().install_recorder()?;
    println!("durability {durability}");
    println!(
        "{:>7} {:>12} {:>10} {:>10} {:>10} {:>12}",
        "tasks", "appends/s", "commits/s", "fsync ms", "CPU µs", "consumed/s"
    );
    for tasks in [1, 10, 100, 1_000, 5_000, 20_000, 50_000] {
        let _ = std::fs::remove_dir_all(&directory);
        let journal: Arc<dyn Journal> = Arc::new(EmbeddedJournal::open(&directory, &options)?);
        measure(&journal, tasks, &metrics).await?;
        journal.close().await;
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

async fn measure(
    journal: &Arc<dyn Journal>,
    tasks: u64,
    metrics: &PrometheusHandle,
) -> Result<(), Box<dyn Error>> {
    let queue = journal.open_queue("Main", PARTITIONS)?;
    let consumed = Arc::new(AtomicU64::new(0));
    consume(journal, queue, &consumed)?;
    let names = [names::COMMITS.to_owned(), format!("{}_sum", names::FSYNC_SECONDS)];
    let before = names.each_ref().map(|name| metric(metrics, name));
    let stop = Arc::new(AtomicBool::new(false));
    let appended = Arc::new(AtomicU64::new(0));
    let (started, cpu) = (Instant::now(), cpu_time());
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let (journal, stop, appended) = (Arc::clone(journal), Arc::clone(&stop), Arc::clone(&appended));
            tokio::spawn(async move {
                let mut batch = RecordBatch::new();
                batch.push(&[task as u8; RECORD_BYTES]);
                let partition = Partition {
                    queue,
                    index: (task % u64::from(PARTITIONS)) as u16,
                };
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    match journal.append(partition, &batch, AppendOrigin::Device(TenantId::NULL)) {
                        Ok(append) => append.await?,
                        Err(AppendError::Busy) => {
                            journal.ready(AppendOrigin::Device(TenantId::NULL)).await;
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                    count += 1;
                }
                appended.fetch_add(count, Ordering::Relaxed);
                Ok(())
            })
        })
        .collect();
    tokio::time::sleep(RUN).await;
    stop.store(true, Ordering::Relaxed);
    for task in running {
        task.await??;
    }
    let seconds = started.elapsed().as_secs_f64();
    let appended = appended.load(Ordering::Relaxed) as f64;
    let after = names.each_ref().map(|name| metric(metrics, name));
    let [commits, syncing] = [after[0] - before[0], after[1] - before[1]];
    println!(
        "{tasks:>7} {:>12.0} {:>10.0} {:>10.2} {:>10.2} {:>12.0}",
        appended / seconds,
        commits / seconds,
        syncing * 1e3 / commits,
        (cpu_time() - cpu).as_secs_f64() * 1e6 / appended,
        consumed.load(Ordering::Relaxed) as f64 / seconds,
    );
    Ok(())
}

/// Starts a group of one member on its own thread that reads everything and commits periodically.
fn consume(
    journal: &Arc<dyn Journal>,
    queue: QueueId,
    consumed: &Arc<AtomicU64>,
) -> Result<(), Box<dyn Error>> {
    let mut members = journal.subscribe(queue, "throughput", 1)?;
    let Some(mut member) = members.pop() else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let consumed = Arc::clone(consumed);
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut deliveries = 0_u64;
            loop {
                match member.next(1 << 20).await {
                    Ok(ConsumerEvent::Records(records)) => {
                        consumed.fetch_add(records.next.0 - records.first.0, Ordering::Relaxed);
                        deliveries += 1;
                        if deliveries.is_multiple_of(100) {
                            let _ = member.commit(records.partition, records.next).await;
                        }
                    }
                    Ok(ConsumerEvent::Closed) => break,
                    Ok(ConsumerEvent::Unreadable(_, error)) => {
                        eprintln!("{error}");
                        break;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        eprintln!("{error}");
                        break;
                    }
                }
            }
        });
    });
    Ok(())
}

/// Processor time of this process, all threads.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// Reads a value from the text form of the metrics.
fn metric(metrics: &PrometheusHandle, name: &str) -> f64 {
    let text = metrics.render();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0.0)
}
