//! The audit log: actions of users, and their results.

use serde_json::{Value, json};

use crate::fixture::{FixtureClient, RestFixture, id};

/// Waits for the newest entry of a kind.
pub(crate) async fn newest(client: &FixtureClient<'_>, action: &str) -> Value {
    let path = format!("/api/audit/logs?pageSize=1&page=0&actionTypes={action}");
    for _ in 0..1_000 {
        let page = client.get(&path).await;
        if let Some(entry) = page["data"].get(0) {
            return entry.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("nobody has kept {action}");
}

async fn count(client: &FixtureClient<'_>, path: &str) -> u64 {
    client.get(path).await["totalElements"].as_u64().unwrap()
}

#[tokio::test]
async fn what_people_do_with_entities_is_kept() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.post("/api/device", &json!({ "name": "watched" })).await;
    let added = newest(&admin, "ADDED").await;
    assert_eq!(added["entityId"], device["id"]);
    assert_eq!(
        (&added["entityName"], &added["userName"]),
        (&json!("watched"), &json!("tenant@thingsboard.org"))
    );
    assert_eq!(
        (&added["actionStatus"], &added["actionFailureDetails"]),
        (&json!("SUCCESS"), &json!(""))
    );
    assert_eq!(added["actionData"]["entity"]["name"], "watched");
    assert!(added["id"]["id"].is_string() && added["createdTime"].is_i64());

    let telemetry = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
    admin
        .post(
            &format!("{telemetry}/attributes/SERVER_SCOPE"),
            &json!({ "a": 1 }),
        )
        .await;
    let changed = newest(&admin, "ATTRIBUTES_UPDATED").await;
    assert_eq!(
        changed["actionData"],
        json!({ "entityId": id(&device), "scope": "SERVER_SCOPE", "attributes": { "a": 1 } })
    );
    assert_eq!(changed["entityName"], "watched", "looked up");
    admin
        .post(
            &format!("{telemetry}/timeseries/ANY"),
            &json!({ "ts": 5, "values": { "t": 1 } }),
        )
        .await;
    let saved = newest(&admin, "TIMESERIES_UPDATED").await;
    assert_eq!(
        saved["actionData"]["timeseries"],
        json!([{ "ts": 5, "values": { "t": 1 } }])
    );
    admin.delete(&format!("{telemetry}/SERVER_SCOPE?keys=a")).await;
    assert_eq!(
        newest(&admin, "ATTRIBUTES_DELETED").await["actionData"]["attributes"],
        json!(["a"])
    );

    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    let assign = format!("/api/customer/{}/device/{}", id(&customer), id(&device));
    admin.post(&assign, &Value::Null).await;
    let assigned = newest(&admin, "ASSIGNED_TO_CUSTOMER").await;
    assert_eq!(assigned["actionData"]["assignedCustomerName"], "Customer A");
    assert_eq!(assigned["customerId"], customer["id"]);
    let credentials = admin
        .get(&format!("/api/device/{}/credentials", id(&device)))
        .await;
    let mut credentials = credentials.clone();
    credentials["credentialsId"] = json!("a very secret token");
    admin.post("/api/device/credentials", &credentials).await;
    let replaced = newest(&admin, "CREDENTIALS_UPDATED").await;
    assert_eq!(replaced["actionData"]["credentialsType"], "ACCESS_TOKEN");
    assert!(!replaced.to_string().contains("very secret"));
    let relation = json!({ "from": device["id"], "to": customer["id"], "type": "Uses" });
    admin.post("/api/relation", &relation).await;
    assert_eq!(
        newest(&admin, "RELATION_ADD_OR_UPDATE").await["actionData"]["relation"]["type"],
        "Uses"
    );
    let alarm = json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" });
    let alarm = admin.post("/api/alarm", &alarm).await;
    admin
        .post(&format!("/api/alarm/{}/ack", id(&alarm)), &Value::Null)
        .await;
    assert_eq!(newest(&admin, "ALARM_ACK").await["entityName"], "watched");
    admin.delete(&format!("/api/device/{}", id(&device))).await;
    assert_eq!(
        newest(&admin, "DELETED").await["actionData"],
        json!({ "entityId": id(&device) })
    );

    let of_device = format!("/api/audit/logs/entity/DEVICE/{}?pageSize=50&page=0", id(&device));
    let found = admin.get(&of_device).await;
    assert!(found["totalElements"].as_u64().unwrap() >= 8, "{found}");
    let times: Vec<i64> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["createdTime"].as_i64().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b));
}

#[tokio::test]
async fn what_fails_is_kept_with_the_reason() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    admin
        .refused("POST", "/api/device", &json!({ "name": "Test Device A1" }))
        .await;
    let failed = newest(&admin, "ADDED").await;
    assert_eq!(failed["actionStatus"], "FAILURE");
    assert_eq!(
        failed["actionFailureDetails"],
        "Device with such name already exists!"
    );
    assert_eq!(failed["entityId"]["entityType"], "DEVICE");
    assert_eq!(
        (&failed["entityName"], &failed["actionData"]["entity"]["name"]),
        (&json!("Test Device A1"), &json!("Test Device A1"))
    );
    let device = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let user = world.customer_user().await;
    user.refused("DELETE", &format!("/api/device/{}", id(&device)), &Value::Null)
        .await;
    let attributes = format!(
        "/api/plugins/telemetry/DEVICE/{}/attributes/SERVER_SCOPE",
        id(&device)
    );
    assert_eq!(user.send("POST", &attributes, "{").await.0, 400);
    let failed = newest(&admin, "ATTRIBUTES_UPDATED").await;
    assert!(
        failed["actionFailureDetails"]
            .as_str()
            .unwrap()
            .contains("Invalid JSON"),
        "{failed}"
    );
    assert_eq!(failed["userName"], "customer@thingsboard.org");
    let failures = "/api/audit/logs?pageSize=9&page=0&textSearch=FAILURE";
    assert!(count(&admin, failures).await >= 2);
}

#[tokio::test]
async fn log_ins_are_kept_for_those_they_concern() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let login = json!({ "username": "customer@thingsboard.org", "password": "wrong" });
    world.nobody().refused("POST", "/api/auth/login", &login).await;
    let user = world.customer_user().await;
    user.send("POST", "/api/auth/logout", "").await;
    newest(&admin, "LOGOUT").await;
    let me = admin
        .get("/api/users?pageSize=1&page=0&textSearch=customer@")
        .await;
    let path = format!("/api/audit/logs/user/{}?pageSize=9&page=0", id(&me["data"][0]));
    let found = admin.get(&path).await;
    let kinds: Vec<(&str, &str)> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["actionType"].as_str().unwrap(),
                one["actionStatus"].as_str().unwrap(),
            )
        })
        .collect();
    for kind in [("LOGIN", "FAILURE"), ("LOGIN", "SUCCESS"), ("LOGOUT", "SUCCESS")] {
        assert!(kinds.contains(&kind), "{kind:?} of {kinds:?}");
    }
    assert_eq!(found["data"][0]["actionData"]["clientAddress"], "192.0.2.1");
    let customer = me["data"][0]["customerId"]["id"].as_str().unwrap();
    assert!(
        count(
            &admin,
            &format!("/api/audit/logs/customer/{customer}?pageSize=9&page=0")
        )
        .await
            >= 3
    );

    // Actions of system administrators belong to no tenant, and those of a tenant to no other one.
    let sysadmin = world.sysadmin().await;
    newest(&sysadmin, "LOGIN").await;
    let stranger = world.stranger().await;
    sysadmin.post("/api/tenant", &json!({ "title": "Third" })).await;
    assert_eq!(
        newest(&sysadmin, "ADDED").await["userName"],
        "sysadmin@thingsboard.org"
    );
    assert_eq!(count(&sysadmin, &path).await, 0);
    assert_eq!(count(&stranger, &path).await, 0);
    assert_eq!(
        user.refused("GET", "/api/audit/logs?pageSize=1&page=0", &Value::Null)
            .await
            .0,
        401
    );
    for query in ["actionTypes=NOTHING", "startTime=x"] {
        let path = format!("/api/audit/logs?pageSize=1&page=0&{query}");
        assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 400);
    }
    let none = "/api/audit/logs?pageSize=1&page=0&endTime=1";
    assert_eq!(count(&admin, none).await, 0);
}

#[tokio::test]
async fn secrets_are_not_kept() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let mut profile = json!({
        "name": "Provisioned", "type": "DEFAULT", "transportType": "DEFAULT",
        "provisionType": "ALLOW_CREATE_NEW_DEVICES", "provisionDeviceKey": "a key",
        "profileData": {
            "configuration": { "type": "DEFAULT" }, "transportConfiguration": { "type": "DEFAULT" },
            "provisionConfiguration": {
                "type": "ALLOW_CREATE_NEW_DEVICES", "provisionDeviceSecret": "very secret",
            },
        },
    });
    admin.post("/api/deviceProfile", &profile).await;
    let added = newest(&admin, "ADDED").await;
    let shown = &added["actionData"]["entity"];
    assert_eq!(shown["name"], "Provisioned");
    assert!(shown["profileData"]["provisionConfiguration"]["type"].is_string());
    assert!(!added.to_string().contains("very secret"), "{added}");
    profile["profileData"]["provisionConfiguration"]["provisionDeviceSecret"] = json!("secret, too");
    admin.refused("POST", "/api/deviceProfile", &profile).await;
    let chain = json!({
        "ruleChainId": { "entityType": "RULE_CHAIN", "id": "b3a1f0a0-0000-11ee-8000-000000000001" },
        "nodes": [{
            "type": "org.thingsboard.rule.engine.mqtt.TbMqttNode", "name": "out",
            "configuration": { "credentials": { "type": "basic", "password": "secret, too" } },
        }],
        "connections": [],
    });
    admin.refused("POST", "/api/ruleChain/metadata", &chain).await;
    newest(&admin, "UPDATED").await;
    let all = admin.get("/api/audit/logs?pageSize=50&page=0").await;
    let failures = all["data"].as_array().unwrap().iter();
    assert_eq!(failures.filter(|one| one["actionStatus"] == "FAILURE").count(), 2);
    assert!(!all.to_string().contains("secret, too"), "{all}");
}
