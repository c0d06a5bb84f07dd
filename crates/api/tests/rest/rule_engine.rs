//! Client calls into rule chains.

use axum::http::StatusCode;
use fieldline_core::ports::RestApiResponder as _;
use fieldline_model::TenantId;
use fieldline_model::message::{MsgType, QueueMessage};
use serde_json::{Value, json};

use crate::fixture::{FixtureClient, NOW, RestFixture, id, no};

const USER: &str = "/api/rule-engine/";

async fn device(admin: &FixtureClient<'_>, name: &str) -> String {
    let name = name.replace(' ', "%20");
    let device = admin.get(&format!("/api/tenant/device?deviceName={name}")).await;
    id(&device).to_owned()
}

/// Sends a call, and answers it as a rule chain would; returns status, response body and the message that the chain
/// got.
async fn call(
    world: &RestFixture,
    client: &FixtureClient<'_>,
    (path, body): (&str, &str),
    answer: &str,
) -> (StatusCode, String, QueueMessage) {
    let user = client.get("/api/auth/user").await;
    let tenant = TenantId(user["tenantId"]["id"].as_str().unwrap().parse().unwrap());
    world.rule_engine.take();
    let chain = async {
        loop {
            if let Some(message) = world.rule_engine.take().pop() {
                let request = message.metadata.get("requestUUID").unwrap().parse().unwrap();
                let reply = QueueMessage {
                    data: answer.to_owned(),
                    ..message.clone()
                };
                let service = message.metadata.get("serviceId").unwrap();
                world.rest_requests.answer(service, tenant, request, reply);
                return message;
            }
            tokio::task::yield_now().await;
        }
    };
    let ((status, text), message) = tokio::join!(client.send("POST", path, body.to_owned()), chain);
    (status, text, message)
}

#[tokio::test]
async fn a_call_is_a_message_about_the_entity_and_brings_back_what_a_chain_answers() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let device = device(&admin, "Test Device A1").await;
    let path = format!("/api/rule-engine/DEVICE/{device}");
    let question = "{\"question\":6.50}";
    let (status, text, message) = call(&world, &admin, (&path, question), "{\"answer\": 42}").await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "{\"answer\": 42}"));
    assert_eq!(message.msg_type, MsgType::RestApiRequest);
    assert_eq!((message.data.as_str(), message.ts), (question, NOW));
    assert_eq!(message.originator.id.to_string(), device);
    assert_eq!((message.customer, &message.queue), (None, &None));
    let expires = |message: &QueueMessage| message.metadata.get("expirationTime").unwrap().to_owned();
    assert_eq!(message.metadata.get("serviceId"), Some("test"));
    assert_eq!(expires(&message.clone()), (NOW + 10_000).to_string());

    let (.., message) = call(&world, &admin, (&format!("{path}/2500"), "[]"), "1").await;
    assert_eq!(expires(&message), (NOW + 2_500).to_string());
    assert_eq!(message.queue, None);
    let (.., message) = call(&world, &admin, (&format!("{path}/HighPriority/100"), "[]"), "1").await;
    assert_eq!(expires(&message), (NOW + 100).to_string());
    assert_eq!(message.queue.as_deref(), Some("HighPriority"));

    let user = world.customer_user().await;
    let (status, _, message) = call(&world, &user, (USER, "{}"), "{}").await;
    let shown = user.get("/api/auth/user").await;
    assert_eq!(
        (status, message.originator.id.to_string().as_str()),
        (StatusCode::OK, id(&shown))
    );
    assert_eq!(
        json!(message.customer.map(|customer| customer.to_string())),
        shown["customerId"]["id"]
    );
    let (status, ..) = call(&world, &user, (&path, "{}"), "{}").await;
    assert_eq!(status, StatusCode::OK, "a device of the user's customer");
}

#[tokio::test]
async fn an_answer_that_is_empty_or_no_json_and_none_at_all_have_a_status_of_their_own() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    for (answer, expected) in [("", StatusCode::OK), ("plain", StatusCode::NOT_ACCEPTABLE)] {
        let (status, text, _) = call(&world, &admin, (USER, "{}"), answer).await;
        assert_eq!((status, text.as_str()), (expected, ""), "{answer}");
    }
    let device = device(&admin, "Test Device A1").await;
    let path = format!("/api/rule-engine/DEVICE/{device}/1");
    let (status, text) = admin.send("POST", &path, "{}").await;
    assert_eq!((status, text.as_str()), (StatusCode::REQUEST_TIMEOUT, ""));
}

#[tokio::test]
async fn calls_that_make_no_sense_or_are_not_allowed_reach_no_chain() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let sysadmin = world.sysadmin().await;
    let own = device(&admin, "Test Device A1").await;
    let other = device(&admin, "Test Device B1").await;
    world.rule_engine.take();
    for body in ["", "@", "{\"a\":"] {
        let (status, text) = admin.send("POST", USER, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["message"], "Invalid request body");
    }
    let prefix = "/api/rule-engine";
    for timeout in ["-1", "x", "3600001"] {
        let path = format!("{prefix}/DEVICE/{own}/{timeout}");
        let (status, code, message) = admin.refused("POST", &path, &json!({})).await;
        assert_eq!((status, code), (400, 31), "{message}");
        assert!(message.contains("'timeout'"), "{message}");
    }
    let path = format!("{prefix}/GADGET/{own}");
    let refused = admin.refused("POST", &path, &json!({})).await;
    assert_eq!(refused, no(400, 31, "Invalid entity type 'GADGET'"));
    let path = format!("{prefix}/DEVICE/{other}");
    let refused = user.refused("POST", &path, &json!({})).await;
    assert_eq!(refused.0, 403);
    let refused = sysadmin.refused("POST", USER, &json!({})).await;
    assert_eq!(
        refused,
        no(400, 31, "Rule chains belong to tenants, and this to none")
    );
    let refused = sysadmin.refused("POST", &path, &json!({})).await;
    assert_eq!(refused.0, 403);
    assert_eq!(world.rule_engine.types(), Vec::<String>::new());
}
