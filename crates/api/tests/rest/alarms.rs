//! The life cycle of an alarm.

use std::sync::Arc;

use fieldline_core::ports::{AlarmDraft, AlarmPropagation};
use fieldline_entities::services::{AlarmGate, ServiceErrorKind, Services};
use fieldline_model::entity::AlarmSeverity;
use fieldline_model::{AlarmId, DeviceId, EntityId, TenantId};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, RestFixture, id, no};

async fn device(admin: &FixtureClient<'_>, name: &str) -> Value {
    admin
        .get(&format!("/api/tenant/device?deviceName=Test%20Device%20{name}"))
        .await
}

#[tokio::test]
async fn an_alarm_is_raised_seen_assigned_and_ended() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = device(&admin, "A1").await;
    let me = admin.get("/api/auth/user").await;
    world.rule_engine.take();
    let new =
        json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR", "details": { "t": 40 } });
    let alarm = admin.post("/api/alarm", &new).await;
    assert_eq!(alarm["status"], "ACTIVE_UNACK");
    assert_eq!(alarm["name"], "Hot");
    assert_eq!(alarm["customerId"], device["customerId"]);
    assert_eq!(alarm["startTs"], alarm["endTs"]);
    assert_eq!(world.rule_engine.types(), ["ENTITY_CREATED"]);
    let mut worse = new.clone();
    worse["severity"] = json!("CRITICAL");
    assert_eq!(admin.post("/api/alarm", &worse).await["id"], alarm["id"]);
    assert_eq!(world.rule_engine.types(), ["COMMENT_CREATED", "ENTITY_CREATED"]);

    let path = format!("/api/alarm/{}", id(&alarm));
    let info = admin.post(&format!("{path}/ack"), &Value::Null).await;
    assert_eq!(info["status"], "ACTIVE_ACK");
    assert_eq!(info["originatorName"], "Test Device A1");
    let heard = world.rule_engine.take();
    let ack = heard
        .iter()
        .find(|message| message.msg_type.name() == "ALARM_ACK")
        .unwrap();
    assert_eq!(ack.originator.id.to_string(), id(&device));
    assert_eq!(ack.metadata.get("userEmail"), Some("tenant@thingsboard.org"));
    assert_eq!(ack.metadata.get("entityName"), Some("Hot"));
    assert_eq!(
        admin.refused("POST", &format!("{path}/ack"), &Value::Null).await,
        no(400, 31, "Alarm was already acknowledged!")
    );
    let assignable = format!("/api/users/assign/{}?pageSize=9&page=0", id(&alarm));
    assert_eq!(
        admin.get(&assignable).await["totalElements"],
        3,
        "the administrator and two users of Customer A"
    );
    let assigned = admin
        .post(&format!("{path}/assign/{}", id(&me)), &Value::Null)
        .await;
    assert_eq!(assigned["assignee"]["email"], "tenant@thingsboard.org");
    admin.delete(&format!("{path}/assign")).await;
    let cleared = admin.post(&format!("{path}/clear"), &Value::Null).await;
    assert_eq!(cleared["status"], "CLEARED_ACK");
    assert_eq!(
        admin
            .refused("POST", &format!("{path}/clear"), &Value::Null)
            .await,
        no(400, 31, "Alarm was already cleared!")
    );
    let told = world.rule_engine.types();
    for expected in ["ALARM_ASSIGNED", "ALARM_UNASSIGNED", "ALARM_CLEAR"] {
        assert!(told.iter().any(|name| name == expected), "{expected} in {told:?}");
    }
    let comments = admin.get(&format!("{path}/comment?pageSize=9&page=0")).await;
    let kinds: Vec<_> = comments["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|comment| comment["comment"]["subtype"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "CLEARED_BY_USER",
            "UNASSIGNED_BY_USER",
            "ASSIGNED_TO_USER",
            "ACKED_BY_USER",
            "SEVERITY_CHANGED"
        ]
    );
    // After that, an alarm with the same originator and type can be raised again.
    assert_ne!(admin.post("/api/alarm", &new).await["id"], alarm["id"]);
    assert_eq!(admin.send("DELETE", &path, "").await.1, "true");
    assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 404);
}

#[tokio::test]
async fn alarms_are_listed_where_they_propagate() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let (a, b) = (device(&admin, "A1").await, device(&admin, "B1").await);
    let house = admin.post("/api/asset", &json!({ "name": "House" })).await;
    let relation = json!({ "from": house["id"], "to": a["id"], "type": "Contains" });
    admin.post("/api/relation", &relation).await;
    for (originator, kind, severity) in [(&a, "Hot", "MINOR"), (&b, "Wet", "CRITICAL")] {
        let alarm = json!({
            "type": kind, "originator": originator["id"], "severity": severity,
            "propagate": true, "propagateRelationTypes": ["Contains"], "propagateToOwner": true,
        });
        admin.post("/api/alarm", &alarm).await;
    }
    let total = async |client: &FixtureClient<'_>, path: &str| {
        client.get(&format!("{path}pageSize=9&page=0")).await["totalElements"].clone()
    };
    assert_eq!(
        total(&admin, &format!("/api/alarm/ASSET/{}?", id(&house))).await,
        1
    );
    let owner = format!(
        "/api/v2/alarm/CUSTOMER/{}?",
        b["customerId"]["id"].as_str().unwrap()
    );
    assert_eq!(total(&admin, &owner).await, 1);
    assert_eq!(total(&admin, "/api/alarms?").await, 2);
    assert_eq!(total(&admin, "/api/alarms?status=CLEARED_ACK&").await, 0);
    assert_eq!(
        total(
            &admin,
            "/api/v2/alarms?severityList=MINOR,MAJOR&statusList=ACTIVE&"
        )
        .await,
        1
    );
    assert_eq!(
        total(&admin, "/api/v2/alarms?typeList=Hot,Wet&textSearch=crit&").await,
        1
    );
    assert_eq!(total(&world.customer_user().await, "/api/alarms?").await, 1);
    assert_eq!(total(&world.stranger().await, "/api/alarms?").await, 0);
    let wrong = "/api/alarms?searchStatus=ANY&status=ACTIVE_ACK&pageSize=1&page=0";
    assert_eq!(admin.refused("GET", wrong, &Value::Null).await.0, 400);
    let highest = format!("/api/alarm/highestSeverity/ASSET/{}", id(&house));
    assert_eq!(admin.get(&highest).await, "MINOR");
    let types = admin
        .get("/api/alarm/types?pageSize=9&page=0&sortOrder=DESC")
        .await;
    assert_eq!(types["data"][0]["type"], "Wet");

    let query = |filter: Value, propagated: bool| {
        json!({
            "entityFilter": filter,
            "entityFields": [{ "type": "ENTITY_FIELD", "key": "name" }],
            "pageLink": {
                "pageSize": 5, "page": 0, "searchPropagatedAlarms": propagated, "statusList": ["ACTIVE"],
                "sortOrder": { "key": { "type": "ALARM_FIELD", "key": "startTime" }, "direction": "DESC" },
            },
        })
    };
    let filter = json!({ "type": "singleEntity", "singleEntity": house["id"] });
    let found = admin
        .post("/api/alarmsQuery/find", &query(filter.clone(), true))
        .await;
    assert_eq!(found["data"][0]["entityId"], house["id"]);
    assert_eq!(
        found["data"][0]["latest"]["ENTITY_FIELD"]["name"]["value"],
        "House"
    );
    let found = admin.post("/api/alarmsQuery/find", &query(filter, false)).await;
    assert_eq!(found["totalElements"], 0);
    let filter = json!({ "type": "entityType", "entityType": "DEVICE" });
    let count = json!({ "entityFilter": filter, "severityList": ["CRITICAL"] });
    assert_eq!(admin.post("/api/alarmsQuery/count", &count).await, 1);
    assert_eq!(
        world
            .customer_user()
            .await
            .post("/api/alarmsQuery/count", &count)
            .await,
        0
    );
    let filter = json!({ "type": "relationsQuery" });
    let refused = admin
        .refused("POST", "/api/alarmsQuery/find", &query(filter, false))
        .await;
    assert!(refused.2.contains("root entity"), "{}", refused.2);
}

#[tokio::test]
async fn comments_belong_to_who_wrote_them() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let device = device(&admin, "A1").await;
    let alarm = json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" });
    let alarm = user.post("/api/alarm", &alarm).await;
    let path = format!("/api/alarm/{}/comment", id(&alarm));
    let comment = user.post(&path, &json!({ "comment": { "text": "mine" } })).await;
    let mut edited = comment.clone();
    edited["comment"]["text"] = json!("still mine");
    let edited = user.post(&path, &edited).await;
    assert_eq!(edited["comment"]["edited"], "true");
    assert_eq!(
        admin.refused("POST", &path, &edited).await,
        no(403, 20, "User is not allowed to edit other user's comment")
    );
    assert_eq!(user.refused("POST", &path, &json!({})).await.0, 400);
    let one = format!("{path}/{}", id(&comment));
    admin.delete(&one).await;
    let list = user.get(&format!("{path}?pageSize=9&page=0")).await;
    assert_eq!(list["data"][0]["comment"]["subtype"], "COMMENT_DELETED");
    assert_eq!(list["data"][0]["type"], "SYSTEM");
    assert_eq!(admin.refused("DELETE", &one, &Value::Null).await.0, 400);
}

#[tokio::test]
async fn who_goes_takes_alarms_along() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin.post("/api/device", &json!({ "name": "gone" })).await;
    let user = json!({ "email": "helper@example.org", "authority": "TENANT_ADMIN" });
    let user = admin.post("/api/user", &user).await;
    let alarm = json!({
        "type": "Hot", "originator": device["id"], "severity": "MAJOR", "assigneeId": user["id"],
    });
    let alarm = admin.post("/api/alarm", &alarm).await;
    assert_eq!(alarm["assigneeId"], user["id"]);
    admin.delete(&format!("/api/user/{}", id(&user))).await;
    let path = format!("/api/alarm/{}", id(&alarm));
    assert_eq!(admin.get(&path).await["assigneeId"], Value::Null);
    admin.delete(&format!("/api/device/{}", id(&device))).await;
    assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 404);
    let orphan = json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" });
    assert_eq!(admin.refused("POST", "/api/alarm", &orphan).await.0, 404);
}

/// Refuses every new alarm.
struct ClosedAlarmGate;

impl AlarmGate for ClosedAlarmGate {
    fn may_create(&self, _: TenantId) -> bool {
        false
    }
    fn count_created(&self, _: TenantId) {
        panic!("nothing is created");
    }
}

#[tokio::test]
async fn the_engine_raises_alarms_once_and_within_limits() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = device(&admin, "A1").await;
    let house = admin.post("/api/asset", &json!({ "name": "House" })).await;
    let relation = json!({ "from": house["id"], "to": device["id"], "type": "Contains" });
    admin.post("/api/relation", &relation).await;
    let entity = |value: &Value| serde_json::from_value::<EntityId>(value["id"].clone()).unwrap();
    let draft = AlarmDraft {
        id: Some(AlarmId::new()),
        tenant: serde_json::from_value(device["tenantId"].clone()).unwrap(),
        customer: None,
        originator: entity(&device),
        alarm_type: "Hot".into(),
        severity: AlarmSeverity::Major,
        start_ts: 0,
        end_ts: 0,
        details: None,
        propagation: AlarmPropagation {
            related: true,
            tenant: true,
            ..AlarmPropagation::default()
        },
        created_time: 0,
        may_create: true,
    };
    let alarms = Services::new(world.context.clone()).alarms;
    let shut = alarms.clone().with_gate(Arc::new(ClosedAlarmGate));
    let refused = shut.create_or_update(draft.clone(), None).await.unwrap_err();
    assert_eq!(refused.kind(), ServiceErrorKind::TooManyRequests);
    let raised = alarms.create_or_update(draft.clone(), None).await.unwrap();
    assert!(raised.created);
    assert_eq!(
        raised.propagated,
        [draft.originator, entity(&house), draft.tenant.into()]
    );
    assert_eq!(raised.alarm.end_ts, NOW);
    // Updates need no permission, and a draft that was already applied changes nothing.
    let worse = AlarmDraft {
        id: None,
        severity: AlarmSeverity::Critical,
        ..draft.clone()
    };
    assert!(
        shut.create_or_update(worse, None)
            .await
            .unwrap()
            .severity_changed()
    );
    let replayed = alarms.create_or_update(draft.clone(), None).await.unwrap();
    assert!(replayed.replayed && !replayed.modified);
    assert_eq!(replayed.alarm.severity, Some(AlarmSeverity::Critical));
    assert_eq!(replayed.propagated, raised.propagated);
    let foreign = AlarmDraft {
        originator: DeviceId::new().into(),
        ..draft
    };
    let refused = alarms.create_or_update(foreign, None).await.unwrap_err();
    assert_eq!(refused.kind(), ServiceErrorKind::Invalid);
}

#[tokio::test]
async fn old_alarms_go_when_the_tenant_profile_says_so() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = device(&admin, "A1").await;
    let alarm = json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" });
    let alarm = admin.post("/api/alarm", &alarm).await;
    let path = format!("/api/alarm/{}", id(&alarm));
    let alarms = Services::new(world.context.clone()).alarms;
    world.clock.advance(3 * 86_400_000);
    assert_eq!(alarms.expire().await.unwrap(), 0, "kept for ever by default");
    let sysadmin = world.sysadmin().await;
    let profiles = sysadmin.get("/api/tenantProfiles?pageSize=1&page=0").await;
    let mut profile = profiles["data"][0].clone();
    profile["profileData"]["configuration"]["alarmsTtlDays"] = json!(2);
    sysadmin.post("/api/tenantProfile", &profile).await;
    assert_eq!(alarms.expire().await.unwrap(), 1);
    let admin = world.admin().await;
    assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 404);
}
