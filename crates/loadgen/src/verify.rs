//! Counts stored messages, and compares them with the acknowledged ones.
//!
//! Every message of a device has its own timestamp, so a device has as many stored points of one key as stored
//! messages. A message that was sent but not acknowledged may be stored or not.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{LoadError, LoadResult};
use crate::report::VerificationResult;
use crate::rest::RestClient;
use crate::workers::for_each_index;

/// Most names of devices with missing messages in a report.
const MAX_EXAMPLES: usize = 5;

/// Devices found short after which a round ends: a server that is still storing has better things to do than to answer
/// in vain.
const MAX_SHORT_PER_ROUND: usize = 32;

/// The first and the longest pause before short devices are counted again.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The points that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountFilter {
    /// A key that every message has.
    pub key: String,
    /// The earliest time of a message, in milliseconds since 1970.
    pub from_ms: i64,
    /// A time after the latest message.
    pub to_ms: i64,
}

/// The messages of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceExpectation {
    /// Name of the device.
    pub name: String,
    /// Id of the device.
    pub id: String,
    /// Messages that were acknowledged.
    pub acknowledged: u64,
    /// Messages that were sent, acknowledged ones included.
    pub sent: u64,
}

/// Counts the stored messages of devices, `workers` at a time, and waits up to `patience` for acknowledged messages
/// that are not stored yet; devices that are still short are counted once more before messages count as missing. Calls
/// `progress` with the number of complete devices.
///
/// # Errors
/// The time range is empty, the server refuses a request, or it is still out of reach or overloaded after `patience`.
pub fn verify(
    client: &RestClient,
    check: &CountFilter,
    expected: &[DeviceExpectation],
    patience: Duration,
    workers: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> LoadResult<VerificationResult> {
    let query = CountQuery::new(check)?;
    let begin = Instant::now();
    let mut stored = vec![0; expected.len()];
    let mut short: Vec<usize> = (0..expected.len()).collect();
    let mut pause = FIRST_PAUSE;
    loop {
        let is_last = begin.elapsed() >= patience;
        let complete_before = expected.len() - short.len();
        let enough = if is_last { usize::MAX } else { MAX_SHORT_PER_ROUND };
        let round = count_round(client, &query, expected, &short, workers, enough, &|complete| {
            progress(complete_before + complete);
        });
        if let Some(error) = round.error
            && (is_last || !error.is_transient())
        {
            return Err(error);
        }
        for (device, count) in round.counts {
            stored[device] = count;
        }
        short = round.short;
        if short.is_empty() || is_last {
            return Ok(verdict(expected, &stored, begin.elapsed().as_secs_f64()));
        }
        thread::sleep(pause.min(patience.saturating_sub(begin.elapsed())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the timestamp of the newest point of a key among these devices, in milliseconds since 1970; sends `workers`
/// requests at a time.
///
/// # Errors
/// The server is out of reach or refuses a request.
pub fn newest_ms(client: &RestClient, key: &str, ids: &[String], workers: usize) -> LoadResult<Option<i64>> {
    let found = Mutex::new((None, None));
    for_each_index(ids.len(), workers, |index| {
        let path = format!("/api/plugins/telemetry/DEVICE/{}/values/timeseries", ids[index]);
        let latest = client.get(&path, &[("keys", key)]);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        match latest {
            Ok(answer) => {
                let point = &answer[key][0];
                // A key that does not exist may be answered with a point of the current time without a value.
                let ts = point["ts"].as_i64().filter(|_| !point["value"].is_null());
                found.0 = found.0.max(ts);
                ControlFlow::Continue(())
            }
            Err(error) => {
                found.1 = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        (_, Some(error)) => Err(error),
        (newest, None) => Ok(newest),
    }
}

/// The part of a query that is the same for all devices: one interval that covers the whole time range.
struct CountQuery {
    key: String,
    start: String,
    end: String,
    interval: String,
}

impl CountQuery {
    fn new(check: &CountFilter) -> LoadResult<Self> {
        let CountFilter { key, from_ms, to_ms } = check;
        let length = to_ms.checked_sub(*from_ms).filter(|length| *length > 0);
        let length = length.ok_or_else(|| {
            LoadError::InvalidOption(format!("there is no time from {from_ms} ms up to {to_ms} ms"))
        })?;
        Ok(Self {
            key: key.clone(),
            start: from_ms.to_string(),
            end: to_ms.to_string(),
            interval: length.to_string(),
        })
    }

    /// Counts the points of a device.
    fn count(&self, client: &RestClient, id: &str) -> LoadResult<u64> {
        let path = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries");
        let query = [
            ("keys", self.key.as_str()),
            ("startTs", &self.start),
            ("endTs", &self.end),
            ("interval", &self.interval),
            ("agg", "COUNT"),
            ("limit", "1"),
        ];
        let answer = client.get(&path, &query)?;
        count_of(&answer, &self.key).ok_or_else(|| LoadError::BadAnswer {
            method: "GET",
            path,
            reason: "it holds no count".to_owned(),
        })
    }
}

/// Returns the count of an answer, in which values are strings unless requested otherwise. A series without points is
/// absent.
fn count_of(answer: &Value, key: &str) -> Option<u64> {
    let Some(intervals) = answer.as_object()?.get(key) else {
        return Some(0);
    };
    let counts = intervals
        .as_array()?
        .iter()
        .map(|interval| match &interval["value"] {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        });
    counts.sum()
}

/// The results of one round over the devices.
#[derive(Default)]
struct CountRound {
    /// Devices and their counts.
    counts: Vec<(usize, u64)>,
    /// Devices that miss messages or were not counted; those not counted come first.
    short: Vec<usize>,
    error: Option<LoadError>,
}

/// Counts the points of `devices`, until all were counted, `enough` of them were found short, or a request failed.
fn count_round(
    client: &RestClient,
    query: &CountQuery,
    expected: &[DeviceExpectation],
    devices: &[usize],
    workers: usize,
    enough: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> CountRound {
    let complete = AtomicUsize::new(0);
    let round = Mutex::new(CountRound::default());
    let was_asked: Vec<_> = devices.iter().map(|_| AtomicBool::new(false)).collect();
    for_each_index(devices.len(), workers, |index| {
        let device = devices[index];
        let result = query.count(client, &expected[device].id);
        let mut round = round.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match result {
            Ok(count) => count,
            Err(error) => {
                round.error = Some(error);
                return ControlFlow::Break(());
            }
        };
        was_asked[index].store(true, Ordering::Relaxed);
        round.counts.push((device, count));
        if count >= expected[device].acknowledged {
            drop(round);
            progress(complete.fetch_add(1, Ordering::Relaxed) + 1);
            return ControlFlow::Continue(());
        }
        round.short.push(device);
        if round.short.len() >= enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let mut round = round.into_inner().unwrap_or_else(PoisonError::into_inner);
    let not_asked = devices
        .iter()
        .zip(was_asked)
        .filter(|(_, was_asked)| !was_asked.load(Ordering::Relaxed));
    let mut short: Vec<_> = not_asked.map(|(device, _)| *device).collect();
    short.append(&mut round.short);
    CountRound { short, ..round }
}

fn verdict(expected: &[DeviceExpectation], stored: &[u64], seconds: f64) -> VerificationResult {
    let mut verification = VerificationResult {
        devices: expected.len(),
        seconds,
        ..VerificationResult::default()
    };
    for (device, &stored) in expected.iter().zip(stored) {
        let missing = device.acknowledged.saturating_sub(stored);
        verification.acknowledged += device.acknowledged;
        verification.stored += stored;
        verification.missing += missing;
        verification.surplus += stored.saturating_sub(device.sent);
        if missing > 0 && verification.examples.len() < MAX_EXAMPLES {
            verification.examples.push(device.name.clone());
        }
    }
    verification
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expected(name: &str, acknowledged: u64, sent: u64) -> DeviceExpectation {
        DeviceExpectation {
            name: name.to_owned(),
            id: format!("id-{name}"),
            acknowledged,
            sent,
        }
    }

    #[test]
    fn a_count_is_read_as_text_or_number_and_nothing_is_zero() {
        for (answer, count) in [
            (json!({"k": [{"ts": 5, "value": "12"}]}), Some(12)),
            (json!({"k": [{"ts": 5, "value": 12}]}), Some(12)),
            (
                json!({"k": [{"ts": 5, "value": "12"}, {"ts": 9, "value": "1"}]}),
                Some(13),
            ),
            (json!({"k": []}), Some(0)),
            (json!({}), Some(0)),
            (json!({"k": [{"ts": 5, "value": null}]}), None),
            (json!({"k": "12"}), None),
            (json!([]), None),
        ] {
            assert_eq!(count_of(&answer, "k"), count, "{answer}");
        }
    }

    #[test]
    fn what_was_sent_and_not_acknowledged_may_be_stored_or_not() {
        let devices = [expected("a", 3, 5), expected("b", 3, 5)];
        let verification = verdict(&devices, &[3, 5], 1.5);
        assert_eq!(
            verification,
            VerificationResult {
                devices: 2,
                acknowledged: 6,
                stored: 8,
                missing: 0,
                surplus: 0,
                examples: vec![],
                seconds: 1.5,
            }
        );
    }

    #[test]
    fn missing_and_surplus_do_not_make_up_for_each_other() {
        let devices = [expected("a", 3, 3), expected("b", 3, 4), expected("c", 1, 1)];
        let verification = verdict(&devices, &[1, 6, 0], 0.0);
        assert_eq!((verification.missing, verification.surplus), (3, 2));
        assert_eq!(verification.examples, ["a", "c"]);
    }

    #[test]
    fn examples_are_few() {
        let devices: Vec<_> = (0..50).map(|index| expected(&index.to_string(), 1, 1)).collect();
        let verification = verdict(&devices, &[0; 50], 0.0);
        assert_eq!(
            (verification.missing, verification.examples.len()),
            (50, MAX_EXAMPLES)
        );
    }

    #[test]
    fn an_empty_time_range_is_refused() {
        for (from_ms, to_ms) in [(5, 5), (6, 5), (i64::MIN, i64::MAX)] {
            let key = "k".to_owned();
            let query = CountQuery::new(&CountFilter { key, from_ms, to_ms });
            assert!(
                matches!(query, Err(LoadError::InvalidOption(_))),
                "{from_ms} {to_ms}"
            );
        }
    }
}
