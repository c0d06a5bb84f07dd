//! Dashboards, home dashboards and public sessions.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id, no};
use crate::resources::PIXEL;

fn office() -> Value {
    json!({
        "title": "Office",
        "image": "data:image/png;base64,AA==",
        "mobileHide": false,
        "mobileOrder": 3,
        "configuration": {
            "widgets": { "z": { "sizeX": 8.5 }, "a": [1, null] },
            "states": {},
            "settings": { "dashboardLogoUrl": "tb-image;/api/images/tenant/x.png" },
        },
        "externalId": null,
        "resources": [{
            "link": "/api/images/tenant/x.png", "title": "x", "type": "IMAGE", "subType": "IMAGE", "fileName": "x.png",
            "public": true, "mediaType": "image/png", "data": PIXEL,
        }],
        "somethingNew": 1,
    })
}

#[tokio::test]
async fn a_dashboard_is_exported_as_it_was_imported() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let saved = admin.post("/api/dashboard", &office()).await;
    // The image that came along is one, too.
    assert_eq!(world.rule_engine.types(), ["ENTITY_CREATED", "ENTITY_CREATED"]);
    let path = format!("/api/dashboard/{}", id(&saved));
    let mut exported = admin.get(&format!("{path}?includeResources=true")).await;
    let brought = exported["resources"][0].as_object_mut().unwrap();
    assert_eq!(
        brought
            .remove("publicResourceKey")
            .unwrap()
            .as_str()
            .unwrap()
            .len(),
        32
    );
    for field in [
        "title",
        "image",
        "mobileHide",
        "mobileOrder",
        "configuration",
        "resources",
    ] {
        assert_eq!(exported[field], office()[field], "{field}");
    }
    assert_eq!(
        exported["configuration"].to_string(),
        office()["configuration"].to_string()
    );
    assert_eq!(exported["name"], "Office");
    assert_eq!(admin.get(&path).await["resources"], Value::Null);
    let info = admin.get(&format!("/api/dashboard/info/{}", id(&saved))).await;
    assert!(info.get("configuration").is_none() && info["title"] == "Office");
    let list = admin
        .get("/api/tenant/dashboards?pageSize=9&page=0&textSearch=off")
        .await;
    assert_eq!(list["data"], json!([info]));
    assert_eq!(admin.get("/api/usage").await["dashboards"], 1);

    let mut changed = exported.clone();
    changed["title"] = json!("Home");
    changed["assignedCustomers"] = json!([{ "customerId": { "entityType": "CUSTOMER", "id": id(&saved) } }]);
    let changed = admin.post("/api/dashboard", &changed).await;
    assert_eq!(
        (&changed["title"], &changed["version"]),
        (&json!("Home"), &json!(2))
    );
    assert_eq!(changed["assignedCustomers"], Value::Null);
    let stale = admin.refused("POST", "/api/dashboard", &exported).await;
    assert_eq!((stale.0, stale.1), (409, 35));
    assert_eq!(
        admin
            .refused("POST", "/api/dashboard", &json!({ "title": " " }))
            .await,
        no(400, 31, "Dashboard title should be specified!")
    );
    assert_eq!(
        admin
            .refused(
                "POST",
                "/api/dashboard",
                &json!({ "title": "x", "configuration": [] })
            )
            .await
            .0,
        400
    );

    let profile = json!({ "name": "shown", "defaultDashboardId": saved["id"] });
    let profile = admin.post("/api/assetProfile", &profile).await;
    assert_eq!(
        admin.refused("DELETE", &path, &Value::Null).await.2,
        "The dashboard is referenced by an asset profile"
    );
    admin.delete(&format!("/api/assetProfile/{}", id(&profile))).await;
    admin.delete(&path).await;
    assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_dashboard_is_seen_by_those_it_is_assigned_to() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let saved = admin.post("/api/dashboard", &office()).await;
    let other = admin.post("/api/dashboard", &json!({ "title": "Other" })).await;
    let customer = async |title: &str| {
        admin
            .get(&format!("/api/tenant/customers?customerTitle={title}"))
            .await
    };
    let (a, b) = (customer("Customer%20A").await, customer("Customer%20B").await);
    let path = format!("/api/dashboard/{}", id(&saved));
    assert_eq!(user.refused("GET", &path, &Value::Null).await.0, 403);
    world.rule_engine.take();
    let assign = format!("/api/customer/{}/dashboard/{}", id(&a), id(&saved));
    let assigned = admin.post(&assign, &Value::Null).await;
    assert_eq!(assigned["assignedCustomers"][0]["title"], "Customer A");
    assert_eq!(assigned["assignedCustomers"][0]["public"], false);
    admin.post(&assign, &Value::Null).await;
    assert_eq!(world.rule_engine.types(), ["ENTITY_ASSIGNED"], "told once");
    assert_eq!(user.get(&path).await["configuration"], office()["configuration"]);
    assert_eq!(user.refused("DELETE", &path, &Value::Null).await.0, 403);
    let list = format!("/api/customer/{}/dashboards?pageSize=9&page=0", id(&a));
    assert_eq!(user.get(&list).await["totalElements"], 1);
    let foreign = format!("/api/customer/{}/dashboards?pageSize=9&page=0", id(&b));
    assert_eq!(user.refused("GET", &foreign, &Value::Null).await.0, 403);
    let ids = format!("/api/dashboards/list?dashboardIds={},{}", id(&saved), id(&other));
    assert_eq!(user.get(&ids).await.as_array().unwrap().len(), 1);
    assert_eq!(admin.get(&ids).await.as_array().unwrap().len(), 2);

    let customers = format!("{path}/customers");
    let set = admin.post(&customers, &json!([id(&b)])).await;
    assert_eq!(set["assignedCustomers"].as_array().unwrap().len(), 1);
    assert_eq!(user.refused("GET", &path, &Value::Null).await.0, 403);
    let added = admin
        .post(&format!("{customers}/add"), &json!([id(&a), id(&b)]))
        .await;
    assert_eq!(added["assignedCustomers"].as_array().unwrap().len(), 2);
    let removed = admin
        .post(&format!("{customers}/remove"), &json!([id(&a), id(&b)]))
        .await;
    assert_eq!(removed["assignedCustomers"], Value::Null);
    assert_eq!(
        admin.refused("POST", &customers, &json!([id(&saved)])).await.0,
        404
    );
    assert_eq!(admin.refused("POST", &customers, &json!(["x"])).await.0, 400);
    let sysadmin = world.sysadmin().await;
    let me = admin.get("/api/auth/user").await;
    let listed = format!(
        "/api/tenant/{}/dashboards?pageSize=9&page=0",
        me["tenantId"]["id"].as_str().unwrap()
    );
    assert_eq!(sysadmin.get(&listed).await["totalElements"], 2);
}

#[tokio::test]
async fn people_see_the_home_dashboard_that_is_nearest_to_them() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let (own, common) = (
        admin.post("/api/dashboard", &json!({ "title": "Own" })).await,
        admin.post("/api/dashboard", &json!({ "title": "Common" })).await,
    );
    assert_eq!(admin.text("/api/dashboard/home").await, "");
    let none = admin.get("/api/tenant/dashboard/home/info").await;
    assert_eq!(none, json!({ "dashboardId": null, "hideDashboardToolbar": true }));
    let home = json!({ "dashboardId": common["id"], "hideDashboardToolbar": false });
    admin.post("/api/tenant/dashboard/home/info", &home).await;
    assert_eq!(admin.get("/api/tenant/dashboard/home/info").await, home);
    let seen = admin.get("/api/dashboard/home").await;
    assert_eq!(
        (&seen["title"], &seen["hideDashboardToolbar"]),
        (&json!("Common"), &json!(false))
    );
    // The dashboard is not assigned to the customer.
    assert_eq!(user.text("/api/dashboard/home").await, "");
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    for dashboard in [&own, &common] {
        let path = format!("/api/customer/{}/dashboard/{}", id(&customer), id(dashboard));
        admin.post(&path, &Value::Null).await;
    }
    assert_eq!(user.get("/api/dashboard/home/info").await, home);
    let mut me = user.get("/api/auth/user").await;
    me["additionalInfo"] = json!({ "homeDashboardId": id(&own) });
    user.post("/api/user", &me).await;
    assert_eq!(user.get("/api/dashboard/home").await["title"], "Own");
    let nowhere = json!({ "dashboardId": { "entityType": "DASHBOARD", "id": id(&customer) } });
    assert_eq!(
        admin
            .refused("POST", "/api/tenant/dashboard/home/info", &nowhere)
            .await
            .0,
        404
    );
    admin
        .post("/api/tenant/dashboard/home/info", &json!({ "dashboardId": null }))
        .await;
    assert_eq!(admin.text("/api/dashboard/home/info").await, "");
    assert!(admin.get("/api/dashboard/serverTime").await.is_i64());
}

#[tokio::test]
async fn what_is_public_is_seen_without_a_password() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let shown = admin.post("/api/dashboard", &office()).await;
    let hidden = admin.post("/api/dashboard", &json!({ "title": "Hidden" })).await;
    let device = admin
        .get("/api/tenant/devices?deviceName=DHT11%20Demo%20Device")
        .await;
    let public = admin
        .post(
            &format!("/api/customer/public/dashboard/{}", id(&shown)),
            &Value::Null,
        )
        .await;
    let customer = &public["assignedCustomers"][0];
    assert_eq!(
        (&customer["title"], &customer["public"]),
        (&json!("Public"), &json!(true))
    );
    admin
        .post(
            &format!("/api/customer/public/device/{}", id(&device)),
            &Value::Null,
        )
        .await;

    let nobody = world.nobody();
    let customer = customer["customerId"]["id"].as_str().unwrap();
    let pair = nobody
        .post("/api/auth/login/public", &json!({ "publicId": customer }))
        .await;
    let visitor = world.with_token(pair["token"].as_str().unwrap());
    assert_eq!(
        visitor.get(&format!("/api/dashboard/{}", id(&shown))).await["title"],
        "Office"
    );
    let telemetry = format!("/api/plugins/telemetry/DEVICE/{}/values/timeseries", id(&device));
    visitor.get(&telemetry).await;
    let devices = format!("/api/customer/{customer}/deviceInfos?pageSize=9&page=0");
    assert_eq!(visitor.get(&devices).await["totalElements"], 1);
    for path in [
        format!("/api/dashboard/{}", id(&hidden)),
        "/api/tenant/dashboards?pageSize=1&page=0".into(),
    ] {
        assert_eq!(visitor.refused("GET", &path, &Value::Null).await.0, 403, "{path}");
    }
    let find = json!({
        "entityFilter": { "type": "deviceType", "deviceTypes": ["default"] },
        "pageLink": { "pageSize": 9, "page": 0 },
    });
    assert_eq!(
        visitor.post("/api/entitiesQuery/find", &find).await["totalElements"],
        1
    );
    let attributes = format!(
        "/api/plugins/telemetry/DEVICE/{}/attributes/SERVER_SCOPE",
        id(&device)
    );
    let alarm = json!({ "type": "Prank", "originator": device["id"], "severity": "MAJOR" });
    let call = json!({ "method": "open", "params": {} });
    for (method, path, body) in [
        ("POST", attributes.as_str(), &json!({ "a": 1 })),
        ("POST", "/api/device", &device),
        ("POST", "/api/alarm", &alarm),
        ("POST", "/api/user/settings", &json!({ "a": 1 })),
        ("POST", "/api/rule-engine/", &json!({})),
        ("POST", &format!("/api/rpc/oneway/{}", id(&device)), &call),
        (
            "GET",
            &format!("/api/device/{}/credentials", id(&device)),
            &Value::Null,
        ),
        (
            "GET",
            &format!("/api/user/dashboards/{}/star", id(&shown)),
            &Value::Null,
        ),
    ] {
        assert_eq!(visitor.refused(method, path, body).await.0, 403, "{path}");
    }
    let again = json!({ "refreshToken": pair["refreshToken"] });
    let again = nobody.post("/api/auth/token", &again).await;
    let again = world.with_token(again["token"].as_str().unwrap());
    again.get(&format!("/api/dashboard/info/{}", id(&shown))).await;

    let real = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    for wrong in [id(&real), id(&shown), "", "x"] {
        let login = json!({ "publicId": wrong });
        assert_eq!(
            nobody.refused("POST", "/api/auth/login/public", &login).await,
            no(401, 10, "Invalid username or password")
        );
    }
    admin
        .delete(&format!("/api/customer/public/dashboard/{}", id(&shown)))
        .await;
    assert_eq!(
        visitor
            .refused("GET", &format!("/api/dashboard/{}", id(&shown)), &Value::Null)
            .await
            .0,
        403
    );
    admin.delete(&format!("/api/customer/{customer}")).await;
    assert_eq!(
        visitor.refused("GET", &devices, &Value::Null).await.1,
        11,
        "the session ends with the customer"
    );
}

#[tokio::test]
async fn queries_of_entities_find_the_dashboards_that_one_may_see() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let saved = admin.post("/api/dashboard", &office()).await;
    admin.post("/api/dashboard", &json!({ "title": "Other" })).await;
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    let query = json!({
        "entityFilter": { "type": "entityType", "entityType": "DASHBOARD" },
        "entityFields": [{ "type": "ENTITY_FIELD", "key": "name" }],
        "pageLink": {
            "pageSize": 10, "page": 0,
            "sortOrder": { "key": { "type": "ENTITY_FIELD", "key": "name" }, "direction": "ASC" },
        },
    });
    let found = async |who: &crate::fixture::FixtureClient<'_>| -> Vec<String> {
        let page = who.post("/api/entitiesQuery/find", &query).await;
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| {
            row["latest"]["ENTITY_FIELD"]["name"]["value"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
    };
    assert_eq!(found(&admin).await, ["Office", "Other"]);
    assert!(found(&user).await.is_empty());
    let assign = format!("/api/customer/{}/dashboard/{}", id(&customer), id(&saved));
    admin.post(&assign, &Value::Null).await;
    assert_eq!(found(&user).await, ["Office"]);
    admin.delete(&assign).await;
    assert!(found(&user).await.is_empty());
    admin.delete(&format!("/api/dashboard/{}", id(&saved))).await;
    assert_eq!(found(&admin).await, ["Other"]);
}
