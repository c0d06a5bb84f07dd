//! Load of the machine, read from `/proc` and from the file system of the data directory.

mod recorder;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::ports::{SystemInfoSource, SystemResources};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(crate) use self::recorder::SystemInfoRecorder;

/// How long the processors are sampled.
const CPU_SAMPLE_TIME: Duration = Duration::from_millis(200);
/// How long figures are cached, so that frequent requests for the load do not cause load.
const FIGURES_TTL: Duration = Duration::from_secs(1);
/// The limits of the container, if there is one (control groups, version 2).
const CONTAINER: &str = "/sys/fs/cgroup";

/// The machine that this program runs on.
pub(crate) struct LocalSystemInfo {
    data: PathBuf,
    last: Mutex<Option<(Instant, SystemResources)>>,
}

impl LocalSystemInfo {
    /// Creates the source; `data` is the directory whose file system is measured.
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            last: Mutex::new(None),
        }
    }
}

#[async_trait]
impl SystemInfoSource for LocalSystemInfo {
    async fn figures(&self) -> SystemResources {
        let mut last = self.last.lock().await;
        if let Some((at, figures)) = &*last
            && at.elapsed() < FIGURES_TTL
        {
            return *figures;
        }
        let before = cpu_times();
        tokio::time::sleep(CPU_SAMPLE_TIME).await;
        let data = self.data.clone();
        // A network file system may block its callers.
        let read = tokio::task::spawn_blocking(move || (cpu_times(), memory(), disk(&data))).await;
        let (after, memory, disk) = read.unwrap_or_default();
        let figures = SystemResources {
            cpu_count: std::thread::available_parallelism()
                .ok()
                .and_then(|count| u64::try_from(count.get()).ok()),
            cpu_usage: before.zip(after).map(|(before, after)| after.since(before)),
            total_memory: memory.map(|memory| memory.total),
            memory_usage: memory.map(ResourceUsage::percent),
            total_disk: disk.map(|disk| disk.total),
            disk_usage: disk.map(ResourceUsage::percent),
        };
        *last = Some((Instant::now(), figures));
        figures
    }
}

/// A resource with a total and a used amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResourceUsage {
    total: u64,
    used: u64,
}

impl ResourceUsage {
    fn percent(self) -> u64 {
        percent(self.used, self.total)
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent.min(100)).unwrap_or(100)
}

/// Busy ticks and all ticks of the processors since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuTimes {
    busy: u64,
    all: u64,
}

impl CpuTimes {
    /// Returns the processor load between two samples, percent.
    fn since(self, before: Self) -> u64 {
        percent(
            self.busy.saturating_sub(before.busy),
            self.all.saturating_sub(before.all),
        )
    }
}

fn cpu_times() -> Option<CpuTimes> {
    parse_cpu_times(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn parse_cpu_times(stat: &str) -> Option<CpuTimes> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user, nice, system, idle, iowait, irq, softirq, steal; `user` already includes the time of guests.
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map(|ticks| ticks.parse().ok())
        .collect::<Option<_>>()?;
    let all = ticks.iter().sum::<u64>();
    let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
    Some(CpuTimes {
        busy: all.saturating_sub(idle),
        all,
    })
}

/// Returns the memory of the container if it has a limit, otherwise that of the machine.
fn memory() -> Option<ResourceUsage> {
    let machine = parse_memory(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let container = container_memory(Path::new(CONTAINER));
    Some(
        container
            .filter(|own| own.total < machine.total)
            .unwrap_or(machine),
    )
}

fn parse_memory(info: &str) -> Option<ResourceUsage> {
    let bytes = |name: &str| -> Option<u64> {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line
            .trim_start_matches(':')
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        kib.checked_mul(1_024)
    };
    let total = bytes("MemTotal")?;
    Some(ResourceUsage {
        total,
        used: total.saturating_sub(bytes("MemAvailable")?),
    })
}

fn container_memory(root: &Path) -> Option<ResourceUsage> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    // `max` means no limit.
    let total = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    // Inactive page cache, which the kernel reclaims under memory pressure.
    let stat = read("memory.stat")?;
    let cached = stat
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "))
        .and_then(|bytes| bytes.trim().parse().ok())
        .unwrap_or(0);
    Some(ResourceUsage {
        total,
        used: used.saturating_sub(cached),
    })
}

fn disk(data: &Path) -> Option<ResourceUsage> {
    let state = rustix::fs::statvfs(data).ok()?;
    let total = state.f_blocks.checked_mul(state.f_frsize)?;
    let free = state.f_bfree.checked_mul(state.f_frsize)?;
    Some(ResourceUsage {
        total,
        used: total.saturating_sub(free),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_the_kernel_writes_them() {
        let before = parse_cpu_times("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3 4\n").unwrap();
        let after = parse_cpu_times("cpu  130 0 50 860 60 0 0 0 9 0\n").unwrap();
        assert_eq!(after.since(before), 30);
        assert_eq!(before.since(after), 0);
        assert_eq!(parse_cpu_times("cpu  1 x\n"), None);
        let memory = parse_memory("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n").unwrap();
        assert_eq!((memory.total, memory.percent()), (1_024_000, 75));
    }

    #[test]
    fn a_container_has_the_memory_of_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("memory.current", "600\n");
        write("memory.stat", "anon 300\ninactive_file 100\n");
        write("memory.max", "max\n");
        assert_eq!(container_memory(dir.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(container_memory(dir.path()).map(ResourceUsage::percent), Some(50));
    }
}
