//! The administration of the broker in the shapes of TBMQ.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fieldline_core::broker_statistics;
use fieldline_core::ports::{
    BrokerAdmin, BrokerAdminError, BrokerAdminResult, BrokerClientSubscription, BrokerClientTraffic,
    BrokerClientType, BrokerCountOrder, BrokerRetainedFilter, BrokerRetainedMessage, BrokerSessionCounts,
    BrokerSessionDetails, BrokerSessionFilter, BrokerSessionInfo, BrokerShareGroup, BrokerStatistics,
    BrokerSubscription, BrokerSubscriptionFilter, TelemetryRow, TelemetrySaveStrategy,
};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::page::{PageData, PageLink};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{NOW, RestFixture, no};

const SESSION: Uuid = Uuid::from_u128(7);
const AWAY: Uuid = Uuid::from_u128(8);

/// A broker that notes what it is asked for.
#[derive(Default)]
pub(crate) struct FakeBroker {
    asked: Mutex<Vec<String>>,
    session_filter: Mutex<BrokerSessionFilter>,
    subscription_filter: Mutex<BrokerSubscriptionFilter>,
    retained_filter: Mutex<BrokerRetainedFilter>,
    replaced: Mutex<Vec<BrokerSubscription>>,
}

fn info() -> BrokerSessionInfo {
    BrokerSessionInfo {
        client_id: "c".into(),
        session_id: SESSION,
        is_connected: true,
        client_type: BrokerClientType::Application,
        subscriptions: 2,
        connected_ms: 5,
        disconnected_ms: 0,
        address: Some(IpAddr::from([192, 0, 2, 1])),
        clean_start: true,
        queued: 3,
        dropped: 4,
    }
}

fn shared() -> BrokerSubscription {
    BrokerSubscription {
        filter: "$share/g/a/+".into(),
        qos: 1,
        no_local: false,
        retain_as_published: true,
        retain_handling: 2,
        id: Some(9),
    }
}

fn message() -> BrokerRetainedMessage {
    BrokerRetainedMessage {
        topic: "a".into(),
        payload: Box::new(*b"1\xff"),
        qos: 2,
        created_ms: 6,
        user_properties: vec![("k1".into(), "v1".into())],
    }
}

impl FakeBroker {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    fn check(client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()> {
        let known = [("c", Some(SESSION)), ("away", Some(AWAY))];
        match known.contains(&(client_id, session_id)) {
            true => Ok(()),
            false => Err(BrokerAdminError::NoSession),
        }
    }
}

#[async_trait]
impl BrokerAdmin for FakeBroker {
    async fn sessions(
        &self,
        filter: BrokerSessionFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerSessionInfo>> {
        if link.sort_property.as_deref() == Some("colour") {
            return Err(BrokerAdminError::Invalid("no such property".to_owned()));
        }
        *self.session_filter.lock().unwrap() = filter;
        Ok(PageData::new(vec![info()], 1, &link))
    }

    fn session(&self, client_id: &str) -> Option<BrokerSessionDetails> {
        (client_id == "c").then(|| BrokerSessionDetails {
            info: info(),
            expiry_s: 60,
            ends_ms: None,
            keep_alive_s: 30,
            username: Some("me".into()),
            mqtt_version: Some("5.0"),
            subscriptions: vec![shared()],
        })
    }

    fn session_counts(&self) -> BrokerSessionCounts {
        BrokerSessionCounts {
            connected: 1,
            disconnected: 2,
        }
    }

    fn disconnect(&self, client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()> {
        Self::check(client_id, session_id)?;
        self.note(format!("disconnect {client_id}"));
        Ok(())
    }

    async fn remove_session(&self, client_id: &str, session_id: Option<Uuid>) -> BrokerAdminResult<()> {
        Self::check(client_id, session_id)?;
        if client_id == "c" {
            return Err(BrokerAdminError::Connected);
        }
        self.note(format!("remove {client_id}"));
        Ok(())
    }

    async fn subscriptions(
        &self,
        filter: BrokerSubscriptionFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerClientSubscription>> {
        *self.subscription_filter.lock().unwrap() = filter;
        let row = BrokerClientSubscription {
            client_id: "c".into(),
            subscription: shared(),
        };
        Ok(PageData::new(vec![row], 1, &link))
    }

    fn subscriptions_of(&self, client_id: &str) -> Vec<BrokerSubscription> {
        if client_id == "c" {
            vec![shared()]
        } else {
            Vec::new()
        }
    }

    async fn replace_subscriptions(
        &self,
        client_id: &str,
        subscriptions: Vec<BrokerSubscription>,
    ) -> BrokerAdminResult<()> {
        Self::check(client_id, Some(SESSION))?;
        *self.replaced.lock().unwrap() = subscriptions;
        Ok(())
    }

    async fn share_groups(
        &self,
        share_name: Option<String>,
        client_id: Option<String>,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerShareGroup>> {
        self.note(format!("share groups {share_name:?} {client_id:?}"));
        let group = BrokerShareGroup {
            share_name: "g".into(),
            filter: "a/+".into(),
            client_type: BrokerClientType::Device,
            members: vec![("c".into(), true)],
        };
        Ok(PageData::new(vec![group], 1, &link))
    }

    async fn retained(
        &self,
        filter: BrokerRetainedFilter,
        link: PageLink,
    ) -> BrokerAdminResult<PageData<BrokerRetainedMessage>> {
        *self.retained_filter.lock().unwrap() = filter;
        Ok(PageData::new(vec![message()], 1, &link))
    }

    fn retained_message(&self, topic: &str) -> Option<BrokerRetainedMessage> {
        (topic == "a").then(message)
    }

    async fn delete_retained(&self, topic: &str) -> BrokerAdminResult<bool> {
        self.note(format!("delete {topic}"));
        Ok(topic == "a")
    }

    fn client_traffic(&self, client_id: &str) -> Option<BrokerClientTraffic> {
        (client_id == "c").then_some(BrokerClientTraffic {
            received: [1, 2, 3],
            sent: [4, 5, 6],
            dropped: 7,
            queued: 8,
        })
    }

    fn statistics(&self) -> BrokerStatistics {
        BrokerStatistics {
            at_ms: 60_000,
            incoming: 1,
            outgoing: 2,
            dropped: 3,
            inbound_bytes: 10,
            outbound_bytes: 20,
            sessions: 4,
            subscriptions: 5,
            retained: 6,
        }
    }
}

pub(crate) async fn world() -> (RestFixture, Arc<FakeBroker>) {
    let world = RestFixture::demo().await;
    let broker = Arc::new(FakeBroker::default());
    assert!(world.broker_admin.set(broker.clone()).is_ok());
    (world, broker)
}

const PAGE: &str = "pageSize=10&page=0";

#[tokio::test]
async fn while_the_broker_is_off_everybody_is_told_so() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    for (method, path) in [
        ("GET", "/api/client-session?pageSize=1&page=0"),
        ("GET", "/api/client-session/info"),
        ("DELETE", "/api/subscription/topic-trie/clear"),
        ("GET", "/api/timeseries/latest?entityId=total"),
        ("GET", "/api/timeseries/total/values"),
        ("DELETE", "/api/timeseries/total/delete"),
    ] {
        let (status, code, message) = sysadmin.refused(method, path, &Value::Null).await;
        assert_eq!((status, code), (404, 32), "{method} {path}");
        assert!(message.starts_with("The MQTT broker is off"), "{message}");
    }
}

#[tokio::test]
async fn sessions_are_shown_in_the_shape_of_tbmq() {
    let (world, broker) = world().await;
    let sysadmin = world.sysadmin().await;
    let page = sysadmin.get(&format!("/api/client-session?{PAGE}")).await;
    let row = json!({
        "id": "c", "clientId": "c", "connectionState": "CONNECTED", "clientType": "APPLICATION", "nodeId": "fieldline",
        "sessionId": SESSION, "subscriptionsCount": 2, "connectedAt": 5, "disconnectedAt": 0,
        "clientIpAdr": "192.0.2.1", "cleanStart": true,
    });
    let expected = json!({ "data": [row], "totalPages": 1, "totalElements": 1, "hasNext": false });
    assert_eq!(page, expected);

    let one = sysadmin.get("/api/client-session?clientId=c").await;
    let options = json!({ "noLocal": false, "retainAsPublish": true, "retainHandling": 2 });
    let subscription = json!({
        "topicFilter": "$share/g/a/+", "qos": "AT_LEAST_ONCE", "options": options, "subscriptionId": 9,
    });
    let expected = json!({
        "id": "c", "clientId": "c", "sessionId": SESSION, "connectionState": "CONNECTED", "clientType": "APPLICATION",
        "nodeId": "fieldline", "cleanStart": true, "sessionExpiryInterval": 60, "sessionEndTs": -1,
        "subscriptions": [subscription], "keepAliveSeconds": 30, "connectedAt": 5, "disconnectedAt": 0,
        "clientIpAdr": "192.0.2.1",
    });
    assert_eq!(one, expected);
    let refused = sysadmin
        .refused("GET", "/api/client-session?clientId=d", &Value::Null)
        .await;
    assert_eq!(refused, no(404, 32, "Requested item wasn't found!"));
    let refused = sysadmin
        .refused("GET", "/api/client-session?clientId=", &Value::Null)
        .await;
    assert_eq!(refused, no(400, 31, "Parameter 'clientId' can't be empty!"));

    let counts = sysadmin.get("/api/client-session/info").await;
    assert_eq!(
        counts,
        json!({ "connectedCount": 1, "disconnectedCount": 2, "totalCount": 3 })
    );
    let details = sysadmin.get("/api/client-session/details?clientId=c").await;
    assert_eq!(
        (&details["mqttVersion"], &details["username"]),
        (&json!("5.0"), &json!("me"))
    );
    let unknown = sysadmin.get("/api/client-session/details?clientId=d").await;
    assert_eq!(unknown["mqttVersion"], "unknown");
    let queues = sysadmin.get(&format!("/api/client-session/queues?{PAGE}")).await;
    let queue = &queues["data"][0];
    assert_eq!(
        (&queue["queuedMsgs"], &queue["droppedMsgs"]),
        (&json!(3), &json!(4))
    );
    let by_colour = format!("/api/client-session?{PAGE}&sortProperty=colour");
    let refused = sysadmin.refused("GET", &by_colour, &Value::Null).await;
    assert_eq!(refused, no(400, 31, "no such property"));
    assert!(broker.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn sessions_are_filtered_as_asked() {
    let (world, broker) = world().await;
    let sysadmin = world.sysadmin().await;
    let path = format!("/api/v2/client-session?{PAGE}");
    let query = "&connectedStatusList=CONNECTED&clientTypeList=DEVICE&cleanStartList=false&subscriptions=2\
        &subscriptionOperation=GREATER&clientIpAddress=192&startTime=1&endTime=2&nodeIdList=other,fieldline";
    assert_eq!(sysadmin.get(&format!("{path}{query}")).await["totalElements"], 1);
    let filter = BrokerSessionFilter {
        is_connected: Some(true),
        client_type: Some(BrokerClientType::Device),
        clean_start: Some(false),
        subscriptions: Some((BrokerCountOrder::Greater, 2)),
        address: Some("192".to_owned()),
        between_ms: Some((1, 2)),
    };
    assert_eq!(*broker.session_filter.lock().unwrap(), filter);
    // Both are all, and half a period is none.
    let query = "&connectedStatusList=CONNECTED&connectedStatusList=DISCONNECTED&startTime=1";
    sysadmin.get(&format!("{path}{query}")).await;
    assert_eq!(
        *broker.session_filter.lock().unwrap(),
        BrokerSessionFilter::default()
    );
    for query in ["&nodeIdList=other", "&clientTypeList=INTEGRATION"] {
        assert_eq!(sysadmin.get(&format!("{path}{query}")).await["totalElements"], 0);
    }
    for query in [
        "&clientTypeList=ROBOT",
        "&subscriptionOperation=MORE",
        "&subscriptions=x",
    ] {
        let refused = sysadmin
            .refused("GET", &format!("{path}{query}"), &Value::Null)
            .await;
        assert_eq!((refused.0, refused.1), (400, 31), "{query}");
    }
}

#[tokio::test]
async fn sessions_are_disconnected_and_removed() {
    let (world, broker) = world().await;
    let sysadmin = world.sysadmin().await;
    sysadmin
        .delete(&format!(
            "/api/client-session/disconnect?clientId=c&sessionId={SESSION}"
        ))
        .await;
    sysadmin
        .delete(&format!(
            "/api/client-session/remove?clientId=away&sessionId={AWAY}"
        ))
        .await;
    assert_eq!(*broker.asked.lock().unwrap(), ["disconnect c", "remove away"]);
    for (path, expected) in [
        (
            format!("remove?clientId=c&sessionId={SESSION}"),
            no(409, 2, "Client is currently connected"),
        ),
        (
            format!("disconnect?clientId=c&sessionId={AWAY}"),
            no(404, 32, "No such client session"),
        ),
        (
            "disconnect?clientId=c&sessionId=x".to_owned(),
            no(400, 31, "Invalid UUID string: x"),
        ),
        (
            "remove?clientId=c".to_owned(),
            no(400, 31, "Parameter 'sessionId' can't be empty!"),
        ),
    ] {
        let path = format!("/api/client-session/{path}");
        assert_eq!(sysadmin.refused("DELETE", &path, &Value::Null).await, expected);
    }
}

#[tokio::test]
async fn subscriptions_are_shown_and_replaced() {
    let (world, broker) = world().await;
    let sysadmin = world.sysadmin().await;
    let own = sysadmin.get("/api/subscription?clientId=c").await;
    let options =
        json!({ "noLocal": false, "retainAsPublish": true, "retainHandling": "DONT_SEND_AT_SUBSCRIBE" });
    let expected = json!([
        { "topicFilter": "a/+", "qos": 1, "shareName": "g", "options": options, "subscriptionId": 9 },
    ]);
    assert_eq!(own, expected);
    assert_eq!(sysadmin.get("/api/subscription?clientId=d").await, json!([]));
    let groups = sysadmin
        .get(&format!(
            "/api/subscription?{PAGE}&shareNameSearch=g&clientIdSearch="
        ))
        .await;
    let member = json!({ "clientId": "c", "clientType": "DEVICE", "connected": true });
    let group = json!({ "shareName": "g", "topicFilter": "a/+", "clients": [member] });
    assert_eq!(groups["data"], json!([group]));
    assert_eq!(*broker.asked.lock().unwrap(), ["share groups Some(\"g\") None"]);

    let query = "&clientId=c&topicFilter=a&topic=a/b&qosList=0,2&noLocalList=true&retainAsPublishList=false\
        &retainHandlingList=1&subscriptionId=9";
    let all = sysadmin
        .get(&format!("/api/subscription/all?{PAGE}{query}"))
        .await;
    assert_eq!(all["data"][0]["subscription"]["qos"], "AT_LEAST_ONCE");
    let filter = BrokerSubscriptionFilter {
        client_id: Some("c".to_owned()),
        filter: Some("a".to_owned()),
        topic: Some("a/b".to_owned()),
        qos: vec![0, 2],
        no_local: Some(true),
        retain_as_published: Some(false),
        retain_handling: vec![1],
        id: Some(9),
    };
    assert_eq!(*broker.subscription_filter.lock().unwrap(), filter);
    let wrong = format!("/api/subscription/all?{PAGE}&qosList=3");
    assert_eq!(sysadmin.refused("GET", &wrong, &Value::Null).await.0, 400);

    let wanted =
        json!({ "topicFilter": "b", "qos": "EXACTLY_ONCE", "options": null, "subscriptionId": null });
    let body = json!({ "clientId": "c", "subscriptions": [wanted] });
    assert_eq!(sysadmin.post("/api/subscription", &body).await, body);
    let replaced = BrokerSubscription {
        filter: "b".into(),
        qos: 2,
        no_local: false,
        retain_as_published: false,
        retain_handling: 0,
        id: None,
    };
    assert_eq!(*broker.replaced.lock().unwrap(), [replaced]);
    for (body, expected) in [
        (
            json!({ "clientId": "d", "subscriptions": [] }),
            no(404, 32, "No such client session"),
        ),
        (
            json!({ "clientId": "c" }),
            no(400, 31, "Validation error: subscriptions must not be null"),
        ),
    ] {
        assert_eq!(
            sysadmin.refused("POST", "/api/subscription", &body).await,
            expected
        );
    }
    sysadmin.delete("/api/subscription/topic-trie/clear").await;
}

#[tokio::test]
async fn retained_messages_are_shown_and_deleted() {
    let (world, broker) = world().await;
    let sysadmin = world.sysadmin().await;
    let expected = json!({
        "topic": "a", "payload": "1\u{fffd}", "qos": 2, "createdTime": 6,
        "userProperties": { "props": [{ "k": "k1", "v": "v1" }] },
    });
    assert_eq!(sysadmin.get("/api/retained-msg?topicName=a").await, expected);
    let page = sysadmin.get(&format!("/api/retained-msg?{PAGE}")).await;
    assert_eq!(page["data"], json!([expected]));
    let query = "&topicName=a&qosList=1&qosList=2&payload=x&startTime=3&endTime=4";
    sysadmin.get(&format!("/api/retained-msg/v2?{PAGE}{query}")).await;
    let filter = BrokerRetainedFilter {
        topic: Some("a".to_owned()),
        payload: Some("x".to_owned()),
        qos: vec![1, 2],
        between_ms: Some((3, 4)),
    };
    assert_eq!(*broker.retained_filter.lock().unwrap(), filter);
    sysadmin.delete("/api/retained-msg?topicName=a").await;
    for method in ["GET", "DELETE"] {
        let refused = sysadmin
            .refused(method, "/api/retained-msg?topicName=b", &Value::Null)
            .await;
        assert_eq!(refused, no(404, 32, "Requested item wasn't found!"));
    }
    assert_eq!(*broker.asked.lock().unwrap(), ["delete a", "delete b"]);
    sysadmin.delete("/api/retained-msg/topic-trie/clear").await;
}

#[tokio::test]
async fn statistics_are_those_of_the_broker_or_of_a_client() {
    let (world, _broker) = world().await;
    let sysadmin = world.sysadmin().await;
    let total = sysadmin.get("/api/timeseries/latest?entityId=total").await;
    assert_eq!(total["incomingMsgs"], json!([{ "ts": 60_000, "value": 1 }]));
    assert_eq!(total["processedBytes"][0]["value"], 30);
    assert_eq!(total.as_object().unwrap().len(), 9);
    let node =
        "/api/timeseries/latest?entityId=fieldline&keys=sessions,retainedMsgs&useStrictDataTypes=false";
    let node = sysadmin.get(node).await;
    let texts = json!({
        "retainedMsgs": [{ "ts": 60_000, "value": "6" }], "sessions": [{ "ts": 60_000, "value": "4" }],
    });
    assert_eq!(node, texts);
    let client = sysadmin.get("/api/timeseries/latest?entityId=c").await;
    for (key, value) in [
        ("receivedPubMsgs", 6),
        ("qos2ReceivedPubMsgs", 3),
        ("sentPubMsgs", 15),
        ("qos0SentPubMsgs", 4),
        ("droppedMsgs", 7),
        ("queuedMsgs", 8),
    ] {
        assert_eq!(client[key][0]["value"], value, "{key}");
    }
    assert_eq!(sysadmin.get("/api/timeseries/latest?entityId=d").await, json!({}));
}

/// Stores three minutes before now, with 1, 2 and 3 messages, and 7 sessions in each.
async fn store_minutes(world: &RestFixture) {
    for (count, before_ms) in [(1, 180_000), (2, 120_000), (3, 60_000)] {
        let mut values = Vec::new();
        pack("incomingMsgs", KvValueRef::Long(count), &mut values);
        pack("sessions", KvValueRef::Long(7), &mut values);
        let row = TelemetryRow {
            subject: broker_statistics::subject(),
            ts: NOW - before_ms,
            ttl_seconds: 3_600,
            strategy: TelemetrySaveStrategy::ALL,
            values: &values,
        };
        world.context.series.save(&[row]).await.unwrap();
    }
}

#[tokio::test]
async fn the_history_is_read_and_deleted_like_other_series() {
    let (world, _broker) = world().await;
    let sysadmin = world.sysadmin().await;
    store_minutes(&world).await;
    let point = |before_ms: i64, value: Value| json!({ "ts": NOW - before_ms, "value": value });
    let span = format!("startTs={}&endTs={NOW}", NOW - 180_000);
    let path = |entity: &str, query: &str| format!("/api/timeseries/{entity}/values?{span}&{query}");

    let newest = sysadmin.get(&path("total", "keys=incomingMsgs&limit=2")).await;
    let expected = [point(60_000, json!(3)), point(120_000, json!(2))];
    assert_eq!(newest, json!({ "incomingMsgs": expected }));
    let query = "keys=sessions,unknown&orderBy=ASC&useStrictDataTypes=false";
    let texts = [180_000, 120_000, 60_000].map(|before_ms| point(before_ms, json!("7")));
    assert_eq!(
        sysadmin.get(&path("fieldline", query)).await,
        json!({ "sessions": texts })
    );
    for (aggregation, value) in [("MIN", 1), ("MAX", 3), ("AVG", 2), ("SUM", 6), ("COUNT", 3)] {
        let query = format!("keys=incomingMsgs&agg={aggregation}&interval=180000");
        let found = sysadmin.get(&path("total", &query)).await;
        assert_eq!(
            found["incomingMsgs"][0]["value"].as_f64(),
            Some(f64::from(value)),
            "{found}"
        );
    }
    assert_eq!(sysadmin.get(&path("c", "keys=incomingMsgs")).await, json!({}));

    let delete =
        |entity: &str, query: &str| format!("/api/timeseries/{entity}/delete?keys=incomingMsgs&{query}");
    let all = "deleteAllDataForKeys=true";
    sysadmin.delete(&delete("c", all)).await;
    let old = format!("startTs=0&endTs={}", NOW - 60_000);
    sysadmin.delete(&delete("fieldline", &old)).await;
    let left = sysadmin.get(&path("total", "keys=incomingMsgs")).await;
    assert_eq!(left, json!({ "incomingMsgs": [point(60_000, json!(3))] }));
    sysadmin.delete(&delete("total", all)).await;
    let left = sysadmin.get(&path("total", "keys=incomingMsgs,sessions")).await;
    assert_eq!(left.as_object().unwrap().keys().collect::<Vec<_>>(), ["sessions"]);
}

#[tokio::test]
async fn a_question_about_the_history_that_makes_no_sense_is_refused() {
    let (world, _broker) = world().await;
    let sysadmin = world.sysadmin().await;
    for (method, path, named) in [
        ("GET", "values?startTs=1&endTs=2", "keys"),
        ("GET", "values?keys=a&endTs=2", "startTs"),
        ("GET", "values?keys=a&startTs=1&endTs=x", "endTs"),
        ("GET", "values?keys=a&startTs=1&endTs=2&agg=MEDIAN", "agg"),
        ("GET", "values?keys=a&startTs=1&endTs=2&limit=0", "limit"),
        ("GET", "values?keys=a&startTs=1&endTs=2&orderBy=UP", "orderBy"),
        (
            "GET",
            "values?keys=a&startTs=0&endTs=9999&agg=SUM&interval=1",
            "many",
        ),
        ("DELETE", "delete?deleteAllDataForKeys=true", "keys"),
        ("DELETE", "delete?keys=a&startTs=1", "endTs"),
    ] {
        let path = format!("/api/timeseries/total/{path}");
        let (status, code, message) = sysadmin.refused(method, &path, &Value::Null).await;
        assert_eq!((status, code), (400, 31), "{path}");
        assert!(message.contains(named), "{path}: {message}");
    }
}
