use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_core::ports::StoreResult;
use fieldline_model::UserId;
use fieldline_model::entity::{AdminSettings, UserSettingsType};
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::fakes::aws::{SECRET, is_signed};
use fieldline_testkit::fakes::server::{FakeHttpServer, answer};
use parking_lot::Mutex;
use serde_json::json;

use super::*;

const NOW: i64 = 1_760_000_000_000;
const DAY_MS: i64 = 86_400_000;

/// A settings store with one value under one key.
struct Kept(Mutex<Value>);

#[async_trait]
impl SettingsStore for Kept {
    async fn admin(&self, key: &str) -> StoreResult<Option<AdminSettings>> {
        Ok((key == "mail").then(|| AdminSettings {
            key: key.to_owned(),
            json_value: self.0.lock().clone(),
            ..AdminSettings::default()
        }))
    }

    async fn save_admin(&self, settings: AdminSettings) -> StoreResult<AdminSettings> {
        *self.0.lock() = settings.json_value.clone();
        Ok(settings)
    }

    async fn replace_admin(
        &self,
        settings: AdminSettings,
        read: &Value,
    ) -> StoreResult<Option<AdminSettings>> {
        let mut kept = self.0.lock();
        let is_as_read = *kept == *read;
        Ok(is_as_read.then(|| {
            *kept = settings.json_value.clone();
            settings
        }))
    }

    async fn of_user(&self, _: UserId, _: UserSettingsType) -> StoreResult<Option<Value>> {
        Ok(None)
    }

    async fn save_of_user(&self, _: UserId, _: UserSettingsType, _: &Value) -> StoreResult<()> {
        Ok(())
    }
}

/// A provider where refresh token `r<n>` works once and gives access token `a<n>` and the next refresh token.
async fn provider() -> FakeHttpServer {
    let used = Arc::new(AtomicUsize::new(0));
    FakeHttpServer::start(move |request| {
        let form = request.form();
        let field = |name: &str| {
            let found = form.iter().find(|(field, _)| field == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        assert_eq!(
            (field("client_id"), field("client_secret")),
            ("fieldline", "hush")
        );
        let n = used.load(Ordering::Relaxed);
        if field("grant_type") != "refresh_token" || field("refresh_token") != format!("r{n}") {
            return answer(
                400,
                &[],
                r#"{"error":"invalid_grant","error_description":"used before"}"#,
            );
        }
        used.store(n + 1, Ordering::Relaxed);
        let tokens = json!({
            "access_token": format!("a{n}"), "refresh_token": format!("r{}", n + 1), "expires_in": 3600,
        });
        answer(200, &[], &tokens.to_string())
    })
    .await
}

fn settings(provider: &FakeHttpServer) -> Value {
    json!({
        "smtpHost": "localhost", "username": "iot@example.org", "enableOauth2": true, "providerId": "OFFICE_365",
        "clientId": "fieldline", "clientSecret": "hush", "tokenUri": format!("{}/token", provider.url),
        "refreshToken": "r0", "refreshTokenExpires": NOW + 90 * DAY_MS,
    })
}

#[tokio::test]
async fn access_tokens_are_bought_when_they_are_needed_and_refresh_tokens_kept() {
    let server = provider().await;
    let store = Arc::new(Kept(Mutex::new(settings(&server))));
    let clock = ManualClock::at(NOW);
    let tokens = MailTokenCache::new(store.clone(), clock.clone());
    let password = async || {
        let settings = store.0.lock().clone();
        let with = tokens.with_password(&settings).await.unwrap();
        with["password"].as_str().unwrap().to_owned()
    };
    // Of several concurrent mails, only one requests a token.
    let (first, second) = tokio::join!(password(), password());
    assert_eq!((first.as_str(), second.as_str()), ("a0", "a0"));
    assert_eq!(password().await, "a0");
    assert_eq!(server.count(), 1);
    assert_eq!(
        store.0.lock()["refreshToken"],
        "r1",
        "the old one is good for nothing"
    );

    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3_600)).await;
    tokio::time::resume();
    assert_eq!(password().await, "a1");
    // No mail is sent for months.
    clock.advance(80 * DAY_MS);
    tokens.renew_if_due().await.unwrap();
    assert_eq!(server.count(), 2, "not yet");
    clock.advance(4 * DAY_MS);
    tokens.renew_if_due().await.unwrap();
    let stored = store.0.lock().clone();
    assert_eq!(
        (&stored["refreshToken"], &stored["refreshTokenExpires"]),
        (&json!("r3"), &json!(NOW + 174 * DAY_MS))
    );

    let mut wrong = stored.clone();
    wrong["refreshToken"] = json!("r0");
    let error = tokens.with_password(&wrong).await.unwrap_err();
    assert_eq!(error, "Error while retrieving access token: used before");
    assert_eq!(store.0.lock()["refreshToken"], "r3", "others are left alone");
    wrong["refreshToken"] = Value::Null;
    assert!(tokens.with_password(&wrong).await.is_err());
    wrong["enableOauth2"] = json!(false);
    assert_eq!(tokens.with_password(&wrong).await.unwrap(), wrong);
}

#[tokio::test]
async fn text_messages_go_to_the_provider_of_the_settings() {
    let server = FakeHttpServer::start(|request| {
        if request.target == "/" {
            let body = "<PublishResponse><MessageId>m</MessageId></PublishResponse>";
            return answer(200, &[], body);
        }
        match request.header("authorization") {
            // AC1:token
            "Basic QUMxOnRva2Vu" => answer(201, &[], r#"{"num_segments":"1"}"#),
            _ => answer(401, &[], r#"{"message":"Authenticate"}"#),
        }
    })
    .await;
    let sms = ProviderSmsSender {
        endpoint: Some(server.url.clone()),
    };
    let mut twilio =
        json!({"type": "TWILIO", "accountSid": "AC1", "accountToken": "token", "numberFrom": "+15550001"});
    sms.send(&twilio, "+4912345", "hello").await.unwrap();
    let request = server.last();
    assert_eq!(request.target, "/2010-04-01/Accounts/AC1/Messages.json");
    let form = request.form();
    for (name, value) in [("To", "+4912345"), ("From", "+15550001"), ("Body", "hello")] {
        assert!(form.contains(&(name.to_owned(), value.to_owned())), "{name}");
    }
    twilio["accountToken"] = json!("guess");
    let error = sms.send(&twilio, "+4912345", "hello").await.unwrap_err();
    assert_eq!(error, "Failed to send SMS message - Authenticate");
    twilio["numberFrom"] = json!("me");
    assert!(sms.check(&twilio).unwrap_err().starts_with("numberFrom: "));

    let aws = json!({
        "type": "AWS_SNS", "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "region": "eu-central-1",
    });
    sms.check(&aws).unwrap();
    sms.send(&aws, "+4912345", "hello").await.unwrap();
    let request = server.last();
    is_signed(&request, "eu-central-1", "sns");
    assert!(
        request
            .form()
            .contains(&("PhoneNumber".to_owned(), "+4912345".to_owned()))
    );
}
