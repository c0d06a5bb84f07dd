//! API keys.

use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, RestFixture, no};

fn key(user: &Value, description: &str) -> Value {
    json!({ "userId": user["id"], "description": description, "enabled": true, "expirationTime": 0 })
}

fn id_of(key: &Value) -> &str {
    assert_eq!(key["id"]["entityType"], "API_KEY");
    key["id"]["id"].as_str().unwrap()
}

async fn status(world: &RestFixture, scheme: &str, value: &str) -> u16 {
    let request = Request::get("/api/auth/user")
        .header(header::AUTHORIZATION, format!("{scheme} {value}"))
        .body(axum::body::Body::empty())
        .unwrap();
    tower::ServiceExt::oneshot(world.router.clone(), request)
        .await
        .unwrap()
        .status()
        .as_u16()
}

async fn put(client: &FixtureClient<'_>, path: &str, body: &str) -> Value {
    let (status, text) = client.send("PUT", path, body.to_owned()).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_key_opens_what_its_user_may_see_as_long_as_it_counts() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let me = admin.get("/api/auth/user").await;
    let made = admin.post("/api/apiKey", &key(&me, "import")).await;
    let value = made["value"].as_str().unwrap();
    assert!(value.starts_with("tb_") && value.len() > 60);
    assert_eq!(status(&world, "ApiKey", value).await, 200);
    assert_eq!(status(&world, "apikey", value).await, 200);
    assert_eq!(status(&world, "Bearer", value).await, 401);
    for wrong in ["tb_nothing", "", &value[1..], &"tb_x".repeat(100)] {
        assert_eq!(status(&world, "ApiKey", wrong).await, 401, "{wrong}");
    }
    let list = format!(
        "/api/apiKeys/{}?pageSize=9&page=0",
        me["id"]["id"].as_str().unwrap()
    );
    let listed = admin.get(&list).await;
    assert_eq!(listed["data"][0]["description"], "import");
    assert!(!listed.to_string().contains(value), "never shown again");

    let path = format!("/api/apiKey/{}", id_of(&made));
    assert_eq!(
        put(&admin, &format!("{path}/description"), "\"other\"").await["description"],
        "other"
    );
    assert_eq!(
        put(&admin, &format!("{path}/description"), "bare text").await["description"],
        "bare text"
    );
    assert_eq!(
        put(&admin, &format!("{path}/enabled/false"), "").await["enabled"],
        false
    );
    assert_eq!(status(&world, "ApiKey", value).await, 401);
    put(&admin, &format!("{path}/enabled/true"), "").await;
    assert_eq!(status(&world, "ApiKey", value).await, 200);
    let mut saved = listed["data"][0].clone();
    saved["description"] = json!("third");
    let again = admin.post("/api/apiKey", &saved).await;
    assert_eq!(
        (&again["description"], &again["value"]),
        (&json!("third"), &Value::Null)
    );
    admin.delete(&path).await;
    assert_eq!(status(&world, "ApiKey", value).await, 401);
    assert_eq!(admin.refused("DELETE", &path, &Value::Null).await.0, 404);
    assert_eq!(
        admin.refused("POST", "/api/apiKey", &key(&me, " ")).await,
        no(400, 31, "API key description should be specified!")
    );
}

#[tokio::test]
async fn keys_end_with_their_time_and_with_their_user() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let me = user.get("/api/auth/user").await;
    let mut short = key(&me, "short");
    short["expirationTime"] = json!(crate::fixture::NOW + 60_000);
    let short = user.post("/api/apiKey", &short).await;
    let long = admin
        .post("/api/apiKey", &key(&me, "made by an administrator"))
        .await;
    let (short, long) = (short["value"].as_str().unwrap(), long["value"].as_str().unwrap());
    assert_eq!(
        (
            status(&world, "ApiKey", short).await,
            status(&world, "ApiKey", long).await
        ),
        (200, 200)
    );
    world.clock.advance(60_001);
    assert_eq!(
        (
            status(&world, "ApiKey", short).await,
            status(&world, "ApiKey", long).await
        ),
        (401, 200)
    );
    let list = format!(
        "/api/apiKeys/{}?pageSize=9&page=0&sortProperty=description&sortOrder=DESC",
        me["id"]["id"].as_str().unwrap()
    );
    assert_eq!(user.get(&list).await["data"][0]["expired"], true);
    let path = format!("/api/user/{}", me["id"]["id"].as_str().unwrap());
    admin
        .post(
            &format!("{path}/userCredentialsEnabled?userCredentialsEnabled=false"),
            &Value::Null,
        )
        .await;
    assert_eq!(status(&world, "ApiKey", long).await, 401, "its user is out");
    admin.delete(&path).await;
    assert_eq!(status(&world, "ApiKey", long).await, 401);
}

#[tokio::test]
async fn nobody_makes_or_changes_keys_of_those_they_do_not_run() {
    let world = RestFixture::demo().await;
    let (admin, user, stranger) = (
        world.admin().await,
        world.customer_user().await,
        world.stranger().await,
    );
    let boss = admin.get("/api/auth/user").await;
    let made = admin.post("/api/apiKey", &key(&boss, "mine")).await;
    for client in [&user, &stranger] {
        let refused = client.refused("POST", "/api/apiKey", &key(&boss, "stolen")).await;
        assert!([403, 404].contains(&refused.0));
        let path = format!("/api/apiKey/{}", id_of(&made));
        assert_eq!(client.refused("DELETE", &path, &Value::Null).await.0, 404);
        let list = format!(
            "/api/apiKeys/{}?pageSize=9&page=0",
            boss["id"]["id"].as_str().unwrap()
        );
        assert!([403, 404].contains(&client.refused("GET", &list, &Value::Null).await.0));
    }
}
