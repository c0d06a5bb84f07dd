//! Transfer of devices between tenants.

use fieldline_core::ports::{TelemetryRow, TelemetrySaveStrategy};
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture, id};
use crate::meters::{find, key, names, query, test};

const HOUR_MS: i64 = 3_600_000;

#[tokio::test]
async fn what_still_comes_for_a_device_follows_it_for_an_hour() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let device = admin
        .post("/api/device", &json!({ "name": "nomad", "type": "nomads" }))
        .await;
    let device_id = id(&device).to_owned();
    let own = stranger.get("/api/auth/user").await;
    let to = own["tenantId"]["id"].as_str().unwrap();
    let store = async |tenant: &Value, ts: i64, value: i64| {
        let mut values = Vec::new();
        kv::pack("late", KvValueRef::Long(value), &mut values);
        let row = TelemetryRow {
            subject: EntityKey::device(
                TenantId(tenant["id"].as_str().unwrap().parse().unwrap()),
                DeviceId(device_id.parse().unwrap()),
            ),
            ts,
            ttl_seconds: 0,
            strategy: TelemetrySaveStrategy::ALL,
            values: &values,
        };
        world.context.series.save(&[row]).await.unwrap();
    };
    // The other tenant already queries such values.
    let late = test("TIME_SERIES", "late", "NUMERIC", "GREATER", &json!(1));
    let nomads = json!({ "type": "deviceType", "deviceTypes": ["nomads"], "deviceNameFilter": "" });
    let asked = query(&nomads, &[late]);
    assert!(names(&find(&stranger, &asked).await).is_empty());

    store(&device["tenantId"], NOW, 1).await;
    let path = format!("/api/tenant/{to}/device/{device_id}");
    let moved = admin.post(&path, &Value::Null).await;
    assert_eq!(moved["tenantId"]["id"], to);
    assert!(names(&find(&stranger, &asked).await).is_empty());
    let points = async || {
        let path = format!(
            "/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?keys=late&startTs=0&endTs=9999999999999"
        );
        stranger.get(&path).await["late"].as_array().unwrap().len()
    };
    assert_eq!(points().await, 1);

    // A message was still in flight during the transfer.
    store(&device["tenantId"], NOW + 1, 2).await;
    world.tenant_transfer.catch_up().await;
    assert_eq!(points().await, 2);
    assert_eq!(names(&find(&stranger, &asked).await), ["nomad"]);
    world.clock.advance(HOUR_MS);
    store(&device["tenantId"], NOW + 2, 3).await;
    world.tenant_transfer.catch_up().await;
    assert_eq!(points().await, 3);
    store(&device["tenantId"], NOW + 3, 4).await;
    world.tenant_transfer.catch_up().await;
    assert_eq!(points().await, 3);
    let shown = key("ENTITY_FIELD", "ownerName");
    let mut asked = query(&nomads, &[]);
    asked["entityFields"] = json!([key("ENTITY_FIELD", "name"), shown]);
    assert_eq!(names(&find(&admin, &asked).await), [""; 0]);
}
