//! Device profiles and tenant profiles.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id, no};

#[tokio::test]
async fn a_device_profile_keeps_its_data_whole() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let data = json!({
        "configuration": { "type": "DEFAULT" },
        "transportConfiguration": { "type": "MQTT", "deviceTelemetryTopic": "x/+", "sparkplug": false, "odd": [1, null] },
        "provisionConfiguration": { "type": "ALLOW_CREATE_NEW_DEVICES", "provisionDeviceSecret": null },
        "alarms": [{ "alarmType": "High", "createRules": {} }],
    });
    let profile = json!({
        "name": "meter", "type": "DEFAULT", "transportType": "MQTT",
        "provisionType": "ALLOW_CREATE_NEW_DEVICES", "profileData": data,
    });
    let saved = admin.post("/api/deviceProfile", &profile).await;
    assert_eq!(
        saved["profileData"]["transportConfiguration"],
        data["transportConfiguration"]
    );
    assert_eq!(saved["profileData"]["alarms"], data["alarms"]);
    assert_eq!(saved["provisionDeviceKey"].as_str().unwrap().len(), 20);
    let secret = &saved["profileData"]["provisionConfiguration"]["provisionDeviceSecret"];
    assert_eq!(secret.as_str().unwrap().len(), 20);
    assert_eq!(
        admin.get(&format!("/api/deviceProfile/{}", id(&saved))).await,
        saved
    );
    let infos = admin
        .get("/api/deviceProfileInfos?pageSize=10&page=0&transportType=MQTT")
        .await;
    assert_eq!(infos["totalElements"], 1);
    assert_eq!(infos["data"][0]["name"], "meter");
}

#[tokio::test]
async fn devices_follow_the_name_of_their_profile() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.get("/api/tenant/device?deviceName=Thermostat%20T1").await;
    let path = format!(
        "/api/deviceProfile/{}",
        device["deviceProfileId"]["id"].as_str().unwrap()
    );
    let mut profile = admin.get(&path).await;
    profile["name"] = json!("boiler");
    admin.post("/api/deviceProfile", &profile).await;
    let renamed = admin.get(&format!("/api/device/{}", id(&device))).await;
    assert_eq!(renamed["type"], "boiler");
    profile["version"] = Value::Null;
    profile["transportType"] = json!("MQTT");
    assert_eq!(
        admin.refused("POST", "/api/deviceProfile", &profile).await,
        no(
            400,
            31,
            "Can't change device profile transport type because devices referenced it!"
        )
    );
    assert_eq!(
        admin.refused("DELETE", &path, &Value::Null).await,
        no(
            400,
            31,
            "The device profile referenced by the devices cannot be deleted!"
        )
    );
}

#[tokio::test]
async fn there_is_always_one_default_device_profile() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let first = admin.get("/api/deviceProfileInfo/default").await;
    assert_eq!(first["name"], "default");
    let path = format!("/api/deviceProfile/{}", id(&first));
    assert_eq!(
        admin.refused("DELETE", &path, &Value::Null).await,
        no(400, 31, "Deletion of Default Device Profile is prohibited!")
    );
    let second = json!({ "name": "second", "default": true });
    assert_eq!(
        admin.refused("POST", "/api/deviceProfile", &second).await.2,
        "Another default device profile is present in scope of current tenant!"
    );
    let second = admin
        .post("/api/deviceProfile", &json!({ "name": "second" }))
        .await;
    let path = format!("/api/deviceProfile/{}/default", id(&second));
    assert_eq!(admin.post(&path, &Value::Null).await["default"], true);
    assert_eq!(
        admin.get("/api/deviceProfileInfo/default").await["name"],
        "second"
    );
    let device = admin.post("/api/device", &json!({ "name": "Pump" })).await;
    assert_eq!(device["type"], "second");
    let names = admin.get("/api/deviceProfile/names?activeOnly=true").await;
    let names: Vec<&str> = names
        .as_array()
        .unwrap()
        .iter()
        .map(|info| info["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "second", "thermostat"]);
    assert_eq!(
        admin
            .refused("POST", "/api/deviceProfile", &json!({ "name": "second" }))
            .await
            .2,
        "Device profile with such name already exists!"
    );
}

#[tokio::test]
async fn names_of_series_and_attributes_are_learned_from_the_devices_of_a_profile() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.get("/api/tenant/device?deviceName=Thermostat%20T1").await;
    let path = format!("/api/plugins/telemetry/DEVICE/{}/timeseries/any", id(&device));
    admin
        .post(&path, &json!({ "temperature": 21, "humidity": 40 }))
        .await;
    let profile = device["deviceProfileId"]["id"].as_str().unwrap();
    let keys = format!("/api/deviceProfile/devices/keys/timeseries?deviceProfileId={profile}");
    assert_eq!(admin.get(&keys).await, json!(["humidity", "temperature"]));
    assert_eq!(
        admin.get("/api/deviceProfile/devices/keys/attributes").await,
        json!(["active"])
    );
}

#[tokio::test]
async fn tenant_profiles_limit_what_a_tenant_has() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    assert_eq!(
        sysadmin
            .refused("POST", "/api/tenantProfile", &json!({ "name": "x" }))
            .await
            .2,
        "Tenant profile data should be specified!"
    );
    let limits =
        json!({ "type": "DEFAULT", "maxDevices": 9, "maxCustomers": 4, "maxUsers": 5, "own": "kept" });
    let profile = json!({ "name": "small", "profileData": { "configuration": limits } });
    let profile = sysadmin.post("/api/tenantProfile", &profile).await;
    let configuration = &profile["profileData"]["configuration"];
    assert_eq!(configuration["own"], "kept");
    assert_eq!(configuration["maxArgumentsPerCF"], 10, "filled in");

    let user = admin.get("/api/auth/user").await;
    let path = format!("/api/tenant/{}", user["tenantId"]["id"].as_str().unwrap());
    let mut tenant = sysadmin.get(&path).await;
    tenant["tenantProfileId"] = profile["id"].clone();
    sysadmin.post("/api/tenant", &tenant).await;
    let (status, text) = admin
        .send("POST", "/api/device", json!({ "name": "one more" }).to_string())
        .await;
    let error: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 403);
    assert_eq!(error["errorCode"], 41);
    assert_eq!(error["message"], "Devices limit reached");
    assert_eq!(
        (&error["entityType"], &error["limit"]),
        (&json!("DEVICE"), &json!(9))
    );
    admin.post("/api/customer", &json!({ "title": "fourth" })).await;
    let fifth = json!({ "title": "fifth" });
    assert_eq!(admin.refused("POST", "/api/customer", &fifth).await.1, 41);
    let sixth = json!({ "email": "sixth@example.org", "authority": "TENANT_ADMIN" });
    assert_eq!(admin.refused("POST", "/api/user", &sixth).await.1, 41);

    let path = format!("/api/tenantProfile/{}", id(&profile));
    assert_eq!(
        sysadmin.refused("DELETE", &path, &Value::Null).await,
        no(
            400,
            31,
            "The tenant profile referenced by the tenants cannot be deleted!"
        )
    );
    let default = sysadmin.get("/api/tenantProfileInfo/default").await;
    let path = format!("/api/tenantProfile/{}", id(&default));
    assert_eq!(
        sysadmin.refused("DELETE", &path, &Value::Null).await,
        no(400, 31, "Deletion of Default Tenant Profile is prohibited!")
    );
}
