//! Measures the time from a message's acknowledgement until a query returns it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use ureq::Agent;
use ureq::http::header::CONTENT_TYPE;

use crate::error::{LoadError, LoadResult};
use crate::latency::LatencyRecorder;
use crate::report::LatencySummary;
use crate::rest::{RestClient, agent, base_url, connection_error, message_of};

const KEY: &str = "fieldlineProbe";

/// Time after which a point that no query returns is given up.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a post or a query.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time between points.
const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The pauses between queries; the first ones are short, so that a fast server is measured as such.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// The results of a probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbeResult {
    /// Times from the receipt of the acknowledgement to the answer of the first query that returns the point, without
    /// the points that were given up.
    pub latency: LatencySummary,
    /// Points that no query returned in time.
    pub given_up: u64,
    /// Posts that were refused, and points whose queries failed.
    pub failed: u64,
    /// The reason of the last failure.
    pub last_failure: Option<String>,
}

/// The probe's thread. Dropping the probe tells the thread to end.
#[derive(Debug)]
pub struct VisibilityProbe {
    /// Nothing is sent; dropping the sender ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<ProbeResult>>,
}

impl VisibilityProbe {
    /// Starts to post `per_second` points a second to the device API at `http_base`, as the device with that token and
    /// id. Each point waits until the one before it is visible.
    ///
    /// # Errors
    /// The address or the rate is invalid, or the system has no thread left.
    pub fn start(
        client: &RestClient,
        http_base: &str,
        token: &str,
        device_id: &str,
        per_second: f64,
    ) -> LoadResult<Self> {
        let interval = Duration::try_from_secs_f64(1.0 / per_second)
            .ok()
            .filter(|interval| !interval.is_zero() && *interval <= LONGEST_INTERVAL)
            .ok_or_else(|| {
                LoadError::InvalidOption(format!("{per_second} points a second cannot be sent"))
            })?;
        let worker = ProbeWorker {
            client: client.clone(),
            agent: agent(1, TIMEOUT),
            post_url: format!("{}/api/v1/{token}/telemetry", base_url(http_base)?),
            query_path: format!("/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries"),
            recorder: LatencyRecorder::new(),
            probed: ProbeResult::default(),
            last_ts: 0,
        };
        let (stop, stopped) = channel::<()>();
        let thread = thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || worker.run(interval, &stopped))
            .map_err(|error| LoadError::Engine(format!("there is no thread for the probe: {error}")))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Stops the probe and returns its results. Waits for a point in progress, so that slow ones count as well.
    ///
    /// # Errors
    /// The thread has panicked.
    pub fn stop(mut self) -> LoadResult<ProbeResult> {
        self.stop = None;
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(probed)) => Ok(probed),
            _ => Err(LoadError::Engine(
                "the thread of the probe has panicked".to_owned(),
            )),
        }
    }
}

struct ProbeWorker {
    client: RestClient,
    agent: Agent,
    post_url: String,
    query_path: String,
    recorder: LatencyRecorder,
    probed: ProbeResult,
    last_ts: i64,
}

impl ProbeWorker {
    fn run(mut self, interval: Duration, stopped: &Receiver<()>) -> ProbeResult {
        let mut due = Instant::now();
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            match self.measure() {
                Ok(Some(delay)) => self.recorder.record_duration(delay),
                Ok(None) => self.probed.given_up += 1,
                Err(reason) => {
                    self.probed.failed += 1;
                    self.probed.last_failure = Some(reason);
                }
            }
            due = (due + interval).max(Instant::now());
        }
        ProbeResult {
            latency: self.recorder.total(),
            ..self.probed
        }
    }

    /// Posts a point and waits until it can be queried; `None` if that took too long.
    fn measure(&mut self) -> Result<Option<Duration>, String> {
        let ts = self.next_ts();
        let acknowledged_at = self.post(ts)?;
        let mut pause = FIRST_PAUSE;
        loop {
            if self.is_visible(ts)? {
                return Ok(Some(acknowledged_at.elapsed()));
            }
            if acknowledged_at.elapsed() >= VISIBILITY_TIMEOUT {
                return Ok(None);
            }
            thread::sleep(pause);
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns a timestamp that no other point has.
    fn next_ts(&mut self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX - 1);
        self.last_ts = now.max(self.last_ts + 1);
        self.last_ts
    }

    /// Posts a point, and returns the time of its acknowledgement.
    fn post(&self, ts: i64) -> Result<Instant, String> {
        let body = json!({"ts": ts, "values": {KEY: ts}}).to_string();
        let request = self
            .agent
            .post(&self.post_url)
            .header(CONTENT_TYPE, "application/json");
        let text = |error| match connection_error(error) {
            Ok(error) => format!("a point could not be posted: {error}"),
            Err(error) => format!("a point could not be posted: {error}"),
        };
        let mut response = request.send(body).map_err(text)?;
        let acknowledged_at = Instant::now();
        let status = response.status();
        let body = response.body_mut().read_to_vec().map_err(text)?;
        if !status.is_success() {
            return Err(format!(
                "a point was refused with {}: {}",
                status.as_u16(),
                message_of(&body)
            ));
        }
        Ok(acknowledged_at)
    }

    fn is_visible(&self, ts: i64) -> Result<bool, String> {
        let (start, end) = (ts.to_string(), (ts + 1).to_string());
        let query = [
            ("keys", KEY),
            ("startTs", start.as_str()),
            ("endTs", &end),
            ("limit", "1"),
        ];
        let answer = self
            .client
            .get(&self.query_path, &query)
            .map_err(|error| error.to_string())?;
        Ok(answer[KEY][0]["ts"] == ts)
    }
}
