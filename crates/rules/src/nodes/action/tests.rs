use fieldline_core::ports::RelationEnds;
use fieldline_model::entity::{Alarm, AlarmSeverity};
use fieldline_model::message::{Metadata, MsgType};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CustomerId, DeviceId, EntityId};
use serde_json::{Value, json};

use crate::message::Msg;
use crate::node::Source;
use crate::nodes::tests::{NOW, World, nobody, upgraded};

const CREATE_ALARM: &str = "action.TbCreateAlarmNode";
const CLEAR_ALARM: &str = "action.TbClearAlarmNode";
const CREATE_RELATION: &str = "action.TbCreateRelationNode";
const DELETE_RELATION: &str = "action.TbDeleteRelationNode";
const ASSIGN: &str = "action.TbAssignToCustomerNode";
const UNASSIGN: &str = "action.TbUnassignFromCustomerNode";
const STATE: &str = "action.TbDeviceStateNode";
const COUNT: &str = "action.TbMsgCountNode";
const COPY: &str = "action.TbCopyAttributesToEntityViewNode";
const DELAY: &str = "delay.TbMsgDelayNode";
const GENERATOR: &str = "debug.TbMsgGeneratorNode";
const FENCE: &str = "geo.TbGpsGeofencingActionNode";
const RPC: &str = "rpc.TbSendRPCRequestNode";
const REPLY: &str = "rpc.TbSendRPCReplyNode";
const REST_REPLY: &str = "rest.TbSendRestApiCallReplyNode";

fn meta<const N: usize>(entries: [(&str, &str); N]) -> Metadata {
    entries.into_iter().collect()
}

async fn active(world: &World, entity: EntityId, alarm_type: &str) -> Option<Alarm> {
    let alarms = &world.services.stores.alarms;
    alarms.latest_active(world.tenant, entity, alarm_type).await.unwrap()
}

fn source(world: &World) -> Source {
    Source {
        services: world.services.clone(),
        tenant: world.tenant,
        chain: world.chain,
        node: world.node,
        queue: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_created_updated_and_cleared() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let details = "var before = metadata.prevAlarmDetails == null ? 0 : JSON.parse(metadata.prevAlarmDetails).n; \
                   return {n: before + 1};";
    let create = world.node(
        CREATE_ALARM,
        json!({
            "alarmType": "Hot ${deviceName}", "severity": "$[level]", "dynamicSeverity": true,
            "alarmDetailsBuildTbel": details, "propagateToTenant": true,
        }),
    );
    let hot = |world: &World, level: &str| world.msg(MsgType::PostTelemetry, device, &json!({"level": level}));

    let first = hot(&world, "MAJOR");
    let out = world.one(&create, first.clone()).await;
    assert_eq!((out.label.as_str(), &out.msg.kind), ("Created", &MsgType::Alarm), "{:?}", out.error);
    assert_eq!(out.meta("isNewAlarm").as_deref(), Some("true"));
    let alarm = active(&world, device, "Hot thing").await.unwrap();
    assert_eq!(out.body(), serde_json::to_value(&alarm).unwrap());
    assert_eq!((alarm.severity, alarm.start_ts), (Some(AlarmSeverity::Major), NOW));
    assert_eq!((alarm.details.clone(), alarm.propagate_to_tenant), (Some(json!({"n": 1})), true));
    let [told] = &*world.queue.take() else { panic!("one message") };
    assert_eq!((&told.msg_type, told.originator), (&MsgType::EntityCreated, device));
    assert_eq!(told.metadata.get("ruleNodeId"), Some(&*world.node.0.to_string()));

    // The same message once more, as after a crash, raises nothing else and counts nothing.
    let again = world.one(&create, first).await;
    assert_eq!((again.label.as_str(), again.body()), ("Created", out.body()));

    world.clock.advance(1_000);
    let second = hot(&world, "CRITICAL");
    let out = world.one(&create, second).await;
    assert_eq!((out.label.as_str(), out.meta("isExistingAlarm").as_deref()), ("Updated", Some("true")));
    let updated = active(&world, device, "Hot thing").await.unwrap();
    assert_eq!((updated.id, updated.end_ts), (alarm.id, NOW + 1_000));
    assert_eq!(updated.severity, Some(AlarmSeverity::Critical));
    assert_eq!(updated.details, Some(json!({"n": 2})));
    world.queue.take();

    let wrong = hot(&world, "WORST");
    let out = world.one(&create, wrong).await;
    assert_eq!(out.error.as_deref(), Some("Used incorrect pattern or Alarm Severity not included in message"));

    let clear = world.node(CLEAR_ALARM, json!({"alarmType": "Hot ${deviceName}", "alarmDetailsBuildTbel": details}));
    let cold = world.msg(MsgType::PostTelemetry, device, &json!({}));
    let out = world.one(&clear, cold.clone()).await;
    assert_eq!((out.label.as_str(), out.meta("isClearedAlarm").as_deref()), ("Cleared", Some("true")));
    assert_eq!((out.body()["status"].as_str(), &out.body()["details"]), (Some("CLEARED_UNACK"), &json!({"n": 3})));
    let [told] = &*world.queue.take() else { panic!("one message") };
    assert_eq!(told.msg_type, MsgType::AlarmClear);
    let out = world.one(&clear, cold.clone()).await;
    assert_eq!((out.label.as_str(), &out.msg.kind), ("False", &MsgType::PostTelemetry));
    let by_id = Msg {
        originator: alarm.id.unwrap().into(),
        ..cold
    };
    assert_eq!(world.one(&clear, by_id).await.label, "False", "it is cleared");
    assert_eq!(world.wrong(CREATE_ALARM, json!({"severity": "WORST"})), "severity");
    assert_eq!(world.wrong(CREATE_ALARM, json!({"alarmDetailsBuildTbel": "return {"})), "alarmDetailsBuildTbel");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_can_come_with_the_message() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let create = world.node(CREATE_ALARM, json!({"useMessageAlarmData": true, "overwriteAlarmDetails": false}));
    let given = json!({"type": "Given", "severity": "MINOR", "details": {"by": "message"}, "propagate": true});
    let msg = world.msg(MsgType::PostTelemetry, device, &given);
    assert_eq!(world.one(&create, msg).await.label, "Created");
    let alarm = active(&world, device, "Given").await.unwrap();
    assert_eq!((alarm.severity, alarm.propagate), (Some(AlarmSeverity::Minor), true));
    assert_eq!(alarm.details, Some(json!({"by": "message"})));
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({"type": "Given"}));
    let out = world.one(&create, msg).await;
    assert_eq!(out.error.as_deref(), Some("the alarm in the message body has no severity"));
}

async fn related(world: &World, ends: RelationEnds) -> Vec<(EntityId, EntityId, String)> {
    let found = world.services.stores.relations.find(world.tenant, &ends).await.unwrap();
    found.into_iter().map(|it| (it.from, it.to, it.relation_type)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_are_created_with_entities_that_may_not_exist_yet() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(
        CREATE_RELATION,
        json!({
            "direction": "TO", "relationType": "In ${where}", "entityType": "ASSET", "entityNamePattern": "$[room]",
            "entityTypePattern": "room", "createEntityIfNotExists": true, "changeOriginatorToRelatedEntity": true,
            "removeCurrentRelations": true,
        }),
    );
    let move_to = |world: &World, room: &str| {
        world.msg_with(MsgType::PostTelemetry, device, &json!({"room": room}), meta([("where", "house")]))
    };
    let first = move_to(&world, "kitchen");
    let kitchen = world.one(&node, first.clone()).await;
    assert_eq!(kitchen.label, "Success", "{:?}", kitchen.error);
    let found = world.services.stores.assets.by_name(world.tenant, "kitchen").await.unwrap().unwrap();
    assert_eq!((found.id.map(EntityId::from), found.asset_type.as_str()), (Some(kitchen.msg.originator), "room"));
    let [told] = &*world.queue.take() else { panic!("one message") };
    assert_eq!((&told.msg_type, told.originator), (&MsgType::EntityCreated, kitchen.msg.originator));

    world.one(&node, first).await;
    let second = move_to(&world, "hall");
    let hall = world.one(&node, second).await.msg.originator;
    let all = related(&world, RelationEnds::to(device)).await;
    assert_eq!(all, [(hall, device, "In house".to_owned())], "the device has left the kitchen");

    let node = world.node(CREATE_RELATION, json!({"entityType": "DEVICE", "entityNamePattern": "b"}));
    let msg = move_to(&world, "");
    let out = world.one(&node, msg).await;
    assert_eq!(out.error.as_deref(), Some("Device with name 'b' doesn't exist!"));
    assert_eq!(out.msg.originator, device);
    let customers = json!({"entityType": "CUSTOMER", "entityNamePattern": "New", "createEntityIfNotExists": true});
    let node = world.node(CREATE_RELATION, customers);
    let msg = move_to(&world, "");
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert!(world.services.stores.customers.by_title(world.tenant, "New").await.unwrap().is_some());
    assert_eq!(world.wrong(CREATE_RELATION, json!({})), "entityType");
    assert_eq!(world.wrong(CREATE_RELATION, json!({"entityType": "ALARM"})), "entityType");
    assert_eq!(world.wrong(CREATE_RELATION, json!({"entityType": "DEVICE", "direction": "UP"})), "direction");
    let old = upgraded(CREATE_RELATION, 0, json!({"direction": "TO", "entityCacheExpiration": 300}));
    assert_eq!(old, json!({"direction": "FROM"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_are_deleted_one_or_all() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let (b, c) = (world.device("b", json!({})).await, world.device("c", json!({})).await);
    for other in [b, c] {
        world.relate(device, other, "Uses").await;
    }
    world.relate(device, c, "Contains").await;
    let one = json!({"deleteForSingleEntity": true, "relationType": "Uses", "entityType": "DEVICE", "entityNamePattern": "b"});
    let node = world.node(DELETE_RELATION, one);
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
    for _ in 0..2 {
        assert_eq!(world.one(&node, msg.clone()).await.label, "Success");
    }
    let uses = RelationEnds::from(device).of_type("Uses");
    assert_eq!(related(&world, uses).await, [(device, c, "Uses".to_owned())]);
    let node = world.node(DELETE_RELATION, json!({"relationType": "Uses"}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(related(&world, RelationEnds::from(device)).await, [(device, c, "Contains".to_owned())]);
    assert_eq!(world.wrong(DELETE_RELATION, json!({"deleteForSingleEntity": true})), "entityType");
}

#[tokio::test(flavor = "multi_thread")]
async fn originators_are_assigned_to_customers() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let asset = world.asset("b", "room", json!({})).await;
    let node = world.node(ASSIGN, json!({"customerNamePattern": "$[who]", "createCustomerIfNotExists": true}));
    for entity in [device, asset] {
        let msg = world.msg(MsgType::PostTelemetry, entity, &json!({"who": "Bakery"}));
        assert_eq!(world.one(&node, msg).await.label, "Success");
    }
    let bakery = world.services.stores.customers.by_title(world.tenant, "Bakery").await.unwrap().unwrap().id.unwrap();
    let owner = async |world: &World| {
        let id = DeviceId(device.id);
        world.services.stores.devices.get(world.tenant, id).await.unwrap().unwrap().customer_id
    };
    assert_eq!(owner(&world).await, bakery);
    let node = world.node(UNASSIGN, json!({}));
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(owner(&world).await, CustomerId::NULL);

    let strict = world.node(ASSIGN, json!({"customerNamePattern": "Nobody"}));
    for (originator, problem) in [
        (device, "Customer with title 'Nobody' doesn't exist!"),
        (world.customer.into(), "Unsupported originator type 'CUSTOMER'! Only ASSET, DEVICE, ENTITY_VIEW, DASHBOARD, EDGE types are allowed."),
    ] {
        let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
        assert_eq!(world.one(&strict, msg).await.error.as_deref(), Some(problem));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_device_are_limited() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(STATE, json!({"event": "CONNECT_EVENT"}));
    let mut labels = Vec::new();
    for pause in [0, 0, 999, 1] {
        world.clock.advance(pause);
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        labels.push(world.one(&node, msg).await.label);
    }
    assert_eq!(labels, ["Success", "Rate limited", "Rate limited", "Success"]);
    let mut passed = 0;
    for _ in 0..120 {
        world.clock.advance(1_000);
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        passed += usize::from(world.one(&node, msg).await.label == "Success");
    }
    assert_eq!(passed, 60, "what is left of sixty an hour, and two more");
    let msg = world.msg(MsgType::PostTelemetry, world.customer, &json!({}));
    assert!(world.one(&node, msg).await.error.unwrap().contains("[CUSTOMER]. Only DEVICE"));
    assert_eq!(world.wrong(STATE, json!({"event": "ALARM"})), "event");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_device_ends_here_and_its_answer_goes_on() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(RPC, json!({"timeoutInSeconds": 5}));
    let call = json!({"method": "setGpio", "params": {"pin": 1}, "additionalInfo": {"by": "x"}});
    let metadata = meta([
        ("oneway", "true"), ("originServiceId", "here"), ("expirationTime", "1760000003000"), ("retries", "3"),
        ("requestUUID", "6f3bf0a2-0000-4000-8000-000000000001"),
    ]);
    let msg = world.msg_with(MsgType::RpcFromServer, device, &call, metadata.clone());
    for (answer, label, body) in [
        (Some("{\"ok\":true}"), "Success", json!({"ok": true})),
        (None, "Failure", json!({"error": "NO_ACTIVE_CONNECTION"})),
    ] {
        *world.callers.answer.lock() = answer.map(str::to_owned);
        assert!(world.send(&node, msg.clone()).await.is_empty(), "it is acknowledged");
        let reply = loop {
            if let Some(reply) = world.queue.take().pop() {
                break reply;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(reply.from, Some((world.node, label.to_owned())));
        assert_eq!(serde_json::from_str::<Value>(&reply.data).unwrap(), body);
        assert_eq!((&reply.msg_type, reply.originator, &reply.metadata), (&MsgType::RpcFromServer, device, &metadata));
    }
    let request = world.callers.requests.lock().remove(0);
    assert_eq!((request.method.as_str(), request.params.as_str()), ("setGpio", "{\"pin\":1}"));
    assert_eq!((request.oneway, request.persistent, request.retries), (true, false, Some(3)));
    assert_eq!(request.expires_ms, NOW + 3_000);
    assert_eq!(request.id.to_string(), "6f3bf0a2-0000-4000-8000-000000000001");
    assert_eq!(request.rest_origin.as_deref(), Some("here"));

    for (originator, body, problem) in [
        (world.customer.into(), &call, "Message originator is not a device entity!"),
        (device, &json!({"params": 1}), "Method is not present in the message!"),
        (device, &json!({"method": "m"}), "Params are not present in the message!"),
    ] {
        let msg = world.msg(MsgType::PostTelemetry, originator, body);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    let msg = world.msg_with(MsgType::PostTelemetry, device, &call, meta([("retries", "many")]));
    assert_eq!(world.one(&node, msg).await.error.as_deref(), Some("`retries` in the metadata is invalid: many"));
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_and_clients_are_answered() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let session = "6f3bf0a2-0000-4000-8000-000000000001";
    let node = world.node(REPLY, json!({"requestIdMetaDataAttribute": "number"}));
    let whole = meta([("serviceId", "here"), ("sessionId", session), ("number", "7")]);
    let msg = world.msg_with(MsgType::ToServerRpc, device, &json!({"a": 1}), whole.clone());
    assert_eq!(world.one(&node, msg).await.label, "Success");
    let answers = std::mem::take(&mut *world.callers.answers.lock());
    assert_eq!(answers, [("here".to_owned(), session.parse().unwrap(), 7, "{\"a\":1}".to_owned())]);
    for (missing, problem) in [
        ("number", "Request id is not present in the metadata!"),
        ("serviceId", "Service id is not present in the metadata!"),
        ("sessionId", "Session id is not present in the metadata!"),
    ] {
        let mut metadata = whole.clone();
        metadata.remove(missing);
        let msg = world.msg_with(MsgType::ToServerRpc, device, &json!({}), metadata);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    let node = world.node(REST_REPLY, json!({}));
    let metadata = meta([("serviceId", "here"), ("requestUUID", session)]);
    let msg = world.msg_with(MsgType::RestApiRequest, world.tenant, &json!({"a": 1}), metadata);
    assert_eq!(world.one(&node, msg).await.label, "Success");
    let rest = std::mem::take(&mut *world.callers.rest.lock());
    assert_eq!((rest[0].1.to_string().as_str(), rest[0].2.data.as_str()), (session, "{\"a\":1}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_messages_survive_a_restart() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let patch = json!({
        "maxPendingMsgs": 2, "useMetadataPeriodInSecondsPatterns": true, "periodInSecondsPattern": "${wait}",
    });
    let node = world.node(DELAY, patch.clone());
    let msg = |world: &World, wait: &str| {
        world.msg_with(MsgType::from("mine"), device, &json!({"wait": wait}), meta([("wait", wait)]))
    };
    for wait in ["20", "10"] {
        let msg = msg(&world, wait);
        assert!(world.send(&node, msg).await.is_empty());
    }
    let third = msg(&world, "1");
    assert_eq!(world.one(&node, third).await.error.as_deref(), Some("Max limit of pending messages reached!"));
    world.restart();
    let node = world.node(DELAY, patch);
    world.clock.advance(9_999);
    assert!(world.due(&node).await.is_empty());
    world.clock.advance(1);
    let out = world.due(&node).await;
    assert_eq!((out.len(), out[0].body(), out[0].label.as_str()), (1, json!({"wait": "10"}), "Success"));
    assert_eq!((&out[0].msg.kind, out[0].msg.originator), (&MsgType::from("mine"), device));
    world.clock.advance(10_000);
    assert_eq!(world.due(&node).await[0].meta("wait").as_deref(), Some("20"));
    let wrong = msg(&world, "soon");
    assert!(world.one(&node, wrong).await.error.unwrap().starts_with("Can't parse period in seconds"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_enters_and_leaves_is_told_and_kept() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let fence = |on_each: bool| {
        json!({
            "fetchPerimeterInfoFromMessageMetadata": false, "polygonsDefinition": "[[0,0],[0,10],[10,10],[10,0]]",
            "minInsideDuration": 10, "minInsideDurationTimeUnit": "SECONDS", "minOutsideDuration": 1,
            "reportPresenceStatusOnEachMessage": on_each,
        })
    };
    let node = world.node(FENCE, fence(false));
    let (inside, outside) = (json!({"latitude": 5, "longitude": 5}), json!({"latitude": 5, "longitude": 50}));
    let mut labels = Vec::new();
    for (pause, place) in [
        (0, &inside), (10_000, &inside), (1, &inside), (5_000, &inside), (0, &outside), (60_000, &outside), (1, &outside),
    ] {
        world.clock.advance(pause);
        let msg = world.msg(MsgType::PostTelemetry, device, place);
        labels.push(world.one(&node, msg).await.label);
        world.parts.states.take_changes(world.parts.partition);
    }
    assert_eq!(labels, ["Entered", "Success", "Inside", "Success", "Left", "Success", "Outside"]);
    let node = world.node(FENCE, fence(true));
    for (place, label) in [(&outside, "Outside"), (&inside, "Entered"), (&inside, "Inside")] {
        let msg = world.msg(MsgType::PostTelemetry, device, place);
        assert_eq!(world.one(&node, msg).await.label, label);
    }
    world.restart();
    let msg = world.msg(MsgType::PostTelemetry, device, &inside);
    assert_eq!(world.one(&node, msg).await.label, "Inside", "a restart is no entry");
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
    assert_eq!(world.one(&node, msg).await.label, "Failure");
    let old = upgraded(FENCE, 0, json!({}));
    assert_eq!(old, json!({"reportPresenceStatusOnEachMessage": false}));
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_copied_to_the_views_that_show_them() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let view = |world: &World, name: &str, keys: Value, end: i64| {
        serde_json::from_value(json!({
            "id": fieldline_model::EntityViewId(fieldline_model::new_uuid()), "createdTime": NOW, "name": name,
            "type": "t", "tenantId": world.tenant, "entityId": device, "endTimeMs": end,
            "keys": {"timeseries": [], "attributes": {"cs": [], "ss": keys, "sh": []}},
        }))
        .unwrap()
    };
    let views = world.services.stores.entity_views.clone();
    let shown = views.save(view(&world, "shown", json!(["a", "b"]), 0), true).await.unwrap().id.unwrap();
    views.save(view(&world, "old", json!(["a"]), NOW - 1), true).await.unwrap();
    let node = world.node(COPY, json!({}));
    let metadata = meta([("scope", "SERVER_SCOPE")]);
    let msg = world.msg_with(MsgType::AttributesUpdated, device, &json!({"a": 1, "c": 2}), metadata.clone());
    let out = world.one(&node, msg).await;
    assert_eq!((out.label.as_str(), out.msg.originator), ("Success", shown.into()));
    let stored = world.services.attributes.get(world.subject(shown), AttributeScope::Server, None).await.unwrap();
    assert_eq!(stored.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["a"]);
    let gone = json!({"attributes": ["a", "c"]});
    let msg = world.msg_with(MsgType::AttributesDeleted, device, &gone, metadata);
    assert_eq!(world.send(&node, msg).await.len(), 1);
    let stored = world.services.attributes.get(world.subject(shown), AttributeScope::Server, None).await.unwrap();
    assert!(stored.is_empty());
    for (kind, metadata, problem) in [
        (MsgType::PostTelemetry, meta([("a", "b")]), "Unsupported msg type [POST_TELEMETRY_REQUEST]"),
        (MsgType::AttributesUpdated, meta([]), "Message metadata is empty"),
        (MsgType::AttributesUpdated, meta([("scope", "MINE")]), "Invalid attribute scope: MINE"),
    ] {
        let msg = world.msg_with(kind, device, &json!({}), metadata);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_reported_at_intervals() {
    let mut world = World::new().await;
    let node = world.node(COUNT, json!({"interval": 1, "telemetryPrefix": "seen"}));
    for _ in 0..3 {
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert!(world.send(&node, msg).await.is_empty());
    }
    let task = tokio::spawn(node.clone().run(source(&world)).unwrap());
    let report = loop {
        if let Some(report) = world.queue.take().pop() {
            break report;
        }
        tokio::task::yield_now().await;
    };
    task.abort();
    assert_eq!((&report.msg_type, report.originator), (&MsgType::PostTelemetry, world.tenant.into()));
    assert_eq!(report.data, "{\"seen_here\":3}");
    assert_eq!((report.metadata.get("ts"), report.metadata.get("delta")), (None, Some("0")));
    assert_eq!(report.from, Some((world.node, "Success".to_owned())));
    assert_eq!(world.wrong(COUNT, json!({"interval": 0})), "interval");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generator_knows_what_it_has_made_before() {
    let world = World::new().await;
    let device = world.device("a", json!({})).await;
    let script = "var n = prevMsg.n == null ? 1 : prevMsg.n + 1; \
                  return {msg: {n: n}, metadata: {before: prevMsgType}, msgType: 'MINE'};";
    let node = world.node(
        GENERATOR,
        json!({"tbelScript": script, "msgCount": 2, "originatorType": "DEVICE", "originatorId": device.id}),
    );
    node.run(source(&world)).unwrap().await;
    let made = world.queue.take();
    let bodies: Vec<_> = made.iter().map(|it| (it.data.as_str(), it.metadata.get("before").unwrap())).collect();
    assert_eq!(bodies, [("{\"n\":1}", ""), ("{\"n\":2}", "MINE")]);
    assert_eq!((made[0].msg_type.name(), made[0].originator), ("MINE", device));
    assert_eq!(made[0].from, Some((world.node, "Success".to_owned())));

    let broken = json!({"tbelScript": "return 5;", "msgCount": 1});
    world.node(GENERATOR, broken).run(source(&world)).unwrap().await;
    let made = world.queue.take();
    assert_eq!((made[0].from.clone(), made[0].originator), (Some((world.node, "Failure".to_owned())), world.node.into()));
    let foreign = json!({"msgCount": 1, "originatorType": "DEVICE", "originatorId": nobody().id});
    world.node(GENERATOR, foreign).run(source(&world)).unwrap().await;
    assert_eq!(world.queue.take()[0].from.clone().unwrap().1, "Failure");
    assert_eq!(world.wrong(GENERATOR, json!({"originatorType": "ALARM"})), "originatorType");
    assert_eq!(world.wrong(GENERATOR, json!({"originatorType": "DEVICE"})), "originatorId");
    let old = upgraded(GENERATOR, 0, json!({"queueName": "Main", "originatorType": "DEVICE", "originatorId": ""}));
    assert_eq!(old, json!({"originatorType": "RULE_NODE", "originatorId": ""}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_platform_does_not_have_says_so() {
    let mut world = World::new().await;
    for class in ["edge.TbMsgPushToEdgeNode", "edge.TbMsgPushToCloudNode"] {
        let node = world.node(class, json!({}));
        let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some("Edge is not supported"));
    }
    assert_eq!(world.wrong("action.TbSaveToCustomCassandraTableNode", json!({"tableName": "t"})), "tableName");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_node_needs_a_text() {
    let mut world = World::new().await;
    let node = world.node("action.TbLogNode", json!({}));
    let msg = world.msg(MsgType::PostTelemetry, nobody(), &json!({}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(world.wrong("action.TbLogNode", json!({"tbelScript": "return '"})), "tbelScript");
}
