//! Queues of the rule engine.

use std::sync::{Arc, Mutex};

use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ports::{TelemetryRow, TelemetrySaveStrategy};
use fieldline_core::queue_stats::{SERVICE_ID, stats_id};
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::{EntityKey, EntityType, RuleChainId, TenantId};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, RestFixture, id, no};

const SERVICE: &str = "serviceType=TB_RULE_ENGINE";

async fn queues(client: &FixtureClient<'_>) -> Vec<Value> {
    let path = format!("/api/queues?{SERVICE}&pageSize=10&page=0&sortProperty=name&sortOrder=ASC");
    client.get(&path).await["data"].as_array().unwrap().clone()
}

fn names(queues: &[Value]) -> Vec<&str> {
    queues
        .iter()
        .map(|queue| queue["name"].as_str().unwrap())
        .collect()
}

fn queue(name: &str) -> Value {
    json!({
        "name": name, "topic": format!("topic.{name}"), "pollInterval": 25, "partitions": 2,
        "consumerPerPartition": true, "packProcessingTimeout": 2000,
        "submitStrategy": { "type": "BURST", "batchSize": 10 },
        "processingStrategy": {
            "type": "RETRY_ALL", "retries": 3, "failurePercentage": 0, "pauseBetweenRetries": 1,
            "maxPauseBetweenRetries": 5,
        },
    })
}

#[tokio::test]
async fn shared_queues_are_there_and_the_system_administrator_manages_them() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let seeded = queues(&admin).await;
    assert_eq!(names(&seeded), ["HighPriority", "Main", "SequentialByOriginator"]);
    let mut main = seeded[1].clone();
    for name in ["id", "createdTime"] {
        main.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(
        main,
        json!({
            "tenantId": { "entityType": "TENANT", "id": "13814000-1dd2-11b2-8080-808080808080" },
            "name": "Main", "topic": "tb_rule_engine.main", "pollInterval": 25, "partitions": 10,
            "consumerPerPartition": true, "packProcessingTimeout": 2000,
            "submitStrategy": { "type": "BURST", "batchSize": 1000 },
            "processingStrategy": {
                "type": "SKIP_ALL_FAILURES", "retries": 3, "failurePercentage": 0.0, "pauseBetweenRetries": 3,
                "maxPauseBetweenRetries": 3,
            },
            "additionalInfo": null,
        })
    );
    let path = format!("/api/queues/{}", id(&seeded[1]));
    assert_eq!(admin.get(&path).await, seeded[1]);
    assert_eq!(admin.get("/api/queues/name/Main").await, seeded[1]);
    assert_eq!(
        admin
            .refused("GET", "/api/queues/name/None", &Value::Null)
            .await
            .0,
        404
    );
    let other = admin
        .get("/api/queues?serviceType=TB_CORE&pageSize=1&page=0")
        .await;
    assert_eq!(other["data"], json!([]));

    let save = format!("/api/queues?{SERVICE}");
    let mut fast = sysadmin.post(&save, &queue("Fast")).await;
    fast["partitions"] = json!(7);
    assert_eq!(sysadmin.post(&save, &fast).await["partitions"], 7);
    let changed = |field: &str, value: Value| {
        let mut changed = queue("Other");
        changed[field] = value;
        changed
    };
    let mut renamed = fast.clone();
    renamed["name"] = json!("Faster");
    for (body, message) in [
        (queue("Fast"), "Queue with name: Fast already exists!"),
        (
            changed("topic", fast["topic"].clone()),
            "Queue with topic: topic.Fast already exists!",
        ),
        (renamed, "Queue name can't be changed!"),
        (changed("name", json!("")), "Queue name should be specified!"),
        (
            changed("name", json!("a b")),
            "Queue name contains a character other than ASCII alphanumerics, '.', '_' and '-'!",
        ),
        (
            changed("partitions", json!(0)),
            "Queue partitions should be more then 0!",
        ),
        (
            changed("submitStrategy", Value::Null),
            "Queue submit strategy can't be null!",
        ),
        (
            changed("processingStrategy", json!({})),
            "Queue processing strategy type can't be null!",
        ),
    ] {
        assert_eq!(sysadmin.refused("POST", &save, &body).await, no(400, 31, message));
    }
    sysadmin.delete(&format!("/api/queues/{}", id(&fast))).await;
    assert_eq!(queues(&sysadmin).await.len(), 3);
    assert_eq!(
        sysadmin.refused("DELETE", &path, &Value::Null).await,
        no(400, 31, "Deletion of the Main queue is prohibited!")
    );
}

#[tokio::test]
async fn isolated_tenants_have_the_queues_of_their_profile() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let shared = queues(&admin).await;
    let profile = |queues: Value| {
        json!({
            "name": "isolated", "isolatedTbRuleEngine": true,
            "profileData": { "configuration": { "type": "DEFAULT" }, "queueConfiguration": queues },
        })
    };
    for (queues, message) in [
        (
            Value::Null,
            "Tenant profile data queue configuration should be specified!",
        ),
        (
            json!([queue("A")]),
            "Main queue configuration should be specified!",
        ),
        (
            json!([queue("Main"), queue("Main")]),
            "Queue configuration topic 'topic.Main' already present!",
        ),
        (
            json!([{ "name": "Main", "topic": "t" }]),
            "Queue poll interval should be more then 0!",
        ),
    ] {
        assert_eq!(
            sysadmin
                .refused("POST", "/api/tenantProfile", &profile(queues))
                .await,
            no(400, 31, message)
        );
    }
    let isolated = profile(json!([queue("Main"), queue("Own")]));
    let mut isolated = sysadmin.post("/api/tenantProfile", &isolated).await;
    let tenants = "/api/tenants?pageSize=1&page=0&textSearch=Tenant";
    let mut tenant = sysadmin.get(tenants).await["data"][0].clone();
    let ordinary = tenant["tenantProfileId"].clone();
    tenant["tenantProfileId"] = isolated["id"].clone();
    let mut tenant = sysadmin.post("/api/tenant", &tenant).await;
    let own = queues(&admin).await;
    assert_eq!(names(&own), ["Main", "Own"]);
    assert_eq!(own[0]["tenantId"], tenant["id"]);
    assert_eq!(own[0]["partitions"], 2);
    let path = format!("/api/queues/{}", id(&shared[1]));
    assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 404);
    let profile_of_devices = json!({ "name": "p", "defaultQueueName": "HighPriority" });
    assert_eq!(
        admin
            .refused("POST", "/api/deviceProfile", &profile_of_devices)
            .await
            .2,
        "Device profile is referencing to non-existent queue!"
    );
    // Other tenants have the shared queues, and do not see these.
    let stranger = world.stranger().await;
    assert_eq!(queues(&stranger).await, shared);
    let path = format!("/api/queues/{}", id(&own[0]));
    assert_eq!(stranger.refused("GET", &path, &Value::Null).await.0, 404);

    let mut main = queue("Main");
    main["partitions"] = json!(5);
    isolated["profileData"]["queueConfiguration"] = json!([main, queue("New")]);
    isolated = sysadmin.post("/api/tenantProfile", &isolated).await;
    let changed = queues(&admin).await;
    assert_eq!(names(&changed), ["Main", "New"]);
    assert_eq!(
        (&changed[0]["id"], &changed[0]["partitions"]),
        (&own[0]["id"], &json!(5))
    );
    main["topic"] = json!("elsewhere");
    isolated["profileData"]["queueConfiguration"] = json!([main]);
    assert_eq!(
        sysadmin.refused("POST", "/api/tenantProfile", &isolated).await,
        no(400, 31, "Queue topic can't be changed!")
    );

    tenant["tenantProfileId"] = ordinary;
    sysadmin.post("/api/tenant", &tenant).await;
    assert_eq!(queues(&admin).await, shared);
    let tenant = tenant["id"]["id"].as_str().unwrap().parse().unwrap();
    let left = world.context.stores.queues.all(TenantId(tenant)).await;
    assert_eq!(left.unwrap(), []);
}

/// Records the changes that the rule engine must know.
#[derive(Default)]
struct EntityChangeLog(Mutex<Vec<EntityChange>>);

impl EntityListener for EntityChangeLog {
    fn on_change(&self, change: EntityChange) {
        if change.entity_type() == EntityType::RuleChain || change.what == ChangeKind::Queues {
            self.0.lock().unwrap().push(change);
        }
    }
}

#[tokio::test]
async fn the_rule_engine_is_told_what_has_changed() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let told = Arc::new(EntityChangeLog::default());
    world.context.events.listen(told.clone());
    let since = || std::mem::take(&mut *told.0.lock().unwrap());
    let uuid = |id: &Value| id["id"].as_str().unwrap().parse().unwrap();

    let chain = admin.post("/api/ruleChain", &json!({ "name": "a" })).await;
    let tenant = TenantId(uuid(&chain["tenantId"]));
    let changed = EntityChange::saved(tenant, RuleChainId(uuid(&chain["id"])));
    assert_eq!(since(), [changed]);
    let metadata = json!({ "ruleChainId": chain["id"], "nodes": [] });
    admin.post("/api/ruleChain/metadata", &metadata).await;
    assert_eq!(since(), [changed]);
    let root = admin
        .get("/api/ruleChains?pageSize=1&page=0&textSearch=Root")
        .await["data"][0]
        .clone();
    let former = EntityChange::saved(tenant, RuleChainId(uuid(&root["id"])));
    for (chain, expected) in [(&chain, [former, changed]), (&root, [changed, former])] {
        let path = format!("/api/ruleChain/{}/root", id(chain));
        admin.post(&path, &Value::Null).await;
        assert_eq!(since(), expected);
    }
    admin.delete(&format!("/api/ruleChain/{}", id(&chain))).await;
    let deleted = EntityChange::deleted(tenant, RuleChainId(uuid(&chain["id"])));
    assert_eq!(since(), [deleted]);

    let save = format!("/api/queues?{SERVICE}");
    let fast = sysadmin.post(&save, &queue("Fast")).await;
    sysadmin.delete(&format!("/api/queues/{}", id(&fast))).await;
    assert_eq!(
        since(),
        [EntityChange::new(TenantId::NULL, TenantId::NULL, ChangeKind::Queues); 2]
    );
    let profile = json!({
        "name": "isolated", "isolatedTbRuleEngine": true,
        "profileData": { "configuration": { "type": "DEFAULT" }, "queueConfiguration": [queue("Main")] },
    });
    let mut profile = sysadmin.post("/api/tenantProfile", &profile).await;
    let path = format!("/api/tenant/{}", tenant.0);
    let mut owner = sysadmin.get(&path).await;
    owner["tenantProfileId"] = profile["id"].clone();
    sysadmin.post("/api/tenant", &owner).await;
    assert_eq!(since(), [EntityChange::new(tenant, tenant, ChangeKind::Queues)]);
    profile["description"] = json!("nothing about queues");
    let mut profile = sysadmin.post("/api/tenantProfile", &profile).await;
    assert_eq!(since(), []);
    profile["profileData"]["queueConfiguration"][0]["partitions"] = json!(3);
    sysadmin.post("/api/tenantProfile", &profile).await;
    assert_eq!(since(), [EntityChange::new(tenant, tenant, ChangeKind::Queues)]);
}

#[tokio::test]
async fn a_queue_that_a_profile_names_is_there_and_stays() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let fast = sysadmin
        .post(&format!("/api/queues?{SERVICE}"), &queue("Fast"))
        .await;
    let path = format!("/api/queues/{}", id(&fast));
    for (kind, title) in [("deviceProfile", "device"), ("assetProfile", "asset")] {
        let save = format!("/api/{kind}");
        let unknown = json!({ "name": "p", "defaultQueueName": "Slow" });
        let expected = match title {
            "device" => "Device profile is referencing to non-existent queue!",
            _ => "Asset profile is referencing to non-existent queue!",
        };
        assert_eq!(
            admin.refused("POST", &save, &unknown).await,
            no(400, 31, expected)
        );
        let profile = json!({ "name": "p", "defaultQueueName": "Fast" });
        let profile = admin.post(&save, &profile).await;
        let referenced = format!("The queue referenced by the {title} profiles cannot be deleted!");
        assert_eq!(
            sysadmin.refused("DELETE", &path, &Value::Null).await,
            no(400, 31, &referenced)
        );
        admin.delete(&format!("{save}/{}", id(&profile))).await;
    }
    sysadmin.delete(&path).await;
    assert_eq!(queues(&admin).await.len(), 3);
}

#[tokio::test]
async fn statistics_of_queues_are_found_and_read() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let page = admin
        .get("/api/queueStats?pageSize=10&page=0&sortProperty=queueName&sortOrder=ASC")
        .await;
    let stats = page["data"].as_array().unwrap();
    let names: Vec<_> = stats
        .iter()
        .map(|stats| stats["queueName"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["HighPriority", "Main", "SequentialByOriginator"]);
    let main = &stats[1];
    assert_eq!(main["id"]["entityType"], "QUEUE_STATS");
    assert_eq!(main["serviceId"], "fieldline");
    let found = admin
        .get("/api/queueStats?pageSize=1&page=0&textSearch=sequential")
        .await;
    assert_eq!(found["data"], json!([stats[2]]));
    let path = format!("/api/queueStats/{}", id(main));
    assert_eq!(admin.get(&path).await, *main);
    let strange = RuleChainId::new().0;
    for list in ["/api/queueStats", "/api/queueStats/list"] {
        let list = format!("{list}?queueStatsIds={},{strange}", id(main));
        assert_eq!(admin.get(&list).await, json!([main]));
    }
    let none = sysadmin.get("/api/queueStats?pageSize=10&page=0").await;
    assert_eq!(none["totalElements"], 0);

    // The statistics of the rule engine are read as telemetry.
    let tenant = TenantId(main["tenantId"]["id"].as_str().unwrap().parse().unwrap());
    let subject = EntityKey {
        tenant,
        entity: stats_id(tenant, "Main", SERVICE_ID).into(),
    };
    let mut values = Vec::new();
    pack("totalMsgs", KvValueRef::Long(7), &mut values);
    let row = TelemetryRow {
        subject,
        ts: NOW,
        ttl_seconds: 0,
        strategy: TelemetrySaveStrategy::ALL,
        values: &values,
    };
    world.context.series.save(&[row]).await.unwrap();
    let telemetry = format!("/api/plugins/telemetry/QUEUE_STATS/{}", id(main));
    let latest = format!("{telemetry}/values/timeseries?keys=totalMsgs&useStrictDataTypes=true");
    assert_eq!(
        admin.get(&latest).await,
        json!({ "totalMsgs": [{ "ts": NOW, "value": 7 }] })
    );

    // Other tenants cannot read them, and nobody can write them.
    let point = json!({ "totalMsgs": 1 });
    let write = format!("{telemetry}/timeseries/any");
    assert_eq!(admin.send("POST", &write, point.to_string()).await.0, 403);
    let stranger = world.stranger().await;
    assert_eq!(stranger.send("GET", &path, "").await.0, 404);
    assert_ne!(stranger.send("GET", &latest, "").await.0, 200);
    assert_eq!(sysadmin.send("GET", &path, "").await.0, 404);
}
