//! The OpenAPI description.

use fieldline_api::EndpointAccess;
use serde_json::json;

use crate::fixture::RestFixture;

#[tokio::test]
async fn the_description_knows_every_endpoint_and_who_may_call_it() {
    let world = RestFixture::demo().await;
    let document = world.nobody().get("/v3/api-docs/thingsboard").await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    for endpoint in fieldline_api::endpoints() {
        let operation = &document["paths"][&endpoint.path][endpoint.method.to_lowercase()];
        assert!(operation.is_object(), "{} {}", endpoint.method, endpoint.path);
        if let EndpointAccess::Roles(roles) = endpoint.access {
            let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
            assert_eq!(operation["x-authorities"], json!(names));
        }
    }
    assert!(document["components"]["schemas"]["Device"].is_object());
}
