//! Runs many blocking requests in parallel.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Most threads, even if more are requested.
const MAX_WORKERS: usize = 256;

/// Runs `job` once for each index below `count`, on `workers` threads including the caller's, until all are done or a
/// job returns `Break`; jobs in progress are still finished. If the system has no more threads, runs with fewer.
pub(crate) fn for_each_index(count: usize, workers: usize, job: impl Fn(usize) -> ControlFlow<()> + Sync) {
    let next = AtomicUsize::new(0);
    let is_stopped = AtomicBool::new(false);
    let work = || {
        while !is_stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            if job(index).is_break() {
                is_stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers.clamp(1, MAX_WORKERS).min(count) {
            if thread::Builder::new()
                .name("rest-worker".to_owned())
                .spawn_scoped(scope, work)
                .is_err()
            {
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_worked_on_once() {
        for workers in [0, 1, 3, 50] {
            let hits: Vec<_> = (0..20).map(|_| AtomicUsize::new(0)).collect();
            for_each_index(hits.len(), workers, |index| {
                hits[index].fetch_add(1, Ordering::Relaxed);
                ControlFlow::Continue(())
            });
            assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn nothing_is_begun_after_a_job_broke_off() {
        let begun = AtomicUsize::new(0);
        for_each_index(1_000, 1, |index| {
            begun.fetch_add(1, Ordering::Relaxed);
            match index {
                4 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        assert_eq!(begun.into_inner(), 5);
    }
}
