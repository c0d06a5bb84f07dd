//! API usage of tenants.

use fieldline_core::usage::{ApiFeature, UsageKey, UsageStore, usage_id, usage_subject};
use fieldline_model::TenantId;
use fieldline_model::entity::{EventBody, EventKind};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::{PointOrder, RangeQuery};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, RestFixture, id, no};

async fn tenant_of(client: &FixtureClient<'_>) -> TenantId {
    let user = client.get("/api/auth/user").await;
    TenantId(user["tenantId"]["id"].as_str().unwrap().parse().unwrap())
}

/// Changes a limit of all tenants with the default profile.
async fn limit(world: &RestFixture, name: &str, value: Value) {
    let sysadmin = world.sysadmin().await;
    let info = sysadmin.get("/api/tenantProfileInfo/default").await;
    let path = format!("/api/tenantProfile/{}", id(&info));
    let mut profile = sysadmin.get(&path).await;
    profile["profileData"]["configuration"][name] = value;
    sysadmin.post("/api/tenantProfile", &profile).await;
    world.usage.refresh().await.unwrap();
}

#[tokio::test]
async fn usage_is_stored_shown_and_gone_on_with_after_a_restart() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let tenant = tenant_of(&admin).await;
    world.usage.restore().await.unwrap();
    limit(&world, "maxTransportMessages", json!(10)).await;
    world.usage.count(tenant, UsageKey::TransportMessages, 7);
    world.usage.count(tenant, UsageKey::Emails, 2);
    world.usage.report(false).await;
    assert!(world.usage.is_allowed(tenant, ApiFeature::Transport));

    let info = admin.get("/api/usage").await;
    let devices = admin.get("/api/tenant/devices?pageSize=1&page=0").await["totalElements"].clone();
    for (name, value) in [
        ("transportMessages", json!(7)),
        ("maxTransportMessages", json!(10)),
        ("emails", json!(2)),
        ("maxEmails", json!(0)),
        ("smsEnabled", json!(true)),
        ("devices", devices),
        ("dashboards", json!(0)),
    ] {
        assert_eq!(info[name], value, "{name}");
    }

    // Another process on the same stores.
    let stores = world.context.stores.clone();
    let usage = UsageStore::new(stores.clone(), world.context.series.clone(), world.clock.clone());
    usage.restore().await.unwrap();
    usage.count(tenant, UsageKey::TransportMessages, 3);
    usage.report(false).await;
    assert!(!usage.is_allowed(tenant, ApiFeature::Transport));
    let path = format!(
        "/api/plugins/telemetry/API_USAGE_STATE/{}/values/timeseries",
        usage_id(tenant).0
    );
    let shown = admin.get(&path).await;
    for (key, value) in [
        ("transportMsgCount", "10"),
        ("transportMsgCountHourly", "10"),
        ("transportMsgLimit", "10"),
        ("transportApiState", "DISABLED"),
        ("emailApiState", "ENABLED"),
        ("jsExecutionLimit", "0"),
    ] {
        assert_eq!(shown[key][0]["value"], value, "{key}");
    }
    let query = RangeQuery {
        start: 0,
        end: i64::MAX,
        limit: 10,
        order: PointOrder::Ascending,
    };
    let series = &world.context.series;
    let months = series
        .range(usage_subject(tenant), "transportMsgCount", query)
        .await
        .unwrap();
    assert_eq!(months.len(), 1, "a month is one point: {months:?}");
    let filter = fieldline_core::ports::EventFilter::of(EventKind::LcEvent);
    let entity = usage_id(tenant).into();
    let events = stores
        .events
        .list(tenant, entity, &filter, &PageLink::first(10))
        .await
        .unwrap();
    let told: Vec<_> = events
        .data
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Lifecycle { event, success, .. } => Some((event.as_str(), *success)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [("transportApiState DISABLED", false)]);

    // A restarted process knows it at once, without reporting it again.
    let usage = UsageStore::new(stores.clone(), world.context.series.clone(), world.clock.clone());
    usage.restore().await.unwrap();
    assert!(!usage.is_allowed(tenant, ApiFeature::Transport));
    let events = stores
        .events
        .list(tenant, entity, &filter, &PageLink::first(10))
        .await
        .unwrap();
    assert_eq!(events.total_elements, 1);
    // Next month everything is allowed again.
    world.clock.advance(31 * 86_400_000);
    usage.report(false).await;
    assert!(usage.is_allowed(tenant, ApiFeature::Transport));
    // The previous token has expired.
    let admin = world.admin().await;
    assert_eq!(admin.get("/api/usage").await["transportMessages"], 0);
}

#[tokio::test]
async fn system_administrators_see_what_all_tenants_have_used_together() {
    let world = RestFixture::demo().await;
    let tenants = [
        tenant_of(&world.admin().await).await,
        tenant_of(&world.stranger().await).await,
    ];
    // Less than all of them use together, and more than each.
    limit(&world, "maxTransportMessages", json!(50)).await;
    let count = |usage: &UsageStore, times: u64| {
        for (tenant, messages) in tenants.into_iter().zip([3, 4]) {
            usage.count(tenant, UsageKey::TransportMessages, times * messages);
        }
    };
    count(&world.usage, 1);
    world.usage.report(false).await;
    // Another process goes on with the sum.
    let stores = world.context.stores.clone();
    let usage = UsageStore::new(stores, world.context.series.clone(), world.clock.clone());
    usage.restore().await.unwrap();
    count(&usage, 10);
    usage.report(false).await;

    let keys = ["transportMsgCount", "transportMsgCountHourly"];
    let latest: Vec<Value> = keys
        .map(|key| json!({"type": "TIME_SERIES", "key": key}))
        .to_vec();
    let query = json!({
        "entityFilter": {"type": "apiUsageState"},
        "pageLink": {"pageSize": 10, "page": 0},
        "latestValues": latest,
    });
    let sysadmin = world.sysadmin().await;
    let found = sysadmin.post("/api/entitiesQuery/find", &query).await["data"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let state = usage_id(TenantId::NULL).0;
    assert_eq!(found[0]["entityId"]["id"], state.to_string());
    for key in keys {
        assert_eq!(found[0]["latest"]["TIME_SERIES"][key]["value"], "77", "{key}");
    }
    assert!(
        tenants
            .iter()
            .all(|tenant| usage.is_allowed(*tenant, ApiFeature::Transport))
    );
    // A tenant's own is not the system's.
    let admin = world.admin().await;
    let own = admin.post("/api/entitiesQuery/find", &query).await["data"].clone();
    assert_eq!(
        own[0]["latest"]["TIME_SERIES"]["transportMsgCount"]["value"],
        "33"
    );
}

#[tokio::test]
async fn nobody_else_sees_or_writes_the_usage_of_a_tenant() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let tenant = tenant_of(&admin).await;
    world.usage.restore().await.unwrap();
    let telemetry = format!("/api/plugins/telemetry/API_USAGE_STATE/{}", usage_id(tenant).0);
    let keys = format!("{telemetry}/keys/timeseries");
    assert_eq!(stranger.send("GET", &keys, "").await.0, 404);
    assert_eq!(world.customer_user().await.send("GET", &keys, "").await.0, 403);
    let write = format!("{telemetry}/timeseries/ANY");
    assert_eq!(
        admin.send("POST", &write, r#"{"transportMsgCount":0}"#).await.0,
        403
    );
    for client in [world.customer_user().await, world.sysadmin().await] {
        assert_eq!(client.send("GET", "/api/usage", "").await.0, 403);
    }
}

#[tokio::test]
async fn what_is_used_up_is_refused() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    world.usage.restore().await.unwrap();
    limit(&world, "maxDPStorageDays", json!(3)).await;
    let device = admin
        .post("/api/device", &json!({ "name": "metered", "type": "default" }))
        .await;
    let path = format!("/api/plugins/telemetry/DEVICE/{}/timeseries/ANY", id(&device));
    admin.post(&path, &json!({ "a": 1, "b": 2, "c": 3 })).await;
    world.usage.report(false).await;
    let refused = admin.send("POST", &path, r#"{"a":4}"#).await;
    assert_eq!(
        (refused.0.as_u16(), refused.1.as_str()),
        (429, "DB storage writes are disabled due to API limits!")
    );

    limit(&world, "maxCreatedAlarms", json!(1)).await;
    let alarm = |kind: &str| json!({ "type": kind, "severity": "MAJOR", "originator": device["id"], "status": "ACTIVE_UNACK" });
    admin.post("/api/alarm", &alarm("one")).await;
    world.usage.report(false).await;
    assert_eq!(admin.refused("POST", "/api/alarm", &alarm("two")).await.0, 429);
    limit(&world, "maxCreatedAlarms", json!(0)).await;
    admin.post("/api/alarm", &alarm("two")).await;
}

#[tokio::test]
async fn requests_are_as_many_as_the_profile_allows() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin, user) = (
        world.sysadmin().await,
        world.admin().await,
        world.customer_user().await,
    );
    let limit = async |tenant: &str, customer: &str| {
        let info = sysadmin.get("/api/tenantProfileInfo/default").await;
        let mut profile = sysadmin.get(&format!("/api/tenantProfile/{}", id(&info))).await;
        let configuration = &mut profile["profileData"]["configuration"];
        configuration["tenantServerRestLimitsConfiguration"] = json!(tenant);
        configuration["customerServerRestLimitsConfiguration"] = json!(customer);
        sysadmin.post("/api/tenantProfile", &profile).await;
    };
    limit("5:60", "2:60").await;
    let path = "/api/auth/user";
    for _ in 0..2 {
        user.get(path).await;
    }
    let refused = async |who: &FixtureClient<'_>| who.refused("GET", path, &Value::Null).await;
    assert_eq!(
        refused(&user).await,
        no(429, 33, "Too many requests for current customer!")
    );
    for _ in 0..2 {
        admin.get(path).await;
    }
    assert_eq!(
        refused(&admin).await,
        no(429, 33, "Too many requests for current tenant!")
    );
    sysadmin.get(path).await;
    world.clock.advance(12_000);
    admin.get(path).await;
    limit("", "").await;
    for _ in 0..9 {
        user.get(path).await;
    }
}

#[tokio::test]
async fn clients_are_told_what_there_is_when_they_start() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin, user) = (
        world.sysadmin().await,
        world.admin().await,
        world.customer_user().await,
    );
    let info = user.get("/api/system/info").await;
    assert_eq!(
        (&info["artifact"], &info["type"]),
        (&json!("fieldline"), &json!("CE"))
    );
    user.post("/api/user/settings", &json!({ "theme": "dark" })).await;
    let params = user.get("/api/system/params").await;
    assert_eq!(
        params["userSettings"],
        json!({ "theme": "dark", "openedMenuSections": [] })
    );
    assert_eq!(
        (
            &params["userTokenAccessEnabled"],
            &params["maxDatapointsLimit"],
            &params["maxArgumentsPerCF"]
        ),
        (&json!(false), &json!(50_000), &json!(10))
    );
    let params = admin.get("/api/system/params").await;
    assert_eq!(
        (&params["userTokenAccessEnabled"], &params["tbelEnabled"]),
        (&json!(true), &json!(true))
    );
    // The demo's profile says nothing of it, so what then holds is told.
    assert_eq!(params["maxDebugModeDurationMinutes"], 15);
    assert_eq!(sysadmin.get("/api/system/params").await["tbelEnabled"], false);
    let updates = sysadmin.get("/api/admin/updates").await;
    assert_eq!(
        updates["currentVersion"],
        user.get("/api/system/info").await["version"]
    );
}
