//! Alarm queries by an entity filter.

use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture};
use crate::meters::{key, meters, of_type, test};

#[tokio::test]
async fn alarms_are_found_by_every_filter_with_values_of_their_entities() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    for device in &meters {
        let alarm = json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" });
        admin.post("/api/alarm", &alarm).await;
    }
    let hot = test("TIME_SERIES", "temperature", "NUMERIC", "GREATER", &json!(85));
    let asked = json!({
        "entityFilter": of_type(),
        "keyFilters": [hot],
        "entityFields": [key("ENTITY_FIELD", "label")],
        "latestValues": [key("TIME_SERIES", "temperature")],
        "alarmFields": [key("ALARM_FIELD", "type")],
        "pageLink": {
            "pageSize": 10, "page": 0,
            "sortOrder": { "key": key("ENTITY_FIELD", "name"), "direction": "DESC" },
        },
    });
    let page = admin.post("/api/alarmsQuery/find", &asked).await;
    let first = &page["data"][0];
    assert_eq!(
        (&page["totalElements"], &first["originatorName"]),
        (&json!(2), &json!("Meter 8"))
    );
    assert_eq!(first["entityId"], meters[8]["id"]);
    assert_eq!(first["latest"]["TIME_SERIES"]["temperature"]["value"], "88");
    assert_eq!(first["latest"]["ENTITY_FIELD"]["label"]["value"], "L0");
    let count = json!({ "entityFilter": of_type(), "severityList": ["MAJOR"] });
    assert_eq!(admin.post("/api/alarmsQuery/count", &count).await, 10);
    assert_eq!(
        world
            .customer_user()
            .await
            .post("/api/alarmsQuery/count", &count)
            .await,
        4
    );
    assert_eq!(
        world
            .stranger()
            .await
            .post("/api/alarmsQuery/count", &count)
            .await,
        0
    );
}

#[tokio::test]
async fn alarms_are_sorted_by_values_of_their_entities() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    // Two alarms on the hottest meter: the newest alarm of an entity comes first.
    for (place, kind) in [(8, "Old"), (1, "Hot"), (8, "New"), (3, "Hot")] {
        world.clock.advance(1_000);
        let alarm = json!({ "type": kind, "originator": meters[place]["id"], "severity": "MAJOR" });
        admin.post("/api/alarm", &alarm).await;
    }
    let asked = |direction: &str, size: u32, page: u32, propagated: bool| {
        json!({
            "entityFilter": of_type(),
            "pageLink": {
                "pageSize": size, "page": page, "searchPropagatedAlarms": propagated,
                "sortOrder": { "key": key("TIME_SERIES", "temperature"), "direction": direction },
            },
        })
    };
    let shown = async |query: Value| {
        let page = admin.post("/api/alarmsQuery/find", &query).await;
        assert_eq!(page["totalElements"], 4);
        let alarms = page["data"].as_array().unwrap().iter();
        let shown = |alarm: &Value| {
            let text = |name: &str| alarm[name].as_str().unwrap().to_owned();
            format!("{} {}", text("originatorName"), text("type"))
        };
        alarms.map(shown).collect::<Vec<_>>()
    };
    let hottest = ["Meter 8 New", "Meter 8 Old", "Meter 3 Hot", "Meter 1 Hot"];
    for propagated in [false, true] {
        assert_eq!(shown(asked("DESC", 10, 0, propagated)).await, hottest);
        assert_eq!(shown(asked("DESC", 2, 1, propagated)).await, hottest[2..]);
    }
    let coldest = ["Meter 1 Hot", "Meter 3 Hot", "Meter 8 New", "Meter 8 Old"];
    assert_eq!(shown(asked("ASC", 10, 0, false)).await, coldest);
}

#[tokio::test]
async fn a_window_of_alarms_begins_at_the_start_or_ends_now() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    for place in [0, 1] {
        let alarm = json!({ "type": "Hot", "originator": meters[place]["id"], "severity": "MAJOR" });
        admin.post("/api/alarm", &alarm).await;
        world.clock.advance(60_000);
    }
    let asked = |start: i64| {
        let page = json!({ "pageSize": 10, "page": 0, "startTs": start, "timeWindow": 30_000 });
        json!({ "entityFilter": of_type(), "pageLink": page })
    };
    let names = async |query: Value| {
        let page = admin.post("/api/alarmsQuery/find", &query).await;
        let alarms = page["data"].as_array().unwrap().iter();
        alarms
            .map(|alarm| alarm["originatorName"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(asked(NOW)).await, ["Meter 0"]);
    assert_eq!(names(asked(NOW + 50_000)).await, ["Meter 1"]);
    assert!(names(asked(0)).await.is_empty());
}
