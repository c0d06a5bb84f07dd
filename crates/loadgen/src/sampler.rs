//! Samples the server and this process during a load, on a thread of its own.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{LoadError, LoadResult};
use crate::metrics::MetricsScraper;
use crate::process::{CpuTime, ProcessSample};

/// Longest time between samples.
const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The targets and interval of a sampler.
#[derive(Debug, Clone)]
pub struct ResourceSamplerOptions {
    /// The server's process, if it runs on this machine.
    pub pid: Option<u32>,
    /// Address of the server's metrics, if it has them.
    pub metrics_url: Option<String>,
    /// Time from one sample to the next.
    pub interval: Duration,
}

impl Default for ResourceSamplerOptions {
    /// Samples only this process, twice a second, so that each second of a load has a sample of its own.
    fn default() -> Self {
        Self {
            pid: None,
            metrics_url: None,
            interval: Duration::from_millis(500),
        }
    }
}

/// The values at one moment; `None` for those that could not be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResourceSample {
    /// Time of the sample.
    pub at: Instant,
    /// Processor time of the server since the first sample, in microseconds.
    pub server_cpu_us: Option<u64>,
    /// Resident memory of the server, in bytes.
    pub server_rss_bytes: Option<u64>,
    /// Processor time of this process since the first sample, in microseconds.
    pub generator_cpu_us: Option<u64>,
    /// Acknowledged messages that are not stored yet.
    pub lag_records: Option<u64>,
}

/// All samples, and the figures derived from them.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSeries {
    /// In order of time; the first was taken at the start, the last at the stop.
    pub samples: Vec<ResourceSample>,
}

impl ResourceSeries {
    /// Highest resident memory of the server, in bytes.
    #[must_use]
    pub fn rss_peak(&self) -> Option<u64> {
        self.samples
            .iter()
            .filter_map(|sample| sample.server_rss_bytes)
            .max()
    }

    /// Highest number of messages that waited to be stored.
    #[must_use]
    pub fn lag_peak(&self) -> Option<u64> {
        self.samples.iter().filter_map(|sample| sample.lag_records).max()
    }

    /// Messages that waited to be stored in the last sample.
    #[must_use]
    pub fn lag_end(&self) -> Option<u64> {
        self.samples.last().and_then(|sample| sample.lag_records)
    }

    /// Processor time of the server from the first to the last sample, in microseconds.
    #[must_use]
    pub fn server_cpu_us(&self) -> Option<u64> {
        self.counter_delta(|sample| sample.server_cpu_us)
    }

    /// Processor time of this process from the first to the last sample, in microseconds.
    #[must_use]
    pub fn generator_cpu_us(&self) -> Option<u64> {
        self.counter_delta(|sample| sample.generator_cpu_us)
    }

    fn counter_delta(&self, counter: impl Fn(&ResourceSample) -> Option<u64>) -> Option<u64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        counter(last)?.checked_sub(counter(first)?)
    }
}

/// The sampling thread. Dropping the sampler ends the thread.
#[derive(Debug)]
pub struct ResourceSampler {
    samples: Arc<Mutex<Vec<ResourceSample>>>,
    /// Nothing is sent; dropping the sender ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ResourceSampler {
    /// Takes the first sample, and starts the thread for the others.
    ///
    /// # Errors
    /// The interval is zero or longer than a day, or the system has no thread left.
    pub fn start(options: ResourceSamplerOptions) -> LoadResult<Self> {
        if options.interval.is_zero() || options.interval > LONGEST_INTERVAL {
            return Err(LoadError::InvalidOption(
                "there must be time between samples, a day at most".to_owned(),
            ));
        }
        let mut watch = SampleSource {
            pid: options.pid,
            server: CpuMeter::default(),
            own: CpuMeter::default(),
            metrics: options.metrics_url.as_deref().map(MetricsScraper::new),
        };
        let samples = Arc::new(Mutex::new(vec![watch.take_sample()]));
        let (stop, stopped) = channel::<()>();
        let shared = Arc::clone(&samples);
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || {
                let mut due = Instant::now() + options.interval;
                loop {
                    let wait = due.saturating_duration_since(Instant::now());
                    let is_over = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
                    let sample = watch.take_sample();
                    lock(&shared).push(sample);
                    if is_over {
                        return;
                    }
                    // Samples missed while the server did not answer are not made up for.
                    due = (due + options.interval).max(Instant::now());
                }
            })
            .map_err(|error| LoadError::Engine(format!("there is no thread for the sampler: {error}")))?;
        Ok(Self {
            samples,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The last sample.
    #[must_use]
    pub fn latest(&self) -> Option<ResourceSample> {
        lock(&self.samples).last().copied()
    }

    /// All samples until now.
    #[must_use]
    pub fn history(&self) -> Vec<ResourceSample> {
        lock(&self.samples).clone()
    }

    /// Takes a last sample, and returns all of them.
    #[must_use]
    pub fn stop(mut self) -> ResourceSeries {
        self.end();
        let samples = std::mem::take(&mut *lock(&self.samples));
        ResourceSeries { samples }
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread itself has reported its panic; the samples until then are valid.
            drop(thread.join());
        }
    }
}

impl Drop for ResourceSampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(samples: &Mutex<Vec<ResourceSample>>) -> MutexGuard<'_, Vec<ResourceSample>> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds up the processor time of a process.
#[derive(Default)]
struct CpuMeter {
    last: Option<CpuTime>,
    used_us: u64,
}

impl CpuMeter {
    /// Microseconds since the first reading; `None` if the process does not exist, or is not the same any more.
    fn read(&mut self, now: Option<CpuTime>) -> Option<u64> {
        let now = now?;
        if let Some(last) = &self.last {
            self.used_us += now.since(last)?;
        }
        self.last = Some(now);
        Some(self.used_us)
    }
}

/// The sources of a sample.
struct SampleSource {
    pid: Option<u32>,
    server: CpuMeter,
    own: CpuMeter,
    metrics: Option<MetricsScraper>,
}

impl SampleSource {
    fn take_sample(&mut self) -> ResourceSample {
        let at = Instant::now();
        let server = self.pid.and_then(ProcessSample::of);
        let server_cpu_us = self.server.read(self.pid.and_then(CpuTime::of));
        let generator_cpu_us = self.own.read(CpuTime::own());
        let metrics = self.metrics.as_mut().and_then(MetricsScraper::scrape);
        ResourceSample {
            at,
            server_cpu_us,
            server_rss_bytes: server.map(|server| server.rss_bytes),
            generator_cpu_us,
            lag_records: metrics.and_then(|metrics| metrics.lag_records()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(
        server_cpu_us: Option<u64>,
        server_rss_bytes: Option<u64>,
        lag_records: Option<u64>,
    ) -> ResourceSample {
        ResourceSample {
            at: Instant::now(),
            server_cpu_us,
            server_rss_bytes,
            generator_cpu_us: Some(5),
            lag_records,
        }
    }

    #[test]
    fn peaks_and_spent_time_follow_from_the_samples() {
        let series = ResourceSeries {
            samples: vec![
                sample(Some(100), Some(10), None),
                sample(Some(150), Some(30), Some(9)),
                sample(Some(400), Some(20), Some(2)),
            ],
        };
        assert_eq!(
            (series.rss_peak(), series.lag_peak(), series.lag_end()),
            (Some(30), Some(9), Some(2))
        );
        assert_eq!(
            (series.server_cpu_us(), series.generator_cpu_us()),
            (Some(300), Some(0))
        );
        let blind = ResourceSeries {
            samples: vec![sample(None, None, None), sample(Some(7), None, None)],
        };
        assert_eq!(
            (blind.rss_peak(), blind.lag_end(), blind.server_cpu_us()),
            (None, None, None)
        );
    }

    #[test]
    fn the_first_sample_is_there_at_once_and_the_last_at_the_stop() {
        let options = ResourceSamplerOptions {
            pid: Some(std::process::id()),
            interval: Duration::from_secs(3600),
            ..ResourceSamplerOptions::default()
        };
        let sampler = ResourceSampler::start(options).unwrap();
        let first = sampler.latest().unwrap();
        assert!(first.server_rss_bytes.is_some_and(|bytes| bytes > 0), "{first:?}");
        assert_eq!(sampler.history(), [first]);
        let series = sampler.stop();
        assert_eq!(series.samples.len(), 2);
        assert!(series.server_cpu_us().is_some() && series.generator_cpu_us().is_some());
        assert_eq!(series.lag_peak(), None);
    }

    #[test]
    fn a_process_that_has_ended_leaves_gaps() {
        let mut meter = CpuMeter::default();
        let now = CpuTime::own();
        assert_eq!(meter.read(now.clone()), Some(0));
        assert_eq!(meter.read(None), None);
        assert_eq!(meter.read(now), Some(0));
    }

    #[test]
    fn samples_need_an_interval() {
        for interval in [Duration::ZERO, Duration::MAX] {
            let options = ResourceSamplerOptions {
                interval,
                ..ResourceSamplerOptions::default()
            };
            assert!(matches!(
                ResourceSampler::start(options),
                Err(LoadError::InvalidOption(_))
            ));
        }
    }
}
