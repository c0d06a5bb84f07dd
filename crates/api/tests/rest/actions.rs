//! Actions of users reach the rule engine.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id};

#[tokio::test]
async fn the_life_of_a_device_is_told() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let customer = admin
        .get("/api/tenant/customers?customerTitle=Customer%20B")
        .await;
    world.rule_engine.take();
    let mut device = admin.post("/api/device", &json!({ "name": "told" })).await;
    let heard = world.rule_engine.take();
    let [created] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(created.msg_type.name(), "ENTITY_CREATED");
    assert_eq!(created.originator.id.to_string(), id(&device));
    assert_eq!(serde_json::from_str::<Value>(&created.data).unwrap(), device);
    for (key, value) in [
        ("userName", "tenant@thingsboard.org"),
        ("userEmail", "tenant@thingsboard.org"),
        ("entityName", "told"),
        ("entityType", "DEVICE"),
    ] {
        assert_eq!(created.metadata.get(key), Some(value));
    }
    device["label"] = json!("x");
    admin.post("/api/device", &device).await;
    let path = format!("/api/customer/{}/device/{}", id(&customer), id(&device));
    admin.post(&path, &Value::Null).await;
    let heard = world.rule_engine.take();
    assert_eq!(heard[0].msg_type.name(), "ENTITY_UPDATED");
    assert_eq!(heard[1].msg_type.name(), "ENTITY_ASSIGNED");
    assert_eq!(heard[1].metadata.get("assignedCustomerName"), Some("Customer B"));
    assert_eq!(
        heard[1].customer.map(|id| id.to_string()).as_deref(),
        Some(id(&customer))
    );
    admin
        .delete(&format!("/api/customer/device/{}", id(&device)))
        .await;
    admin.delete(&format!("/api/device/{}", id(&device))).await;
    assert_eq!(world.rule_engine.types(), ["ENTITY_UNASSIGNED", "ENTITY_DELETED"]);
}

#[tokio::test]
async fn changes_of_data_and_relations_are_told() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let other = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20B1")
        .await;
    let base = format!("/api/plugins/telemetry/DEVICE/{}", id(&device));
    world.rule_engine.take();
    admin
        .post(
            &format!("{base}/SHARED_SCOPE"),
            &json!({ "a": 1, "b": { "c": true } }),
        )
        .await;
    admin
        .post(
            &format!("{base}/timeseries/any"),
            &json!({ "ts": 5, "values": { "t": 2.5 } }),
        )
        .await;
    admin.delete(&format!("{base}/SHARED_SCOPE?keys=a")).await;
    admin
        .delete(&format!("{base}/timeseries/delete?keys=t&startTs=1&endTs=9"))
        .await;
    let relation = json!({ "from": device["id"], "to": other["id"], "type": "Uses" });
    admin.post("/api/relation", &relation).await;
    admin
        .delete(&format!(
            "/api/relations?entityId={}&entityType=DEVICE",
            id(&device)
        ))
        .await;
    let heard = world.rule_engine.take();
    let told: Vec<(&str, Value)> = heard
        .iter()
        .map(|message| {
            (
                message.msg_type.name(),
                serde_json::from_str(&message.data).unwrap(),
            )
        })
        .collect();
    let mut stored = relation.clone();
    stored["typeGroup"] = json!("COMMON");
    stored["version"] = json!(1);
    stored["additionalInfo"] = Value::Null;
    assert_eq!(
        told,
        [
            ("ATTRIBUTES_UPDATED", json!({ "a": 1, "b": { "c": true } })),
            (
                "TIMESERIES_UPDATED",
                json!({ "timeseries": [{ "ts": 5, "values": { "t": 2.5 } }] })
            ),
            ("ATTRIBUTES_DELETED", json!({ "attributes": ["a"] })),
            (
                "TIMESERIES_DELETED",
                json!({ "timeseries": ["t"], "startTs": 1, "endTs": 9 })
            ),
            ("RELATION_ADD_OR_UPDATE", stored.clone()),
            ("RELATION_ADD_OR_UPDATE", stored),
            ("RELATIONS_DELETED", json!({})),
        ]
    );
    assert_eq!(heard[0].metadata.get("scope"), Some("SHARED_SCOPE"));
    assert_eq!(heard[5].originator.id.to_string(), id(&other));
}

#[tokio::test]
async fn the_life_of_a_rule_chain_is_told() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let root = admin
        .get("/api/ruleChains?pageSize=1&page=0&textSearch=Root")
        .await["data"][0]
        .clone();
    world.rule_engine.take();
    let mut chain = admin.post("/api/ruleChain", &json!({ "name": "told" })).await;
    let heard = world.rule_engine.take();
    let [created] = heard.as_slice() else {
        panic!("{heard:?}");
    };
    assert_eq!(created.msg_type.name(), "ENTITY_CREATED");
    assert_eq!(created.originator.id.to_string(), id(&chain));
    assert_eq!(created.metadata.get("entityType"), Some("RULE_CHAIN"));

    chain["debugMode"] = json!(true);
    admin.post("/api/ruleChain", &chain).await;
    let metadata = json!({ "ruleChainId": chain["id"], "nodes": [] });
    admin.post("/api/ruleChain/metadata", &metadata).await;
    assert_eq!(world.rule_engine.types(), ["ENTITY_UPDATED", "ENTITY_UPDATED"]);

    for (now, before) in [(&chain, &root), (&root, &chain)] {
        admin
            .post(&format!("/api/ruleChain/{}/root", id(now)), &Value::Null)
            .await;
        let heard = world.rule_engine.take();
        let told: Vec<_> = heard
            .iter()
            .map(|message| {
                let body: Value = serde_json::from_str(&message.data).unwrap();
                (message.originator.id.to_string(), body["root"] == true)
            })
            .collect();
        assert_eq!(told, [(id(before).to_owned(), false), (id(now).to_owned(), true)]);
    }
    admin.delete(&format!("/api/ruleChain/{}", id(&chain))).await;
    assert_eq!(world.rule_engine.types(), ["ENTITY_DELETED"]);
    let default = json!({ "name": "default" });
    admin.post("/api/ruleChain/device/default", &default).await;
    assert_eq!(world.rule_engine.types(), ["ENTITY_CREATED"]);
}
