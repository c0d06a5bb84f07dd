//! Every endpoint × role × own or other tenant. The endpoints come from the registry, so that new ones are included
//! automatically; an unknown path parameter fails the test.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::http::StatusCode;
use fieldline_api::{EndpointAccess, RestEndpoint};
use fieldline_core::ports::{SetAsideQuota, SetAsideRawRecord};
use fieldline_model::entity::{Authority, Rpc, SetAsideInfo, SetAsideReason};
use fieldline_model::{DeviceId, SetAsideId, TenantId, new_uuid};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, RestFixture, id};
use crate::nodes::FILTER;

/// Paths without entities of a tenant: they are open to all tenants, or concern only the caller.
const SHARED: [&str; 7] = [
    // Lists the actions in the caller's own tenant, whatever the id.
    "/api/audit/logs/",
    // Counts and lists what the caller's own tenant has, whatever the profile.
    "/api/devices/count/",
    "/api/otaPackages/",
    "/api/queues/",
    "/api/component/",
    "/api/components/",
    "/api/user/settings/",
];

/// Id of a persistent call of the demo tenant.
const CALL: &str = "01998f2a-0000-7000-8000-000000000001";

/// Returns ids of entities of the demo tenant, by the names of path parameters.
async fn own_ids(admin: &FixtureClient<'_>, sysadmin: &FixtureClient<'_>) -> HashMap<&'static str, String> {
    let device = admin
        .get("/api/tenant/devices?deviceName=Test%20Device%20A1")
        .await;
    let user = admin.get("/api/auth/user").await;
    let tenant = sysadmin
        .get("/api/tenants?pageSize=1&page=0&textSearch=Tenant")
        .await;
    let chains = admin.get("/api/ruleChains?pageSize=1&page=0").await;
    let chain = &chains["data"][0];
    let statistics = admin.get("/api/queueStats?pageSize=1&page=0").await;
    let queue = admin.get("/api/queues/name/Main").await;
    let asset = admin.get("/api/tenant/asset?assetName=walled").await;
    let view = admin.get("/api/tenant/entityView?entityViewName=walled").await;
    let alarms = admin.get("/api/alarms?pageSize=1&page=0").await;
    let alarm = &alarms["data"][0]["id"];
    let comments = format!(
        "/api/alarm/{}/comment?pageSize=1&page=0",
        alarm["id"].as_str().unwrap()
    );
    let comments = admin.get(&comments).await;
    let fields = admin.get("/api/calculatedFields?pageSize=1&page=0").await;
    let widget_types = admin
        .get("/api/widgetTypes?pageSize=1&page=0&tenantOnly=true")
        .await;
    let bundles = admin.get("/api/widgetsBundles").await;
    let resources = admin.get("/api/resource/tenant?pageSize=1&page=0").await;
    let calls = format!("/api/rpc/persistent/device/{}?pageSize=1&page=0", id(&device));
    let calls = admin.get(&calls).await;
    let me = user["id"]["id"].as_str().unwrap();
    let keys = admin.get(&format!("/api/apiKeys/{me}?pageSize=1&page=0")).await;
    let dashboards = admin.get("/api/tenant/dashboards?pageSize=1&page=0").await;
    let packages = admin.get("/api/otaPackages?pageSize=1&page=0").await;
    let set_aside = admin.get("/api/setAside?pageSize=1&page=0").await;
    let text = |value: &Value| value["id"].as_str().unwrap().to_owned();
    HashMap::from([
        ("rpcId", text(&calls["data"][0]["id"])),
        ("deviceName", "Test%20Device%20A1".to_owned()),
        ("assetId", text(&asset["id"])),
        ("key", "general".to_owned()),
        ("type", "FIRMWARE".to_owned()),
        ("otaPackageType", "FIRMWARE".to_owned()),
        ("otaPackageId", text(&packages["data"][0]["id"])),
        ("sessionId", CALL.to_owned()),
        ("paths", "links".to_owned()),
        ("action", "visit".to_owned()),
        ("apiKeyId", text(&keys["data"][0]["id"])),
        ("enabledValue", "true".to_owned()),
        ("dashboardId", text(&dashboards["data"][0]["id"])),
        ("assetProfileId", text(&asset["assetProfileId"])),
        ("entityViewId", text(&view["id"])),
        ("alarmId", text(alarm)),
        ("commentId", text(&comments["data"][0]["id"])),
        ("assigneeId", text(&user["id"])),
        ("fromType", "DEVICE".to_owned()),
        ("fromId", text(&device["id"])),
        ("toType", "DEVICE".to_owned()),
        ("toId", text(&device["id"])),
        ("relationType", "Contains".to_owned()),
        ("deviceId", text(&device["id"])),
        ("customerId", text(&device["customerId"])),
        ("deviceProfileId", text(&device["deviceProfileId"])),
        ("userId", text(&user["id"])),
        ("tenantId", text(&user["tenantId"])),
        ("tenantProfileId", text(&tenant["data"][0]["tenantProfileId"])),
        ("entityType", "DEVICE".to_owned()),
        ("entityId", text(&device["id"])),
        ("scope", "SERVER_SCOPE".to_owned()),
        ("ruleChainId", text(&chain["id"])),
        ("version", "1".to_owned()),
        ("ruleNodeId", text(&chain["firstRuleNodeId"])),
        ("queueId", text(&queue["id"])),
        ("queueStatsId", text(&statistics["data"][0]["id"])),
        ("queueName", "Main".to_owned()),
        ("eventType", "LC_EVENT".to_owned()),
        ("componentType", "FILTER".to_owned()),
        ("componentDescriptorClazz", FILTER.to_owned()),
        ("setAsideId", text(&set_aside["data"][0]["id"])),
        ("ttl", "60".to_owned()),
        ("timeout", "0".to_owned()),
        ("alarmRuleId", text(&fields["data"][0]["id"])),
        ("calculatedFieldId", text(&fields["data"][0]["id"])),
        ("widgetTypeId", text(&widget_types["data"][0]["id"])),
        ("widgetsBundleId", text(&bundles[0]["id"])),
        ("resourceId", text(&resources["data"][0]["id"])),
        ("id", text(&resources["data"][0]["id"])),
        ("resourceType", "GENERAL".to_owned()),
        ("isPublic", "true".to_owned()),
        ("credentialsId", CALL.to_owned()),
        ("authProviderId", CALL.to_owned()),
        ("sharedSubscriptionId", CALL.to_owned()),
        ("authProviderType", "MQTT_BASIC".to_owned()),
    ])
}

/// Creates entities of the demo tenant that the demo lacks.
async fn furnish(world: &RestFixture, admin: &FixtureClient<'_>) {
    let device = admin
        .get("/api/tenant/devices?deviceName=Test%20Device%20A1")
        .await;
    let (device, tenant) = (&device["id"], &device["tenantId"]);
    let call = json!({
        "id": { "id": CALL }, "tenantId": tenant, "deviceId": device, "createdTime": 1, "expirationTime": 2,
        "request": {
            "id": CALL, "tenantId": tenant, "deviceId": device, "oneway": true, "expirationTime": 2,
            "body": { "method": "walled", "params": "{}" }, "persisted": true,
        },
        "status": "QUEUED",
    });
    let call: Rpc = serde_json::from_value(call).unwrap();
    world.context.stores.rpcs.insert(&call).await.unwrap();
    set_aside(world, id(&json!({ "id": tenant })), id(&json!({ "id": device }))).await;
    admin.post("/api/asset", &json!({ "name": "walled" })).await;
    admin.post("/api/dashboard", &json!({ "title": "walled" })).await;
    let me = admin.get("/api/auth/user").await;
    let key = json!({ "userId": me["id"], "description": "walled", "enabled": true });
    admin.post("/api/apiKey", &key).await;
    let view = json!({ "name": "walled", "type": "default", "entityId": device });
    admin.post("/api/entityView", &view).await;
    let profile = admin.get("/api/deviceProfileInfo/default").await;
    let package = json!({
        "deviceProfileId": profile["id"], "type": "FIRMWARE", "title": "walled", "version": "1", "url": "http://localhost/1",
    });
    admin.post("/api/otaPackage", &package).await;
    let widget = json!({ "name": "walled", "descriptor": { "type": "latest" } });
    admin.post("/api/widgetType", &widget).await;
    admin
        .post("/api/widgetsBundle", &json!({ "title": "walled" }))
        .await;
    let file =
        json!({ "title": "walled", "resourceType": "GENERAL", "fileName": "walled.txt", "data": "d2FsbGVk" });
    admin.post("/api/resource", &file).await;
    let field = crate::calculated_fields::doubling(device, "walled");
    admin.post("/api/calculatedField", &field).await;
    let alarm = json!({ "type": "Hot", "originator": device, "severity": "MAJOR" });
    let alarm = admin.post("/api/alarm", &alarm).await;
    let comments = format!("/api/alarm/{}/comment", id(&alarm));
    admin
        .post(&comments, &json!({ "comment": { "text": "seen" } }))
        .await;
}

/// Stores a record of the demo tenant that was set aside.
async fn set_aside(world: &RestFixture, tenant: &str, device: &str) {
    let tenant = TenantId(tenant.parse().unwrap());
    let device = DeviceId(device.parse().unwrap());
    let record = SetAsideRawRecord {
        info: SetAsideInfo {
            id: SetAsideId(new_uuid()),
            created_time: 2,
            tenant_id: tenant,
            entity_id: device.into(),
            queue_name: "Main".to_owned(),
            partition: 0,
            offset: 0,
            received_time: 1,
            reason: SetAsideReason::KilledProcess,
            details: "walled".to_owned(),
            deaths: 2,
            size: 3,
        },
        bytes: Bytes::from_static(b"abc"),
    };
    let room = SetAsideQuota {
        of_tenant: 1 << 20,
        in_total: 1 << 20,
    };
    world.context.stores.set_aside.keep(&record, room).await.unwrap();
}

/// Returns the path with ids instead of its parameters, and whether it had any.
fn fill(endpoint: &RestEndpoint, ids: &HashMap<&str, String>) -> (String, bool) {
    let mut path = endpoint.path.clone();
    let mut filled = false;
    while let Some((before, rest)) = path.split_once('{') {
        let (name, after) = rest.split_once('}').unwrap();
        let id = ids
            .get(name)
            .unwrap_or_else(|| panic!("{} {} has no row for `{name}`", endpoint.method, endpoint.path));
        path = format!("{before}{id}{after}");
        filled = true;
    }
    (path, filled)
}

#[tokio::test]
async fn every_endpoint_is_closed_to_strangers_and_to_roles_it_is_not_for() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let admin = world.admin().await;
    let customer_user = world.customer_user().await;
    let stranger = world.stranger().await;
    furnish(&world, &admin).await;
    let ids = own_ids(&admin, &sysadmin).await;
    let mut asked = 0;
    for endpoint in fieldline_api::endpoints() {
        let EndpointAccess::Roles(allowed) = endpoint.access else {
            continue;
        };
        let (path, about_an_entity) = fill(&endpoint, &ids);
        let method = endpoint.method;
        let (status, _) = world.nobody().send(method, &path, "{}").await;
        assert_eq!(
            status,
            StatusCode::UNAUTHORIZED,
            "{method} {path} without a token"
        );
        for (authority, client) in [
            (Authority::SysAdmin, &sysadmin),
            (Authority::TenantAdmin, &admin),
            (Authority::CustomerUser, &customer_user),
        ] {
            if !allowed.contains(&authority) {
                let (status, code, message) = client.refused(method, &path, &json!({})).await;
                assert_eq!((status, code), (403, 20), "{method} {path} as {authority:?}");
                assert_eq!(message, "You don't have permission to perform this operation!");
            }
        }
        let shared = SHARED.iter().any(|prefix| path.starts_with(prefix));
        if about_an_entity && !shared && allowed.contains(&Authority::TenantAdmin) {
            // Parameters whose absence would cause an error before the access check.
            let query = "?pageSize=1&page=0&keys=a&startTs=1&endTs=2&deleteAllDataForKeys=true";
            let (status, text) = stranger
                .send(method, &format!("{path}{query}"), "{\"a\":1}")
                .await;
            assert!(
                [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&status),
                "{method} {path} of another tenant: {status} {text}"
            );
        }
        asked += 1;
    }
    assert!(asked >= 300, "only {asked} endpoints are registered");
    // None of the requests changed or deleted anything.
    assert_eq!(ids, own_ids(&admin, &sysadmin).await);
}

#[tokio::test]
async fn ids_of_another_tenant_inside_a_body_are_of_no_use() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let stranger = world.stranger().await;
    let device = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    let profile = admin.get("/api/deviceProfileInfo/default").await;
    let credentials = admin
        .get(&format!("/api/device/{}/credentials", id(&device)))
        .await;
    for (path, body, status) in [
        ("/api/device", device.clone(), 404),
        ("/api/customer", customer.clone(), 404),
        ("/api/device/credentials", credentials.clone(), 404),
        (
            "/api/device-with-credentials",
            json!({ "device": device, "credentials": credentials }),
            404,
        ),
        (
            "/api/device",
            json!({ "name": "x", "customerId": customer["id"] }),
            400,
        ),
        (
            "/api/device",
            json!({ "name": "x", "deviceProfileId": profile["id"] }),
            400,
        ),
        (
            "/api/asset",
            json!({ "name": "x", "customerId": customer["id"] }),
            400,
        ),
        (
            "/api/entityView",
            json!({ "name": "x", "type": "y", "entityId": device["id"] }),
            400,
        ),
        (
            "/api/alarm",
            json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" }),
            404,
        ),
        (
            "/api/relation",
            json!({ "from": device["id"], "to": device["id"], "type": "Uses" }),
            404,
        ),
        (
            "/api/relations",
            json!({ "parameters": { "rootId": id(&device), "rootType": "DEVICE" } }),
            404,
        ),
        (
            "/api/user",
            json!({ "email": "x@example.org", "authority": "CUSTOMER_USER", "customerId": customer["id"] }),
            400,
        ),
    ] {
        assert_eq!(
            stranger.refused("POST", path, &body).await.0,
            status,
            "{path} {body}"
        );
    }
    let ids = format!("/api/devices?deviceIds={}", id(&device));
    assert_eq!(stranger.get(&ids).await, json!([]));
    assert_eq!(admin.get(&ids).await.as_array().unwrap().len(), 1);
    // The tenant in a body is ignored.
    let planted = json!({ "name": "planted", "tenantId": device["tenantId"] });
    let planted = stranger.post("/api/device", &planted).await;
    assert_ne!(planted["tenantId"], device["tenantId"]);
}

#[tokio::test]
async fn customer_users_see_and_change_what_is_theirs_but_cannot_hand_it_over() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let mut own = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let other = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20B1")
        .await;
    let list = format!(
        "/api/customer/{}/devices?pageSize=10&page=0",
        own["customerId"]["id"].as_str().unwrap()
    );
    assert_eq!(user.get(&list).await["totalElements"], 3);
    let list = format!(
        "/api/customer/{}/devices?pageSize=10&page=0",
        other["customerId"]["id"].as_str().unwrap()
    );
    assert_eq!(user.refused("GET", &list, &Value::Null).await.0, 403);
    let both = format!("/api/devices?deviceIds={},{}", id(&own), id(&other));
    assert_eq!(user.get(&both).await.as_array().unwrap().len(), 1);
    let path = format!("/api/device/{}", id(&other));
    assert_eq!(user.refused("GET", &path, &Value::Null).await.0, 403);

    own["label"] = json!("north wall");
    let customer = own["customerId"].clone();
    own["customerId"] = other["customerId"].clone();
    let saved = user.post("/api/device", &own).await;
    assert_eq!(saved["label"], "north wall");
    assert_eq!(saved["customerId"], customer, "kept");
    assert_eq!(
        user.refused("POST", "/api/device", &json!({ "name": "new" }))
            .await
            .0,
        403
    );
}
