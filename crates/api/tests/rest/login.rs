//! Login, tokens, passwords.

use axum::http::StatusCode;
use fieldline_api::Options;
use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture, no};

const OUTDATED: (u16, u64, &str) = (401, 11, "Token has expired");

#[tokio::test]
async fn whoever_logs_in_is_told_who_they_are() {
    let world = RestFixture::demo().await;
    for (email, password, authority) in [
        ("sysadmin@thingsboard.org", "sysadmin", "SYS_ADMIN"),
        ("tenant@thingsboard.org", "tenant", "TENANT_ADMIN"),
        ("customerC@thingsboard.org", "customer", "CUSTOMER_USER"),
        ("CUSTOMERc@thingsboard.ORG", "customer", "CUSTOMER_USER"),
    ] {
        let user = world.log_in(email, password).await.get("/api/auth/user").await;
        assert_eq!(user["authority"], authority);
        assert_eq!(
            user["email"].as_str().unwrap().to_lowercase(),
            email.to_lowercase()
        );
        assert_eq!(user["name"], user["email"]);
        assert!(!user.to_string().contains("argon2"));
    }
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_get_the_same_answer() {
    let world = RestFixture::demo().await;
    let answer = no(401, 10, "Invalid username or password");
    for (username, password) in [
        ("tenant@thingsboard.org", "wrong"),
        ("nobody@thingsboard.org", "tenant"),
        ("", ""),
    ] {
        let body = json!({ "username": username, "password": password });
        assert_eq!(
            world.nobody().refused("POST", "/api/auth/login", &body).await,
            answer
        );
    }
}

#[tokio::test]
async fn requests_without_a_good_token_are_not_let_in() {
    let world = RestFixture::demo().await;
    let path = "/api/auth/user";
    let failed = no(401, 10, "Authentication failed");
    assert_eq!(world.nobody().refused("GET", path, &Value::Null).await, failed);
    let garbage = world.with_token("garbage");
    assert_eq!(garbage.refused("GET", path, &Value::Null).await, failed);
    assert_eq!(
        world
            .nobody()
            .refused("GET", "/api/no/such/path", &Value::Null)
            .await,
        failed
    );
    let admin = world.admin().await;
    assert_eq!(
        admin.refused("GET", "/api/no/such/path", &Value::Null).await.0,
        404
    );
    let (head, signature) = admin.token.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let forged = world.with_token(&format!("{head}.{other}{}", &signature[1..]));
    let (status, code, message) = forged.refused("GET", path, &Value::Null).await;
    assert_eq!((status, code, message.as_str()), OUTDATED);
}

#[tokio::test]
async fn a_refresh_token_buys_new_pairs_until_it_expires() {
    let world = RestFixture::demo().await;
    let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    let pair = world.nobody().post("/api/auth/login", &login).await;
    let refresh = json!({ "refreshToken": pair["refreshToken"] });
    world.clock.advance(9_001_000);
    let access = world.with_token(pair["token"].as_str().unwrap());
    let (status, code, message) = access.refused("GET", "/api/auth/user", &Value::Null).await;
    assert_eq!((status, code, message.as_str()), OUTDATED);
    let pair = world.nobody().post("/api/auth/token", &refresh).await;
    let access = world.with_token(pair["token"].as_str().unwrap());
    access.get("/api/auth/user").await;
    // An access token does not work as a refresh token, nor the other way round.
    let swapped = json!({ "refreshToken": pair["token"] });
    assert_eq!(
        world
            .nobody()
            .refused("POST", "/api/auth/token", &swapped)
            .await
            .0,
        401
    );
    let swapped = world.with_token(pair["refreshToken"].as_str().unwrap());
    assert_eq!(
        swapped.refused("GET", "/api/auth/user", &Value::Null).await.0,
        401
    );
    world.clock.advance(604_800_000);
    let late = world.nobody().refused("POST", "/api/auth/token", &refresh).await;
    assert_eq!((late.0, late.1, late.2.as_str()), OUTDATED);
}

#[tokio::test]
async fn a_refresh_token_that_comes_again_ends_its_session_and_no_other() {
    let world = RestFixture::demo().await;
    let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    let first = world.nobody().post("/api/auth/login", &login).await;
    let other = world.admin().await;
    let refresh = |pair: &Value| json!({ "refreshToken": pair["refreshToken"] });
    let second = world.nobody().post("/api/auth/token", &refresh(&first)).await;
    // Another tab uses the same token a moment later, and gets the replacement that the first one got.
    world.clock.advance(29_000);
    let twin = world.nobody().post("/api/auth/token", &refresh(&first)).await;
    let third = world.nobody().post("/api/auth/token", &refresh(&twin)).await;
    let fourth = world.nobody().post("/api/auth/token", &refresh(&second)).await;
    let access = world.with_token(third["token"].as_str().unwrap());
    access.get("/api/auth/user").await;

    world.clock.advance(30_000);
    let (status, code, message) = world
        .nobody()
        .refused("POST", "/api/auth/token", &refresh(&first))
        .await;
    assert_eq!((status, code, message.as_str()), OUTDATED);
    for pair in [&third, &fourth] {
        let refused = world
            .nobody()
            .refused("POST", "/api/auth/token", &refresh(pair))
            .await;
        assert_eq!(refused.1, 11);
        let access = world.with_token(pair["token"].as_str().unwrap());
        assert_eq!(access.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
    }
    other.get("/api/auth/user").await;
}

#[tokio::test]
async fn logging_out_ends_this_session_and_no_other() {
    let world = RestFixture::demo().await;
    let first = world.admin().await;
    let second = world.admin().await;
    first.post("/api/auth/logout", &Value::Null).await;
    assert_eq!(first.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
    second.get("/api/auth/user").await;
    world.admin().await.get("/api/auth/user").await;
}

#[tokio::test]
async fn what_has_ended_stays_so_after_a_restart() {
    let mut world = RestFixture::demo().await;
    let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    let refresh = |pair: &Value| json!({ "refreshToken": pair["refreshToken"] });
    let path = "/api/auth/token";
    let nobody = world.nobody();
    let (first, second) = (
        nobody.post("/api/auth/login", &login).await,
        nobody.post("/api/auth/login", &login).await,
    );
    let bought = nobody.post(path, &refresh(&first)).await;
    let token = |pair: &Value| pair["token"].as_str().unwrap().to_owned();
    world
        .with_token(&token(&bought))
        .post("/api/auth/logout", &Value::Null)
        .await;
    world.restart();
    for pair in [&first, &bought] {
        let client = world.with_token(&token(pair));
        assert_eq!(client.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
        assert_eq!(client.refused("POST", path, &refresh(pair)).await.1, 11);
    }
    world.with_token(&token(&second)).get("/api/auth/user").await;
    let next = world.nobody().post(path, &refresh(&second)).await;
    world.restart();
    world.clock.advance(31_000);
    assert_eq!(
        world.nobody().refused("POST", path, &refresh(&second)).await.1,
        11
    );
    world.restart();
    assert_eq!(world.nobody().refused("POST", path, &refresh(&next)).await.1, 11);
}

#[tokio::test]
async fn people_see_and_end_their_own_sessions() {
    let world = RestFixture::demo().await;
    let path = "/api/user/sessions";
    let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    let token = |pair: &Value| pair["token"].as_str().unwrap().to_owned();
    let refresh = |pair: &Value| json!({ "refreshToken": pair["refreshToken"] });
    // Tokens of the demo users are valid from the second after they were created.
    let start = NOW + 10_000;
    world.clock.advance(10_000);
    let first = world.nobody().post("/api/auth/login", &login).await;
    world.clock.advance(60_000);
    let second = world.nobody().post("/api/auth/login", &login).await;
    let customer = world.customer_user().await;
    let (there, here) = (
        world.with_token(&token(&first)),
        world.with_token(&token(&second)),
    );
    let listed = here.get(path).await;
    let ids = [0, 1].map(|index: usize| listed[index]["sessionId"].as_str().unwrap().to_owned());
    assert_eq!(
        listed,
        json!([
            {
                "sessionId": ids[0], "createdTime": start + 60_000, "lastUsedTime": start + 60_000, "current": true,
                "clientAddress": "192.0.2.1", "browser": "Unknown", "os": "Unknown",
            },
            {
                "sessionId": ids[1], "createdTime": start, "lastUsedTime": start, "current": false,
                "clientAddress": "192.0.2.1", "browser": "Unknown", "os": "Unknown",
            },
        ])
    );
    world.clock.advance(60_000);
    there.get("/api/auth/user").await;
    world.clock.advance(10_000);
    assert_eq!(here.get(path).await[1]["lastUsedTime"], start + 120_000);
    assert_eq!(customer.get(path).await.as_array().unwrap().len(), 1);

    let one = format!("{path}/{}", ids[1]);
    let unknown = no(404, 32, &format!("Session with id [{}] is not found", ids[1]));
    assert_eq!(customer.refused("DELETE", &one, &Value::Null).await, unknown);
    there.get("/api/auth/user").await;
    here.delete(&one).await;
    assert_eq!(here.refused("DELETE", &one, &Value::Null).await, unknown);
    assert_eq!(there.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
    let refused = world
        .nobody()
        .refused("POST", "/api/auth/token", &refresh(&first))
        .await;
    assert_eq!(refused.1, 11);

    let third = world.nobody().post("/api/auth/login", &login).await;
    here.delete(path).await;
    let ended = world.with_token(&token(&third));
    assert_eq!(ended.refused("GET", path, &Value::Null).await.1, 11);
    let refused = world
        .nobody()
        .refused("POST", "/api/auth/token", &refresh(&third))
        .await;
    assert_eq!(refused.1, 11);
    customer.get("/api/auth/user").await;

    // A new password ends what was opened before, and this session goes on.
    world.nobody().post("/api/auth/login", &login).await;
    assert_eq!(here.get(path).await.as_array().unwrap().len(), 2);
    let change = json!({ "currentPassword": "tenant", "newPassword": "new-password" });
    let pair = here.post("/api/auth/changePassword", &change).await;
    let left = world.with_token(&token(&pair)).get(path).await;
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["sessionId"], ids[0]);
    assert_eq!(left[0]["createdTime"], start + 60_000);
}

#[tokio::test]
async fn a_new_password_outdates_every_token_issued_before() {
    let world = RestFixture::demo().await;
    let path = "/api/auth/changePassword";
    let admin = world.admin().await;
    let change = |current: &str, new: &str| json!({ "currentPassword": current, "newPassword": new });
    assert_eq!(
        admin
            .refused("POST", path, &change("wrong", "new-password"))
            .await,
        no(400, 31, "Current password doesn't match!")
    );
    assert_eq!(
        admin.refused("POST", path, &change("tenant", "tenant")).await,
        no(400, 31, "New password should be different from existing!")
    );
    assert_eq!(
        admin.refused("POST", path, &change("tenant", "short")).await,
        no(400, 31, "Password must be 6 or more characters in length.")
    );
    let pair = admin.post(path, &change("tenant", "new-password")).await;
    assert_eq!(admin.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
    let fresh = world.with_token(pair["token"].as_str().unwrap());
    fresh.get("/api/auth/user").await;
    world.log_in("tenant@thingsboard.org", "new-password").await;
    let old = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    assert_eq!(
        world.nobody().refused("POST", "/api/auth/login", &old).await.1,
        10
    );
}

#[tokio::test]
async fn guessing_locks_the_user_out_for_a_while_and_slows_the_address_down() {
    let options = Options {
        max_failed_logins: 3,
        logins_per_minute: 20,
        ..Options::default()
    };
    let world = RestFixture::with(options).await;
    let login = |user: &str, password: &str| json!({ "username": user, "password": password });
    let (user, path) = ("tenant@thingsboard.org", "/api/auth/login");
    for _ in 0..3 {
        world.nobody().refused("POST", path, &login(user, "guess")).await;
    }
    assert_eq!(
        world.nobody().refused("POST", path, &login(user, "tenant")).await,
        no(401, 10, "User account is locked due to security policy")
    );
    world.clock.advance(300_000);
    world.admin().await;
    for number in 0..19 {
        let other = format!("user-{number}@example.org");
        world
            .nobody()
            .refused("POST", path, &login(&other, "guess"))
            .await;
    }
    let (status, code, _) = world.nobody().refused("POST", path, &login(user, "tenant")).await;
    assert_eq!((status, code), (429, 33));
}

#[tokio::test]
async fn malformed_and_oversized_requests_get_the_error_body() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let (status, text) = admin.send("POST", "/api/device", "{\"name\":").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["errorCode"], 31);
    let (status, _) = admin
        .send("POST", "/api/device", vec![b' '; (16 << 20) + 1])
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(admin.refused("PATCH", "/api/device", &Value::Null).await.0, 405);
    assert_eq!(
        admin.refused("GET", "/api/device/not-a-uuid", &Value::Null).await,
        no(400, 31, "Invalid UUID string: not-a-uuid")
    );
    let policy = world.nobody().get("/api/noauth/userPasswordPolicy").await;
    assert_eq!(policy["minimumLength"], 6);
}
