use fieldline_core::ports::RelationEnds;
use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CustomerId, DeviceId, EntityId};
use serde_json::{Value, json};

use super::meta;
use crate::nodes::tests::{NOW, World, upgraded};

const CREATE_RELATION: &str = "action.TbCreateRelationNode";
const DELETE_RELATION: &str = "action.TbDeleteRelationNode";
const ASSIGN: &str = "action.TbAssignToCustomerNode";
const UNASSIGN: &str = "action.TbUnassignFromCustomerNode";
const COPY: &str = "action.TbCopyAttributesToEntityViewNode";

async fn related(world: &World, ends: RelationEnds) -> Vec<(EntityId, EntityId, String)> {
    let found = world
        .services
        .stores
        .relations
        .find(world.tenant, &ends)
        .await
        .unwrap();
    found
        .into_iter()
        .map(|it| (it.from, it.to, it.relation_type))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_are_created_with_entities_that_may_not_exist_yet() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(
        CREATE_RELATION,
        json!({
            "direction": "TO", "relationType": "In ${where}", "entityType": "ASSET", "entityNamePattern": "$[room]",
            "entityTypePattern": "room", "createEntityIfNotExists": true, "changeOriginatorToRelatedEntity": true,
            "removeCurrentRelations": true,
        }),
    );
    let move_to = |world: &World, room: &str| {
        world.msg_with(
            MsgType::PostTelemetry,
            device,
            &json!({"room": room}),
            meta([("where", "house")]),
        )
    };
    let first = move_to(&world, "kitchen");
    let kitchen = world.one(&node, first.clone()).await;
    assert_eq!(kitchen.label, "Success", "{:?}", kitchen.error);
    let found = world
        .services
        .stores
        .assets
        .by_name(world.tenant, "kitchen")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (Some(EntityId::from(found.id)), found.asset_type.as_str()),
        (Some(kitchen.msg.originator), "room")
    );
    let [told] = &*world.queue.take() else {
        panic!("one message")
    };
    assert_eq!(
        (&told.msg_type, told.originator),
        (&MsgType::EntityCreated, kitchen.msg.originator)
    );

    world.one(&node, first).await;
    let second = move_to(&world, "hall");
    let hall = world.one(&node, second).await.msg.originator;
    let all = related(&world, RelationEnds::to(device)).await;
    assert_eq!(
        all,
        [(hall, device, "In house".to_owned())],
        "the device has left the kitchen"
    );

    let node = world.node(
        CREATE_RELATION,
        json!({"entityType": "DEVICE", "entityNamePattern": "b"}),
    );
    let msg = move_to(&world, "");
    let out = world.one(&node, msg).await;
    assert_eq!(out.error.as_deref(), Some("Device with name 'b' doesn't exist!"));
    assert_eq!(out.msg.originator, device);
    let customers =
        json!({"entityType": "CUSTOMER", "entityNamePattern": "New", "createEntityIfNotExists": true});
    let node = world.node(CREATE_RELATION, customers);
    let msg = move_to(&world, "");
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert!(
        world
            .services
            .stores
            .customers
            .by_title(world.tenant, "New")
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(world.wrong(CREATE_RELATION, json!({})), "entityType");
    assert_eq!(
        world.wrong(CREATE_RELATION, json!({"entityType": "ALARM"})),
        "entityType"
    );
    assert_eq!(
        world.wrong(
            CREATE_RELATION,
            json!({"entityType": "DEVICE", "direction": "UP"})
        ),
        "direction"
    );
    let old = upgraded(
        CREATE_RELATION,
        0,
        json!({"direction": "TO", "entityCacheExpiration": 300}),
    );
    assert_eq!(old, json!({"direction": "FROM"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_are_deleted_one_or_all() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let (b, c) = (
        world.device("b", json!({})).await,
        world.device("c", json!({})).await,
    );
    for other in [b, c] {
        world.relate(device, other, "Uses").await;
    }
    world.relate(device, c, "Contains").await;
    let one = json!({"deleteForSingleEntity": true, "relationType": "Uses", "entityType": "DEVICE", "entityNamePattern": "b"});
    let node = world.node(DELETE_RELATION, one);
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
    for _ in 0..2 {
        assert_eq!(world.one(&node, msg.clone()).await.label, "Success");
    }
    let uses = RelationEnds::from(device).of_type("Uses");
    assert_eq!(related(&world, uses).await, [(device, c, "Uses".to_owned())]);
    let node = world.node(DELETE_RELATION, json!({"relationType": "Uses"}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(
        related(&world, RelationEnds::from(device)).await,
        [(device, c, "Contains".to_owned())]
    );
    assert_eq!(
        world.wrong(DELETE_RELATION, json!({"deleteForSingleEntity": true})),
        "entityType"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn originators_are_assigned_to_customers() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let asset = world.asset("b", "room", json!({})).await;
    let node = world.node(
        ASSIGN,
        json!({"customerNamePattern": "$[who]", "createCustomerIfNotExists": true}),
    );
    for entity in [device, asset] {
        let msg = world.msg(MsgType::PostTelemetry, entity, &json!({"who": "Bakery"}));
        assert_eq!(world.one(&node, msg).await.label, "Success");
    }
    let bakery = world
        .services
        .stores
        .customers
        .by_title(world.tenant, "Bakery")
        .await
        .unwrap()
        .unwrap()
        .id;
    let owner = async |world: &World| {
        let id = DeviceId(device.id);
        world
            .services
            .stores
            .devices
            .get(world.tenant, id)
            .await
            .unwrap()
            .unwrap()
            .customer_id
    };
    assert_eq!(owner(&world).await, bakery);
    let node = world.node(UNASSIGN, json!({}));
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
    assert_eq!(world.one(&node, msg).await.label, "Success");
    assert_eq!(owner(&world).await, CustomerId::NULL);

    let strict = world.node(ASSIGN, json!({"customerNamePattern": "Nobody"}));
    for (originator, problem) in [
        (device, "Customer with title 'Nobody' doesn't exist!"),
        (
            world.customer.into(),
            "Unsupported originator type 'CUSTOMER'! Only ASSET, DEVICE, ENTITY_VIEW, DASHBOARD, EDGE types are allowed.",
        ),
    ] {
        let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
        assert_eq!(world.one(&strict, msg).await.error.as_deref(), Some(problem));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_copied_to_the_views_that_show_them() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let view = |world: &World, name: &str, keys: Value, end: i64| {
        serde_json::from_value(json!({
            "id": fieldline_model::EntityViewId(fieldline_model::new_uuid()), "createdTime": NOW, "name": name,
            "type": "t", "tenantId": world.tenant, "entityId": device, "endTimeMs": end,
            "keys": {"timeseries": [], "attributes": {"cs": [], "ss": keys, "sh": []}},
        }))
        .unwrap()
    };
    let views = world.services.stores.entity_views.clone();
    let shown = views
        .insert(view(&world, "shown", json!(["a", "b"]), 0))
        .await
        .unwrap()
        .id;
    views
        .insert(view(&world, "old", json!(["a"]), NOW - 1))
        .await
        .unwrap();
    let node = world.node(COPY, json!({}));
    let metadata = meta([("scope", "SERVER_SCOPE")]);
    let msg = world.msg_with(
        MsgType::AttributesUpdated,
        device,
        &json!({"a": 1, "c": 2}),
        metadata.clone(),
    );
    let out = world.one(&node, msg).await;
    assert_eq!(
        (out.label.as_str(), out.msg.originator),
        ("Success", shown.into())
    );
    let stored = world
        .services
        .attributes
        .get(world.subject(shown), AttributeScope::Server, None)
        .await
        .unwrap();
    assert_eq!(stored.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["a"]);
    let gone = json!({"attributes": ["a", "c"]});
    let msg = world.msg_with(MsgType::AttributesDeleted, device, &gone, metadata);
    assert_eq!(world.send(&node, msg).await.len(), 1);
    let stored = world
        .services
        .attributes
        .get(world.subject(shown), AttributeScope::Server, None)
        .await
        .unwrap();
    assert!(stored.is_empty());
    for (kind, metadata, problem) in [
        (
            MsgType::PostTelemetry,
            meta([("a", "b")]),
            "Unsupported msg type [POST_TELEMETRY_REQUEST]",
        ),
        (MsgType::AttributesUpdated, meta([]), "Message metadata is empty"),
        (
            MsgType::AttributesUpdated,
            meta([("scope", "MINE")]),
            "Invalid attribute scope: MINE",
        ),
    ] {
        let msg = world.msg_with(kind, device, &json!({}), metadata);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
}
