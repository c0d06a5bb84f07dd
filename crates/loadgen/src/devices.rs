//! The devices of a load, with names and tokens like those of ThingsBoard's own load generator, so that each tool finds
//! the devices of the other: `DW00000000`, `DW00000001`, and so on.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::error::{LoadError, LoadResult};
use crate::rest::RestClient;
use crate::workers::for_each_index;

pub use self::profile::{ProfileSpec, ensure_profile};

mod profile;

const NAME_PREFIX: &str = "DW";

/// Digits of a name; larger indices have longer names.
const NAME_DIGITS: usize = 8;

/// Up to this many devices are looked up one by one, more in pages.
const MAX_SINGLE_LOOKUPS: usize = 64;

/// Pages are not read if they would list more than this many times the number of wanted devices.
const MAX_PAGED_SHARE: usize = 20;

/// Failures in a row after which the rest is not tried.
const MAX_CONSECUTIVE_FAILURES: usize = 50;

/// Most failure reasons that are kept.
const MAX_FAILURES: usize = 5;

/// Returns the name of a device, which is its access token as well.
#[must_use]
pub fn device_name(index: u32) -> String {
    format!("{NAME_PREFIX}{index:0NAME_DIGITS$}")
}

/// Returns the index of the device with a name.
fn device_index(name: &str) -> Option<u32> {
    let index = name.strip_prefix(NAME_PREFIX)?.parse().ok()?;
    (device_name(index) == name).then_some(index)
}

/// Devices from one index up to, but not including, another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRange {
    /// The first index.
    pub start: u32,
    /// The index after the last one.
    pub end: u32,
}

impl DeviceRange {
    /// The number of devices.
    #[must_use]
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether there are no devices.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the device at a position, counted from 0.
    #[must_use]
    pub fn name(self, position: usize) -> String {
        device_name(
            self.start
                .saturating_add(u32::try_from(position).unwrap_or(u32::MAX)),
        )
    }

    /// Returns the position of the device with a name.
    fn position(self, name: &str) -> Option<usize> {
        let index = device_index(name)?;
        (self.start..self.end)
            .contains(&index)
            .then(|| (index - self.start) as usize)
    }

    /// The longest prefix shared by all names.
    fn common_prefix(self) -> String {
        let (first, last) = (device_name(self.start), device_name(self.end.saturating_sub(1)));
        if first.len() != last.len() {
            return NAME_PREFIX.to_owned();
        }
        let common = first
            .chars()
            .zip(last.chars())
            .take_while(|(one, other)| one == other);
        common.map(|(one, _)| one).collect()
    }
}

/// The result of creating devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CreateDevicesResult {
    /// Devices that were created.
    pub created: usize,
    /// Devices that existed already.
    pub found: usize,
    /// Devices that could not be created.
    pub failed: usize,
    /// The first few reasons of failures, with names.
    pub failures: Vec<String>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Ids in the order of the range, `None` for a device that does not exist.
    pub ids: Vec<Option<String>>,
}

/// Creates the devices of a range that do not exist yet, with `workers` requests at a time. Calls `progress` after each
/// device with the number of devices done.
///
/// # Errors
/// Too many requests in a row failed; the error is that of the last one.
pub fn create_devices(
    client: &RestClient,
    range: DeviceRange,
    profile_id: &str,
    workers: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> LoadResult<CreateDevicesResult> {
    let begin = Instant::now();
    let known = list_devices(client, range);
    let counts = [const { AtomicUsize::new(0) }; 2];
    let [created, found] = &counts;
    let outcome = run(
        range.len(),
        workers,
        MAX_CONSECUTIVE_FAILURES,
        progress,
        |position| {
            if let Some(id) = known.as_ref().and_then(|known| known.get(&position)) {
                found.fetch_add(1, Ordering::Relaxed);
                return Ok(Some(id.clone()));
            }
            let name = range.name(position);
            let (id, is_new) = create_device(client, &name, profile_id, known.is_some())?;
            let counter = if is_new { created } else { found };
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(Some(id))
        },
    )?;
    let [created, found] = counts.map(AtomicUsize::into_inner);
    Ok(CreateDevicesResult {
        created,
        found,
        failed: outcome.failed,
        failures: outcome.failures,
        seconds: begin.elapsed().as_secs_f64(),
        ids: outcome.results,
    })
}

/// Creates a device if it does not exist. Returns its id, and whether it was created.
fn create_device(
    client: &RestClient,
    name: &str,
    profile_id: &str,
    is_absent: bool,
) -> LoadResult<(String, bool)> {
    if !is_absent && let Some(id) = find_device(client, name)? {
        return Ok((id, false));
    }
    let device = json!({
        "name": name,
        "type": "device",
        "deviceProfileId": {"entityType": "DEVICE_PROFILE", "id": profile_id},
    });
    match client.post("/api/device", &[("accessToken", name)], &device) {
        Ok(saved) => {
            let id = id_of(&saved).ok_or_else(|| no_id("POST", "/api/device"))?;
            Ok((id, true))
        }
        // Another client may have created it in the meantime.
        Err(error @ LoadError::Refused { status: 400, .. }) => match find_device(client, name)? {
            Some(id) => Ok((id, false)),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Returns the ids of the devices of a range, `None` for a device that does not exist.
///
/// # Errors
/// The server is out of reach or refuses the request.
pub fn find_devices(
    client: &RestClient,
    range: DeviceRange,
    workers: usize,
) -> LoadResult<Vec<Option<String>>> {
    if let Some(mut known) = list_devices(client, range) {
        return Ok((0..range.len()).map(|position| known.remove(&position)).collect());
    }
    let outcome = run(range.len(), workers, 1, &|_| {}, |position| {
        find_device(client, &range.name(position))
    })?;
    Ok(outcome.results)
}

/// The result of deleting devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeleteDevicesResult {
    /// Devices that were deleted.
    pub deleted: usize,
    /// Devices that did not exist.
    pub absent: usize,
    /// Devices that could not be deleted.
    pub failed: usize,
    /// The first few reasons of failures.
    pub failures: Vec<String>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Deletes devices and their data, with `workers` requests at a time. Calls `progress` after each device with the
/// number of devices done.
///
/// # Errors
/// Too many requests in a row failed; the error is that of the last one.
pub fn delete_devices(
    client: &RestClient,
    ids: &[String],
    workers: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> LoadResult<DeleteDevicesResult> {
    let begin = Instant::now();
    let outcome = run(
        ids.len(),
        workers,
        MAX_CONSECUTIVE_FAILURES,
        progress,
        |position| match client.delete(&format!("/api/device/{}", ids[position])) {
            Ok(()) => Ok(Some(true)),
            Err(LoadError::Refused { status: 404, .. }) => Ok(Some(false)),
            Err(error) => Err(error),
        },
    )?;
    let count = |wanted: bool| {
        let results = outcome.results.iter();
        results.filter(|was_there| **was_there == Some(wanted)).count()
    };
    Ok(DeleteDevicesResult {
        deleted: count(true),
        absent: count(false),
        failed: outcome.failed,
        failures: outcome.failures,
        seconds: begin.elapsed().as_secs_f64(),
    })
}

fn find_device(client: &RestClient, name: &str) -> LoadResult<Option<String>> {
    const PATH: &str = "/api/tenant/devices";
    match client.get_optional(PATH, &[("deviceName", name)])? {
        Some(device) => id_of(&device).map(Some).ok_or_else(|| no_id("GET", PATH)),
        None => Ok(None),
    }
}

/// Reads the ids of the devices of a range by position, in pages. Returns `None` if pages are not worth it or fail, so
/// that devices must be looked up one by one.
fn list_devices(client: &RestClient, range: DeviceRange) -> Option<HashMap<usize, String>> {
    if range.len() <= MAX_SINGLE_LOOKUPS {
        return None;
    }
    let limit = range.len() * MAX_PAGED_SHARE;
    let mut known = HashMap::new();
    let mut is_worth_it = true;
    let outcome = client.read_pages("/api/tenant/devices", &range.common_prefix(), |page, total| {
        is_worth_it = total <= limit;
        for device in page {
            let position = device["name"].as_str().and_then(|name| range.position(name));
            if let (Some(position), Some(id)) = (position, id_of(device)) {
                known.insert(position, id);
            }
        }
        is_worth_it
    });
    (outcome.is_ok() && is_worth_it).then_some(known)
}

/// The result of many requests.
struct BulkResult<T> {
    results: Vec<Option<T>>,
    failed: usize,
    failures: Vec<String>,
}

/// Runs `job` for each position, and returns the last error once `hopeless` jobs in a row have failed.
fn run<T: Send>(
    count: usize,
    workers: usize,
    hopeless: usize,
    progress: &(dyn Fn(usize) + Sync),
    job: impl Fn(usize) -> LoadResult<Option<T>> + Sync,
) -> LoadResult<BulkResult<T>> {
    struct BulkState<T> {
        outcome: BulkResult<T>,
        failed_in_a_row: usize,
        fatal: Option<LoadError>,
    }
    let done = AtomicUsize::new(0);
    let state = Mutex::new(BulkState {
        outcome: BulkResult {
            results: (0..count).map(|_| None).collect(),
            failed: 0,
            failures: Vec::new(),
        },
        failed_in_a_row: 0,
        fatal: None,
    });
    for_each_index(count, workers, |position| {
        let result = job(position);
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(value) => {
                state.failed_in_a_row = 0;
                state.outcome.results[position] = value;
            }
            Err(error) => {
                state.failed_in_a_row += 1;
                state.outcome.failed += 1;
                if state.outcome.failures.len() < MAX_FAILURES {
                    state.outcome.failures.push(error.to_string());
                }
                if state.failed_in_a_row >= hopeless {
                    state.fatal = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        drop(state);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        ControlFlow::Continue(())
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.fatal {
        Some(error) => Err(error),
        None => Ok(state.outcome),
    }
}

/// The id of an entity.
fn id_of(entity: &Value) -> Option<String> {
    entity["id"]["id"].as_str().map(str::to_owned)
}

fn no_id(method: &'static str, path: &str) -> LoadError {
    LoadError::BadAnswer {
        method,
        path: path.to_owned(),
        reason: "there is no id in it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_eight_digits_and_lead_back_to_their_index() {
        assert_eq!(device_name(0), "DW00000000");
        assert_eq!(device_name(1_234_567), "DW01234567");
        assert_eq!(device_name(u32::MAX), "DW4294967295");
        for index in [0, 7, 99_999_999, 100_000_000, u32::MAX] {
            assert_eq!(device_index(&device_name(index)), Some(index));
        }
        for other in [
            "DW0",
            "DW000000001",
            "DW+0000001",
            "GW00000001",
            "DW",
            "DW4294967296",
        ] {
            assert_eq!(device_index(other), None, "{other}");
        }
    }

    #[test]
    fn positions_count_from_the_start_of_the_range() {
        let range = DeviceRange { start: 5, end: 8 };
        assert_eq!((range.len(), range.name(2).as_str()), (3, "DW00000007"));
        let positions: Vec<_> = (4..9).map(|index| range.position(&device_name(index))).collect();
        assert_eq!(positions, [None, Some(0), Some(1), Some(2), None]);
        assert!(DeviceRange { start: 8, end: 5 }.is_empty());
    }

    #[test]
    fn a_range_is_searched_by_what_its_names_share() {
        for (start, end, prefix) in [
            (0, 5_000, "DW0000"),
            (1_000, 1_010, "DW0000100"),
            (7, 8, "DW00000007"),
            (0, 0, "DW00000000"),
            (99_999_999, 100_000_001, "DW"),
        ] {
            let range = DeviceRange { start, end };
            assert_eq!(range.common_prefix(), prefix, "{range:?}");
            assert!((0..range.len()).all(|position| range.name(position).starts_with(prefix)));
        }
    }
}
