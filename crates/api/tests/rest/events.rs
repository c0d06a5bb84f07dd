//! Events of entities.

use fieldline_model::entity::{EntityEvent, EventBody, RuleNodeDebug};
use fieldline_model::{DeviceId, EntityId, RuleNodeId, TenantId};
use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture, id, no};

fn uuid(id: &Value) -> uuid::Uuid {
    id["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn events_of_a_node_are_listed_filtered_and_cleared() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let root = admin.get("/api/ruleChains?pageSize=1&page=0").await["data"][0].clone();
    let metadata = admin.get(&format!("/api/ruleChain/{}/metadata", id(&root))).await;
    let node = metadata["nodes"][0]["id"].clone();
    let tenant = root["tenantId"]["id"].as_str().unwrap();
    let tenant_id = TenantId(uuid(&root["tenantId"]));
    let device = DeviceId::new();
    let debug = |direction: &str, error: Option<&str>| {
        EventBody::RuleNode(RuleNodeDebug {
            direction: direction.to_owned(),
            originator: Some(device.into()),
            msg_type: Some("POST_TELEMETRY_REQUEST".to_owned()),
            data: Some("{\"t\":1}".to_owned()),
            error: error.map(str::to_owned),
            ..RuleNodeDebug::default()
        })
    };
    let lifecycle = EventBody::Lifecycle {
        event: "STARTED".to_owned(),
        success: true,
        error: None,
    };
    let stats = EventBody::Stats {
        messages_processed: 3,
        errors_occurred: 1,
    };
    let entity: EntityId = RuleNodeId(uuid(&node)).into();
    let events: Vec<EntityEvent> = [debug("IN", None), debug("OUT", Some("Broken")), lifecycle, stats]
        .into_iter()
        .zip(NOW..)
        .map(|(body, now)| EntityEvent::new(tenant_id, entity, "node-1".to_owned(), now, body))
        .collect();
    world.context.stores.events.append(&events).await.unwrap();

    let base = format!("/api/events/RULE_NODE/{}", node["id"].as_str().unwrap());
    let page = format!("tenantId={tenant}&pageSize=10&page=0");
    let listed = admin.get(&format!("{base}/debug_rule_node?{page}")).await;
    assert_eq!(listed["totalElements"], 2);
    let newest = &listed["data"][0];
    assert_eq!(
        newest,
        &json!({
            "id": { "id": events[1].id }, "createdTime": NOW + 1, "tenantId": root["tenantId"],
            "type": "DEBUG_RULE_NODE", "uid": events[1].id, "entityId": node,
            "body": {
                "server": "node-1", "type": "OUT", "entityId": device.0, "entityType": "DEVICE",
                "msgType": "POST_TELEMETRY_REQUEST", "data": "{\"t\":1}", "error": "Broken",
            },
        })
    );
    let lifecycle = admin.get(&format!("{base}?{page}")).await;
    assert_eq!(
        lifecycle["data"][0]["body"],
        json!({ "server": "node-1", "event": "STARTED", "success": true })
    );
    let times = format!("startTime={NOW}&endTime={NOW}");
    let first = admin.get(&format!("{base}/DEBUG_RULE_NODE?{page}&{times}")).await;
    assert_eq!(first["data"][0]["body"]["type"], "IN");
    let input = format!("/api/ruleNode/{}/debugIn", node["id"].as_str().unwrap());
    assert_eq!(admin.get(&input).await["data"], "{\"t\":1}");

    let count = async |filter: Value| {
        let found = admin.post(&format!("{base}?{page}"), &filter).await;
        found["totalElements"].as_u64().unwrap()
    };
    for (mut filter, expected) in [
        (json!({}), 2),
        (json!({ "isError": true }), 1),
        (json!({ "errorStr": "broKEN" }), 1),
        (json!({ "msgDirectionType": "IN", "server": "NODE" }), 1),
        (json!({ "entityId": device.0, "entityType": "DEVICE" }), 2),
        (json!({ "entityId": DeviceId::new().0 }), 0),
        (json!({ "dataSearch": "\"t\"", "metadataSearch": "" }), 2),
        (json!({ "msgType": "ATTRIBUTES" }), 0),
    ] {
        filter["eventType"] = json!("DEBUG_RULE_NODE");
        assert_eq!(count(filter.clone()).await, expected, "{filter}");
    }
    let stats = |min: i64, max: i64| {
        json!({
            "eventType": "STATS", "minMessagesProcessed": min, "maxMessagesProcessed": max,
            "minErrorsOccurred": 0, "maxErrorsOccurred": 0,
        })
    };
    assert_eq!([count(stats(3, 4)).await, count(stats(0, 3)).await], [1, 0]);
    assert_eq!(
        [
            count(json!({ "eventType": "LC_EVENT", "status": "Success" })).await,
            count(json!({ "eventType": "LC_EVENT", "status": "Failure" })).await,
        ],
        [1, 0]
    );
    let refuse = async |path: String, body: Value| {
        let method = if body.is_null() { "GET" } else { "POST" };
        admin.refused(method, &path, &body).await
    };
    assert_eq!(
        refuse(format!("{base}/DANCE?{page}"), Value::Null).await,
        no(400, 31, "Event type: 'DANCE' is not supported!")
    );
    let bad = json!({ "eventType": "DEBUG_RULE_NODE", "msgId": "x" });
    assert_eq!(
        refuse(format!("{base}?{page}"), bad).await,
        no(400, 31, "Failed to parse UUID for Message Id: x")
    );
    assert_eq!(
        refuse(format!("{base}?pageSize=1&page=0"), Value::Null).await,
        no(400, 31, "Parameter 'tenantId' can't be empty!")
    );

    // A caller sees no events of another tenant, whichever tenant the request names.
    let path = format!("{base}/DEBUG_RULE_NODE?{page}");
    assert_eq!(stranger.refused("GET", &path, &Value::Null).await.0, 404);
    let theirs = stranger.get("/api/auth/user").await["tenantId"].clone();
    let of_theirs = format!(
        "{base}/DEBUG_RULE_NODE?tenantId={}&pageSize=1&page=0",
        uuid(&theirs)
    );
    assert_eq!(admin.get(&of_theirs).await["totalElements"], 0);

    let clear = json!({ "eventType": "DEBUG_RULE_NODE", "isError": true });
    admin.post(&format!("{base}/clear"), &clear).await;
    assert_eq!(count(json!({ "eventType": "DEBUG_RULE_NODE" })).await, 1);
    // Deleting a node deletes its events.
    let mut emptied = metadata.clone();
    emptied["nodes"] = json!([]);
    emptied["connections"] = json!([]);
    emptied["firstNodeIndex"] = Value::Null;
    admin.post("/api/ruleChain/metadata", &emptied).await;
    let events = &world.context.stores.events;
    for kind in fieldline_model::entity::EventKind::ALL {
        let filter = fieldline_core::ports::EventFilter::of(kind);
        let link = fieldline_model::page::PageLink::first(1);
        let left = events.list(tenant_id, entity, &filter, &link).await.unwrap();
        assert_eq!(left.total_elements, 0);
    }
}
