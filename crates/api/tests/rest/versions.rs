//! What dashboards and rule chains were at each save, and restoring it.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id};

#[tokio::test]
async fn an_earlier_save_of_a_dashboard_is_read_and_restored() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let first = json!({ "title": "First", "configuration": { "widgets": { "z": 1, "a": 2 } } });
    let saved = admin.post("/api/dashboard", &first).await;
    let path = format!("/api/dashboard/{}", id(&saved));
    let mut changed = saved.clone();
    changed["title"] = json!("Second");
    changed["configuration"] = json!({ "widgets": {} });
    let changed = admin.post("/api/dashboard", &changed).await;
    admin.post("/api/dashboard", &changed).await;

    let page = admin.get(&format!("{path}/versions?pageSize=10&page=0")).await;
    assert_eq!(page["totalElements"], 2, "the third save changed nothing: {page}");
    let shown: Vec<_> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["version"], &it["title"]))
        .collect();
    assert_eq!(
        shown,
        [(&json!(2), &json!("Second")), (&json!(1), &json!("First"))]
    );
    assert_eq!(page["data"][0]["userId"]["entityType"], "USER");
    assert_eq!(page["data"][0]["userName"], "tenant@thingsboard.org");
    assert!(page["data"][0]["createdTime"].as_i64().unwrap() > 0);
    let old = admin.get(&format!("{path}/versions/1")).await;
    assert_eq!(
        old["configuration"].to_string(),
        first["configuration"].to_string()
    );
    assert_eq!(
        (&old["id"], &old["title"], &old["version"]),
        (&saved["id"], &json!("First"), &json!(1))
    );

    // What a client does to restore it.
    let present = admin.get(&path).await;
    let mut restored = old.clone();
    restored["version"] = present["version"].clone();
    let restored = admin.post("/api/dashboard", &restored).await;
    assert_eq!(restored["configuration"], first["configuration"]);
    let page = admin.get(&format!("{path}/versions?pageSize=1&page=0")).await;
    assert_eq!(
        (&page["data"][0]["title"], &page["totalPages"]),
        (&json!("First"), &json!(3))
    );

    for wrong in ["77", "-1"] {
        let missing = admin
            .refused("GET", &format!("{path}/versions/{wrong}"), &Value::Null)
            .await;
        assert_eq!(missing.0, 404, "{wrong}");
    }
    let odd = admin
        .refused("GET", &format!("{path}/versions/x"), &Value::Null)
        .await;
    assert_eq!(odd.0, 400);
    admin.delete(&path).await;
    let gone = admin
        .refused(
            "GET",
            &format!("{path}/versions?pageSize=10&page=0"),
            &Value::Null,
        )
        .await;
    assert_eq!(gone.0, 404);
}

#[tokio::test]
async fn an_earlier_save_of_a_rule_chain_is_read_with_its_nodes() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let chain = admin
        .post("/api/ruleChain", &json!({ "name": "Chain", "type": "CORE" }))
        .await;
    let path = format!("/api/ruleChain/{}", id(&chain));
    let page = admin.get(&format!("{path}/versions?pageSize=10&page=0")).await;
    assert_eq!(
        (&page["totalElements"], &page["data"][0]["version"]),
        (&json!(1), &chain["version"])
    );
    let present = admin.get(&format!("{path}/versions/{}", chain["version"])).await;
    assert_eq!(present["metadata"]["nodes"], json!([]));

    let node = json!({
        "type": "org.thingsboard.rule.engine.flow.TbAckNode", "name": "ack", "configuration": {},
        "additionalInfo": { "layoutX": 5, "layoutY": 6 },
    });
    let metadata =
        json!({ "ruleChainId": chain["id"], "firstNodeIndex": 0, "nodes": [node], "connections": [] });
    let first = admin.post("/api/ruleChain/metadata", &metadata).await;
    let mut second = first.clone();
    second["nodes"] = json!([]);
    second["firstNodeIndex"] = Value::Null;
    admin.post("/api/ruleChain/metadata", &second).await;
    let page = admin.get(&format!("{path}/versions?pageSize=10&page=0")).await;
    assert_eq!(page["totalElements"], 2, "{page}");
    assert_eq!(page["data"][1]["version"], first["version"]);
    assert_eq!(page["data"][0]["userName"], "tenant@thingsboard.org");
    let old = admin.get(&format!("{path}/versions/{}", first["version"])).await;
    assert_eq!(old["metadata"]["nodes"], first["nodes"]);
    assert_eq!(old["metadata"]["version"], first["version"]);
    assert_eq!(
        (&old["ruleChain"]["name"], &old["ruleChain"]["id"]),
        (&json!("Chain"), &chain["id"])
    );
}
