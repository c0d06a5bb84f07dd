//! Assets, their profiles, and entity views.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id};

#[tokio::test]
async fn assets_live_like_devices() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let house = admin
        .post("/api/asset", &json!({ "name": "House", "type": "building" }))
        .await;
    assert_eq!(house["type"], "building");
    let plain = admin.post("/api/asset", &json!({ "name": "Plain" })).await;
    assert_eq!(plain["type"], "default");
    assert_eq!(
        admin
            .refused("POST", "/api/asset", &json!({ "name": "House" }))
            .await
            .2,
        "Asset with such name already exists!"
    );
    let unique = "/api/asset?nameConflictPolicy=UNIQUIFY&uniquifyStrategy=INCREMENTAL";
    assert_eq!(
        admin.post(unique, &json!({ "name": "House" })).await["name"],
        "House_1"
    );

    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    let path = format!("/api/customer/{}/asset/{}", id(&customer), id(&house));
    let assigned = admin.post(&path, &Value::Null).await;
    assert_eq!(assigned["customerId"], customer["id"]);
    let user = world.customer_user().await;
    let seen = user.get(&format!("/api/asset/info/{}", id(&house))).await;
    assert_eq!(seen["customerTitle"], "Customer A");
    assert_eq!(seen["assetProfileName"], "building");
    assert_eq!(
        user.refused("GET", &format!("/api/asset/{}", id(&plain)), &Value::Null)
            .await
            .0,
        403
    );
    let list = format!("/api/customer/{}/assets?pageSize=9&page=0", id(&customer));
    assert_eq!(user.get(&list).await["totalElements"], 1);
    let ids = format!("/api/assets?assetIds={},{}", id(&house), id(&plain));
    assert_eq!(user.get(&ids).await.as_array().unwrap().len(), 1);
    let search = "/api/tenant/assetInfos?pageSize=9&page=0&type=building&textSearch=customer%20a";
    assert_eq!(admin.get(search).await["totalElements"], 1);
    let types = admin.get("/api/asset/types").await;
    assert_eq!(types[0]["type"], "building");
    assert_eq!(types[0]["entityType"], "ASSET");

    admin.delete(&format!("/api/customer/asset/{}", id(&house))).await;
    assert_eq!(
        user.refused("GET", &format!("/api/asset/{}", id(&house)), &Value::Null)
            .await
            .0,
        403
    );
    admin.delete(&format!("/api/asset/{}", id(&house))).await;
    assert_eq!(
        admin
            .refused("GET", "/api/tenant/asset?assetName=House", &Value::Null)
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_new_tenant_has_a_default_asset_profile_and_profiles_name_their_assets() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let default = admin.get("/api/assetProfileInfo/default").await;
    assert_eq!(default["name"], "default");
    let mut profile = admin
        .post(
            "/api/assetProfile",
            &json!({ "name": "car", "defaultQueueName": "Main" }),
        )
        .await;
    let asset = json!({ "name": "a", "assetProfileId": profile["id"] });
    let asset = admin.post("/api/asset", &asset).await;
    assert_eq!(asset["type"], "car");
    profile["name"] = json!("lorry");
    admin.post("/api/assetProfile", &profile).await;
    assert_eq!(
        admin.get(&format!("/api/asset/{}", id(&asset))).await["type"],
        "lorry"
    );
    let path = format!("/api/assetProfile/{}", id(&profile));
    assert_eq!(
        admin.refused("DELETE", &path, &Value::Null).await.2,
        "The asset profile referenced by the assets cannot be deleted!"
    );
    let names = admin.get("/api/assetProfile/names?activeOnly=true").await;
    assert_eq!(names.as_array().unwrap().len(), 1);
    assert_eq!(names[0]["name"], "lorry");
    admin.post(&format!("{path}/default"), &Value::Null).await;
    assert_eq!(admin.get("/api/assetProfileInfo/default").await["name"], "lorry");
    let list = format!("/api/assetProfileInfos?assetProfileIds={}", id(&profile));
    assert_eq!(admin.get(&list).await[0]["name"], "lorry");
    assert_eq!(
        admin.get("/api/assetProfiles?pageSize=5&page=0").await["totalElements"],
        2
    );
    let foreign = world.stranger().await;
    let planted = json!({ "name": "x", "assetProfileId": profile["id"] });
    assert_eq!(foreign.refused("POST", "/api/asset", &planted).await.0, 400);
}

#[tokio::test]
async fn entity_views_show_devices_and_keep_them_from_being_deleted() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.post("/api/device", &json!({ "name": "shown" })).await;
    let view = json!({
        "name": "View", "type": "public", "entityId": device["id"],
        "keys": { "timeseries": ["t"], "attributes": { "cs": [], "ss": ["a"], "sh": [] } },
        "startTimeMs": 1, "endTimeMs": 9,
    });
    let view = admin.post("/api/entityView", &view).await;
    assert_eq!(view["keys"]["attributes"]["ss"], json!(["a"]));
    assert_eq!(admin.get("/api/entityView/types").await[0]["type"], "public");
    let nothing =
        json!({ "name": "x", "type": "y", "entityId": { "entityType": "DEVICE", "id": id(&view) } });
    assert_eq!(
        admin.refused("POST", "/api/entityView", &nothing).await.2,
        "Entity view is referencing to non-existent entity!"
    );
    let path = format!("/api/device/{}", id(&device));
    assert_eq!(
        admin.refused("DELETE", &path, &Value::Null).await.2,
        "Can't delete device that has entity views!"
    );
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    admin
        .post(
            &format!("/api/customer/{}/entityView/{}", id(&customer), id(&view)),
            &Value::Null,
        )
        .await;
    let user = world.customer_user().await;
    let list = format!(
        "/api/customer/{}/entityViewInfos?pageSize=9&page=0&type=public",
        id(&customer)
    );
    assert_eq!(user.get(&list).await["data"][0]["customerTitle"], "Customer A");
    admin.delete(&format!("/api/entityView/{}", id(&view))).await;
    admin.delete(&path).await;
}

#[tokio::test]
async fn a_view_shows_its_keys_within_its_time() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let base = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
    for ts in [10, 20, 30] {
        let points = json!({ "ts": ts, "values": { "t": ts, "hidden": ts } });
        admin.post(&format!("{base}/timeseries/any"), &points).await;
    }
    admin
        .post(&format!("{base}/SERVER_SCOPE"), &json!({ "a": 1, "b": 2 }))
        .await;
    let view = json!({
        "name": "View", "type": "public", "entityId": device["id"],
        "keys": { "timeseries": ["t"], "attributes": { "ss": ["a"] } },
        "startTimeMs": 15, "endTimeMs": 25,
    });
    // The view copies attributes only if they were changed within its time range.
    let view = admin.post("/api/entityView", &view).await;
    let base = format!("/api/plugins/telemetry/ENTITY_VIEW/{}", id(&view));
    let attributes = format!("{base}/values/attributes/SERVER_SCOPE");
    assert_eq!(admin.get(&attributes).await, json!([]));
    let range = "values/timeseries?startTs=0&endTs=100&keys=t,hidden&useStrictDataTypes=true";
    let points = json!({ "t": [{ "ts": 20, "value": 20 }] });
    assert_eq!(admin.get(&format!("{base}/{range}")).await, points);
    let buckets = "values/timeseries?startTs=0&endTs=100&keys=t&agg=COUNT&interval=100";
    assert_eq!(
        admin.get(&format!("{base}/{buckets}")).await["t"][0]["value"],
        "1"
    );
    let outside = "values/timeseries?startTs=40&endTs=100&keys=t&agg=COUNT&interval=100";
    assert_eq!(admin.get(&format!("{base}/{outside}")).await, json!({}));
    assert_eq!(admin.get(&format!("{base}/keys/timeseries")).await, json!(["t"]));
    let latest = admin.get(&format!("{base}/values/timeseries")).await;
    assert_eq!(latest, json!({ "t": [{ "ts": 30, "value": "30" }] }));
    let (status, _) = admin
        .send("POST", &format!("{base}/timeseries/any"), "{\"t\":1}")
        .await;
    assert_eq!(status, 400);

    let mut open = view.clone();
    open["startTimeMs"] = json!(0);
    open["endTimeMs"] = json!(0);
    open["version"] = Value::Null;
    admin.post("/api/entityView", &open).await;
    let copied = admin.get(&attributes).await;
    assert_eq!(copied.as_array().unwrap().len(), 1);
    assert_eq!(copied[0]["key"], "a");
}
