//! The node and the queues of the broker in the shapes of TBMQ.

use async_trait::async_trait;
use fieldline_core::ports::{
    BrokerAdminError, BrokerAdminResult, BrokerConsumerGroup, BrokerListenerPorts, BrokerNode,
    BrokerQueueAdmin, BrokerQueueTopic,
};
use fieldline_model::page::{PageData, PageLink};
use serde_json::{Value, json};

use crate::broker::{FakeBroker, world};
use crate::fixture::{RestFixture, no};

const PAGE: &str = "pageSize=10&page=0";

fn group(name: &str, members: u32) -> BrokerConsumerGroup {
    BrokerConsumerGroup {
        name: name.to_owned(),
        members,
        lag: 7,
    }
}

#[async_trait]
impl BrokerQueueAdmin for FakeBroker {
    fn node(&self) -> BrokerNode {
        BrokerNode {
            ports: BrokerListenerPorts {
                tcp: Some(1_884),
                websocket_tls: Some(8_085),
                ..BrokerListenerPorts::default()
            },
            max_packet: 65_536,
            asks_providers: true,
        }
    }

    fn check_filter(&self, filter: &str) -> BrokerAdminResult<()> {
        match filter.contains("#/") {
            true => Err(BrokerAdminError::Invalid("no filter".to_owned())),
            false => Ok(()),
        }
    }

    async fn disk_bytes(&self) -> BrokerAdminResult<u64> {
        Ok(4_096)
    }

    async fn queue_topics(&self, link: PageLink) -> BrokerAdminResult<PageData<BrokerQueueTopic>> {
        let topic = BrokerQueueTopic {
            name: "tbmq.msg.app.c".to_owned(),
            bytes: 9,
        };
        Ok(PageData::new(vec![topic], 1, &link))
    }

    async fn consumer_groups(&self, link: PageLink) -> BrokerAdminResult<PageData<BrokerConsumerGroup>> {
        let groups = vec![group("here", 1), group("away", 0)];
        Ok(PageData::new(groups, 2, &link))
    }

    async fn consumer_group(&self, name: &str) -> BrokerAdminResult<Option<BrokerConsumerGroup>> {
        Ok(match name {
            "here" => Some(group(name, 1)),
            "away" => Some(group(name, 0)),
            _ => None,
        })
    }
}

fn page_of(rows: &Value) -> Value {
    let count = rows.as_array().map_or(0, Vec::len);
    json!({ "data": rows, "totalPages": 1, "totalElements": count, "hasNext": false })
}

#[tokio::test]
async fn queues_are_shown_in_the_shape_of_kafka() {
    let (world, _) = world().await;
    let sysadmin = world.sysadmin().await;
    let topics = json!([{ "name": "tbmq.msg.app.c", "partitions": 1, "replicationFactor": 1, "size": 9 }]);
    let groups = json!([
        { "state": "STABLE", "groupId": "here", "members": 1, "lag": 7 },
        { "state": "EMPTY", "groupId": "away", "members": 0, "lag": 7 },
    ]);
    let places = json!([{ "brokerId": 0, "address": "localhost", "brokerSize": 4_096 }]);
    for (path, rows) in [
        ("/api/app/kafka-topics", &topics),
        ("/api/app/consumer-groups", &groups),
        ("/api/app/cluster-info", &places),
    ] {
        for version in ["", "/v2"] {
            let found = sysadmin.get(&format!("{path}{version}?{PAGE}")).await;
            assert_eq!(found, page_of(rows), "{path}{version}");
        }
    }
    assert_eq!(
        sysadmin.get("/api/app/cluster-info").await["data"],
        places,
        "it needs no page"
    );
    let refused = sysadmin
        .refused("GET", "/api/app/kafka-topics", &Value::Null)
        .await;
    assert_eq!(refused.0, 400);
}

#[tokio::test]
async fn groups_end_with_their_sessions() {
    let (world, _) = world().await;
    let sysadmin = world.sysadmin().await;
    let away = "The group has its place in the queue of its client: remove the client's session instead";
    for (query, expected) in [
        ("?groupId=here", no(400, 31, "The group is not empty")),
        ("?groupId=away", no(400, 31, away)),
        ("?groupId=other", no(404, 32, "Requested item wasn't found!")),
        ("", no(400, 31, "Parameter 'groupId' can't be empty!")),
    ] {
        let path = format!("/api/app/consumer-group{query}");
        assert_eq!(sysadmin.refused("DELETE", &path, &Value::Null).await, expected);
    }
}

#[tokio::test]
async fn the_node_says_how_it_is_set_up() {
    let (world, _) = world().await;
    let sysadmin = world.sysadmin().await;
    assert_eq!(sysadmin.get("/api/app/brokers").await, json!(["fieldline"]));
    let expected = json!({
        "basicAuthEnabled": true, "x509AuthEnabled": false, "scramAuthEnabled": false, "jwtAuthEnabled": false,
        "httpAuthEnabled": false, "tcpPort": 1_884, "tlsPort": 0, "wsPort": 0, "wssPort": 8_085,
        "tcpListenerEnabled": true, "tlsListenerEnabled": false, "wsListenerEnabled": false,
        "wssListenerEnabled": true, "tcpMaxPayloadSize": 65_536, "tlsMaxPayloadSize": 65_536,
        "wsMaxPayloadSize": 65_536, "wssMaxPayloadSize": 65_536, "existsBasicCredentials": false,
        "existsX509Credentials": false, "existsScramCredentials": false, "allowKafkaTopicDeletion": false,
        "statsCollectionInterval": 1,
    });
    assert_eq!(sysadmin.get("/api/app/config").await, expected);
    // This fixture knows nothing of the machine.
    let service = json!([{
        "serviceId": "fieldline", "serviceType": "TBMQ", "lastUpdateTime": 0, "cpuUsage": null, "cpuCount": null,
        "memoryUsage": null, "totalMemory": null, "diskUsage": null, "totalDiskSpace": null, "status": "OUTDATED",
        "dataPresent": false,
    }]);
    assert_eq!(sysadmin.get("/api/app/service/info").await, page_of(&service));

    for (name, port) in [("MQTT", 1_884), ("wss", 8_085)] {
        let path = format!("/api/app/listener/port?listenerName={name}");
        assert_eq!(sysadmin.get(&path).await, json!(port));
    }
    for (query, expected) in [
        ("", no(400, 31, "Parameter 'listenerName' can't be empty!")),
        (
            "?listenerName=coap",
            no(
                400,
                31,
                "Parameter 'listenerName' must be MQTT, MQTTS, WS or WSS!",
            ),
        ),
        (
            "?listenerName=WS",
            no(404, 32, "The MQTT broker has no listener 'WS'"),
        ),
    ] {
        let path = format!("/api/app/listener/port{query}");
        assert_eq!(sysadmin.refused("GET", &path, &Value::Null).await, expected);
    }
}

#[tokio::test]
async fn without_a_broker_there_is_no_node() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    for (method, path) in [
        ("GET", "config"),
        ("GET", "brokers"),
        ("GET", "service/info"),
        ("GET", "listener/port?listenerName=MQTT"),
        ("GET", "cluster-info"),
        ("GET", "kafka-topics?pageSize=1&page=0"),
        ("GET", "consumer-groups/v2?pageSize=1&page=0"),
        ("DELETE", "consumer-group?groupId=a"),
        ("GET", "shared/subs?pageSize=1&page=0"),
        ("GET", "shared/subs/01998f2a-0000-7000-8000-000000000001"),
        ("DELETE", "shared/subs/01998f2a-0000-7000-8000-000000000001"),
    ] {
        let path = format!("/api/app/{path}");
        let (status, code, message) = sysadmin.refused(method, &path, &Value::Null).await;
        assert_eq!((status, code), (404, 32), "{method} {path}");
        assert!(message.starts_with("The MQTT broker is off"), "{message}");
    }
}

#[tokio::test]
async fn shared_subscriptions_are_announced_once() {
    const PATH: &str = "/api/app/shared/subs";
    let (world, _) = world().await;
    let sysadmin = world.sysadmin().await;
    let body = json!({ "name": "one", "topicFilter": "a/+", "partitions": 3 });
    let made = sysadmin.post(PATH, &body).await;
    let id = made["id"].as_str().unwrap();
    let expected = json!({
        "id": id, "createdTime": made["createdTime"], "name": "one", "topicFilter": "a/+", "partitions": 3,
    });
    assert_eq!(made, expected);
    assert!(made["createdTime"].as_i64().unwrap() > 0);
    let own = format!("{PATH}/{id}");
    assert_eq!(sysadmin.get(&own).await, made);
    assert_eq!(sysadmin.get(&format!("{PATH}?topic=a/%2B")).await, made);
    let page = sysadmin.get(&format!("{PATH}?{PAGE}&textSearch=ON")).await;
    assert_eq!(page, page_of(&json!([made])));

    let renamed = json!({ "id": id, "name": "two", "topicFilter": "a/+", "partitions": 3, "createdTime": 1 });
    let saved = sysadmin.post(PATH, &renamed).await;
    assert_eq!(
        (&saved["name"], &saved["createdTime"]),
        (&json!("two"), &made["createdTime"])
    );
    assert_eq!(sysadmin.get(&own).await, saved);

    let without = |field: &str| {
        let mut body = json!({ "name": "other", "topicFilter": "b", "partitions": 1 });
        body[field] = Value::Null;
        body
    };
    let with = |field: &str, value: Value| {
        let mut body = saved.clone();
        body[field] = value;
        body
    };
    for (body, message) in [
        (without("name"), "A shared subscription needs a name!"),
        (
            without("topicFilter"),
            "A shared subscription needs a topicFilter!",
        ),
        (
            without("partitions"),
            "A shared subscription needs partitions, 1 or more!",
        ),
        (
            json!({ "name": "other", "topicFilter": "a/#/b", "partitions": 1 }),
            "no filter",
        ),
        (
            with("topicFilter", json!("a/#/b")),
            "The topicFilter of a shared subscription cannot be changed!",
        ),
        (
            with("id", Value::Null),
            "There is a shared subscription of this topicFilter already!",
        ),
        (
            with("topicFilter", json!("b")),
            "The topicFilter of a shared subscription cannot be changed!",
        ),
        (
            with("partitions", json!(4)),
            "The partitions of a shared subscription cannot be changed!",
        ),
        (
            with("id", json!("01998f2a-0000-7000-8000-000000000001")),
            "There is no such shared subscription to change!",
        ),
    ] {
        assert_eq!(
            sysadmin.refused("POST", PATH, &body).await,
            no(400, 31, message),
            "{body}"
        );
    }
    sysadmin.delete(&own).await;
    let by_filter = format!("{PATH}?topic=a/%2B");
    for (method, path) in [("GET", &own), ("DELETE", &own), ("GET", &by_filter)] {
        let refused = sysadmin.refused(method, path, &Value::Null).await;
        assert_eq!(refused, no(404, 32, "Requested item wasn't found!"));
    }
}
