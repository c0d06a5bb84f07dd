//! Relations.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id};

#[tokio::test]
async fn relations_are_saved_found_and_deleted() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let house = admin.post("/api/asset", &json!({ "name": "House" })).await;
    let room = admin.post("/api/asset", &json!({ "name": "Room" })).await;
    let device = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let relation =
        |from: &Value, to: &Value| json!({ "from": from["id"], "to": to["id"], "type": "Contains" });
    let saved = admin.post("/api/v2/relation", &relation(&house, &room)).await;
    assert_eq!(saved["typeGroup"], "COMMON");
    admin.post("/api/relation", &relation(&room, &device)).await;

    let from = format!("/api/relations?fromId={}&fromType=ASSET", id(&house));
    assert_eq!(admin.get(&from).await[0]["to"], room["id"]);
    let to = format!("/api/relations/info/to/DEVICE/{}", id(&device));
    assert_eq!(admin.get(&to).await[0]["fromName"], "Room");
    let of_type = format!("/api/relations/from/ASSET/{}/Manages", id(&house));
    assert_eq!(admin.get(&of_type).await, json!([]));
    let query = json!({
        "parameters": { "rootId": id(&house), "rootType": "ASSET", "direction": "FROM", "maxLevel": 3 },
        "filters": [{ "relationType": "Contains", "entityTypes": ["DEVICE"] }],
    });
    let found = admin.post("/api/relations/info", &query).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["toName"], "Test Device A1");

    let query = json!({
        "parameters": { "rootId": id(&house), "rootType": "ASSET", "direction": "FROM", "maxLevel": 2 },
        "relationType": "Contains",
        "assetTypes": ["default"],
        "deviceTypes": ["default"],
        "entityViewTypes": ["default"],
    });
    assert_eq!(admin.post("/api/assets", &query).await[0]["name"], "Room");
    assert_eq!(
        admin.post("/api/devices", &query).await[0]["name"],
        "Test Device A1"
    );
    assert_eq!(admin.post("/api/entityViews", &query).await, json!([]));

    let key = format!(
        "/api/relation?fromId={}&fromType=ASSET&relationType=Contains&toId={}&toType=ASSET",
        id(&house),
        id(&room)
    );
    assert_eq!(admin.get(&key).await["to"], room["id"]);
    admin.delete(&key).await;
    assert_eq!(admin.refused("DELETE", &key, &Value::Null).await.0, 404);
    assert_eq!(
        admin
            .refused("GET", "/api/relations?fromId=", &Value::Null)
            .await
            .0,
        400
    );
    // Deleting an entity deletes its relations.
    admin.delete(&format!("/api/asset/{}", id(&room))).await;
    assert_eq!(admin.get(&to).await, json!([]));
}

#[tokio::test]
async fn relations_of_what_a_caller_may_not_see_are_hidden_and_cannot_be_made() {
    let world = RestFixture::demo().await;
    let (admin, user, stranger) = (
        world.admin().await,
        world.customer_user().await,
        world.stranger().await,
    );
    let own = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20A1")
        .await;
    let other = admin
        .get("/api/tenant/device?deviceName=Test%20Device%20B1")
        .await;
    let relation = json!({ "from": own["id"], "to": other["id"], "type": "Uses" });
    assert_eq!(user.refused("POST", "/api/relation", &relation).await.0, 403);
    assert_eq!(stranger.refused("POST", "/api/relation", &relation).await.0, 404);
    admin.post("/api/relation", &relation).await;
    let list = format!("/api/relations/from/DEVICE/{}", id(&own));
    assert_eq!(admin.get(&list).await.as_array().unwrap().len(), 1);
    assert_eq!(user.get(&list).await, json!([]));
    // The tenant itself can have relations.
    let tenant = json!({ "from": own["tenantId"], "to": own["id"], "type": "Contains" });
    admin.post("/api/relation", &tenant).await;
    assert_eq!(user.refused("POST", "/api/relation", &tenant).await.0, 403);
}
