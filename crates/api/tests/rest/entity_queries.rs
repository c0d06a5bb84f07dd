//! Queries of entities by fields, attributes and latest values.

use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture, id};
use crate::meters::{find, found, give_a_shared_floor, key, meters, names, of_type, query, test};

#[tokio::test]
async fn conditions_on_fields_attributes_and_latest_values_go_together() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    meters(&admin).await;
    let hot = test("TIME_SERIES", "temperature", "NUMERIC", "GREATER", &json!(50));
    let active = test("SERVER_ATTRIBUTE", "active", "BOOLEAN", "EQUAL", &json!(true));
    let state = test("TIME_SERIES", "state", "STRING", "IN", &json!("S1, S2"));
    let label = test("ENTITY_FIELD", "label", "STRING", "EQUAL", &json!("L1"));
    assert_eq!(found(&admin, &[]).await.len(), 10);
    assert_eq!(
        found(&admin, std::slice::from_ref(&hot)).await,
        ["0", "2", "4", "6", "8"]
    );
    assert_eq!(
        found(&admin, &[hot.clone(), active.clone()]).await,
        ["0", "2", "4"]
    );
    assert_eq!(
        found(&admin, &[hot.clone(), active.clone(), state]).await,
        ["2", "4"]
    );
    assert_eq!(found(&admin, &[label, active.clone()]).await, ["1", "3"]);
    // If all conditions must hold, the key needs a value, even for `NOT_EQUAL`.
    let absent = test("SERVER_ATTRIBUTE", "absent", "STRING", "NOT_EQUAL", &json!("x"));
    assert!(found(&admin, &[absent]).await.is_empty());
    // A text comparison with an empty text matches everything.
    let nothing = test("TIME_SERIES", "state", "STRING", "EQUAL", &json!(""));
    assert_eq!(found(&admin, &[nothing]).await.len(), 10);

    let complex = json!({
        "key": key("TIME_SERIES", "temperature"),
        "valueType": "NUMERIC",
        "predicate": { "type": "COMPLEX", "operation": "OR", "predicates": [
            { "type": "NUMERIC", "operation": "LESS", "value": { "defaultValue": 2 } },
            { "type": "NUMERIC", "operation": "GREATER_OR_EQUAL", "value": { "defaultValue": 88 } },
        ] },
    });
    assert_eq!(found(&admin, &[complex]).await, ["1", "8"]);
    let created = test("ENTITY_FIELD", "createdTime", "NUMERIC", "LESS", &json!(NOW - 1));
    assert!(found(&admin, &[created]).await.is_empty());
    let mut either = query(&of_type(), &[hot, active]);
    either["keyFiltersOperation"] = json!("OR");
    assert_eq!(names(&find(&admin, &either).await).len(), 7);
}

#[tokio::test]
async fn values_are_shown_as_texts_and_of_several_scopes_the_last_written() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    world.clock.advance(1);
    give_a_shared_floor(&admin, &meters[7]).await;
    let name = test("ENTITY_FIELD", "name", "STRING", "EQUAL", &json!("Meter 7"));
    let mut asked = query(&of_type(), &[name]);
    asked["latestValues"] = json!([
        key("TIME_SERIES", "temperature"),
        key("ATTRIBUTE", "floor"),
        key("SERVER_ATTRIBUTE", "floor"),
        key("SERVER_ATTRIBUTE", "active"),
        key("TIME_SERIES", "absent"),
    ]);
    asked["entityFields"] = json!([
        key("ENTITY_FIELD", "name"),
        key("ENTITY_FIELD", "type"),
        key("ENTITY_FIELD", "entityType"),
        key("ENTITY_FIELD", "displayName"),
        key("ENTITY_FIELD", "ownerName"),
        key("ENTITY_FIELD", "ownerType"),
        key("ENTITY_FIELD", "createdTime"),
        key("ENTITY_FIELD", "nonsense"),
    ]);
    let page = find(&admin, &asked).await;
    let latest = &page["data"][0]["latest"];
    assert_eq!(
        latest["TIME_SERIES"]["temperature"],
        json!({ "ts": NOW - 1_000, "value": "7" })
    );
    assert_eq!(latest["TIME_SERIES"]["absent"], json!({ "ts": 0, "value": "" }));
    assert_eq!(latest["ATTRIBUTE"]["floor"]["value"], "70");
    assert_eq!(latest["SERVER_ATTRIBUTE"]["floor"]["value"], "3.5");
    assert_eq!(latest["SERVER_ATTRIBUTE"]["active"]["value"], "false");
    let field = |name: &str| latest["ENTITY_FIELD"][name]["value"].as_str().unwrap().to_owned();
    let fields = [
        "type",
        "entityType",
        "displayName",
        "ownerName",
        "ownerType",
        "createdTime",
        "nonsense",
    ]
    .map(field);
    let created = NOW.to_string();
    assert_eq!(
        fields,
        ["meter", "DEVICE", "L1", "Tenant", "TENANT", &created, ""]
    );
    assert_eq!(page["data"][0]["timeseries"], json!({}));
    assert_eq!(page["data"][0]["aggLatest"], json!({}));
}

#[tokio::test]
async fn pages_are_sorted_by_fields_attributes_and_latest_values() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    give_a_shared_floor(&admin, &meters[7]).await;
    let sorted = async |by: Value, direction: &str, page: u32, size: u32| {
        let mut asked = query(&of_type(), &[]);
        asked["pageLink"] = json!({
            "pageSize": size, "page": page, "sortOrder": { "key": by, "direction": direction },
        });
        let page = find(&admin, &asked).await;
        assert_eq!(page["totalElements"], 10);
        assert_eq!(page["totalPages"], 10u32.div_ceil(size));
        names(&page).join(",").replace("Meter ", "")
    };
    let temperature = || key("TIME_SERIES", "temperature");
    assert_eq!(sorted(temperature(), "DESC", 0, 3).await, "8,6,4");
    assert_eq!(sorted(temperature(), "DESC", 1, 3).await, "2,0,9");
    assert_eq!(sorted(temperature(), "ASC", 3, 3).await, "8");
    assert_eq!(sorted(temperature(), "ASC", 4, 3).await, "");
    assert_eq!(sorted(key("ENTITY_FIELD", "name"), "DESC", 0, 2).await, "9,8");
    assert_eq!(sorted(key("SERVER_ATTRIBUTE", "floor"), "ASC", 0, 2).await, "0,1");
    // Entities without a value come last.
    assert!(
        sorted(key("SHARED_ATTRIBUTE", "floor"), "ASC", 0, 2)
            .await
            .starts_with("7,")
    );

    let mut searched = query(&of_type(), &[]);
    searched["pageLink"]["textSearch"] = json!("METER 3");
    assert_eq!(names(&find(&admin, &searched).await), ["Meter 3"]);
    searched["pageLink"]["textSearch"] = json!("4.5");
    assert_eq!(names(&find(&admin, &searched).await), ["Meter 9"]);
}

#[tokio::test]
async fn what_changes_is_found_at_once() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let mut meters = meters(&admin).await;
    let hot = [test(
        "TIME_SERIES",
        "temperature",
        "NUMERIC",
        "GREATER",
        &json!(50),
    )];
    assert_eq!(found(&admin, &hot).await.len(), 5);
    let base = |device: &Value| format!("/api/plugins/telemetry/DEVICE/{}", id(device));

    let points = json!({ "ts": NOW, "values": { "temperature": 99.5 } });
    admin
        .post(&format!("{}/timeseries/ANY", base(&meters[1])), &points)
        .await;
    // An older point does not become the latest value.
    let old = json!({ "ts": NOW - 9_000, "values": { "temperature": 99 } });
    admin
        .post(&format!("{}/timeseries/ANY", base(&meters[3])), &old)
        .await;
    assert_eq!(found(&admin, &hot).await, ["0", "1", "2", "4", "6", "8"]);
    let gone = format!(
        "{}/timeseries/delete?keys=temperature&deleteAllDataForKeys=true",
        base(&meters[0])
    );
    admin.delete(&gone).await;
    assert_eq!(found(&admin, &hot).await, ["1", "2", "4", "6", "8"]);
    admin.delete(&format!("/api/device/{}", id(&meters[2]))).await;
    assert_eq!(found(&admin, &hot).await, ["1", "4", "6", "8"]);
    meters[4]["name"] = json!("Meter X");
    admin.post("/api/device", &meters[4]).await;
    assert_eq!(found(&admin, &hot).await, ["1", "6", "8", "X"]);
    // A new device takes the slot of the deleted one, but none of its values.
    let new = admin
        .post("/api/device", &json!({ "name": "Meter N", "type": "meter" }))
        .await;
    assert_eq!(found(&admin, &hot).await, ["1", "6", "8", "X"]);
    admin
        .post(&format!("{}/timeseries/ANY", base(&new)), &points)
        .await;
    assert_eq!(found(&admin, &hot).await, ["1", "6", "8", "N", "X"]);

    let active = [test(
        "SERVER_ATTRIBUTE",
        "active",
        "BOOLEAN",
        "EQUAL",
        &json!(true),
    )];
    assert_eq!(found(&admin, &active).await, ["0", "1", "3", "X"]);
    let attributes = format!("{}/attributes/SERVER_SCOPE", base(&meters[9]));
    admin.post(&attributes, &json!({ "active": true })).await;
    admin
        .delete(&format!("{}/SERVER_SCOPE?keys=active", base(&meters[0])))
        .await;
    assert_eq!(found(&admin, &active).await, ["1", "3", "9", "X"]);

    // The type of a device is the name of its profile.
    let profiles = admin
        .get("/api/deviceProfiles?pageSize=10&page=0&textSearch=meter")
        .await;
    let mut profile = profiles["data"][0].clone();
    profile["name"] = json!("gauge");
    admin.post("/api/deviceProfile", &profile).await;
    assert!(found(&admin, &[]).await.is_empty());
}

#[tokio::test]
async fn every_filter_finds_its_entities() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    let house = admin
        .post("/api/asset", &json!({ "name": "House", "type": "building" }))
        .await;
    let room = admin
        .post("/api/asset", &json!({ "name": "Room", "type": "room" }))
        .await;
    let view = json!({
        "name": "View", "type": "v", "entityId": meters[5]["id"], "keys": { "timeseries": [], "attributes": {} },
    });
    admin.post("/api/entityView", &view).await;
    for (from, to, kind) in [
        (&house, &room, "Contains"),
        (&room, &meters[1], "Contains"),
        (&house, &meters[2], "Manages"),
    ] {
        let relation = json!({ "from": from["id"], "to": to["id"], "type": kind });
        admin.post("/api/relation", &relation).await;
    }
    let all = async |filter: Value| {
        let page = find(&admin, &query(&filter, &[])).await;
        names(&page).join(",")
    };
    let root = |more: Value| {
        let mut filter = json!({ "rootEntity": house["id"], "direction": "FROM", "maxLevel": 5 });
        filter
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        filter
    };
    let cases = [
        (
            json!({ "type": "singleEntity", "singleEntity": meters[3]["id"] }),
            "Meter 3",
        ),
        (
            json!({ "type": "singleEntity", "singleEntity": { "entityType": "CURRENT_TENANT", "id": id(&house) } }),
            "Tenant",
        ),
        (
            json!({ "type": "singleEntity", "singleEntity": { "entityType": "CURRENT_USER" } }),
            "tenant@thingsboard.org",
        ),
        (
            json!({ "type": "entityList", "entityType": "DEVICE", "entityList": [id(&meters[8]), id(&meters[1])] }),
            "Meter 1,Meter 8",
        ),
        (
            json!({ "type": "entityName", "entityType": "DEVICE", "entityNameFilter": "meter 7" }),
            "Meter 7",
        ),
        (
            json!({ "type": "entityName", "entityType": "DEVICE", "entityNameFilter": "%ER 7" }),
            "Meter 7",
        ),
        (
            json!({ "type": "entityType", "entityType": "ASSET" }),
            "House,Room",
        ),
        (
            json!({ "type": "assetType", "assetTypes": ["room"], "assetNameFilter": "r" }),
            "Room",
        ),
        (json!({ "type": "assetType", "assetType": "building" }), "House"),
        (
            json!({ "type": "entityViewType", "entityViewTypes": ["v"], "entityViewNameFilter": "" }),
            "View",
        ),
        (json!({ "type": "edgeType", "edgeTypes": ["e"] }), ""),
        (
            json!({ "type": "entityType", "entityType": "CUSTOMER" }),
            "Customer A,Customer B,Customer C",
        ),
        (
            root(json!({ "type": "relationsQuery", "filters": [] })),
            "Meter 1,Meter 2,Room",
        ),
        (
            root(json!({ "type": "relationsQuery", "maxLevel": 1 })),
            "Meter 2,Room",
        ),
        (
            root(
                json!({ "type": "relationsQuery", "filters": [{ "relationType": "Contains", "entityTypes": ["DEVICE"] }] }),
            ),
            "Meter 1",
        ),
        (
            root(
                json!({ "type": "relationsQuery", "negate": true, "filters": [{ "relationType": "Contains", "entityTypes": [] }] }),
            ),
            "Meter 2",
        ),
        (
            json!({
                "type": "relationsQuery", "multiRoot": true, "multiRootEntitiesType": "ASSET",
                "multiRootEntityIds": [id(&room), id(&house)], "direction": "FROM", "maxLevel": 1,
            }),
            "Meter 1,Meter 2,Room",
        ),
        (
            root(
                json!({ "type": "deviceSearchQuery", "relationType": "Contains", "deviceTypes": ["meter"] }),
            ),
            "Meter 1",
        ),
        (
            root(json!({ "type": "deviceSearchQuery", "deviceTypes": ["other"] })),
            "",
        ),
        (
            root(json!({ "type": "assetSearchQuery", "assetTypes": ["room"] })),
            "Room",
        ),
        (root(json!({ "type": "entityViewSearchQuery" })), ""),
    ];
    for (filter, expected) in cases {
        assert_eq!(all(filter.clone()).await, expected, "{filter}");
    }
    let usage = find(&admin, &query(&json!({ "type": "apiUsageState" }), &[])).await;
    assert_eq!(usage["data"][0]["entityId"]["entityType"], "API_USAGE_STATE");
}

#[tokio::test]
async fn everybody_finds_what_is_theirs_only() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    let user = world.customer_user().await;
    assert_eq!(found(&user, &[]).await, ["0", "3", "6", "9"]);
    let listed = json!({ "type": "entityList", "entityType": "DEVICE", "entityList": [id(&meters[1]), id(&meters[3])] });
    assert_eq!(names(&find(&user, &query(&listed, &[])).await), ["Meter 3"]);
    let customers = json!({ "type": "entityType", "entityType": "CUSTOMER" });
    assert_eq!(names(&find(&user, &query(&customers, &[])).await), ["Customer A"]);
    let users = json!({ "type": "entityType", "entityType": "USER" });
    assert_eq!(
        names(&find(&user, &query(&users, &[])).await),
        ["customer@thingsboard.org", "customerA@thingsboard.org"]
    );

    let stranger = world.stranger().await;
    assert!(found(&stranger, &[]).await.is_empty());
    assert_eq!(find(&stranger, &query(&listed, &[])).await["totalElements"], 0);
    let sysadmin = world.sysadmin().await;
    // System administrators find no entities of tenants, but count those of all.
    assert_eq!(find(&sysadmin, &query(&of_type(), &[])).await["totalElements"], 0);
    let count = json!({ "entityFilter": of_type() });
    assert_eq!(sysadmin.post("/api/entitiesQuery/count", &count).await, 10);
    let tenants = json!({ "type": "entityType", "entityType": "TENANT" });
    assert_eq!(
        names(&find(&sysadmin, &query(&tenants, &[])).await),
        ["Other", "Tenant"]
    );
    assert_eq!(names(&find(&admin, &query(&tenants, &[])).await), ["Tenant"]);
    for path in ["/api/entitiesQuery/find", "/api/entitiesQuery/count"] {
        assert_eq!(
            world.nobody().refused("POST", path, &query(&listed, &[])).await.0,
            401
        );
    }
}

#[tokio::test]
async fn conditions_are_compared_with_attributes_of_the_one_who_asks() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    meters(&admin).await;
    let me = admin.get("/api/auth/user").await;
    let tenant = me["tenantId"]["id"].as_str().unwrap();
    let dynamic = |source: &str, inherit: bool| {
        json!({
            "key": key("TIME_SERIES", "temperature"),
            "valueType": "NUMERIC",
            "predicate": { "type": "NUMERIC", "operation": "GREATER", "value": {
                "defaultValue": 0, "userValue": null,
                "dynamicValue": { "sourceType": source, "sourceAttribute": "limit", "inherit": inherit },
            } },
        })
    };
    assert_eq!(found(&admin, &[dynamic("CURRENT_TENANT", false)]).await.len(), 10);
    let path = format!("/api/plugins/telemetry/USER/{}/attributes/SERVER_SCOPE", id(&me));
    admin.post(&path, &json!({ "limit": "85" })).await;
    assert_eq!(found(&admin, &[dynamic("CURRENT_USER", false)]).await, ["6", "8"]);
    assert_eq!(found(&admin, &[dynamic("CURRENT_TENANT", false)]).await.len(), 10);
    let mut own = dynamic("CURRENT_USER", false);
    own["predicate"]["value"]["userValue"] = json!(87);
    assert_eq!(found(&admin, &[own]).await, ["8"]);
    assert!(!tenant.is_empty());
    let asked = query(&of_type(), &[dynamic("CURRENT_DEVICE", false)]);
    assert_eq!(
        admin.refused("POST", "/api/entitiesQuery/find", &asked).await.0,
        400
    );
}

#[tokio::test]
async fn bad_queries_are_refused() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let path = "/api/entitiesQuery/find";
    let good = query(&of_type(), &[]);
    let changed = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        bad
    };
    let bad = [
        changed("/pageLink/pageSize", json!(0)),
        changed("/pageLink/page", json!(-1)),
        changed("/entityFilter", json!({ "type": "nonsense" })),
        changed("/entityFilter", json!({ "type": "relationsQuery" })),
        changed(
            "/entityFilter",
            json!({ "type": "singleEntity", "singleEntity": { "entityType": "DEVICE" } }),
        ),
        changed(
            "/keyFilters",
            json!([{ "key": key("TIME_SERIES", "t"), "predicate": { "type": "NUMERIC" } }]),
        ),
        changed(
            "/keyFilters",
            json!([test("ALARM_FIELD", "type", "STRING", "EQUAL", &json!("x"))]),
        ),
        changed(
            "/keyFilters",
            json!([test("TIME_SERIES", "t", "NUMERIC", "EQUAL", &Value::Null)]),
        ),
        json!({}),
    ];
    for query in bad {
        assert_eq!(admin.refused("POST", path, &query).await.0, 400, "{query}");
    }
}

#[tokio::test]
async fn names_of_keys_are_found() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let meters = meters(&admin).await;
    give_a_shared_floor(&admin, &meters[7]).await;
    let asked = query(&of_type(), &[]);
    let path = "/api/entitiesQuery/find/keys?timeseries=true&attributes=true";
    let keys = admin.post(path, &asked).await;
    assert_eq!(keys["entityTypes"], json!(["DEVICE"]));
    assert_eq!(keys["timeseries"], json!(["state", "temperature"]));
    assert!(keys["attribute"].as_array().unwrap().contains(&json!("floor")));
    let shared = admin.post(&format!("{path}&scope=SHARED_SCOPE"), &asked).await;
    assert_eq!(shared["attribute"], json!(["floor"]));
    let path = "/api/v2/entitiesQuery/find/keys?includeSamples=true&scopes=SHARED_SCOPE";
    let infos = admin.post(path, &asked).await;
    assert_eq!(
        infos["attributes"],
        json!({ "SHARED_SCOPE": [{ "key": "floor", "sample": { "ts": NOW, "value": 70 } }] })
    );
    assert_eq!(infos["timeseries"][1]["key"], "temperature");
    assert_eq!(world.sysadmin().await.refused("POST", path, &asked).await.0, 403);
}

#[tokio::test]
async fn packages_are_entities_like_others() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let profile = admin.get("/api/deviceProfileInfo/default").await;
    let asked = query(&json!({ "type": "entityType", "entityType": "OTA_PACKAGE" }), &[]);
    assert!(names(&find(&admin, &asked).await).is_empty());
    let mut saved = Vec::new();
    for title in ["pump", "valve"] {
        let package = json!({
            "deviceProfileId": profile["id"], "type": "FIRMWARE", "title": title, "version": "1.0",
            "additionalInfo": { "description": title },
        });
        saved.push(admin.post("/api/otaPackage", &package).await);
    }
    let mut asked = query(
        &json!({ "type": "entityName", "entityType": "OTA_PACKAGE", "entityNameFilter": "pu" }),
        &[],
    );
    asked["entityFields"] = json!([
        key("ENTITY_FIELD", "name"),
        key("ENTITY_FIELD", "additionalInfo"),
        key("ENTITY_FIELD", "createdTime"),
    ]);
    let page = find(&admin, &asked).await;
    assert_eq!(names(&page), ["pump"]);
    let fields = &page["data"][0]["latest"]["ENTITY_FIELD"];
    assert_eq!(fields["additionalInfo"]["value"], "{\"description\":\"pump\"}");
    assert_eq!(fields["createdTime"]["value"], NOW.to_string());
    let ids = json!({ "type": "entityList", "entityType": "OTA_PACKAGE",
        "entityList": [id(&saved[1]), id(&saved[0])] });
    assert_eq!(names(&find(&admin, &query(&ids, &[])).await).len(), 2);
    admin.delete(&format!("/api/otaPackage/{}", id(&saved[0]))).await;
    let all = query(&json!({ "type": "entityType", "entityType": "OTA_PACKAGE" }), &[]);
    assert_eq!(names(&find(&admin, &all).await), ["valve"]);
}
