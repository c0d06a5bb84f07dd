//! Rule chains, their nodes and connections.

use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, RestFixture, id, no};
use crate::nodes::{FILTER, GENERATOR};

const INPUT: &str = "org.thingsboard.rule.engine.flow.TbRuleChainInputNode";
const OUTPUT: &str = "org.thingsboard.rule.engine.flow.TbRuleChainOutputNode";

async fn chain(admin: &FixtureClient<'_>, name: &str) -> Value {
    admin.post("/api/ruleChain", &json!({ "name": name })).await
}

fn node(class: &str, name: &str) -> Value {
    json!({ "type": class, "name": name, "configuration": { "limit": 1 }, "configurationVersion": 1 })
}

fn link(from: u32, to: u32, label: &str) -> Value {
    json!({ "fromIndex": from, "toIndex": to, "type": label })
}

async fn metadata(admin: &FixtureClient<'_>, chain: &Value) -> Value {
    admin.get(&format!("/api/ruleChain/{}/metadata", id(chain))).await
}

async fn set_metadata(admin: &FixtureClient<'_>, chain: &Value, nodes: Value, connections: Value) -> Value {
    let body = json!({
        "ruleChainId": chain["id"], "firstNodeIndex": 0, "nodes": nodes, "connections": connections,
    });
    admin.post("/api/ruleChain/metadata", &body).await
}

#[tokio::test]
async fn every_tenant_has_the_documented_root_chain_and_makes_more_like_it() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let stranger = world.stranger().await;
    for client in [&admin, &stranger] {
        let chains = client.get("/api/ruleChains?pageSize=10&page=0").await;
        assert_eq!(chains["totalElements"], 1);
        let root = &chains["data"][0];
        assert_eq!(
            (&root["name"], &root["type"], &root["root"]),
            (&json!("Root Rule Chain"), &json!("CORE"), &json!(true))
        );
        let metadata = metadata(client, root).await;
        assert_eq!(metadata["firstNodeIndex"], 2);
        assert_eq!(root["firstRuleNodeId"], metadata["nodes"][2]["id"]);
        assert_eq!(metadata["version"], root["version"]);
        let nodes: Vec<_> = metadata["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| {
                let class = node["type"].as_str().unwrap();
                let class = class.strip_prefix("org.thingsboard.rule.engine.").unwrap();
                (class, node["name"].as_str().unwrap())
            })
            .collect();
        assert_eq!(
            nodes,
            [
                ("telemetry.TbMsgTimeseriesNode", "Save Timeseries"),
                ("telemetry.TbMsgAttributesNode", "Save Client Attributes"),
                ("filter.TbMsgTypeSwitchNode", "Message Type Switch"),
                ("action.TbLogNode", "Log RPC from Device"),
                ("action.TbLogNode", "Log Other"),
                ("rpc.TbSendRPCRequestNode", "RPC Call Request"),
            ]
        );
        assert_eq!(
            metadata["nodes"][1]["configuration"],
            json!({
                "processingSettings": { "type": "ON_EVERY_MESSAGE" }, "scope": "CLIENT_SCOPE", "notifyDevice": false,
                "sendAttributesUpdatedNotification": false, "updateAttributesOnlyOnValueChange": true,
            })
        );
        assert_eq!(metadata["nodes"][1]["configurationVersion"], 3);
        assert_eq!(
            metadata["connections"],
            json!([
                link(2, 0, "Post telemetry"),
                link(2, 1, "Post attributes"),
                link(2, 3, "RPC Request from Device"),
                link(2, 4, "Other"),
                link(2, 5, "RPC Request to Device"),
            ])
        );
        assert_eq!(metadata["ruleChainConnections"], Value::Null);
    }
    // The next start adds, once, what an older version did not give to its tenants.
    let tenants = &world.context.stores.tenants;
    let given = admin.get("/api/auth/user").await["tenantId"]["id"].clone();
    let given = fieldline_model::TenantId(given.as_str().unwrap().parse().unwrap());
    let mut older = tenants.get(given).await.unwrap().unwrap();
    older.id = fieldline_model::TenantId::new();
    older.title = "Older".to_owned();
    let tenant = tenants.insert(older).await.unwrap().id;
    let chains = &world.context.stores.rule_chains;
    assert!(chains.root(tenant, Default::default()).await.unwrap().is_none());
    for _ in 0..2 {
        fieldline_entities::services::seed::ensure_system(&world.context, None)
            .await
            .unwrap();
    }
    assert_eq!(chains.count(tenant).await.unwrap(), 1);
    assert!(chains.root(tenant, Default::default()).await.unwrap().is_some());

    let made = admin
        .post("/api/ruleChain/device/default", &json!({ "name": "Sensors" }))
        .await;
    assert_eq!((&made["name"], &made["root"]), (&json!("Sensors"), &json!(false)));
    assert_eq!(
        metadata(&admin, &made).await["nodes"].as_array().unwrap().len(),
        6
    );
}

#[tokio::test]
async fn nodes_keep_their_ids_and_are_completed_and_checked() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let chain = chain(&admin, "Checks").await;
    let old_form = json!({
        "type": FILTER, "name": "old", "configuration": { "max": 5 }, "debugMode": true, "singletonMode": true,
        "additionalInfo": { "layoutX": 10 },
    });
    let generator = json!({
        "type": GENERATOR, "name": "clock", "configuration": {},
        "debugSettings": { "allEnabled": true, "failuresEnabled": false },
    });
    let saved = set_metadata(
        &admin,
        &chain,
        json!([generator, old_form, node("org.example.Any", "any")]),
        json!([link(1, 2, "True"), link(0, 1, "Success")]),
    )
    .await;
    let nodes = saved["nodes"].as_array().unwrap();
    assert_eq!(nodes[1]["configuration"], json!({ "limit": 5 }));
    assert_eq!(nodes[1]["configurationVersion"], 1);
    assert_eq!(nodes[1]["additionalInfo"], json!({ "layoutX": 10 }));
    assert_eq!(nodes[1]["createdTime"], NOW);
    assert_eq!(nodes[1]["ruleChainId"], chain["id"]);
    assert_eq!(nodes[1].get("debugMode"), None);
    assert_eq!(
        [&nodes[0]["singletonMode"], &nodes[1]["singletonMode"]],
        [true, false]
    );
    let until = NOW + 15 * 60_000;
    assert_eq!(
        nodes[0]["debugSettings"],
        json!({ "failuresEnabled": false, "allEnabled": false, "allEnabledUntil": until })
    );
    assert_eq!(
        nodes[1]["debugSettings"],
        json!({ "failuresEnabled": true, "allEnabled": false, "allEnabledUntil": until })
    );
    assert_eq!(
        saved["connections"],
        json!([link(0, 1, "Success"), link(1, 2, "True")])
    );
    assert_eq!(metadata(&admin, &chain).await, saved);

    // The first of three nodes is removed; one comes with the id of a node of another chain.
    let mut foreign = node(FILTER, "foreign");
    let other = self::chain(&admin, "Other").await;
    let theirs = set_metadata(&admin, &other, json!([node(FILTER, "theirs")]), Value::Null).await;
    foreign["id"] = theirs["nodes"][0]["id"].clone();
    let change = json!([nodes[2], nodes[1], foreign]);
    let changed = set_metadata(&admin, &chain, change, json!([link(0, 1, "x")])).await;
    assert_eq!(changed["nodes"][0]["id"], nodes[2]["id"]);
    assert_eq!(changed["nodes"][1]["id"], nodes[1]["id"]);
    assert_ne!(changed["nodes"][2]["id"], theirs["nodes"][0]["id"]);
    assert_eq!(metadata(&admin, &other).await, theirs);
    let gone = format!("/api/ruleNode/{}/debugIn", id(&nodes[0]));
    assert_eq!(admin.refused("GET", &gone, &Value::Null).await.0, 404);
    let found = admin.get(&format!("/api/ruleChain/{}", id(&chain))).await;
    assert_eq!(found["firstRuleNodeId"], nodes[2]["id"]);

    // A chain keeps its first node if a client renames it without sending the node.
    let renamed = json!({ "id": chain["id"], "name": "Renamed" });
    let renamed = admin.post("/api/ruleChain", &renamed).await;
    assert_eq!(renamed["firstRuleNodeId"], nodes[2]["id"]);

    let refuse = async |body: Value| admin.refused("POST", "/api/ruleChain/metadata", &body).await;
    let stale = json!({ "ruleChainId": chain["id"], "version": saved["version"], "nodes": [] });
    assert_eq!(
        refuse(stale).await,
        no(409, 35, "Rule chain was already changed by someone else")
    );
    let with = |nodes: Value, connections: Value| {
        json!({
            "ruleChainId": chain["id"], "nodes": nodes, "connections": connections,
        })
    };
    let two = || json!([node(FILTER, "a"), node(FILTER, "b")]);
    for (body, message) in [
        (
            with(two(), json!([link(0, 1, "x"), link(1, 0, "x")])),
            "Can't create circling relations in rule chain.",
        ),
        (
            with(two(), json!([link(1, 1, "x")])),
            "Can't create the relation to yourself.",
        ),
        (
            with(two(), json!([link(0, 2, "x")])),
            "toIndex of a connection is 2, but the rule chain has 2 nodes!",
        ),
        (
            with(
                json!([{ "type": FILTER, "name": "bad", "configuration": {} }]),
                json!([]),
            ),
            "'bad' node configuration is invalid: field 'limit' must be a number!",
        ),
        (
            with(
                json!([{ "type": FILTER, "name": "bad", "configuration": 1 }]),
                json!([]),
            ),
            "'bad' node configuration is invalid: configuration must be an object!",
        ),
        (
            with(json!([node("org.example.Unknown", "odd")]), json!([])),
            "'odd' node configuration is invalid: rule node org.example.Unknown is not supported!",
        ),
        (json!({ "nodes": [] }), "Parameter 'ruleChainId' can't be empty!"),
    ] {
        assert_eq!(refuse(body).await, no(400, 31, message));
    }
    assert_eq!(metadata(&admin, &chain).await["nodes"], changed["nodes"]);
}

#[tokio::test]
async fn there_is_always_a_root_chain_and_chains_in_use_stay() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let root = admin.get("/api/ruleChains?pageSize=1&page=0").await["data"][0].clone();
    let second = chain(&admin, "Second").await;
    let delete = async |chain: &Value| {
        let path = format!("/api/ruleChain/{}", id(chain));
        admin.refused("DELETE", &path, &Value::Null).await
    };
    assert_eq!(
        delete(&root).await,
        no(400, 31, "Deletion of Root Tenant Rule Chain is prohibited!")
    );
    let unset = json!({ "id": root["id"], "name": "Main chain", "root": false });
    assert_eq!(admin.post("/api/ruleChain", &unset).await["root"], true);
    assert_eq!(
        admin
            .refused("POST", "/api/ruleChain", &json!({ "name": "x", "root": true }))
            .await,
        no(
            400,
            31,
            "Another root rule chain is present in scope of current tenant!"
        )
    );
    assert_eq!(
        admin.refused("POST", "/api/ruleChain", &json!({})).await,
        no(400, 31, "Rule chain name should be specified!")
    );
    let path = format!("/api/ruleChain/{}/root", id(&second));
    assert_eq!(stranger.refused("POST", &path, &Value::Null).await.0, 404);
    assert_eq!(admin.post(&path, &Value::Null).await["root"], true);
    let former = admin.get(&format!("/api/ruleChain/{}", id(&root))).await;
    assert_eq!(former["root"], false);

    let profile =
        json!({ "name": "chained", "defaultRuleChainId": root["id"], "defaultQueueName": "HighPriority" });
    assert_eq!(
        stranger.refused("POST", "/api/deviceProfile", &profile).await,
        no(400, 31, "Can't assign non-existent rule chain!")
    );
    let profile = admin.post("/api/deviceProfile", &profile).await;
    assert_eq!(profile["defaultRuleChainId"], root["id"]);
    assert_eq!(
        delete(&root).await,
        no(
            400,
            31,
            "The rule chain referenced by the device profiles cannot be deleted!"
        )
    );
    let mut other_queue = profile.clone();
    other_queue["defaultQueueName"] = json!("Nowhere");
    assert_eq!(
        admin.refused("POST", "/api/deviceProfile", &other_queue).await,
        no(400, 31, "Device profile is referencing to non-existent queue!")
    );
    admin
        .delete(&format!("/api/deviceProfile/{}", id(&profile)))
        .await;
    admin.delete(&format!("/api/ruleChain/{}", id(&root))).await;
    let path = format!("/api/ruleChain/{}", id(&root));
    assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 404);

    let ids = format!("{},{}", id(&second), id(&root));
    let list = admin.get(&format!("/api/ruleChains?ruleChainIds={ids}")).await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    let list = stranger
        .get(&format!("/api/ruleChains/list?ruleChainIds={ids}"))
        .await;
    assert_eq!(list, json!([]));
    let edges = admin.get("/api/ruleChains?pageSize=9&page=0&type=EDGE").await;
    assert_eq!(edges["totalElements"], 0);
}

#[tokio::test]
async fn renamed_output_labels_are_renamed_where_the_chain_is_used() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let (inner, outer) = (chain(&admin, "Inner").await, chain(&admin, "Outer").await);
    let outputs = json!([
        { "type": OUTPUT, "name": "Good", "configuration": {} },
        { "type": OUTPUT, "name": "Bad", "configuration": {} },
    ]);
    let saved = set_metadata(&admin, &inner, outputs, json!([])).await;
    let input = json!({ "type": INPUT, "name": "to inner", "configuration": { "ruleChainId": id(&inner) } });
    let connections = json!([link(0, 1, "Good"), link(0, 2, "Bad"), link(1, 2, "Good")]);
    let nodes = json!([input, node(FILTER, "a"), node(FILTER, "b")]);
    let user = set_metadata(&admin, &outer, nodes, connections).await;
    let labels = format!("/api/ruleChain/{}/output/labels", id(&inner));
    assert_eq!(admin.get(&labels).await, json!(["Bad", "Good"]));
    let usage = json!([{
        "ruleChainId": outer["id"], "ruleNodeId": user["nodes"][0]["id"], "ruleChainName": "Outer",
        "ruleNodeName": "to inner", "labels": ["Bad", "Good"],
    }]);
    assert_eq!(admin.get(&format!("{labels}/usage")).await, usage);

    let mut renamed = saved.clone();
    renamed["nodes"][0]["name"] = json!("Fine");
    let renamed = admin
        .post("/api/ruleChain/metadata?updateRelated=false", &renamed)
        .await;
    let unchanged = json!([link(0, 1, "Good"), link(0, 2, "Bad"), link(1, 2, "Good")]);
    assert_eq!(metadata(&admin, &outer).await["connections"], unchanged);
    let mut again = renamed.clone();
    again["nodes"][1]["name"] = json!("Poor");
    admin.post("/api/ruleChain/metadata", &again).await;
    let followed = json!([link(0, 1, "Good"), link(0, 2, "Poor"), link(1, 2, "Good")]);
    assert_eq!(metadata(&admin, &outer).await["connections"], followed);
}

#[tokio::test]
async fn chains_are_taken_to_another_tenant_and_replace_those_of_their_names() {
    let world = RestFixture::demo().await;
    let (admin, stranger) = (world.admin().await, world.stranger().await);
    let (inner, outer) = (chain(&admin, "Inner").await, chain(&admin, "Outer").await);
    set_metadata(&admin, &inner, json!([node(FILTER, "f")]), json!([])).await;
    let tenant = admin.get("/api/auth/user").await["tenantId"].clone();
    let about_tenant =
        json!({ "type": FILTER, "name": "t", "configuration": { "limit": 1, "of": [tenant] } });
    let legacy = json!({
        "ruleChainId": outer["id"], "firstNodeIndex": 0, "nodes": [about_tenant],
        "ruleChainConnections": [{
            "fromIndex": 0, "targetRuleChainId": inner["id"], "type": "True",
            "additionalInfo": { "layoutX": 1, "description": "d", "ruleChainNodeId": "n" },
        }],
    });
    let saved = admin.post("/api/ruleChain/metadata", &legacy).await;
    assert_eq!(saved["nodes"][1]["type"], INPUT);
    assert_eq!(saved["nodes"][1]["name"], "Inner");
    assert_eq!(
        saved["nodes"][1]["configuration"],
        json!({ "ruleChainId": id(&inner) })
    );
    assert_eq!(saved["nodes"][1]["additionalInfo"], json!({ "layoutX": 1 }));
    assert_eq!(saved["connections"], json!([link(0, 1, "True")]));

    let exported = admin.get("/api/ruleChains/export?limit=10").await;
    assert_eq!(exported["ruleChains"].as_array().unwrap().len(), 3);
    assert!(!exported.to_string().contains(id(&inner)));
    let import = async |overwrite: bool| {
        let path = format!("/api/ruleChains/import?overwrite={overwrite}");
        stranger.post(&path, &exported).await
    };
    let results = import(true).await;
    let named = |results: &Value, name: &str| -> Value {
        let results = results.as_array().unwrap();
        results
            .iter()
            .find(|result| result["ruleChainName"] == name)
            .unwrap()
            .clone()
    };
    let root = named(&results, "Root Rule Chain");
    assert_eq!((&root["updated"], root.get("error")), (&json!(true), None));
    let imported = named(&results, "Outer");
    assert_eq!(imported.get("updated"), None);
    let chains = stranger.get("/api/ruleChains?pageSize=10&page=0").await;
    assert_eq!(chains["totalElements"], 3);
    let is_root = |chain: &&Value| chain["root"] == true;
    let roots = chains["data"].as_array().unwrap().iter().filter(is_root);
    assert_eq!(
        roots.map(|root| root["id"].clone()).collect::<Vec<_>>(),
        [root["ruleChainId"].clone()]
    );

    let imported = json!({ "id": imported["ruleChainId"] });
    let nodes = metadata(&stranger, &imported).await["nodes"].clone();
    assert_eq!(
        nodes[1]["configuration"]["ruleChainId"],
        named(&results, "Inner")["ruleChainId"]["id"]
    );
    let own = stranger.get("/api/auth/user").await["tenantId"].clone();
    assert_eq!(nodes[0]["configuration"]["of"], json!([own]));

    // A chain that cannot be imported does not prevent the import of the others.
    let mut broken = exported.clone();
    broken["metadata"][0]["nodes"][0]["type"] = json!("org.example.Unknown");
    let path = "/api/ruleChains/import";
    let results = stranger.post(path, &broken).await;
    let failed = results
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result.get("error").is_some());
    assert_eq!(failed.count(), 1);
    let chains = stranger.get("/api/ruleChains?pageSize=10&page=0").await;
    assert_eq!(chains["totalElements"], 6);
}

#[tokio::test]
async fn a_tenant_has_as_many_chains_as_its_profile_allows() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let profile = json!({
        "name": "small",
        "profileData": { "configuration": { "type": "DEFAULT", "maxRuleChains": 2 } },
    });
    let profile = sysadmin.post("/api/tenantProfile", &profile).await;
    let mut tenant = sysadmin
        .get("/api/tenants?pageSize=1&page=0&textSearch=Tenant")
        .await["data"][0]
        .clone();
    tenant["tenantProfileId"] = profile["id"].clone();
    sysadmin.post("/api/tenant", &tenant).await;
    chain(&admin, "second").await;
    let refused = admin
        .refused("POST", "/api/ruleChain", &json!({ "name": "third" }))
        .await;
    assert_eq!(refused, no(403, 41, "Rule chains limit reached"));
}

#[tokio::test]
async fn the_editor_is_told_of_the_classes_and_tries_scripts_out() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let class = admin.get(&format!("/api/component/{FILTER}")).await;
    assert_eq!(class["clazz"], FILTER);
    assert_eq!(
        (&class["type"], &class["scope"], &class["clusteringMode"]),
        (&json!("FILTER"), &json!("TENANT"), &json!("ENABLED"))
    );
    let definition = &class["configurationDescriptor"]["nodeDefinition"];
    assert_eq!(definition["relationTypes"], json!(["True", "False"]));
    assert_eq!(definition["defaultConfiguration"], json!({ "limit": 1 }));
    let path = "/api/component/org.example.Nothing";
    assert_eq!(admin.refused("GET", path, &Value::Null).await.0, 404);
    assert_eq!(admin.get("/api/components/FILTER").await, json!([class]));
    for types in ["FILTER,ACTION,FLOW", "FILTER,FLOW&componentTypes=ACTION"] {
        let both = admin
            .get(&format!("/api/components?componentTypes={types}"))
            .await;
        assert_eq!(both.as_array().unwrap().len(), 2, "{types}");
    }
    let on_edges = "/api/components?componentTypes=FILTER,ACTION&ruleChainType=EDGE";
    assert_eq!(world.sysadmin().await.get(on_edges).await, json!([class]));
    let path = "/api/components/MAGIC";
    assert_eq!(
        admin.refused("GET", path, &Value::Null).await,
        no(400, 31, "Unknown component type 'MAGIC'")
    );

    assert_eq!(admin.get("/api/ruleChain/tbelEnabled").await, json!(true));
    let mut request = json!({
        "script": "return msg;", "scriptType": "update", "argNames": ["msg", "metadata", "msgType"],
        "msg": "{\"t\":1}", "metadata": { "a": "b", "n": 1 }, "msgType": "POST_TELEMETRY_REQUEST",
    });
    let path = "/api/ruleChain/testScript";
    let answer = admin.post(&format!("{path}?scriptLang=TBEL"), &request).await;
    let output = r#"Tbel Update return msg; ["msg", "metadata", "msgType"] {"t":1} {"a": "b", "n": "1"} POST_TELEMETRY_REQUEST"#;
    assert_eq!(answer, json!({ "output": output, "error": "" }));
    request["script"] = json!("");
    let failed = json!({ "output": "", "error": "nothing to run" });
    assert_eq!(admin.post(path, &request).await, failed);
    for (script, status, told) in [("too many", 429, "one at a time"), ("no room", 503, "later")] {
        request["script"] = json!(script);
        let (refused, _, message) = admin.refused("POST", path, &request).await;
        assert_eq!((refused, message.as_str()), (status, told));
    }
    request["scriptType"] = json!("dance");
    let failed = json!({ "output": "", "error": "Unsupported script type: dance" });
    assert_eq!(admin.post(path, &request).await, failed);
}
