//! Tenants and customers, and the initial data of a new installation.

use fieldline_entities::services::seed;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityId, EntityKey, EntityViewId, TenantId};
use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture, id, no};

#[tokio::test]
async fn seeding_again_changes_nothing() {
    let world = RestFixture::demo().await;
    seed::seed_demo(&world.context).await.unwrap();
    let again = seed::ensure_system(&world.context, None).await.unwrap();
    assert!(again == seed::SeedResult::default());
    let admin = world.admin().await;
    let devices = admin.get("/api/tenant/devices?pageSize=100&page=0").await;
    assert_eq!(devices["totalElements"], 9);
    let customers = admin.get("/api/customers?pageSize=100&page=0").await;
    assert_eq!(customers["totalElements"], 3);
    let users = admin.get("/api/users?pageSize=100&page=0").await;
    assert_eq!(users["totalElements"], 5);
    let a1 = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let credentials = admin.get(&format!("/api/device/{}/credentials", id(&a1))).await;
    assert_eq!(credentials["credentialsId"], "A1_TEST_TOKEN");
}

#[tokio::test]
async fn the_demos_thermostats_have_a_dashboard_readings_and_alarm_rules() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    seed::seed_thermostats(&world.context).await.unwrap();
    let device = admin.get("/api/tenant/device?deviceName=Thermostat%20T1").await;
    let telemetry = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
    // What somebody has changed stays.
    let changed = json!({ "temperatureAlarmThreshold": 30 });
    admin.post(&format!("{telemetry}/SERVER_SCOPE"), &changed).await;
    seed::seed_thermostats(&world.context).await.unwrap();
    let limit = format!("{telemetry}/values/attributes/SERVER_SCOPE?keys=temperatureAlarmThreshold");
    assert_eq!(admin.get(&limit).await[0]["value"], 30);
    let series = format!("{telemetry}/values/timeseries?keys=temperature&startTs=0&endTs={NOW}&limit=1000");
    assert_eq!(
        admin.get(&series).await["temperature"].as_array().unwrap().len(),
        144
    );
    let rules = admin.get("/api/alarm/rules/names?pageSize=10&page=0").await;
    assert_eq!(rules["data"], json!(["High temperature", "Low humidity"]));
    let rules = admin.get("/api/alarm/rules?pageSize=10&page=0").await;
    assert_eq!(rules["totalElements"], 2);
    let dashboards = admin.get("/api/tenant/dashboards?pageSize=10&page=0").await;
    assert_eq!(dashboards["totalElements"], 1);
    assert_eq!(dashboards["data"][0]["title"], "Thermostats");
}

#[tokio::test]
async fn a_tenant_comes_with_a_default_profile_and_goes_with_everything() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let stranger = world.stranger().await;
    let device = stranger.post("/api/device", &json!({ "name": "Pump" })).await;
    assert_eq!(device["type"], "default");
    let tenant = device["tenantId"]["id"].as_str().unwrap();
    let info = sysadmin.get(&format!("/api/tenant/info/{tenant}")).await;
    assert_eq!(info["title"], "Other");
    assert_eq!(info["tenantProfileName"], "Default");
    let admins = sysadmin
        .get(&format!("/api/tenant/{tenant}/users?pageSize=10&page=0"))
        .await;
    assert_eq!(admins["data"][0]["email"], "stranger@example.org");
    let own = stranger.get(&format!("/api/tenant/{tenant}")).await;
    assert_eq!(own["title"], "Other");

    let attributes = format!("/api/plugins/telemetry/DEVICE/{}/SERVER_SCOPE", id(&device));
    stranger.post(&attributes, &json!({ "a": 1 })).await;
    let view = json!({
        "name": "View", "type": "public", "entityId": device["id"],
        "keys": { "timeseries": [], "attributes": { "ss": ["a"] } },
    });
    let view = stranger.post("/api/entityView", &view).await;
    let tenant_id: TenantId = tenant.parse().unwrap();
    let kept = async |id: EntityId| {
        let subject = EntityKey {
            tenant: tenant_id,
            entity: id,
        };
        let attributes = &world.context.attributes;
        let found = attributes
            .get(subject, AttributeScope::Server, None)
            .await
            .unwrap();
        found.iter().any(|attribute| attribute.key == "a")
    };
    let shown: DeviceId = id(&device).parse().unwrap();
    let copied: EntityViewId = id(&view).parse().unwrap();
    assert!(kept(shown.into()).await && kept(copied.into()).await);

    sysadmin.delete(&format!("/api/tenant/{tenant}")).await;
    world.run_housekeeper().await;
    assert!(!kept(shown.into()).await && !kept(copied.into()).await);
    let path = format!("/api/tenant/{tenant}");
    assert_eq!(
        sysadmin.refused("GET", &path, &Value::Null).await,
        no(404, 32, &format!("Tenant with id [{tenant}] is not found"))
    );
    assert_eq!(
        stranger.refused("GET", "/api/auth/user", &Value::Null).await.1,
        11
    );
    let page = sysadmin.get("/api/tenantInfos?pageSize=10&page=0").await;
    assert_eq!(page["totalElements"], 1);
}

#[tokio::test]
async fn tenants_and_customers_are_checked_by_the_same_rules() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    for (client, path, what) in [
        (&sysadmin, "/api/tenant", "Tenant"),
        (&admin, "/api/customer", "Customer"),
    ] {
        assert_eq!(
            client.refused("POST", path, &json!({ "title": "" })).await,
            no(400, 31, &format!("{what} title should be specified!"))
        );
        assert_eq!(
            client
                .refused("POST", path, &json!({ "title": "x", "email": "nonsense" }))
                .await,
            no(400, 31, "Invalid email address format 'nonsense'!")
        );
        let full = json!({
            "title": "Full", "email": "a@b.co", "city": "Ulm", "zip": "89073", "additionalInfo": { "x": 1 },
        });
        let saved = client.post(path, &full).await;
        for field in ["title", "email", "city", "zip", "additionalInfo"] {
            assert_eq!(saved[field], full[field]);
        }
        assert_eq!(saved["name"], "Full");
        assert_eq!(client.get(&format!("{path}/{}", id(&saved))).await, saved);
        let mut changed = saved.clone();
        changed["city"] = json!("Jena");
        assert_eq!(client.post(path, &changed).await["version"], 2);
    }
    let public = json!({ "title": "Public" });
    assert_eq!(
        admin.refused("POST", "/api/customer", &public).await.2,
        "'Public' title for customer is system reserved!"
    );
    assert_eq!(
        admin
            .refused("POST", "/api/customer", &json!({ "title": "Full" }))
            .await
            .2,
        "Customer with such title already exists!"
    );
}

#[tokio::test]
async fn a_deleted_customer_takes_its_users_but_not_its_devices() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20A")
        .await;
    let path = format!("/api/customer/{}", id(&customer));
    let users = admin.get(&format!("{path}/users?pageSize=10&page=0")).await;
    assert_eq!(users["totalElements"], 2);
    assert_eq!(user.text(&format!("{path}/title")).await, "Customer A");
    assert_eq!(
        user.get(&format!("{path}/shortInfo")).await,
        json!({ "title": "Customer A", "isPublic": false })
    );
    let ids = format!("/api/customers?customerIds={}", id(&customer));
    assert_eq!(admin.get(&ids).await.as_array().unwrap().len(), 1);

    admin.delete(&path).await;
    assert_eq!(user.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
    let device = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    assert_eq!(device["customerId"]["id"], "13814000-1dd2-11b2-8080-808080808080");
}
