//! Password policy, lockout and token settings.

use fieldline_entities::services::Services;
use serde_json::{Value, json};

use crate::fixture::{NOW, RestFixture, id, no};

const SETTINGS: &str = "/api/admin/securitySettings";

#[tokio::test]
async fn passwords_keep_to_the_policy() {
    let world = RestFixture::demo().await;
    let (sysadmin, user) = (world.sysadmin().await, world.customer_user().await);
    let mut settings = sysadmin.get(SETTINGS).await;
    assert_eq!(settings["passwordPolicy"]["minimumLength"], 6);
    assert_eq!(settings["userActivationTokenTtl"], 24);
    settings["passwordPolicy"]["minimumLength"] = json!(8);
    settings["passwordPolicy"]["minimumDigits"] = json!(1);
    settings["passwordPolicy"]["passwordReuseFrequencyDays"] = json!(2);
    assert_eq!(sysadmin.post(SETTINGS, &settings).await, settings);
    assert_eq!(sysadmin.get(SETTINGS).await, settings);
    let policy = world.nobody().get("/api/noauth/userPasswordPolicy").await;
    assert_eq!(policy, settings["passwordPolicy"]);

    let change = |from: &str, to: &str| json!({ "currentPassword": from, "newPassword": to });
    let path = "/api/auth/changePassword";
    assert_eq!(
        user.refused("POST", path, &change("customer", "short")).await,
        no(
            400,
            31,
            "Password must be 8 or more characters in length.\nPassword must contain 1 or more digit characters."
        )
    );
    let pair = user.post(path, &change("customer", "number 1")).await;
    let user = world.with_token(pair["token"].as_str().unwrap());
    world.clock.advance(1_000);
    let pair = user.post(path, &change("number 1", "number 2")).await;
    let user = world.with_token(pair["token"].as_str().unwrap());
    assert_eq!(
        user.refused("POST", path, &change("number 2", "number 1")).await,
        no(400, 31, "Password was already used for the last 2 days")
    );
    world.clock.advance(3 * 86_400_000);
    let user = world.log_in("customer@thingsboard.org", "number 2").await;
    user.post(path, &change("number 2", "number 1")).await;

    let mut wrong = settings.clone();
    wrong["passwordPolicy"]["maximumLength"] = json!(9);
    wrong["passwordPolicy"]["minimumDigits"] = json!(10);
    assert_eq!(
        sysadmin.refused("POST", SETTINGS, &wrong).await.0,
        401,
        "the session has expired meanwhile"
    );
    let sysadmin = world.sysadmin().await;
    assert_eq!(sysadmin.refused("POST", SETTINGS, &wrong).await.0, 400);
}

#[tokio::test]
async fn old_and_weak_passwords_are_replaced_before_anybody_comes_in() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let mut settings = sysadmin.get(SETTINGS).await;
    settings["passwordPolicy"]["passwordExpirationPeriodDays"] = json!(1);
    sysadmin.post(SETTINGS, &settings).await;
    let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    world.nobody().post("/api/auth/login", &login).await;
    world.clock.advance(86_400_001);
    let (status, text) = world
        .nobody()
        .send("POST", "/api/auth/login", login.to_string())
        .await;
    let refused: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status.as_u16(), &refused["errorCode"]), (401, &json!(15)));
    let reset = json!({ "resetToken": refused["resetToken"], "password": "a new one" });
    world.nobody().post("/api/noauth/resetPassword", &reset).await;
    world.log_in("tenant@thingsboard.org", "a new one").await;
    let wrong = json!({ "username": "tenant@thingsboard.org", "password": "wrong" });
    let refused = world.nobody().refused("POST", "/api/auth/login", &wrong).await;
    assert_eq!(
        refused,
        no(401, 10, "Invalid username or password"),
        "no token for those who guess"
    );
}

#[tokio::test]
async fn of_log_ins_at_the_same_time_all_get_the_means_to_replace_an_expired_password() {
    let world = RestFixture::demo().await;
    let services = Services::new(world.context.clone());
    let stores = &world.context.stores.users;
    let user = stores.by_email("tenant@thingsboard.org").await.unwrap().unwrap();
    // Both requests have read the credentials before either has made a token.
    let credentials = stores.credentials(user.id).await.unwrap().unwrap();
    let first = services.users.expired_reset(credentials.clone()).await.unwrap();
    let second = services.users.expired_reset(credentials.clone()).await.unwrap();
    assert!(first.is_some() && first == second);
    let now = stores.credentials(user.id).await.unwrap().unwrap();
    services
        .users
        .set_password(&user, now, "a new one")
        .await
        .unwrap();
    let too_late = services.users.expired_reset(credentials).await.unwrap();
    assert_eq!(too_late, None, "the old password is good for nothing any longer");
}

#[tokio::test]
async fn a_weak_password_has_to_be_reset_where_that_is_forced() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let mut settings = sysadmin.get(SETTINGS).await;
    settings["passwordPolicy"]["minimumLength"] = json!(7);
    sysadmin.post(SETTINGS, &settings).await;
    world.admin().await;
    settings["passwordPolicy"]["forceUserToResetPasswordIfNotValid"] = json!(true);
    sysadmin.post(SETTINGS, &settings).await;
    let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
    let refused = world.nobody().refused("POST", "/api/auth/login", &login).await;
    assert_eq!((refused.0, refused.1), (401, 45));
    world.customer_user().await;
}

#[tokio::test]
async fn too_many_wrong_passwords_disable_a_user_until_an_administrator_helps() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin, user) = (
        world.sysadmin().await,
        world.admin().await,
        world.customer_user().await,
    );
    let mail = json!({ "key": "mail", "jsonValue": { "smtpHost": "mail.example.org" } });
    sysadmin.post("/api/admin/settings", &mail).await;
    let mut settings = sysadmin.get(SETTINGS).await;
    settings["maxFailedLoginAttempts"] = json!(2);
    settings["userLockoutNotificationEmail"] = json!("guard@example.org");
    sysadmin.post(SETTINGS, &settings).await;
    let login = |password: &str| json!({ "username": "customer@thingsboard.org", "password": password });
    let nobody = world.nobody();
    for _ in 0..2 {
        assert_eq!(
            nobody.refused("POST", "/api/auth/login", &login("wrong")).await,
            no(401, 10, "Invalid username or password")
        );
    }
    nobody.post("/api/auth/login", &login("customer")).await;
    let path = format!("/api/user/{}", id(&user.get("/api/auth/user").await));
    for failures in 0..3 {
        let shown = &admin.get(&path).await["additionalInfo"];
        assert_eq!(
            (&shown["failedLoginAttempts"], &shown["lastLoginTs"]),
            (&json!(failures), &json!(NOW))
        );
        assert_eq!(
            nobody.refused("POST", "/api/auth/login", &login("wrong")).await,
            no(401, 10, "Invalid username or password"),
            "the same as for somebody who does not exist"
        );
    }
    let told = world.mails.next().await;
    assert!(told.to == "guard@example.org" && told.body.contains("customer@thingsboard.org"));
    assert_eq!(
        user.refused("GET", "/api/auth/user", &Value::Null).await.1,
        11,
        "out at once"
    );
    assert_eq!(
        nobody
            .refused("POST", "/api/auth/login", &login("customer"))
            .await,
        no(401, 10, "User account is not active")
    );
    let users = admin
        .get("/api/users?pageSize=9&page=0&textSearch=customer@")
        .await;
    let path = format!(
        "/api/user/{}/userCredentialsEnabled?userCredentialsEnabled=true",
        id(&users["data"][0])
    );
    admin.post(&path, &Value::Null).await;
    world.customer_user().await;

    let login = json!({ "username": "sysadmin@thingsboard.org", "password": "wrong" });
    for _ in 0..4 {
        nobody.refused("POST", "/api/auth/login", &login).await;
    }
    world.sysadmin().await;
    sysadmin.get(SETTINGS).await;
}

#[tokio::test]
async fn a_session_without_a_password_is_opened_for_the_public_customer_alone() {
    let world = RestFixture::demo().await;
    for client in [
        world.admin().await,
        world.sysadmin().await,
        world.customer_user().await,
    ] {
        let user = client.get("/api/auth/user").await;
        let nobody = world.nobody();
        for id in [id(&user), user["customerId"]["id"].as_str().unwrap()] {
            let login = json!({ "publicId": id });
            assert_eq!(
                nobody.refused("POST", "/api/auth/login/public", &login).await,
                no(401, 10, "Invalid username or password"),
                "{user}"
            );
        }
    }
}

#[tokio::test]
async fn what_nobody_has_to_prove_anything_for_takes_small_bodies_only() {
    let world = RestFixture::demo().await;
    let login = json!({ "username": "x", "password": "y".repeat(100_000) });
    assert_eq!(
        world.nobody().refused("POST", "/api/auth/login", &login).await.0,
        413
    );
}

#[tokio::test]
async fn tokens_are_made_as_the_administrator_says() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let path = "/api/admin/jwtSettings";
    let settings = sysadmin.get(path).await;
    assert_eq!(
        settings,
        json!({ "tokenExpirationTime": 9000, "refreshTokenExpTime": 604_800, "tokenIssuer": "thingsboard.io" }),
        "the key is not shown"
    );
    let mut short = settings.clone();
    short["tokenExpirationTime"] = json!(60);
    let pair = sysadmin.post(path, &short).await;
    let again = world.with_token(pair["token"].as_str().unwrap());
    assert_eq!(again.get(path).await["tokenExpirationTime"], 60);
    admin.get("/api/auth/user").await;
    // Tokens issued right after the demo was created are valid from the next second on.
    world.clock.advance(61_000);
    assert_eq!(again.refused("GET", path, &Value::Null).await.1, 11);
    admin.get("/api/auth/user").await;

    let mut key = settings.clone();
    key["tokenSigningKey"] = json!(
        "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OQ=="
    );
    let pair = sysadmin.post(path, &key).await;
    assert_eq!(
        admin.refused("GET", "/api/auth/user", &Value::Null).await.1,
        11,
        "signed with the old key"
    );
    let sysadmin = world.with_token(pair["token"].as_str().unwrap());
    key["tokenSigningKey"] = json!("c2hvcnQ=");
    assert_eq!(sysadmin.refused("POST", path, &key).await.0, 400);
    let stored = fieldline_api::stored_token_settings(&*world.context.stores.settings)
        .await
        .unwrap();
    assert!(stored.is_some(), "known to the next start");
    world.admin().await;
}
