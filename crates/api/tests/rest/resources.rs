//! Images and other resources: uploads, links, limits, and that nothing of a tenant's runs in another's browser.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, RestFixture, id, no};

/// A picture of one pixel.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const DRAWING: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><script>alert(1)</script></svg>"#;
const NO_HEADER: (&str, &str) = ("accept", "*/*");

fn pixel() -> Vec<u8> {
    STANDARD.decode(PIXEL).unwrap()
}

async fn upload(client: &FixtureClient<'_>, name: &str, data: &[u8]) -> Value {
    let (status, saved) = client
        .form("POST", "/api/image", (name, "image/png", data), &[])
        .await;
    assert_eq!(status, StatusCode::OK, "{saved}");
    saved
}

#[tokio::test]
async fn an_image_is_uploaded_read_replaced_and_deleted() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let file = ("map.png", "text/html", &pixel()[..]);
    let (status, saved) = admin.form("POST", "/api/image", file, &[("title", "Map")]).await;
    assert_eq!(status, StatusCode::OK, "{saved}");
    assert_eq!(saved["link"], "/api/images/tenant/map.png");
    assert_eq!((&saved["title"], &saved["name"]), (&json!("Map"), &json!("Map")));
    assert_eq!(
        (&saved["public"], &saved["resourceSubType"]),
        (&json!(true), &json!("IMAGE"))
    );
    let descriptor = &saved["descriptor"];
    assert_eq!(descriptor["mediaType"], "image/png", "not what the client said");
    assert_eq!(
        (&descriptor["width"], &descriptor["previewDescriptor"]["height"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        upload(&admin, "map.png", &pixel()).await["resourceKey"],
        "map_(1).png"
    );
    assert_eq!(
        upload(&admin, "map.png", &pixel()).await["resourceKey"],
        "map_(2).png"
    );

    let (status, headers, bytes) = user.bytes("/api/images/tenant/map.png", NO_HEADER).await;
    assert_eq!((status, bytes), (StatusCode::OK, pixel()));
    assert_eq!(headers["content-type"], "image/png");
    assert_eq!(headers["content-security-policy"], "default-src 'none'");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["content-disposition"], "attachment;filename=map.png");
    let etag = headers["etag"].to_str().unwrap().to_owned();
    let known = ("if-none-match", etag.as_str());
    let (status, _, bytes) = user.bytes("/api/images/tenant/map.png", known).await;
    assert_eq!((status, bytes.len()), (StatusCode::NOT_MODIFIED, 0));
    let public = saved["publicLink"].as_str().unwrap().to_owned();
    let (status, headers, bytes) = world.nobody().bytes(&public, NO_HEADER).await;
    assert_eq!((status, bytes), (StatusCode::OK, pixel()));
    assert!(headers.get("content-disposition").is_none());
    let hidden = admin
        .send("PUT", "/api/images/tenant/map.png/public/false", "")
        .await;
    assert_eq!(hidden.0, StatusCode::OK);
    assert_eq!(
        world.nobody().bytes(&public, NO_HEADER).await.0,
        StatusCode::NOT_FOUND
    );

    let drawing = ("map.svg", "image/svg+xml", DRAWING.as_bytes());
    let (status, replaced) = admin
        .form("PUT", "/api/images/tenant/map.png", drawing, &[])
        .await;
    assert_eq!(status, StatusCode::OK, "{replaced}");
    assert_eq!(replaced["resourceKey"], "map.png");
    assert_eq!(
        (&replaced["title"], &replaced["public"]),
        (&json!("Map"), &json!(false))
    );
    assert_eq!(replaced["descriptor"]["width"], 40);
    let (_, headers, bytes) = user.bytes("/api/images/tenant/map.png/preview", NO_HEADER).await;
    assert_eq!(bytes, DRAWING.as_bytes());
    assert_eq!(headers["content-type"], "image/svg+xml");
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && policy.ends_with("sandbox"),
        "{policy}"
    );

    let body = json!({ "title": "Other" }).to_string();
    let renamed = admin.send("PUT", "/api/images/tenant/map.png/info", body).await;
    assert!(renamed.1.contains("\"title\":\"Other\""), "{}", renamed.1);
    let list = "/api/images?pageSize=9&page=0&textSearch=OTHER";
    assert_eq!(admin.get(list).await["totalElements"], 1);
    let (status, text) = admin.send("DELETE", "/api/images/tenant/map.png", "").await;
    assert_eq!(
        (status, text.as_str()),
        (StatusCode::OK, "{\"success\":true,\"references\":null}")
    );
    assert_eq!(
        admin
            .refused("GET", "/api/images/tenant/map.png", &Value::Null)
            .await
            .0,
        404
    );
    let deleted = crate::audit::newest(&admin, "DELETED").await;
    assert_eq!(deleted["entityId"]["entityType"], "TB_RESOURCE");
    let log = admin.get("/api/audit/logs?pageSize=99&page=0").await;
    assert!(!log.to_string().contains(PIXEL), "no files");
}

#[tokio::test]
async fn what_is_no_image_is_refused_and_leaves_nothing() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    for (name, media_type, data) in [
        (
            "x.svg",
            "image/svg+xml",
            &b"<html><script>alert(1)</script></html>"[..],
        ),
        ("x.png", "image/png", b"<script>alert(1)</script>"),
        ("x.png", "image/png", b""),
        ("a/b.png", "image/png", &pixel()),
    ] {
        let (status, text) = admin
            .form("POST", "/api/image", (name, media_type, data), &[])
            .await;
        // The reader of forms takes the path away, which is as good.
        let is_path = name.contains('/') && status == StatusCode::OK;
        assert!(
            is_path || status == StatusCode::BAD_REQUEST,
            "{name} {status} {text}"
        );
    }
    assert_eq!(
        admin.get("/api/images?pageSize=9&page=0").await["data"],
        json!([])
    );
    let tenant = admin.get("/api/auth/user").await["tenantId"]["id"].clone();
    let tenant = fieldline_model::TenantId(tenant.as_str().unwrap().parse().unwrap());
    let resources = &world.context.stores.resources;
    assert_eq!(resources.data_bytes(tenant).await.unwrap(), 0);
}

#[tokio::test]
async fn tenants_share_what_the_system_has_and_nothing_else() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let stranger = world.stranger().await;
    let shared = upload(&sysadmin, "logo.png", &pixel()).await;
    assert_eq!(shared["link"], "/api/images/system/logo.png");
    upload(&admin, "own.png", &pixel()).await;
    for client in [&admin, &stranger] {
        assert_eq!(
            client.bytes("/api/images/system/logo.png", NO_HEADER).await.0,
            200
        );
        let (status, _) = client.send("DELETE", "/api/images/system/logo.png", "").await;
        assert_eq!(status, StatusCode::FORBIDDEN);
    }
    assert_eq!(
        stranger
            .refused("GET", "/api/images/tenant/own.png", &Value::Null)
            .await
            .0,
        404
    );
    let all = "/api/images?pageSize=9&page=0&includeSystemImages=true";
    assert_eq!(admin.get(all).await["totalElements"], 2);
    assert_eq!(stranger.get(all).await["totalElements"], 1);
    // What the tenant calls the same stands for it.
    upload(&stranger, "logo.png", &pixel()).await;
    let listed = stranger.get(all).await;
    assert_eq!(listed["data"][0]["link"], "/api/images/tenant/logo.png");
    assert_eq!(listed["totalElements"], 1);
}

#[tokio::test]
async fn the_profile_of_a_tenant_limits_its_files() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let profile = sysadmin.get("/api/tenantProfileInfo/default").await;
    let path = format!("/api/tenantProfile/{}", id(&profile));
    let mut profile = sysadmin.get(&path).await;
    let room = u64::try_from(pixel().len()).unwrap();
    let limits = &mut profile["profileData"]["configuration"];
    limits["maxResourceSize"] = json!(room + 1);
    limits["maxResourcesInBytes"] = json!(2 * room);
    sysadmin.post("/api/tenantProfile", &profile).await;
    let large = [pixel(), vec![0; 9]].concat();
    let (status, text) = admin
        .form("POST", "/api/image", ("a.png", "image/png", &large), &[])
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(
        text["message"],
        format!("Resource exceeds the maximum size of {} bytes", room + 1)
    );
    upload(&admin, "a.png", &pixel()).await;
    upload(&admin, "b.png", &pixel()).await;
    let third = ("c.png", "image/png", &pixel()[..]);
    let (status, text) = admin.form("POST", "/api/image", third, &[]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(
        text["message"],
        format!("Resources total size exceeds the maximum of {} bytes", 2 * room)
    );
    // What is replaced makes room for what replaces it.
    let (status, text) = admin.form("PUT", "/api/images/tenant/a.png", third, &[]).await;
    assert_eq!(status, StatusCode::OK, "{text}");
}

#[tokio::test]
async fn images_within_documents_become_resources_and_hold_them() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let data = format!("data:image/png;base64,{PIXEL}");
    let profile = json!({ "name": "pump", "image": data });
    let profile = admin.post("/api/assetProfile", &profile).await;
    let link = "tb-image;/api/images/tenant/pump_asset_profile_image.png";
    assert_eq!(profile["image"], link);
    let dashboard = json!({
        "title": "Site", "image": data,
        "configuration": {
            "settings": { "dashboardLogoUrl": data },
            "widgets": { "w": { "config": { "settings": { "text": data } } } },
        },
    });
    let dashboard = admin.post("/api/dashboard", &dashboard).await;
    assert_eq!(dashboard["image"], link, "the same picture is one resource");
    assert_eq!(dashboard["configuration"]["settings"]["dashboardLogoUrl"], link);
    assert_eq!(
        dashboard["configuration"]["widgets"]["w"]["config"]["settings"]["text"],
        data
    );
    let config = json!({ "settings": { "mapImageUrl": data } }).to_string();
    let widget = json!({ "name": "map", "descriptor": { "type": "latest", "defaultConfig": config } });
    let widget = admin.post("/api/widgetType", &widget).await;
    let config = json!({ "settings": { "mapImageUrl": link } }).to_string();
    assert_eq!(widget["descriptor"]["defaultConfig"], config);
    let bundle = json!({ "title": "maps", "image": data });
    assert_eq!(admin.post("/api/widgetsBundle", &bundle).await["image"], link);

    let path = format!("/api/assetProfile/{}?inlineImages=true", id(&profile));
    let inlined = admin.get(&path).await["image"].as_str().unwrap().to_owned();
    assert!(
        inlined.starts_with("tb-image:") && inlined.ends_with(PIXEL),
        "{inlined}"
    );
    let moved = json!({ "name": "moved", "image": inlined });
    assert_eq!(stranger.post("/api/assetProfile", &moved).await["image"], link);

    let (status, text) = admin
        .send("DELETE", "/api/images/tenant/pump_asset_profile_image.png", "")
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let refused: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(refused["success"], false);
    let holders: Vec<&String> = refused["references"].as_object().unwrap().keys().collect();
    assert_eq!(
        holders,
        ["ASSET_PROFILE", "DASHBOARD", "WIDGETS_BUNDLE", "WIDGET_TYPE"]
    );
    assert_eq!(refused["references"]["DASHBOARD"][0]["name"], "Site");

    let exported = admin
        .get(&format!("/api/widgetType/{}?includeResources=true", id(&widget)))
        .await;
    assert_eq!(exported["resources"][0]["data"], PIXEL);
    assert!(exported["resources"][0].get("resourceKey").is_none());
    let mut moved = exported.clone();
    (moved["id"], moved["fqn"]) = (Value::Null, Value::Null);
    moved["resources"][0]["link"] = json!("/api/images/tenant/elsewhere.png");
    let config = json!({ "settings": { "mapImageUrl": "tb-image;/api/images/tenant/elsewhere.png" } });
    moved["descriptor"]["defaultConfig"] = config.to_string().into();
    let moved = stranger.post("/api/widgetType", &moved).await;
    assert_eq!(
        moved["descriptor"]["defaultConfig"],
        widget["descriptor"]["defaultConfig"]
    );

    let forced = "/api/images/tenant/pump_asset_profile_image.png?force=true";
    assert_eq!(admin.send("DELETE", forced, "").await.0, StatusCode::OK);
    assert_eq!(
        stranger.get("/api/images?pageSize=9&page=0").await["totalElements"],
        1
    );
}

#[tokio::test]
async fn resources_of_every_type_are_kept_by_their_rules() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let script = json!({
        "title": "Gauge", "resourceType": "JS_MODULE", "resourceSubType": "MODULE", "fileName": "gauge.js",
        "data": STANDARD.encode("export default 1;"),
    });
    let script = admin.post("/api/resource", &script).await;
    assert_eq!(script["link"], "/api/resource/js_module/tenant/gauge.js");
    let (status, headers, bytes) = user
        .bytes("/api/resource/js_module/tenant/gauge.js", NO_HEADER)
        .await;
    assert_eq!(
        (status, bytes.as_slice()),
        (StatusCode::OK, &b"export default 1;"[..])
    );
    assert_eq!(headers["content-type"], "application/javascript");
    assert_eq!(headers["content-security-policy"], "default-src 'none'");
    let by_id = format!("/api/resource/js/{}/download", id(&script));
    assert_eq!(user.bytes(&by_id, NO_HEADER).await.0, StatusCode::OK);

    let page = ("page.html", "text/html", &b"<script>alert(1)</script>"[..]);
    let texts = [("resourceType", "GENERAL"), ("title", "Page")];
    let (status, file) = admin.form("POST", "/api/resource/upload", page, &texts).await;
    assert_eq!(status, StatusCode::OK, "{file}");
    let path = format!("/api/resource/{}", id(&file));
    let (_, headers, _) = admin.bytes(&format!("{path}/download"), NO_HEADER).await;
    assert_eq!(headers["content-type"], "application/octet-stream", "no page");
    assert_eq!(
        admin.get(&path).await["data"],
        STANDARD.encode("<script>alert(1)</script>")
    );
    let general = "/api/resource/general/tenant/page.html";
    assert_eq!(user.refused("GET", general, &Value::Null).await.0, 403);
    assert_eq!(
        user.refused(
            "GET",
            &format!("/api/resource/js/{}/download", id(&file)),
            &Value::Null
        )
        .await
        .0,
        404
    );
    let (status, replaced) = admin
        .form(
            "PUT",
            &format!("{path}/data"),
            ("other.txt", "text/plain", b"other"),
            &[],
        )
        .await;
    assert_eq!(status, StatusCode::OK, "{replaced}");
    assert_eq!(
        (&replaced["fileName"], &replaced["resourceKey"]),
        (&json!("other.txt"), &json!("page.html"))
    );
    let info = json!({ "title": "Named" }).to_string();
    assert_eq!(
        admin.send("PUT", &format!("{path}/info"), info).await.0,
        StatusCode::OK
    );
    let listed = admin.get("/api/resource?pageSize=9&page=0").await;
    assert_eq!(
        (&listed["totalElements"], &listed["data"][0]["title"]),
        (&json!(1), &json!("Named"))
    );
    let ids = format!("/api/resource/list?resourceIds={},{}", id(&script), id(&file));
    assert_eq!(admin.get(&ids).await[0]["id"], script["id"]);
    assert_eq!(
        admin.get("/api/resource/tenant?pageSize=9&page=0").await["totalElements"],
        2
    );

    let store = json!({
        "title": "keys", "resourceType": "JKS", "fileName": "keys.jks", "data": STANDARD.encode("keys"),
    });
    let store = admin.post("/api/resource", &store).await;
    let by_id = format!("/api/resource/jks/{}/download", id(&store));
    for path in [store["link"].as_str().unwrap(), &by_id] {
        let (status, headers, _) = admin.bytes(path, NO_HEADER).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(headers["content-type"], "application/x-java-keystore");
    }
    let (status, refused) = admin
        .form(
            "PUT",
            &format!("/api/resource/{}/data", id(&store)),
            ("k.p12", "x/y", b"new"),
            &[],
        )
        .await;
    assert_eq!(
        (status.as_u16(), &refused["message"]),
        (400, &json!("This type of resource can't be updated"))
    );

    let used = json!({
        "name": "gauge",
        "descriptor": { "type": "latest", "resources": [{ "url": { "entityType": "TB_RESOURCE", "id": id(&script) } }] },
    });
    let used = admin.post("/api/widgetType", &used).await;
    let link = "tb-resource;/api/resource/js_module/tenant/gauge.js";
    assert_eq!(used["descriptor"]["resources"][0]["url"], link);
    let path = format!("/api/resource/{}", id(&script));
    let (status, text) = admin.send("DELETE", &path, "").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("WIDGET_TYPE"), "{text}");
    admin.delete(&format!("{path}?force=true")).await;
    for body in [
        json!({ "title": "x", "resourceType": "IMAGE", "fileName": "x.png", "data": PIXEL }),
        json!({ "title": "x", "resourceType": "GENERAL", "fileName": "a\\b", "data": PIXEL }),
        json!({ "title": "x", "resourceType": "GENERAL", "fileName": "x", "data": "no base64!" }),
        json!({ "title": "x", "resourceType": "GENERAL", "fileName": "x" }),
    ] {
        assert_eq!(
            admin.refused("POST", "/api/resource", &body).await.0,
            400,
            "{body}"
        );
    }
}

#[tokio::test]
async fn models_of_lwm2m_objects_say_what_they_are() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let xml = "<LWM2M><Object><Name>Pump</Name><ObjectID>4242</ObjectID><ObjectVersion>1.1</ObjectVersion>\
               <MultipleInstances>Single</MultipleInstances><Mandatory>Mandatory</Mandatory><Resources>\
               <Item ID=\"3\"><Name>Flow Rate</Name><Operations>R</Operations></Item></Resources></Object></LWM2M>";
    let file = ("pump.xml", "text/xml", xml.as_bytes());
    let texts = [("resourceType", "LWM2M_MODEL"), ("title", "anything")];
    let (status, saved) = sysadmin.form("POST", "/api/resource/upload", file, &texts).await;
    assert_eq!(status, StatusCode::OK, "{saved}");
    assert_eq!(
        (&saved["title"], &saved["resourceKey"]),
        (&json!("Pump id=4242 v1.1"), &json!("4242_1.1"))
    );
    let objects = admin
        .get("/api/resource/lwm2m?sortOrder=ASC&sortProperty=id&objectIds=4242_1.1,1_1.0")
        .await;
    assert_eq!(objects[0]["instances"][0]["resources"][0]["keyName"], "flowRate");
    assert_eq!(objects[0]["mandatory"], true);
    let page = "/api/resource/lwm2m/page?pageSize=9&page=0&textSearch=pump&sortProperty=name&sortOrder=DESC";
    assert_eq!(admin.get(page).await, objects);
    let broken = ("x.xml", "text/xml", &b"<LWM2M/>"[..]);
    let (status, text) = admin.form("POST", "/api/resource/upload", broken, &texts).await;
    assert_eq!(
        (status.as_u16(), &text["message"]),
        (400, &json!("Failed to parse file x.xml"))
    );
}

#[tokio::test]
async fn an_exported_image_comes_back_and_replaces_that_of_its_key() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let saved = upload(&admin, "a.png", &pixel()).await;
    let mut exported = admin.get("/api/images/tenant/a.png/export").await;
    assert_eq!(
        (&exported["data"], &exported["type"]),
        (&json!(PIXEL), &json!("IMAGE"))
    );
    assert_eq!(exported["publicResourceKey"], saved["publicResourceKey"]);
    exported["title"] = json!("Again");
    let (status, text) = admin.send("PUT", "/api/image/import", exported.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let again: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&again["id"], &again["title"]), (&saved["id"], &json!("Again")));
    let (_, text) = stranger
        .send("PUT", "/api/image/import", exported.to_string())
        .await;
    let moved: Value = serde_json::from_str(&text).unwrap();
    assert_ne!(moved["id"], saved["id"]);
    assert_ne!(
        moved["publicResourceKey"], saved["publicResourceKey"],
        "it is taken"
    );
    exported["data"] = json!(STANDARD.encode("no image"));
    assert_eq!(
        admin.refused("PUT", "/api/image/import", &exported).await,
        no(400, 31, "The file is no image of a known format")
    );
}
