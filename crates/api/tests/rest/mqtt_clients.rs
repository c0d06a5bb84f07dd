//! Clients of the publish/subscribe broker: their credentials over REST, and what log-ins make of them.

use std::net::IpAddr;

use fieldline_core::ports::{BrokerClientType, BrokerRefusal, ClientGrant};
use fieldline_entities::broker_access::{BrokerAccessService, ClientLogin, PROVIDERS_KEY};
use fieldline_entities::services::Services;
use serde_json::{Value, json};

use crate::fixture::{RestFixture, no};

const CREDENTIALS: &str = "/api/mqtt/client/credentials";
/// After so long, other programs know of a change.
const KNOWN_MS: i64 = 30_001;

fn basic(name: &str, value: &Value) -> Value {
    json!({
        "name": name, "clientType": "APPLICATION", "credentialsType": "MQTT_BASIC",
        "credentialsValue": value.to_string(), "additionalInfo": { "description": "walled" },
    })
}

fn rules(topics: &[&str]) -> Value {
    json!({ "pubAuthRulePatterns": topics, "subAuthRulePatterns": topics })
}

/// Logs in, from this machine and without TLS.
async fn log_in(
    access: &BrokerAccessService,
    client_id: &str,
    username: Option<&str>,
    password: Option<&str>,
) -> Result<ClientGrant, BrokerRefusal> {
    let common_names = |_: bool| -> Result<Vec<String>, String> { Ok(Vec::new()) };
    let login = ClientLogin {
        client_id,
        username,
        password: password.map(str::as_bytes),
        address: IpAddr::from([127, 0, 0, 1]),
        is_tls: false,
        has_certificate: false,
        common_names: &common_names,
    };
    access.log_in(login).await
}

/// Logs in with the common names of proven certificates.
async fn show_certificate(
    access: &BrokerAccessService,
    names: &[&str],
) -> Result<ClientGrant, BrokerRefusal> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let common_names = move |_: bool| -> Result<Vec<String>, String> { Ok(names.clone()) };
    let login = ClientLogin {
        client_id: "certified",
        username: None,
        password: None,
        address: IpAddr::from([127, 0, 0, 1]),
        is_tls: true,
        has_certificate: true,
        common_names: &common_names,
    };
    access.log_in(login).await
}

#[tokio::test]
async fn credentials_are_kept_without_showing_their_password() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let value =
        json!({ "clientId": "c", "userName": "u", "password": "secret", "authRules": rules(&[".*"]) });
    let made = sysadmin.post(CREDENTIALS, &basic("one", &value)).await;
    assert_eq!(made["credentialsId"], "mixed|u|c");
    assert_eq!(made["additionalInfo"]["mqttBasicPasswordIsSet"], true);
    let shown: Value = serde_json::from_str(made["credentialsValue"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&shown["password"], &shown["clientId"]),
        (&Value::Null, &json!("c"))
    );
    let path = format!("{CREDENTIALS}/{}", made["id"].as_str().unwrap());
    assert_eq!(sysadmin.get(&path).await, made);
    assert_eq!(sysadmin.get(&format!("{CREDENTIALS}?name=one")).await, made);
    let listed = sysadmin.get(&format!("{CREDENTIALS}?pageSize=9&page=0")).await;
    assert_eq!(listed["totalElements"], 1);
    assert_eq!(listed["data"][0]["name"], "one");
    assert!(listed["data"][0].get("credentialsValue").is_none());
    assert_eq!(
        sysadmin.get(&format!("{CREDENTIALS}/info")).await,
        json!({ "deviceCredentialsCount": 0, "applicationCredentialsCount": 1, "totalCount": 1 })
    );
    let found = |query: &str| format!("/api/v2{}?pageSize=9&page=0&{query}", &CREDENTIALS[4..]);
    for (query, number) in [
        ("username=U", 1),
        ("clientId=x", 0),
        ("clientTypeList=DEVICE", 0),
        (
            "clientTypeList=DEVICE,APPLICATION&credentialsTypeList=MQTT_BASIC",
            1,
        ),
        ("certificateCn=c", 0),
    ] {
        assert_eq!(
            sysadmin.get(&found(query)).await["totalElements"],
            number,
            "{query}"
        );
    }
    assert_eq!(
        sysadmin
            .refused("GET", &found("clientTypeList=NOBODY"), &Value::Null)
            .await
            .0,
        400
    );

    let again = basic("two", &value);
    assert_eq!(
        sysadmin.refused("POST", CREDENTIALS, &again).await,
        no(400, 31, "Such MQTT Client credentials are already created!")
    );
    let other = json!({ "clientId": "d", "authRules": rules(&[".*"]) });
    assert_eq!(
        sysadmin.refused("POST", CREDENTIALS, &basic("one", &other)).await,
        no(
            400,
            31,
            "MQTT Client credentials with such name are already created!"
        )
    );
    sysadmin.delete(&path).await;
    assert_eq!(
        sysadmin.refused("DELETE", &path, &Value::Null).await,
        no(404, 32, "Requested item wasn't found!")
    );
}

#[tokio::test]
async fn a_password_is_changed_by_who_knows_it_alone() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let access = Services::new(world.context.clone()).broker_access;
    let value = json!({ "userName": "u", "password": "first", "authRules": rules(&["a/.*"]) });
    let mut made = sysadmin.post(CREDENTIALS, &basic("one", &value)).await;
    let path = format!("{CREDENTIALS}/{}", made["id"].as_str().unwrap());
    let grant = log_in(&access, "any", Some("u"), Some("first"))
        .await
        .ok()
        .unwrap();
    assert_eq!(grant.client_type, BrokerClientType::Application);
    let topics = grant.rules.unwrap();
    assert!(topics.may_publish("a/b") && !topics.may_publish("b"));
    for wrong in [Some("second"), Some(""), None] {
        let refused = log_in(&access, "any", Some("u"), wrong).await.err();
        assert_eq!(refused, Some(BrokerRefusal::Unknown), "{wrong:?}");
    }
    assert!(log_in(&access, "any", Some("u"), Some("first")).await.is_ok());

    // Whatever is saved, the password stays.
    let value = json!({ "userName": "u", "password": "other", "authRules": rules(&["b/.*"]) });
    made["credentialsValue"] = json!(value.to_string());
    sysadmin.post(CREDENTIALS, &made).await;
    world.clock.advance(KNOWN_MS);
    let grant = log_in(&access, "any", Some("u"), Some("first"))
        .await
        .ok()
        .unwrap();
    assert!(grant.rules.unwrap().may_publish("b/c"));

    let change = |current: &str, new: &str| json!({ "currentPassword": current, "newPassword": new });
    assert_eq!(
        sysadmin.refused("POST", &path, &change("wrong", "second")).await,
        no(400, 31, "Current password doesn't match!")
    );
    assert_eq!(
        sysadmin.refused("POST", &path, &change("first", "first")).await,
        no(400, 31, "New password should be different from existing!")
    );
    sysadmin.post(&path, &change("first", "second")).await;
    world.clock.advance(KNOWN_MS);
    assert!(log_in(&access, "any", Some("u"), Some("first")).await.is_err());
    assert!(log_in(&access, "any", Some("u"), Some("second")).await.is_ok());
    let unset = sysadmin.post(&path, &change("second", "")).await;
    assert_eq!(unset["additionalInfo"]["mqttBasicPasswordIsSet"], false);
    world.clock.advance(KNOWN_MS);
    assert!(log_in(&access, "any", Some("u"), None).await.is_ok());
    sysadmin.delete(&path).await;
    world.clock.advance(KNOWN_MS);
    assert!(log_in(&access, "any", Some("u"), None).await.is_err());
}

#[tokio::test]
async fn providers_say_how_clients_are_known() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let access = Services::new(world.context.clone()).broker_access;
    let listed = sysadmin.get("/api/mqtt/auth/providers?pageSize=9&page=0").await;
    let kinds: Vec<_> = listed["data"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&kinds[0]["type"], &kinds[1]["type"]),
        (&json!("MQTT_BASIC"), &json!("X_509"))
    );
    assert_eq!(
        (&kinds[0]["enabled"], &kinds[1]["enabled"]),
        (&json!(true), &json!(false))
    );
    let strategy = "/api/mqtt/auth/provider/basic/strategy";
    assert_eq!(sysadmin.get(strategy).await, "CLIENT_ID_AND_USERNAME");
    let provider = "/api/mqtt/auth/provider";
    let mut own = sysadmin.get(&format!("{provider}/type/MQTT_BASIC")).await;
    assert_eq!(
        sysadmin
            .get(&format!("{provider}/{}", own["id"].as_str().unwrap()))
            .await,
        own
    );
    assert_eq!(
        sysadmin
            .refused("GET", &format!("{provider}/type/LDAP"), &Value::Null)
            .await
            .0,
        400
    );
    let value = json!({ "clientId": "c", "authRules": rules(&[".*"]) });
    sysadmin.post(CREDENTIALS, &basic("one", &value)).await;
    assert!(log_in(&access, "c", None, None).await.is_ok());
    own["configuration"]["authStrategy"] = json!("USERNAME");
    sysadmin.post(provider, &own).await;
    assert_eq!(sysadmin.get(strategy).await, "USERNAME");
    world.clock.advance(KNOWN_MS);
    assert!(log_in(&access, "c", None, None).await.is_err());
    own["configuration"]["authStrategy"] = json!("NOBODY");
    assert_eq!(sysadmin.refused("POST", provider, &own).await.0, 400);
    // Whoever does not say that a provider is off leaves it on.
    let silent = json!({ "type": "MQTT_BASIC", "configuration": { "authStrategy": "USERNAME" } });
    assert_eq!(sysadmin.post(provider, &silent).await["enabled"], true);
    // Where nobody is asked, everybody comes in.
    let disable = format!("{provider}/{}/disable", own["id"].as_str().unwrap());
    sysadmin.post(&disable, &Value::Null).await;
    assert_eq!(sysadmin.post(provider, &silent).await["enabled"], false);
    world.clock.advance(KNOWN_MS);
    assert!(
        log_in(&access, "c", None, None)
            .await
            .ok()
            .unwrap()
            .rules
            .is_none()
    );

    // Settings that cannot be read let nobody in.
    let settings = &world.context.stores.settings;
    let mut stored = settings.admin(PROVIDERS_KEY).await.unwrap().unwrap();
    stored.json_value = json!({ "MQTT_BASIC": { "enabled": "no" } });
    settings.save_admin(stored).await.unwrap();
    world.clock.advance(KNOWN_MS);
    let refused = log_in(&access, "c", None, None).await.err();
    assert_eq!(refused, Some(BrokerRefusal::Unavailable));
}

#[tokio::test]
async fn certificates_let_in_whom_their_names_say() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let access = Services::new(world.context.clone()).broker_access;
    let certified = |name: &str, pattern: &str, is_regex: bool, groups: Value| {
        let value =
            json!({ "certCnPattern": pattern, "certCnIsRegex": is_regex, "authRulesMapping": groups });
        json!({ "name": name, "credentialsType": "X_509", "credentialsValue": value.to_string() })
    };
    let groups = json!({ "^dev-": rules(&["d/${cn}/.*"]), "-1$": rules(&["one"]) });
    sysadmin
        .post(CREDENTIALS, &certified("regex", "dev-[0-9]", true, groups))
        .await;
    let groups = json!({ ".*": rules(&["all"]) });
    sysadmin
        .post(CREDENTIALS, &certified("exact", "authority", false, groups))
        .await;
    assert!(
        show_certificate(&access, &["dev-1"]).await.is_err(),
        "not enabled"
    );
    let own = sysadmin.get("/api/mqtt/auth/provider/type/X_509").await;
    let enable = format!("/api/mqtt/auth/provider/{}/enable", own["id"].as_str().unwrap());
    sysadmin.post(&enable, &Value::Null).await;
    world.clock.advance(KNOWN_MS);
    let may = |grant: ClientGrant, topic: &str| grant.rules.unwrap().may_publish(topic);
    let grant = show_certificate(&access, &["dev-1"]).await.ok().unwrap();
    assert!(may(grant.clone(), "d/dev-1/x") && may(grant.clone(), "one") && !may(grant, "d/dev-2/x"));
    let grant = show_certificate(&access, &["dev-2"]).await.ok().unwrap();
    assert!(may(grant.clone(), "d/dev-2/x") && !may(grant, "one"));
    let grant = show_certificate(&access, &["x", "authority"]).await.ok().unwrap();
    assert!(may(grant, "all"));
    assert!(
        show_certificate(&access, &["a dev-7"]).await.is_err(),
        "no group of rules"
    );
    assert!(show_certificate(&access, &["x"]).await.is_err());
    assert!(show_certificate(&access, &[]).await.is_err());
}

#[tokio::test]
async fn blocked_clients_are_kept_out_and_the_refused_are_listed() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let access = Services::new(world.context.clone()).broker_access;
    let value = json!({ "userName": "u", "authRules": rules(&[".*"]) });
    sysadmin.post(CREDENTIALS, &basic("one", &value)).await;
    let path = "/api/blockedClient";
    let block = json!({ "type": "CLIENT_ID", "clientId": "bad", "description": "why" });
    let blocked = sysadmin.post(path, &block).await;
    assert_eq!(
        blocked,
        json!({
            "type": "CLIENT_ID", "expirationTime": 0, "status": "ACTIVE", "description": "why", "value": "bad",
            "regexMatchTarget": null,
        })
    );
    assert_eq!(
        sysadmin.refused("POST", path, &block).await,
        no(400, 31, "Such blocked client already exists!")
    );
    let until = crate::fixture::NOW + 60_000;
    let regex = json!({
        "type": "REGEX", "pattern": "x.*", "regexMatchTarget": "BY_CLIENT_ID", "expirationTime": until,
    });
    sysadmin.post(path, &regex).await;
    for wrong in [
        json!({ "type": "REGEX", "pattern": "(", "regexMatchTarget": "BY_CLIENT_ID" }),
        json!({ "type": "REGEX", "pattern": "a" }),
        json!({ "type": "USERNAME" }),
    ] {
        assert_eq!(sysadmin.refused("POST", path, &wrong).await.0, 400);
    }
    let address = |text: &str| json!({ "type": "IP_ADDRESS", "ipAddress": text });
    assert_eq!(
        sysadmin.refused("POST", path, &address("192.0.2")).await,
        no(400, 31, "Blocked client value should be an IP address")
    );
    let blocked = sysadmin.post(path, &address(" ::FFFF:192.0.2.1 ")).await;
    assert_eq!(blocked["value"], "192.0.2.1");
    let of_address = |text: &str| format!("{path}?type=IP_ADDRESS&value={text}");
    let refused = sysadmin
        .refused("DELETE", &of_address("192.0.2"), &Value::Null)
        .await;
    assert_eq!(refused.0, 400);
    sysadmin.delete(&of_address("::ffff:192.0.2.1")).await;
    for (client, refusal) in [
        ("bad", Some(BrokerRefusal::Banned)),
        ("x1", Some(BrokerRefusal::Banned)),
        ("good", None),
    ] {
        assert_eq!(log_in(&access, client, Some("u"), None).await.err(), refusal);
    }
    assert!(log_in(&access, "good", Some("v"), Some("w")).await.is_err());
    let refused = access
        .unauthorized(&fieldline_model::page::PageLink::first(9), |_| true)
        .unwrap();
    let ids: Vec<_> = refused
        .data
        .iter()
        .map(|client| client.client_id.as_str())
        .collect();
    assert_eq!(ids, ["good", "x1", "bad"]);
    assert_eq!(
        refused.data[0].reason,
        "Basic authentication failed: no credentials found matching clientId: good, username: v | X.509 certificate chain \
         authentication is disabled | JWT authentication is disabled | HTTP service authentication is disabled"
    );
    assert!(refused.data[0].password_provided && !refused.data[0].tls_used);
    assert!(log_in(&access, "good", Some("u"), None).await.is_ok());
    assert!(access.unauthorized_client("good").is_err(), "it was let in");

    world.clock.advance(60_001);
    assert!(
        log_in(&access, "x1", Some("u"), None).await.is_ok(),
        "it has expired"
    );
    let page = format!("{path}/v2?pageSize=9&page=0");
    let listed = sysadmin.get(&format!("{page}&typeList=REGEX")).await;
    assert_eq!(
        (&listed["totalElements"], &listed["data"][0]["status"]),
        (&json!(1), &json!("EXPIRED"))
    );
    assert_eq!(
        sysadmin.get(&format!("{page}&value=BA")).await["totalElements"],
        1
    );
    assert_eq!(sysadmin.get(&format!("{path}/ttl")).await, 10_080);
    let one = format!("{path}?type=CLIENT_ID&value=bad");
    sysadmin.delete(&one).await;
    assert_eq!(sysadmin.refused("DELETE", &one, &Value::Null).await.0, 404);
    world.clock.advance(KNOWN_MS);
    assert!(log_in(&access, "bad", Some("u"), None).await.is_ok());
    let list = sysadmin.get("/api/unauthorized/client?pageSize=9&page=0").await;
    assert_eq!(list["totalElements"], 0, "that of another program");
    sysadmin.delete("/api/unauthorized/client").await;
    let unknown = "/api/unauthorized/client?clientId=nobody";
    assert_eq!(sysadmin.refused("GET", unknown, &Value::Null).await.0, 404);
}

#[tokio::test]
async fn credentials_are_imported_line_by_line() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let access = Services::new(world.context.clone()).broker_access;
    let path = format!("{CREDENTIALS}/bulk_import");
    let columns = [
        "NAME",
        "CLIENT_TYPE",
        "CLIENT_ID",
        "PASSWORD",
        "PUB_AUTH_RULE_PATTERNS",
    ];
    let mapping = json!({
        "columns": columns.map(|kind| json!({ "type": kind })), "delimiter": ",", "authRulesDelimiter": ";",
        "header": true,
    });
    let file =
        "name,type,client,password,publish\na,application,c1,secret,x/.*;y\nb,,c2,,\nc,nobody,c3,,z\nd,,,,\n";
    let done = sysadmin
        .post(&path, &json!({ "file": file, "mapping": mapping }))
        .await;
    assert_eq!(
        (&done["created"], &done["updated"], &done["errors"]),
        (&json!(2), &json!(0), &json!(2)),
        "{done}"
    );
    assert_eq!(done["errorsList"][0], "Line 4: Unknown client type 'nobody'");
    let grant = log_in(&access, "c1", None, Some("secret")).await.ok().unwrap();
    assert_eq!(grant.client_type, BrokerClientType::Application);
    let topics = grant.rules.unwrap();
    assert!(topics.may_publish("y") && !topics.may_publish("z") && topics.may_subscribe("z"));
    let topics = log_in(&access, "c2", None, None)
        .await
        .ok()
        .unwrap()
        .rules
        .unwrap();
    assert!(!topics.may_publish("y"), "an empty cell permits nothing");

    let again = "name,type,client,password,publish\na,,c4,,all\na,,,other,all\n";
    let done = sysadmin
        .post(&path, &json!({ "file": again, "mapping": mapping }))
        .await;
    assert_eq!(
        (&done["updated"], &done["errors"]),
        (&json!(1), &json!(1)),
        "{done}"
    );
    world.clock.advance(KNOWN_MS);
    assert!(log_in(&access, "c1", None, Some("secret")).await.is_err());
    assert!(log_in(&access, "c4", None, Some("secret")).await.is_ok());
}
