//! Replays over real stores, which are the same before and after.

pub(crate) mod world;

use std::io::ErrorKind;
use std::net::TcpListener;

use fieldline_core::ports::{AlarmDraft, AlarmPropagation, AlarmQuery, SavedBy};
use fieldline_entities::ports::RuleReplay as _;
use fieldline_entities::services::{ServiceErrorKind, ServiceResult};
use fieldline_model::entity::{AlarmSeverity, RuleChain, RuleChainMetaData};
use fieldline_model::page::PageLink;
use fieldline_model::replay::{ReplayNode, ReplayReport, ReplayRequest};
use fieldline_model::timeseries::{AttributeScope, PointOrder, RangeQuery};
use fieldline_model::{EntityId, RuleChainId};
use fieldline_rules::node_types::PREFIX;
use serde_json::{Value, json};

use self::world::{NOW, World, configuration};
use super::ChainReplayer;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// Begin of the replayed time.
const START: i64 = NOW - 7 * DAY;

/// Nodes in a row of connections, as a person would draw them: class, configuration; from, to, label.
fn drawn(nodes: &[(&str, Value)], connections: &[(u32, u32, &str)]) -> Value {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|(class, patch)| {
            let node = json!({"type": format!("{PREFIX}{class}"), "name": class,
                "configuration": configuration(class, patch.clone())});
            node
        })
        .collect();
    let connections: Vec<Value> = connections
        .iter()
        .map(|(from, to, label)| json!({"fromIndex": from, "toIndex": to, "type": label}))
        .collect();
    json!({"firstNodeIndex": 0, "nodes": nodes, "connections": connections})
}

struct Site {
    world: World,
    replayer: ChainReplayer,
    chain: RuleChainId,
    device: EntityId,
}

impl Site {
    /// A device, and a root chain that saves everything.
    async fn new() -> Self {
        let world = World::new().await;
        let device = world.device("boiler", json!({})).await;
        let chain = RuleChain {
            id: RuleChainId::new(),
            tenant_id: world.tenant,
            name: "Root".into(),
            root: true,
            ..RuleChain::default()
        };
        let stores = &world.services.stores.rule_chains;
        let chain = stores.insert(chain).await.unwrap().id;
        let saved = drawn(&[("telemetry.TbMsgTimeseriesNode", json!({}))], &[]);
        let mut metadata: RuleChainMetaData = serde_json::from_value(saved).unwrap();
        metadata.rule_chain_id = Some(chain);
        for node in &mut metadata.nodes {
            node.id = fieldline_model::RuleNodeId::new();
        }
        stores
            .save_metadata(world.tenant, metadata, &SavedBy::default())
            .await
            .unwrap();
        Self {
            replayer: ChainReplayer::new(world.common.clone()),
            world,
            chain,
            device,
        }
    }

    /// Everything that a replay could have changed.
    async fn everything(&self) -> String {
        let World { services, tenant, .. } = &self.world;
        let subject = self.world.subject(self.device);
        let mut all = String::new();
        for key in services.series.keys(subject).await.unwrap() {
            let query = RangeQuery {
                start: 0,
                end: i64::MAX,
                limit: 100_000,
                order: PointOrder::Ascending,
            };
            let points = services.series.range(subject, &key, query).await.unwrap();
            all.push_str(&format!("{key} {points:?}\n"));
        }
        all.push_str(&format!(
            "{:?}\n",
            services.series.latest(subject, None).await.unwrap()
        ));
        for scope in [
            AttributeScope::Client,
            AttributeScope::Shared,
            AttributeScope::Server,
        ] {
            all.push_str(&format!(
                "{:?}\n",
                services.attributes.get(subject, scope, None).await.unwrap()
            ));
        }
        let stores = &services.stores;
        let page = PageLink::first(1000);
        let alarms = stores
            .alarms
            .list(*tenant, &AlarmQuery::default(), &page)
            .await
            .unwrap();
        let ends = fieldline_core::ports::RelationEnds::from(self.device);
        all.push_str(&format!(
            "{alarms:?}\n{:?}\n{:?}\n{:?}",
            stores.relations.find(*tenant, &ends).await.unwrap(),
            stores.rule_chains.metadata(*tenant, self.chain).await.unwrap(),
            stores.devices.count(*tenant).await.unwrap(),
        ));
        all
    }

    async fn ask(&self, request: Value) -> ServiceResult<ReplayReport> {
        let request: ReplayRequest = serde_json::from_value(request).unwrap();
        self.replayer.replay(self.world.tenant, self.chain, request).await
    }

    /// Replays the first hour of the device, and looks that nothing has changed.
    async fn replay(&self, patch: Value) -> ReplayReport {
        let mut request =
            json!({"startTs": START, "endTs": START + 60 * MINUTE, "deviceIds": [self.device.id]});
        for (name, value) in patch.as_object().unwrap() {
            request[name] = value.clone();
        }
        let before = self.everything().await;
        let report = self.ask(request).await.unwrap();
        assert_eq!(self.everything().await, before, "a replay has changed something");
        assert!(
            self.world.queue.take().is_empty(),
            "a replay has queued something"
        );
        report
    }

    async fn minutes(&self, count: i64, values: impl Fn(i64) -> Value) {
        for minute in 0..count {
            self.world
                .telemetry(self.device, START + minute * MINUTE, values(minute))
                .await;
        }
        // After the replayed time: nobody in it knows of that.
        self.world
            .telemetry(self.device, NOW, json!({"temperature": 99}))
            .await;
    }
}

fn node<'a>(report: &'a ReplayReport, class: &str) -> &'a ReplayNode {
    let found = report.nodes.iter().find(|node| node.name == class);
    found.unwrap_or_else(|| panic!("no {class} in {:?}", report.nodes))
}

#[tokio::test]
async fn a_draft_that_filters_stores_less() {
    let site = Site::new().await;
    site.minutes(10, |minute| json!({"temperature": 15 + minute}))
        .await;
    let saved = site.replay(json!({})).await;
    assert_eq!((saved.summary.messages, saved.summary.draft), (10, false));
    assert_eq!(
        (saved.difference.points.same, saved.difference.points.only_stored),
        (10, 0)
    );

    let filter = json!({"scriptLang": "JS", "jsScript": "return msg.temperature > 20;"});
    let draft = drawn(
        &[
            ("filter.TbJsFilterNode", filter),
            ("telemetry.TbMsgTimeseriesNode", json!({})),
        ],
        &[(0, 1, "True")],
    );
    let report = site.replay(json!({"metadata": draft})).await;
    let points = &report.difference.points;
    assert_eq!(
        (
            points.same,
            points.only_stored,
            points.only_replayed,
            points.different
        ),
        (4, 6, 0, 0)
    );
    assert_eq!(report.stored.keys["temperature"], 4);
    assert_eq!(points.sample[0].stored, Some(json!(15)));
    let filter = node(&report, "filter.TbJsFilterNode");
    assert_eq!(
        (filter.input, filter.output["True"], filter.output["False"]),
        (10, 4, 6)
    );
    assert!(filter.total_us > 0 && filter.mean_us > 0.0);
    assert!(report.summary.draft && report.summary.truncated_by.is_none());

    let cut = site.replay(json!({"limits": {"messages": 3}})).await;
    assert_eq!(
        (cut.summary.messages, cut.summary.truncated_by.as_deref()),
        (3, Some("messages"))
    );
    assert_eq!(cut.summary.end_ts, START + 3 * MINUTE);
    assert_eq!(
        (cut.difference.points.same, cut.difference.points.only_stored),
        (3, 0)
    );
}

#[tokio::test]
async fn a_new_alarm_rule_is_tried_before_it_goes_live() {
    let site = Site::new().await;
    // Hot from minute 5 up to 16, and once more for too short a time.
    let is_hot = |minute| (5..16).contains(&minute) || (30..33).contains(&minute);
    site.minutes(
        40,
        |minute| json!({"temperature": if is_hot(minute) { 80 } else { 20 }}),
    )
    .await;
    let draft = AlarmDraft {
        id: None,
        tenant: site.world.tenant,
        customer: None,
        originator: site.device,
        alarm_type: "Old".into(),
        severity: AlarmSeverity::Minor,
        start_ts: START + MINUTE,
        end_ts: START + MINUTE,
        details: None,
        propagation: AlarmPropagation::default(),
        created_time: START + MINUTE,
        may_create: true,
    };
    site.world
        .services
        .stores
        .alarms
        .create_or_update_active(draft)
        .await
        .unwrap();

    let over = |operation: &str, value: i64| {
        json!([{"key": {"type": "TIME_SERIES", "key": "temperature"}, "valueType": "NUMERIC",
            "predicate": {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": value}}}])
    };
    let duration = json!({"type": "DURATION", "unit": "MINUTES", "predicate": {"defaultValue": 5}});
    let rules = json!([{
        "id": "hot", "alarmType": "Hot",
        "createRules": {"CRITICAL": {"condition": {"condition": over("GREATER", 50), "spec": duration}}},
        "clearRule": {"condition": {"condition": over("LESS", 50), "spec": {"type": "SIMPLE"}}},
    }]);
    let chain = drawn(
        &[
            ("profile.TbDeviceProfileNode", json!({})),
            ("telemetry.TbMsgTimeseriesNode", json!({})),
        ],
        &[(0, 1, "Success")],
    );
    let report = site.replay(json!({"metadata": chain, "alarmRules": rules})).await;
    let alarms = &report.alarms;
    assert_eq!(
        (alarms.raised, alarms.cleared, alarms.active_at_start),
        (1, 1, 0),
        "{alarms:#?}"
    );
    let hot = &alarms.alarms[0];
    assert_eq!(
        (hot.alarm_type.as_str(), hot.severity),
        ("Hot", Some(AlarmSeverity::Critical))
    );
    assert_eq!(hot.originator_name.as_deref(), Some("boiler"));
    // In replayed time, by the messages and by the checks between them.
    let minute = |ts: i64| (ts - START) / MINUTE;
    assert!(
        (10..=11).contains(&minute(hot.raised_ts)),
        "raised in minute {}",
        minute(hot.raised_ts)
    );
    assert_eq!(hot.cleared_ts.map(minute), Some(16));
    assert!(hot.updates > 0);
    let difference = &report.difference.alarms;
    assert_eq!(
        (difference.only_replayed, difference.only_stored, difference.same),
        (1, 1, 0)
    );
    assert_eq!(difference.stored[0].alarm_type, "Old");
    let profile = node(&report, "profile.TbDeviceProfileNode");
    assert_eq!(
        (profile.output["Success"], profile.output["Alarm Created"]),
        (40, 1)
    );
    assert_eq!(report.difference.points.same, 40);
}

#[tokio::test]
async fn calculated_fields_are_tried_as_well() {
    let site = Site::new().await;
    site.minutes(6, |minute| json!({"celsius": minute * 10})).await;
    let argument = json!({"celsius": {"refEntityKey": {"key": "celsius", "type": "TS_LATEST"}}});
    let simple = json!({"type": "SIMPLE", "arguments": argument, "expression": "celsius * 2",
        "output": {"type": "TIME_SERIES", "name": "double"}});
    let hot = json!({"condition": {"type": "SIMPLE", "expression": {"type": "SIMPLE", "filters": [{"argument": "celsius",
        "valueType": "NUMERIC", "operation": "AND",
        "predicates": [{"type": "NUMERIC", "operation": "GREATER", "value": {"staticValue": 25}}]}]}}});
    let alarm = json!({"type": "ALARM", "arguments": argument, "createRules": {"MAJOR": hot}});
    let field = |name: &str, kind: &str, configuration: Value| {
        json!({"name": name, "type": kind, "configuration": configuration,
            "entityId": {"entityType": "DEVICE", "id": site.device.id}})
    };
    let fields = [field("Double", "SIMPLE", simple), field("Warm", "ALARM", alarm)];
    let report = site.replay(json!({"calculatedFields": fields})).await;
    assert_eq!(report.stored.keys.get("double"), Some(&6), "{report:#?}");
    assert_eq!(report.difference.points.keys["double"].only_replayed, 6);
    assert_eq!(
        (report.alarms.raised, report.alarms.alarms[0].start_ts),
        (1, START + 3 * MINUTE)
    );
}

#[tokio::test]
async fn a_changed_calculation_shows_as_other_values() {
    let site = Site::new().await;
    site.minutes(5, |minute| json!({"celsius": minute, "fahrenheit": minute * 2}))
        .await;
    let script =
        "msg.fahrenheit = msg.celsius * 1.8 + 32; return {msg: msg, metadata: metadata, msgType: msgType};";
    let draft = drawn(
        &[
            (
                "transform.TbTransformMsgNode",
                json!({"scriptLang": "JS", "jsScript": script}),
            ),
            ("telemetry.TbMsgTimeseriesNode", json!({})),
        ],
        &[(0, 1, "Success")],
    );
    let report = site.replay(json!({"metadata": draft, "keys": ["celsius"]})).await;
    let keys = &report.difference.points.keys;
    assert_eq!((keys["celsius"].same, keys["fahrenheit"].different), (5, 5));
    let first = &report.difference.points.sample[0];
    assert_eq!(
        (&first.stored, &first.replayed),
        (&Some(json!(0)), &Some(json!(32)))
    );
}

#[tokio::test]
async fn nothing_leaves_the_platform_and_queues_are_gone_through() {
    let site = Site::new().await;
    site.minutes(4, |minute| json!({"temperature": minute})).await;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    let draft = drawn(
        &[
            ("flow.TbCheckpointNode", json!({})),
            ("rest.TbRestApiCallNode", json!({"restEndpointUrlPattern": url})),
            (
                "action.TbCreateRelationNode",
                json!({"entityType": "CUSTOMER", "entityNamePattern": "Shop"}),
            ),
            ("telemetry.TbMsgAttributesNode", json!({})),
        ],
        &[(0, 1, "Success"), (1, 2, "Success"), (1, 3, "Success")],
    );
    let report = site.replay(json!({"metadata": draft})).await;
    let rest = node(&report, "rest.TbRestApiCallNode");
    assert_eq!((rest.executed, rest.input, rest.output["Success"]), (false, 4, 4));
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(report.summary.follow_ups >= 4, "{:?}", report.summary);
    // Telemetry is nothing that the last node can save as attributes.
    let attributes = node(&report, "telemetry.TbMsgAttributesNode");
    assert_eq!(
        (attributes.input, attributes.failures, report.summary.failed),
        (4, 4, 4)
    );
    assert!(attributes.last_error.is_some());
    assert_eq!(
        report.summary.not_changed.get("relations saved"),
        Some(&4),
        "{:?}",
        report.nodes
    );
    assert_eq!(report.stored.points, 0);
    assert_eq!(report.difference.points.only_stored, 4);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_name() {
    let site = Site::new().await;
    let device = site.device.id;
    site.world.device("another one", json!({})).await;
    let circle = drawn(
        &[
            ("flow.TbCheckpointNode", json!({})),
            ("flow.TbCheckpointNode", json!({})),
        ],
        &[(0, 1, "Success"), (1, 0, "Success")],
    );
    let wrong = [
        (json!({"endTs": 2, "deviceIds": [device]}), "startTs"),
        (json!({"startTs": 2, "endTs": 2, "deviceIds": [device]}), "endTs"),
        (
            json!({"startTs": 1, "endTs": 2, "limits": {"devices": 1}}),
            "2 devices are more than the 1 of limits.devices",
        ),
        (
            json!({"startTs": 1, "endTs": 2, "deviceIds": [uuid::Uuid::nil()]}),
            "There is no device",
        ),
        (
            json!({"startTs": 1, "endTs": 2, "entities": [EntityId::from(site.world.tenant)]}),
            "entities",
        ),
        (
            json!({"startTs": 1, "endTs": 2, "deviceIds": [device], "limits": {"messages": 0}}),
            "limits.messages",
        ),
        (
            json!({"startTs": 1, "endTs": 2, "deviceIds": [device], "alarmRules": [{}]}),
            "alarmRules",
        ),
        (
            json!({"startTs": 1, "endTs": 2, "deviceIds": [device], "metadata": circle}),
            "metadata",
        ),
    ];
    for (request, text) in wrong {
        let error = site.ask(request.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ServiceErrorKind::Invalid, "{request}");
        assert!(error.message().contains(text), "{request}: {error}");
    }
    let unknown = serde_json::from_value::<ReplayRequest>(json!({"metaData": {}}));
    assert!(unknown.unwrap_err().to_string().contains("metaData"));
}
