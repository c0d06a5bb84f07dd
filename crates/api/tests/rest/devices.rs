//! Devices and their credentials.

use fieldline_devices::directory::sha3_hex;
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, RestFixture, id, no};

async fn credentials(client: &FixtureClient<'_>, device: &Value) -> Value {
    client
        .get(&format!("/api/device/{}/credentials", id(device)))
        .await
}

#[tokio::test]
async fn a_new_device_has_a_profile_a_token_and_is_inactive() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin
        .post(
            "/api/device",
            &json!({ "name": "Pump", "type": "pump", "additionalInfo": { "gateway": true, "x": [1] }, "unknown": 1 }),
        )
        .await;
    assert_eq!(device["version"], 1);
    assert_eq!(device["type"], "pump");
    assert_eq!(device["customerId"]["id"], "13814000-1dd2-11b2-8080-808080808080");
    assert_eq!(device["additionalInfo"], json!({ "gateway": true, "x": [1] }));
    assert_eq!(device["deviceData"]["transportConfiguration"]["type"], "DEFAULT");
    let profile = device["deviceProfileId"]["id"].as_str().unwrap();
    let profile = admin.get(&format!("/api/deviceProfile/{profile}")).await;
    assert_eq!(profile["name"], "pump");
    assert_eq!(profile["default"], false);
    let token = credentials(&admin, &device).await;
    assert_eq!(token["credentialsType"], "ACCESS_TOKEN");
    assert_eq!(token["credentialsId"].as_str().unwrap().len(), 20);
    let attributes = format!(
        "/api/plugins/telemetry/DEVICE/{}/values/attributes/SERVER_SCOPE",
        id(&device)
    );
    let attributes = admin.get(&attributes).await;
    assert_eq!(attributes[0]["key"], "active");
    assert_eq!(attributes[0]["value"], false);

    let plain = admin
        .post("/api/device?accessToken=MY_TOKEN", &json!({ "name": "Plain" }))
        .await;
    assert_eq!(plain["type"], "default");
    assert_eq!(credentials(&admin, &plain).await["credentialsId"], "MY_TOKEN");
    let second = json!({ "name": "Second" });
    assert_eq!(
        admin
            .refused("POST", "/api/device?accessToken=MY_TOKEN", &second)
            .await,
        no(
            400,
            31,
            "Device credentials are already assigned to another device!"
        )
    );
}

#[tokio::test]
async fn broken_rules_are_named() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let nowhere = json!({ "entityType": "CUSTOMER", "id": "11111111-1111-1111-1111-111111111111" });
    let long = "x".repeat(256);
    for (body, message) in [
        (json!({}), "Device name should be specified!"),
        (json!({ "name": " " }), "Device name should be specified!"),
        (
            json!({ "name": "Test Device A1" }),
            "Device with such name already exists!",
        ),
        (
            json!({ "name": long }),
            "Validation error: name length must be equal or less than 255",
        ),
        (
            json!({ "name": "n", "customerId": nowhere }),
            "Can't assign device to non-existent customer!",
        ),
    ] {
        assert_eq!(
            admin.refused("POST", "/api/device", &body).await,
            no(400, 31, message)
        );
    }
    let name = json!({ "name": "Test Device A1" });
    let path = "/api/device?nameConflictPolicy=UNIQUIFY&uniquifyStrategy=INCREMENTAL";
    assert_eq!(admin.post(path, &name).await["name"], "Test Device A1_1");
    assert_eq!(admin.post(path, &name).await["name"], "Test Device A1_2");
}

#[tokio::test]
async fn a_stale_version_is_refused_and_none_wins() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let mut device = admin.post("/api/device", &json!({ "name": "Pump" })).await;
    device["label"] = json!("first");
    assert_eq!(admin.post("/api/device", &device).await["version"], 2);
    device["label"] = json!("second");
    let (status, code, _) = admin.refused("POST", "/api/device", &device).await;
    assert_eq!((status, code), (409, 35));
    device["version"] = Value::Null;
    let saved = admin.post("/api/device", &device).await;
    assert_eq!(
        (&saved["version"], &saved["label"]),
        (&json!(3), &json!("second"))
    );
}

#[tokio::test]
async fn lists_are_filtered_searched_sorted_and_paged() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let page = admin
        .get("/api/tenant/devices?pageSize=4&page=0&sortProperty=name&sortOrder=ASC")
        .await;
    assert_eq!(page["totalElements"], 9);
    assert_eq!(page["totalPages"], 3);
    assert_eq!(page["hasNext"], true);
    assert_eq!(page["data"][0]["name"], "DHT11 Demo Device");
    let page = admin
        .get("/api/tenant/deviceInfos?pageSize=10&page=0&textSearch=device%20a&active=false")
        .await;
    assert_eq!(page["totalElements"], 3);
    assert_eq!(page["data"][0]["customerTitle"], "Customer A");
    assert_eq!(page["data"][0]["deviceProfileName"], "default");
    let page = admin
        .get("/api/tenant/devices?pageSize=10&page=0&type=thermostat")
        .await;
    assert_eq!(page["totalElements"], 2);
    let types = admin.get("/api/device/types").await;
    assert_eq!(types[0]["type"], "default");
    assert_eq!(types[1]["type"], "thermostat");
    for (query, message) in [
        (
            "page=0",
            "Required request parameter 'pageSize' for method parameter type int is not present",
        ),
        (
            "pageSize=10&page=0&sortProperty=name&sortOrder=UP",
            "Unsupported sort order 'UP'! Only 'ASC' or 'DESC' types are allowed.",
        ),
    ] {
        let path = format!("/api/tenant/devices?{query}");
        assert_eq!(
            admin.refused("GET", &path, &Value::Null).await,
            no(400, 31, message)
        );
    }
    let odd = "/api/tenant/devices?pageSize=10&page=0&sortProperty=nonsense";
    assert_eq!(admin.refused("GET", odd, &Value::Null).await.0, 400);
    let absent = "/api/tenant/device?deviceName=absent";
    assert_eq!(admin.refused("GET", absent, &Value::Null).await.1, 32);
}

#[tokio::test]
async fn devices_go_to_customers_and_come_back() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.post("/api/device", &json!({ "name": "Pump" })).await;
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20B")
        .await;
    let assign = format!("/api/customer/{}/device/{}", id(&customer), id(&device));
    let back = format!("/api/customer/device/{}", id(&device));
    assert_eq!(
        admin.refused("DELETE", &back, &Value::Null).await,
        no(400, 31, "Device isn't assigned to any customer!")
    );
    let assigned = admin.post(&assign, &Value::Null).await;
    assert_eq!(assigned["customerId"], customer["id"]);
    admin.delete(&back).await;
    let public = format!("/api/customer/public/device/{}", id(&device));
    admin.post(&public, &Value::Null).await;
    let info = admin.get(&format!("/api/device/info/{}", id(&device))).await;
    assert_eq!(info["customerTitle"], "Public");
    assert_eq!(info["customerIsPublic"], true);
}

#[tokio::test]
async fn credentials_are_replaced_by_type_and_found_by_their_hash() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.post("/api/device", &json!({ "name": "Pump" })).await;
    let mut current = credentials(&admin, &device).await;
    current["credentialsType"] = json!("MQTT_BASIC");
    current["credentialsValue"] = json!(r#"{"clientId":"c","userName":"u","password":"p"}"#);
    let path = "/api/device/credentials";
    let saved = admin.post(path, &current).await;
    assert_eq!(saved["credentialsId"], sha3_hex("c|u"));
    assert_eq!(saved["id"], current["id"]);
    let mut pem = saved.clone();
    pem["credentialsType"] = json!("X509_CERTIFICATE");
    pem["credentialsValue"] = json!("-----BEGIN CERTIFICATE-----\nMIIB\nAgMB\n-----END CERTIFICATE-----\n");
    let pem = admin.post(path, &pem).await;
    assert_eq!(pem["credentialsValue"], "MIIBAgMB");
    assert_eq!(pem["credentialsId"], sha3_hex("MIIBAgMB"));
    let (status, code, _) = admin.refused("POST", path, &saved).await;
    assert_eq!((status, code), (409, 35), "a stale version");
    let mut taken = pem.clone();
    taken["credentialsType"] = json!("ACCESS_TOKEN");
    taken["credentialsId"] = json!("A1_TEST_TOKEN");
    assert_eq!(
        admin.refused("POST", path, &taken).await,
        no(
            400,
            31,
            "Device credentials are already assigned to another device!"
        )
    );
    let mut foreign = pem.clone();
    foreign["id"]["id"] = json!("11111111-1111-1111-1111-111111111111");
    assert_eq!(
        admin.refused("POST", path, &foreign).await,
        no(400, 31, "Unable to update non-existent device credentials!")
    );
    let both = json!({
        "device": { "name": "Valve" },
        "credentials": { "credentialsType": "MQTT_BASIC", "credentialsValue": "{\"userName\":\"valve\"}" },
    });
    let valve = admin.post("/api/device-with-credentials", &both).await;
    assert_eq!(credentials(&admin, &valve).await["credentialsId"], "valve");
}

#[tokio::test]
async fn a_deleted_device_leaves_nothing_behind() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.get("/api/tenant/device?deviceName=Thermostat%20T1").await;
    let telemetry = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
    admin
        .post(
            &format!("{telemetry}/timeseries/any"),
            &json!({ "temperature": 21 }),
        )
        .await;
    let path = format!("/api/device/{}", id(&device));
    admin.delete(&path).await;
    assert_eq!(
        admin.refused("GET", &path, &Value::Null).await,
        no(404, 32, &format!("Device with id [{}] is not found", id(&device)))
    );
    let subject = fieldline_model::EntityKey::device(
        fieldline_model::TenantId(device["tenantId"]["id"].as_str().unwrap().parse().unwrap()),
        fieldline_model::DeviceId(id(&device).parse().unwrap()),
    );
    world.run_housekeeper().await;
    let series = &world.context.series;
    assert!(series.keys(subject).await.unwrap().is_empty());
    let scope = fieldline_model::timeseries::AttributeScope::Server;
    let attributes = &world.context.attributes;
    assert!(attributes.get(subject, scope, None).await.unwrap().is_empty());
    // The token is free again.
    let reborn = json!({ "name": "Thermostat T1" });
    admin.post("/api/device?accessToken=T1_TEST_TOKEN", &reborn).await;
}
