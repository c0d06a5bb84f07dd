//! Processor time of processes.
//!
//! The kernel reports the time of a process in ticks of 10 ms, and that of a thread in nanoseconds. The thread times
//! are added up, and checked against the ticks: threads that have ended are counted in the ticks only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::read;

/// Length of a tick: `/proc` counts 100 a second on every architecture that matters, whatever the kernel's own tick
/// rate.
const TICK_US: u64 = 10_000;

/// Largest difference of the two if no thread is missing: each of the two readings is rounded down to ticks of user and
/// of kernel time, and the time of a running thread is some milliseconds late.
const TOLERANCE_US: u64 = 4 * TICK_US;

/// Processor time that a process has used up to a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTime {
    ticks_us: u64,
    /// Nanoseconds of the living threads.
    threads: BTreeMap<u32, u64>,
}

impl CpuTime {
    /// Reads the time of a process of this machine; `None` if it does not exist.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::read(&Path::new("/proc").join(pid.to_string()))
    }

    /// Reads the time of this process.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::read(Path::new("/proc/self"))
    }

    fn read(directory: &Path) -> Option<Self> {
        let threads = fs::read_dir(directory.join("task"))
            .into_iter()
            .flatten()
            .flatten();
        let threads = threads.filter_map(|thread| {
            let time = read(&thread.path().join("schedstat"))?;
            let ns = time.split_ascii_whitespace().next()?.parse().ok()?;
            Some((thread.file_name().to_str()?.parse().ok()?, ns))
        });
        let threads = threads.collect();
        let ticks_us = parse_ticks_us(&read(&directory.join("stat"))?)?;
        Some(Self { ticks_us, threads })
    }

    /// Returns the microseconds used since an earlier reading of the same process: exact, or to some 10 ms if threads
    /// have ended since. `None` if it cannot be the same process.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<u64> {
        let ticks_us = self.ticks_us.checked_sub(before.ticks_us)?;
        Some(match self.by_threads_since(before) {
            Some(us) if us.abs_diff(ticks_us) <= TOLERANCE_US => us,
            // For times shorter than a tick, the living threads say more than the ticks.
            _ => ticks_us.max(self.living_since(before)),
        })
    }

    /// Microseconds used by the living threads.
    fn living_since(&self, before: &Self) -> u64 {
        let used = self.threads.iter().map(|(thread, now)| {
            let then = before.threads.get(thread).filter(|then| *then <= now);
            now - then.copied().unwrap_or(0)
        });
        used.sum::<u64>() / 1_000
    }

    fn by_threads_since(&self, before: &Self) -> Option<u64> {
        let mut ns: u64 = self.threads.values().sum();
        for (thread, then) in &before.threads {
            // The time of a thread that has ended is no longer available.
            self.threads.get(thread).filter(|now| *now >= then)?;
            ns = ns.checked_sub(*then)?;
        }
        (!before.threads.is_empty()).then_some(ns / 1_000)
    }
}

/// Parses processor time in user and kernel mode, in microseconds, from `/proc/PID/stat`.
fn parse_ticks_us(stat: &str) -> Option<u64> {
    // The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * TICK_US)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn time(ticks_us: u64, threads: &[(u32, u64)]) -> CpuTime {
        CpuTime {
            ticks_us,
            threads: threads.iter().copied().collect(),
        }
    }

    #[test]
    fn ticks_are_read_behind_whatever_the_program_is_called() {
        let stat = "7 (a) R) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 8 0 100 1000 200";
        assert_eq!(parse_ticks_us(stat), Some(3_000_000));
        assert_eq!(parse_ticks_us("7 (a) S 1 2"), None);
        assert_eq!(parse_ticks_us(""), None);
    }

    #[test]
    fn threads_count_exactly_while_they_live() {
        let before = time(20_000, &[(1, 11_000_000), (2, 9_000_000)]);
        // A new thread has worked since.
        let after = time(30_000, &[(1, 15_500_000), (2, 9_000_000), (3, 2_250_000)]);
        assert_eq!(after.since(&before), Some(6_750));
        assert_eq!(before.since(&before), Some(0));
    }

    #[test]
    fn ticks_count_where_threads_have_ended() {
        let before = time(20_000, &[(1, 11_000_000), (2, 9_000_000)]);
        assert_eq!(time(90_000, &[(1, 12_000_000)]).since(&before), Some(70_000));
        // Within one tick.
        assert_eq!(time(20_000, &[(1, 12_500_000)]).since(&before), Some(1_500));
        // The id of the ended thread was given to a new one.
        assert_eq!(
            time(90_000, &[(1, 12_000_000), (2, 5)]).since(&before),
            Some(70_000)
        );
        // A thread came and went in between.
        let after = time(220_000, &[(1, 12_000_000), (2, 9_000_000)]);
        assert_eq!(after.since(&before), Some(200_000));
        // A kernel that reports no thread times.
        assert_eq!(time(50_000, &[]).since(&time(20_000, &[])), Some(30_000));
        assert_eq!(before.since(&after), None, "time does not go back");
    }

    #[test]
    fn the_work_of_this_process_is_seen() {
        let before = CpuTime::own().unwrap();
        let began = Instant::now();
        let mut sum = 0_u64;
        while began.elapsed() < Duration::from_millis(100) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let used = CpuTime::own().unwrap().since(&before).unwrap();
        // The amount depends on the other load of the machine.
        assert!(used > 1_000, "{used} µs");
        assert_eq!(CpuTime::of(u32::MAX), None);
    }
}
