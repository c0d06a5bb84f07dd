//! Devices with different values, and queries that find them.

use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, id};

/// Creates ten devices with attributes and latest values: `Meter 0` to `Meter 9`, the even ones hot, every third one
/// assigned to Customer A.
pub(crate) async fn meters(admin: &FixtureClient<'_>) -> Vec<Value> {
    let customers = admin
        .get("/api/customers?pageSize=10&page=0&textSearch=Customer%20A")
        .await;
    let customer = id(&customers["data"][0]).to_owned();
    let mut made = Vec::new();
    for number in 0..10 {
        let device = json!({ "name": format!("Meter {number}"), "type": "meter", "label": format!("L{}", number % 2) });
        let mut device = admin.post("/api/device", &device).await;
        if number % 3 == 0 {
            let path = format!("/api/customer/{customer}/device/{}", id(&device));
            device = admin.post(&path, &Value::Null).await;
        }
        let base = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
        let temperature = if number % 2 == 0 { 80 + number } else { number };
        let points = json!({ "ts": NOW - 1_000, "values": { "temperature": temperature, "state": format!("S{}", number % 3) } });
        admin.post(&format!("{base}/timeseries/ANY"), &points).await;
        let server = json!({ "active": number < 5, "floor": number as f64 / 2.0 });
        admin
            .post(&format!("{base}/attributes/SERVER_SCOPE"), &server)
            .await;
        made.push(device);
    }
    made
}

/// Adds an attribute of another scope with an existing name.
pub(crate) async fn give_a_shared_floor(admin: &FixtureClient<'_>, device: &Value) {
    let path = format!(
        "/api/plugins/telemetry/DEVICE/{}/attributes/SHARED_SCOPE",
        id(device)
    );
    admin.post(&path, &json!({ "floor": 70 })).await;
}

/// A key of a query.
pub(crate) fn key(kind: &str, name: &str) -> Value {
    json!({ "type": kind, "key": name })
}

/// A condition.
pub(crate) fn test(kind: &str, name: &str, predicate: &str, operation: &str, value: &Value) -> Value {
    json!({
        "key": key(kind, name),
        "valueType": predicate,
        "predicate": { "type": predicate, "operation": operation, "value": { "defaultValue": value, "dynamicValue": null } },
    })
}

/// A query that returns names and some values, sorted by name.
pub(crate) fn query(filter: &Value, key_filters: &[Value]) -> Value {
    json!({
        "entityFilter": filter,
        "keyFilters": key_filters,
        "entityFields": [key("ENTITY_FIELD", "name")],
        "latestValues": [key("TIME_SERIES", "temperature"), key("ATTRIBUTE", "floor")],
        "pageLink": {
            "pageSize": 100, "page": 0,
            "sortOrder": { "key": key("ENTITY_FIELD", "name"), "direction": "ASC" },
        },
    })
}

/// The filter of all meters.
pub(crate) fn of_type() -> Value {
    json!({ "type": "deviceType", "deviceTypes": ["meter"], "deviceNameFilter": "" })
}

/// Returns the names on a page.
pub(crate) fn names(page: &Value) -> Vec<&str> {
    let shown = page["data"].as_array().unwrap().iter();
    shown
        .map(|entity| {
            entity["latest"]["ENTITY_FIELD"]["name"]["value"]
                .as_str()
                .unwrap()
        })
        .collect()
}

/// Returns a page of entities.
pub(crate) async fn find(who: &FixtureClient<'_>, query: &Value) -> Value {
    who.post("/api/entitiesQuery/find", query).await
}

/// Returns the numbers of the matching meters; checks that the count is the same.
pub(crate) async fn found(who: &FixtureClient<'_>, key_filters: &[Value]) -> Vec<String> {
    let page = find(who, &query(&of_type(), key_filters)).await;
    let names: Vec<String> = names(&page)
        .into_iter()
        .map(|name| name.replace("Meter ", ""))
        .collect();
    let count = json!({ "entityFilter": of_type(), "keyFilters": key_filters });
    assert_eq!(who.post("/api/entitiesQuery/count", &count).await, names.len());
    names
}
