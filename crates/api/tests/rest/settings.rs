//! Settings of the installation, mails, and user settings.

use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, RestFixture, id, no};

fn mail_server() -> Value {
    json!({ "key": "mail", "jsonValue": {
        "mailFrom": "iot@example.org", "smtpHost": "mail.example.org", "smtpPort": "25", "password": "very secret",
    } })
}

fn link_in(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("http")).unwrap()
}

async fn set_mail_server(sysadmin: &FixtureClient<'_>) {
    sysadmin.post("/api/admin/settings", &mail_server()).await;
}

#[tokio::test]
async fn settings_are_saved_and_their_secrets_never_shown() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let general = sysadmin.get("/api/admin/settings/general").await;
    assert_eq!(general["jsonValue"]["baseUrl"], "http://localhost:8080");
    assert_eq!(
        sysadmin.get("/api/admin/settings/mail").await["jsonValue"]["smtpHost"],
        "localhost"
    );
    assert_eq!(
        sysadmin.get("/api/admin/featuresInfo").await["emailEnabled"],
        false
    );
    let saved = sysadmin.post("/api/admin/settings", &mail_server()).await;
    assert_eq!(saved["id"]["entityType"], "ADMIN_SETTINGS");
    let mut shown = sysadmin.get("/api/admin/settings/mail").await;
    assert_eq!(shown, saved);
    assert!(!shown.to_string().contains("very secret"));
    assert_eq!(
        sysadmin.get("/api/admin/featuresInfo").await["emailEnabled"],
        true
    );
    shown["jsonValue"]["smtpPort"] = json!("26");
    let changed = sysadmin.post("/api/admin/settings", &shown).await;
    assert_eq!(changed["id"], saved["id"]);
    let stored = world
        .context
        .stores
        .settings
        .admin("mail")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        stored.json_value["password"], "very secret",
        "what was not shown stays"
    );
    for key in ["jwt", "securitySettings", "nothing"] {
        let path = format!("/api/admin/settings/{key}");
        assert_eq!(sysadmin.refused("GET", &path, &Value::Null).await.0, 404);
    }
    for body in [
        json!({ "key": "jwt", "jsonValue": {} }),
        json!({ "key": "x" }),
        json!({ "jsonValue": {} }),
    ] {
        assert_eq!(
            sysadmin.refused("POST", "/api/admin/settings", &body).await.0,
            400
        );
    }

    sysadmin.post("/api/admin/settings/testMail", &shown).await;
    let mail = world.mails.next().await;
    assert_eq!(mail.to, "sysadmin@thingsboard.org");
    shown["jsonValue"]["smtpHost"] = json!("nowhere");
    let (status, code, message) = sysadmin
        .refused("POST", "/api/admin/settings/testMail", &shown)
        .await;
    assert_eq!((status, code), (400, 31));
    assert!(message.contains("no such host"), "{message}");
}

#[tokio::test]
async fn text_messages_are_tried_out_with_secrets_that_are_never_shown() {
    let world = RestFixture::demo().await;
    let sysadmin = world.sysadmin().await;
    let smpp = json!({ "type": "SMPP", "host": "sms.example.org", "password": "very secret" });
    let test = "/api/admin/settings/testSms";
    let to = |provider: &Value| json!({ "providerConfiguration": provider, "numberTo": " +4912345 ", "message": "hi" });
    sysadmin.post(test, &to(&smpp)).await;
    assert_eq!(world.phones.take(), [("+4912345".to_owned(), "hi".to_owned())]);

    let settings = |provider: &Value| json!({ "key": "sms", "jsonValue": provider });
    let bare = json!({ "type": "SMPP", "host": "sms.example.org" });
    let refused = sysadmin
        .refused("POST", "/api/admin/settings", &settings(&bare))
        .await;
    assert_eq!(refused, no(400, 31, "password: must not be empty"));
    assert_eq!(sysadmin.get("/api/admin/featuresInfo").await["smsEnabled"], false);
    sysadmin.post("/api/admin/settings", &settings(&smpp)).await;
    let shown = sysadmin.get("/api/admin/settings/sms").await;
    assert_eq!(shown["jsonValue"], bare);
    assert_eq!(sysadmin.get("/api/admin/featuresInfo").await["smsEnabled"], true);
    // Secrets that were not returned are kept, but not used for another provider.
    sysadmin.post(test, &to(&shown["jsonValue"])).await;
    let other = json!({ "type": "TWILIO" });
    assert_eq!(
        sysadmin.refused("POST", test, &to(&other)).await,
        no(400, 31, "Unable to send SMS: password: must not be empty")
    );
    let wrong = json!({ "type": "SMPP", "password": "guess" });
    assert_eq!(
        sysadmin.refused("POST", test, &to(&wrong)).await,
        no(400, 31, "Unable to send SMS: wrong password")
    );
    for (number, message) in [("", "hi"), ("+1,+2", "hi"), ("+4912345", "")] {
        let body = json!({ "providerConfiguration": smpp, "numberTo": number, "message": message });
        assert_eq!(sysadmin.refused("POST", test, &body).await.0, 400);
    }
    assert_eq!(world.phones.take().len(), 1);
}

#[tokio::test]
async fn an_administrator_allows_the_use_of_a_mail_account_once() {
    let world = RestFixture::demo().await;
    let (sysadmin, browser) = (world.sysadmin().await, world.nobody());
    let authorize = "/api/admin/mail/oauth2/authorize?prevUri=/settings/mail";
    assert_eq!(sysadmin.refused("GET", authorize, &Value::Null).await.0, 404);
    let mut server = json!({ "key": "mail", "jsonValue": {
        "smtpHost": "mail.example.org", "enableOauth2": true, "providerId": "OFFICE_365", "clientId": "c",
        "clientSecret": "s", "authUri": "https://provider.example.org/auth", "tokenGenerated": true,
    } });
    let saved = sysadmin.post("/api/admin/settings", &server).await;
    assert_eq!(saved["jsonValue"]["tokenGenerated"], false);
    assert_eq!(
        sysadmin.get("/api/admin/mail/oauth2/loginProcessingUrl").await,
        "/api/admin/mail/oauth2/code"
    );
    let begin = async |path: &str| {
        let url = sysadmin.get(path).await;
        let state = url
            .as_str()
            .unwrap()
            .strip_prefix("https://provider.example.org/auth?state=");
        format!("/api/admin/mail/oauth2/code?state={}", state.unwrap())
    };
    let code = begin(authorize).await;
    for wrong in [
        "/api/admin/mail/oauth2/code?code=good",
        "/api/admin/mail/oauth2/code?code=good&state=guess",
    ] {
        let refused = browser.refused("GET", wrong, &Value::Null).await;
        assert_eq!(
            refused,
            no(400, 31, "Refresh token was not generated, invalid state param")
        );
    }
    assert_eq!(browser.send("GET", &format!("{code}&code=good"), "").await.0, 303);
    let again = browser.send("GET", &format!("{code}&code=good"), "").await;
    assert_eq!(again.0, 400, "an answer counts once");
    for (answer, reason) in [
        (
            "error=access_denied",
            "Refresh token was not generated, the provider answered 'access_denied'",
        ),
        ("code=bad", "invalid_grant"),
    ] {
        let code = begin("/api/admin/mail/oauth2/authorize").await;
        let refused = browser
            .refused("GET", &format!("{code}&{answer}"), &Value::Null)
            .await;
        assert_eq!(refused, no(400, 31, reason));
    }
    let settings = &world.context.stores.settings;
    let stored = settings.admin("mail").await.unwrap().unwrap().json_value;
    assert_eq!(
        (&stored["refreshToken"], &stored["refreshTokenExpires"]),
        (&json!("token of \"s\""), &json!(NOW + 90 * 86_400_000))
    );
    let shown = sysadmin.get("/api/admin/settings/mail").await;
    assert_eq!(shown["jsonValue"]["tokenGenerated"], true);
    assert!(!shown.to_string().contains("token of"));
    // With another client id, the refresh token is dropped.
    server["jsonValue"]["clientId"] = json!("another");
    let saved = sysadmin.post("/api/admin/settings", &server).await;
    assert_eq!(saved["jsonValue"]["tokenGenerated"], false);
    let stored = settings.admin("mail").await.unwrap().unwrap().json_value;
    assert!(stored.get("refreshToken").is_none());
}

#[tokio::test]
async fn new_users_are_mailed_their_link() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let new = |email: &str| json!({ "email": email, "authority": "TENANT_ADMIN" });
    // Without a mail server, administrators must fetch the link.
    admin.post("/api/user", &new("first@example.org")).await;
    set_mail_server(&sysadmin).await;
    admin
        .post("/api/user?sendActivationMail=false", &new("second@example.org"))
        .await;
    assert!(world.mails.take().is_empty());
    let third = admin.post("/api/user", &new("third@example.org")).await;
    let mail = world.mails.next().await;
    assert_eq!(mail.to, "third@example.org");
    let link = admin
        .text(&format!("/api/user/{}/activationLink", id(&third)))
        .await;
    assert_eq!(link_in(&mail.body), link);
    admin
        .post(
            "/api/user/sendActivationMail?email=third@example.org",
            &Value::Null,
        )
        .await;
    assert_eq!(link_in(&world.mails.next().await.body), link);
    let token = link.split("activateToken=").nth(1).unwrap();
    let activation = json!({ "activateToken": token, "password": "a long one" });
    world.nobody().post("/api/noauth/activate", &activation).await;
    assert_eq!(world.mails.next().await.subject, "Your account is active");

    let unknown = "/api/user/sendActivationMail?email=nobody@example.org";
    assert_eq!(admin.refused("POST", unknown, &Value::Null).await.0, 404);
    let foreign = world.stranger().await;
    let theirs = "/api/user/sendActivationMail?email=first@example.org";
    assert_eq!(foreign.refused("POST", theirs, &Value::Null).await.0, 404);

    let broken = json!({ "key": "mail", "jsonValue": { "smtpHost": "nowhere" } });
    sysadmin.post("/api/admin/settings", &broken).await;
    let refused = admin
        .refused("POST", "/api/user", &new("fourth@example.org"))
        .await;
    assert_eq!(refused.0, 500);
    let found = admin.get("/api/users?pageSize=9&page=0&textSearch=fourth").await;
    assert_eq!(found["totalElements"], 0, "the address is free again");
    // Links start with the address in the settings, if the settings require it.
    let general = json!({ "key": "general", "jsonValue": {
        "baseUrl": "https://iot.example.com/", "prohibitDifferentUrl": true } });
    sysadmin.post("/api/admin/settings", &general).await;
    let users = admin.get("/api/users?pageSize=9&page=0&textSearch=second").await;
    let link = admin
        .text(&format!("/api/user/{}/activationLink", id(&users["data"][0])))
        .await;
    assert!(
        link.starts_with("https://iot.example.com/api/noauth/activate?"),
        "{link}"
    );
}

#[tokio::test]
async fn a_password_is_reset_by_a_link_that_is_mailed() {
    let world = RestFixture::demo().await;
    let (nobody, sysadmin) = (world.nobody(), world.sysadmin().await);
    let ask = json!({ "email": "TENANT@thingsboard.org" });
    // The response is the same, whether mails can be sent, and whether the user exists.
    nobody.post("/api/noauth/resetPasswordByEmail", &ask).await;
    nobody
        .post(
            "/api/noauth/resetPasswordByEmail",
            &json!({ "email": "nobody@example.org" }),
        )
        .await;
    set_mail_server(&sysadmin).await;
    // Without a configured public address no link is mailed: the request could name any host.
    nobody.post("/api/noauth/resetPasswordByEmail", &ask).await;
    let general = json!({ "key": "general", "jsonValue": { "baseUrl": "https://iot.example.com" } });
    sysadmin.post("/api/admin/settings", &general).await;
    nobody.post("/api/noauth/resetPasswordByEmail", &ask).await;
    let mail = world.mails.next().await;
    assert_eq!(mail.to, "tenant@thingsboard.org");
    let link = link_in(&mail.body).to_owned();
    assert!(
        link.starts_with("https://iot.example.com/"),
        "not where the request says: {link}"
    );
    // No second mail within a minute.
    nobody.post("/api/noauth/resetPasswordByEmail", &ask).await;
    let path = link.strip_prefix("https://iot.example.com").unwrap();
    assert_eq!(nobody.send("GET", path, "").await.0, 303);
    assert_eq!(
        nobody
            .send("GET", "/api/noauth/resetPassword?resetToken=guess", "")
            .await
            .0,
        409
    );
    let token = path.split("resetToken=").nth(1).unwrap();
    let reset = |token: &str, password: &str| json!({ "resetToken": token, "password": password });
    let url = "/api/noauth/resetPassword";
    for (body, message) in [
        (reset("guess", "a new one"), "Invalid reset token!"),
        (reset("", "a new one"), "Invalid reset token!"),
        (
            reset(token, "short"),
            "Password must be 6 or more characters in length.",
        ),
        (
            reset(token, "tenant"),
            "New password should be different from existing!",
        ),
    ] {
        assert_eq!(nobody.refused("POST", url, &body).await, no(400, 31, message));
    }
    let admin = world.admin().await;
    world.clock.advance(1_000);
    nobody.post(url, &reset(token, "a new one")).await;
    assert_eq!(world.mails.next().await.subject, "Your password was reset");
    assert_eq!(
        admin.refused("GET", "/api/auth/user", &Value::Null).await.1,
        11,
        "tokens are outdated"
    );
    world.log_in("tenant@thingsboard.org", "a new one").await;
    assert_eq!(
        nobody.refused("POST", url, &reset(token, "another one")).await.0,
        400,
        "good for once"
    );

    world.clock.advance(60_000);
    nobody.post("/api/noauth/resetPasswordByEmail", &ask).await;
    let mail = world.mails.next().await;
    let token = link_in(&mail.body).split("resetToken=").nth(1).unwrap();
    world.clock.advance(24 * 3_600_000);
    assert_eq!(
        nobody.refused("POST", url, &reset(token, "too late now")).await,
        no(400, 31, "Password reset token expired")
    );
}

#[tokio::test]
async fn people_keep_settings_of_their_own() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    assert_eq!(admin.get("/api/user/settings").await, json!({}));
    let saved = admin
        .post(
            "/api/user/settings",
            &json!({ "a": 5, "b": { "c": 10, "d": 20 } }),
        )
        .await;
    assert_eq!(saved["b"]["d"], 20);
    let (status, _) = admin
        .send("PUT", "/api/user/settings/general", r#"{"b.d":30,"e.f":1}"#)
        .await;
    assert_eq!(status, 200);
    admin.delete("/api/user/settings/a,b.c").await;
    assert_eq!(
        admin.get("/api/user/settings/general").await,
        json!({ "b": { "d": 30 }, "e": { "f": 1 } })
    );
    let (status, _) = admin
        .send("PUT", "/api/user/settings/QUICK_LINKS", r#"{"links":["alarms"]}"#)
        .await;
    assert_eq!(status, 200);
    assert_eq!(
        admin.get("/api/user/settings/QUICK_LINKS").await["links"][0],
        "alarms"
    );
    admin.delete("/api/user/settings/QUICK_LINKS/links").await;
    assert_eq!(admin.get("/api/user/settings/QUICK_LINKS").await, json!({}));
    assert_eq!(
        user.get("/api/user/settings").await,
        json!({}),
        "everybody has their own"
    );
    for (path, body) in [
        ("/api/user/settings", json!([])),
        ("/api/user/settings", json!({ "a.b": 1 })),
        ("/api/user/settings", json!({ "a": "x".repeat(300_000) })),
    ] {
        assert_eq!(admin.refused("POST", path, &body).await.0, 400);
    }
    let deep = format!("{}1{}", r#"{"a":"#.repeat(110), "}".repeat(110));
    let deep: Value = serde_json::from_str(&deep).unwrap();
    for body in [
        json!({ (["a"; 33].join(".")): 1 }),
        json!({ (["b"; 30].join(".")): deep }),
    ] {
        assert_eq!(admin.refused("PUT", "/api/user/settings", &body).await.0, 400);
    }
    for kind in ["VISITED_DASHBOARDS", "NO_SUCH_TYPE"] {
        let path = format!("/api/user/settings/{kind}");
        assert_eq!(admin.refused("GET", &path, &Value::Null).await.0, 400);
    }
}

#[tokio::test]
async fn dashboards_that_were_visited_or_starred_are_remembered() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let first = admin.post("/api/dashboard", &json!({ "title": "First" })).await;
    let second = admin.post("/api/dashboard", &json!({ "title": "Second" })).await;
    let path = |dashboard: &Value, action: &str| format!("/api/user/dashboards/{}/{action}", id(dashboard));
    admin.get(&path(&first, "visit")).await;
    admin.get(&path(&second, "visit")).await;
    let noted = admin.get(&path(&first, "star")).await;
    assert_eq!(noted["starred"][0]["title"], "First");
    let titles: Vec<&Value> = noted["last"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["title"])
        .collect();
    assert_eq!(titles, ["Second", "First"]);
    assert_eq!(
        (&noted["last"][0]["starred"], &noted["last"][1]["starred"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(admin.get("/api/user/lastVisitedDashboards").await, noted);
    admin.delete(&format!("/api/dashboard/{}", id(&second))).await;
    let left = admin.get(&path(&first, "unstar")).await;
    assert_eq!(
        (left["last"].as_array().unwrap().len(), &left["starred"]),
        (1, &json!([]))
    );
    assert_eq!(
        user.refused("GET", &path(&first, "visit"), &Value::Null).await.0,
        403
    );
    assert_eq!(
        admin.refused("GET", &path(&first, "burn"), &Value::Null).await.0,
        400
    );
}
