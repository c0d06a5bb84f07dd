//! Creating, finding and deleting devices.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_loadgen::devices::{
    DeviceRange, ProfileSpec, create_devices, delete_devices, device_name, ensure_profile, find_devices,
};
use serde_json::{Value, json};

use crate::fake_server::{Reply, Request};
use crate::{client, open_server};

const LIST: &str = "GET /api/tenant/devices";
const SAVE: &str = "POST /api/device";

fn device(name: &str) -> Value {
    json!({"id": {"entityType": "DEVICE", "id": format!("id-{name}")}, "name": name})
}

/// A tenant with devices, which answers like the REST API, with at most 60 devices per page.
fn tenant_of(names: impl IntoIterator<Item = String>) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let devices = Mutex::new(
        names
            .into_iter()
            .map(|name| (name.clone(), device(&name)))
            .collect::<BTreeMap<_, _>>(),
    );
    move |request| {
        let mut devices = devices.lock().unwrap();
        match request.what().as_str() {
            LIST if request.query.contains_key("deviceName") => {
                match devices.get(request.param("deviceName")) {
                    Some(device) => Reply::Json(device.clone()),
                    None => Reply::error(404, "Requested item wasn't found!"),
                }
            }
            LIST => {
                let text = request.param("textSearch");
                let all: Vec<_> = devices
                    .values()
                    .filter(|device| device["name"].as_str().unwrap().contains(text))
                    .collect();
                let page: usize = request.param("page").parse().unwrap();
                let data: Vec<_> = all.iter().skip(page * 60).take(60).collect();
                Reply::Json(
                    json!({"data": data, "totalElements": all.len(), "hasNext": all.len() > (page + 1) * 60}),
                )
            }
            SAVE => {
                let name = request.body["name"].as_str().unwrap().to_owned();
                if devices.contains_key(&name) {
                    return Reply::error(400, "Device with such name already exists!");
                }
                let saved = device(&name);
                devices.insert(name, saved.clone());
                Reply::Json(saved)
            }
            other => panic!("unexpected {other}"),
        }
    }
}

fn ids(range: DeviceRange) -> Vec<Option<String>> {
    (0..range.len())
        .map(|position| Some(format!("id-{}", range.name(position))))
        .collect()
}

#[test]
fn existing_devices_are_read_in_pages_and_the_others_made() {
    let existing = (0..400).filter(|index| index % 2 == 0).map(device_name);
    let others = ["XDW00000101".to_owned(), "DW0000010".to_owned()];
    let server = open_server(tenant_of(existing.chain(others)));
    let range = DeviceRange { start: 100, end: 300 };
    let done = AtomicUsize::new(0);
    let progress = |count| {
        done.fetch_max(count, Ordering::Relaxed);
    };
    let created = create_devices(&client(&server), range, "profile-1", 4, &progress).unwrap();
    assert_eq!((created.created, created.found, created.failed), (100, 100, 0));
    assert_eq!(created.ids, ids(range));
    assert_eq!(done.into_inner(), 200);

    let listed = server.requests(LIST);
    assert!(listed.len() >= 4, "{} pages", listed.len());
    assert!(
        listed
            .iter()
            .all(|request| request.param("textSearch") == "DW00000")
    );
    let saved = server.requests(SAVE);
    assert_eq!(saved.len(), 100);
    for request in saved {
        let name = request.body["name"].as_str().unwrap();
        assert_eq!(request.param("accessToken"), name);
        assert_eq!(
            request.body["deviceProfileId"],
            json!({"entityType": "DEVICE_PROFILE", "id": "profile-1"})
        );
    }
}

#[test]
fn devices_are_looked_up_one_by_one_where_pages_are_not_to_be_had() {
    let tenant = tenant_of((0..150).map(device_name));
    let server = open_server(move |request| match request.query.contains_key("page") {
        true => Reply::error(500, "no pages today"),
        false => tenant(request),
    });
    let range = DeviceRange { start: 0, end: 200 };
    let client = client(&server);
    let found = find_devices(&client, range, 4).unwrap();
    assert_eq!(
        (&found[..150], &found[150..]),
        (&ids(range)[..150], &vec![None; 50][..])
    );
    let created = create_devices(&client, range, "p", 4, &|_| {}).unwrap();
    assert_eq!((created.created, created.found), (50, 150));
    assert_eq!(created.ids, ids(range));
    assert_eq!(find_devices(&client, range, 4).unwrap(), ids(range));
}

#[test]
fn a_device_that_somebody_else_has_just_made_is_found() {
    let tenant = tenant_of([device_name(3)]);
    let is_first = AtomicUsize::new(0);
    let server = open_server(move |request| match request.what().as_str() {
        LIST if is_first.fetch_add(1, Ordering::SeqCst) == 0 => Reply::error(404, "not yet"),
        _ => tenant(request),
    });
    let range = DeviceRange { start: 3, end: 4 };
    let created = create_devices(&client(&server), range, "p", 1, &|_| {}).unwrap();
    assert_eq!((created.created, created.found), (0, 1));
    assert_eq!(created.ids, ids(range));
}

#[test]
fn devices_that_cannot_be_made_are_counted_with_reasons_until_it_is_hopeless() {
    let refuse = |from: u32| {
        let tenant = tenant_of([]);
        open_server(move |request| {
            match request.what() == SAVE && *request.body["name"].as_str().unwrap() >= *device_name(from) {
                true => Reply::error(403, "Devices limit reached"),
                false => tenant(request),
            }
        })
    };
    let range = DeviceRange { start: 0, end: 30 };
    let created = create_devices(&client(&refuse(20)), range, "p", 2, &|_| {}).unwrap();
    assert_eq!(
        (created.created, created.failed, created.failures.len()),
        (20, 10, 5)
    );
    assert!(
        created.failures[0].ends_with("was refused with 403: Devices limit reached"),
        "{created:?}"
    );
    assert_eq!((&created.ids[19..21]), [Some("id-DW00000019".to_owned()), None]);

    let server = refuse(20);
    let range = DeviceRange { start: 0, end: 5_000 };
    let error = create_devices(&client(&server), range, "p", 2, &|_| {}).unwrap_err();
    assert_eq!(error.status(), Some(403));
    assert!(server.requests(SAVE).len() < 100, "it went on and on");
}

#[test]
fn deleting_counts_what_was_not_there() {
    let server = open_server(|request| match request.path.as_str() {
        "/api/device/gone" => Reply::error(404, "Requested item wasn't found!"),
        "/api/device/held" => Reply::error(400, "it is in use"),
        _ => Reply::Refusal(200, String::new()),
    });
    let ids = ["a", "gone", "b", "held"].map(str::to_owned);
    let deleted = delete_devices(&client(&server), &ids, 2, &|_| {}).unwrap();
    assert_eq!((deleted.deleted, deleted.absent, deleted.failed), (2, 1, 1));
    assert_eq!(
        deleted.failures,
        ["DELETE /api/device/held was refused with 400: it is in use"]
    );
}

#[test]
fn a_profile_is_made_once() {
    let profiles = Mutex::new(vec![json!({"id": {"id": "id-other"}, "name": "SMART_METER 2"})]);
    let server = open_server(move |request| {
        let mut profiles = profiles.lock().unwrap();
        if request.method == "GET" {
            return Reply::Json(
                json!({"data": *profiles, "totalElements": profiles.len(), "hasNext": false}),
            );
        }
        let mut saved = request.body.clone();
        saved["id"] = json!({"entityType": "DEVICE_PROFILE", "id": "id-new"});
        profiles.push(saved.clone());
        Reply::Json(saved)
    });
    let client = client(&server);
    for _ in 0..2 {
        assert_eq!(
            ensure_profile(&client, &ProfileSpec::named("SMART_METER")).unwrap(),
            "id-new"
        );
    }
    let posts = server.requests("POST /api/deviceProfile");
    assert_eq!(posts.len(), 1);
    assert_eq!(
        posts[0].body["profileData"]["alarms"][0]["alarmType"],
        "Low battery"
    );
}
