use fieldline_core::ports::{AttributeStore as _, TimeSeriesStore as _};
use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;
use serde_json::{Value, json};

use crate::nodes::tests::World;

const CLASS: &str = "math.TbMathNode";

fn argument(name: &str, kind: &str, key: &str) -> Value {
    json!({"name": name, "type": kind, "key": key})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_its_value() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    for (operation, values, expected) in [
        ("ADD", vec![1.5, 2.0], json!(3.5)),
        ("SUB", vec![1.0, 2.0], json!(-1.0)),
        ("MULT", vec![1.5, 2.0], json!(3.0)),
        ("DIV", vec![1.0, 8.0], json!(0.125)),
        ("POW", vec![2.0, 10.0], json!(1024.0)),
        ("MIN", vec![2.0, 1.0], json!(1.0)),
        ("MAX", vec![2.0, 1.0], json!(2.0)),
        ("HYPOT", vec![3.0, 4.0], json!(5.0)),
        ("ATAN2", vec![1.0, 1.0], json!(0.785)),
        ("FLOOR_DIV", vec![-7.0, 2.0], json!(-4.0)),
        ("FLOOR_DIV", vec![7.0, -2.0], json!(-4.0)),
        ("FLOOR_MOD", vec![-7.0, 3.0], json!(2.0)),
        ("FLOOR_MOD", vec![7.0, -3.0], json!(-2.0)),
        ("SIN", vec![1.0], json!(0.841)),
        ("COS", vec![1.0], json!(0.54)),
        ("TAN", vec![1.0], json!(1.557)),
        ("SINH", vec![1.0], json!(1.175)),
        ("COSH", vec![1.0], json!(1.543)),
        ("TANH", vec![1.0], json!(0.762)),
        ("ASIN", vec![1.0], json!(1.571)),
        ("ACOS", vec![1.0], json!(0.0)),
        ("ATAN", vec![1.0], json!(0.785)),
        ("EXP", vec![2.0], json!(7.389)),
        ("EXPM1", vec![1.0], json!(1.718)),
        ("SQRT", vec![2.0], json!(1.414)),
        ("CBRT", vec![8.0], json!(2.0)),
        ("GET_EXP", vec![8.5], json!(3)),
        ("LOG", vec![10.0], json!(2.303)),
        ("LOG10", vec![1000.0], json!(3.0)),
        ("LOG1P", vec![1.0], json!(0.693)),
        ("CEIL", vec![1.2], json!(2)),
        ("FLOOR", vec![-1.2], json!(-2)),
        ("ABS", vec![-1.2], json!(1.2)),
        ("SIGNUM", vec![-3.0], json!(-1.0)),
        ("SIGNUM", vec![0.0], json!(0.0)),
        ("RAD", vec![60.0], json!(1.047)),
        ("DEG", vec![1.0], json!(57.296)),
    ] {
        let arguments: Vec<_> = values
            .iter()
            .map(|value| argument("a", "CONSTANT", &value.to_string()))
            .collect();
        let node = world.node(
            CLASS,
            json!({
                "operation": operation, "arguments": arguments,
                "result": {"type": "MESSAGE_BODY", "key": "r", "resultValuePrecision": 3},
            }),
        );
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        let out = world.one(&node, msg).await;
        assert_eq!(out.body(), json!({"r": expected}), "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_come_from_the_message_and_its_originator() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    world
        .attributes(device, AttributeScope::Shared, json!({"total": 100}))
        .await;
    world.telemetry(device, 5, json!({"last": "7"})).await;
    let mut attribute = argument("a", "ATTRIBUTE", "${name}");
    attribute["attributeScope"] = json!("SHARED_SCOPE");
    let mut missing = argument("d", "MESSAGE_BODY", "none");
    missing["defaultValue"] = json!(0.5);
    let node = world.node(
        CLASS,
        json!({
            "customFunction": "a + t + b + m + d",
            "arguments": [
                attribute, argument("t", "TIME_SERIES", "last"), argument("b", "MESSAGE_BODY", "$[which]"),
                argument("m", "MESSAGE_METADATA", "number"), missing,
            ],
            "result": {"type": "MESSAGE_METADATA", "key": "sum", "resultValuePrecision": 1},
        }),
    );
    let metadata = [("name", "total"), ("number", "20")].into_iter().collect();
    let msg = world.msg_with(
        MsgType::PostTelemetry,
        device,
        &json!({"which": "x", "x": "3"}),
        metadata,
    );
    let out = world.one(&node, msg.clone()).await;
    assert_eq!(
        (out.label.as_str(), out.meta("sum").as_deref()),
        ("Success", Some("130.5")),
        "{:?}",
        out.error
    );

    let nobody = crate::nodes::tests::nobody();
    let out = world
        .one(
            &node,
            crate::message::RuleMessage {
                originator: nobody,
                ..msg
            },
        )
        .await;
    let expected = format!(
        "Attribute: total with scope: SHARED_SCOPE not found for entity: {}",
        nobody.id
    );
    assert_eq!(out.error, Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_an_originator_see_what_those_before_have_saved() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let mut total = argument("t", "ATTRIBUTE", "total");
    total["defaultValue"] = json!(0);
    let node = world.node(
        CLASS,
        json!({
            "operation": "ADD", "arguments": [total, argument("d", "MESSAGE_BODY", "delta")],
            "result": {"type": "ATTRIBUTE", "key": "total", "resultValuePrecision": 0, "addToBody": true},
        }),
    );
    for expected in [2, 4, 6] {
        let msg = world.packed(device, &json!({"delta": 2}));
        let out = world.one(&node, msg).await;
        assert_eq!(out.body(), json!({"delta": 2, "total": expected}));
    }
    let stored = world
        .store
        .get(world.subject(device), AttributeScope::Server, None)
        .await
        .unwrap();
    assert_eq!(stored[0].value, fieldline_model::kv::KvValue::Long(6));

    let node = world.node(
        CLASS,
        json!({
            "operation": "DIV", "arguments": [argument("d", "MESSAGE_BODY", "delta"), argument("c", "CONSTANT", "3")],
            "result": {"type": "TIME_SERIES", "key": "third", "resultValuePrecision": 2, "addToMetadata": true},
        }),
    );
    let msg = world.packed(device, &json!({"delta": 1}));
    assert_eq!(world.one(&node, msg).await.meta("third").as_deref(), Some("0.33"));
    let saved = world
        .store
        .latest(world.subject(device), Some(&["third".to_owned()]))
        .await
        .unwrap();
    assert_eq!(
        saved[0].point.value,
        fieldline_model::kv::KvValue::Double(1.0 / 3.0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_values_fail_and_wrong_configurations_are_named() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let node = world.node(CLASS, json!({}));
    for (body, problem) in [
        (json!({}), "Message body has no 'temperature'!"),
        (
            json!({"temperature": null}),
            "Message body has null 'temperature'!",
        ),
        (
            json!({"temperature": "warm"}),
            "Can't convert value 'warm' to double!",
        ),
        (
            json!({"temperature": [1]}),
            "Can't convert value '[1]' to double!",
        ),
        (json!([]), "Message body is not a JSON object!"),
    ] {
        let msg = world.msg(MsgType::PostTelemetry, device, &body);
        assert_eq!(world.one(&node, msg).await.error.as_deref(), Some(problem));
    }
    let zero = world.node(
        CLASS,
        json!({"operation": "FLOOR_MOD", "arguments": [
            argument("a", "CONSTANT", "1"), argument("b", "CONSTANT", "0")
        ]}),
    );
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
    assert_eq!(
        world.one(&zero, msg).await.error.as_deref(),
        Some("Division by zero!")
    );
    for (patch, field) in [
        (json!({"operation": "MODULO"}), "operation"),
        (json!({"operation": "ADD"}), "arguments"),
        (json!({"customFunction": " "}), "customFunction"),
        (json!({"customFunction": "x +"}), "customFunction"),
        (
            json!({"customFunction": format!("x{}", "+1".repeat(200))}),
            "customFunction",
        ),
        (
            json!({"arguments": [argument("x", "CONSTANT", "one")]}),
            "arguments[0].key",
        ),
        (
            json!({"arguments": [argument("x", "BODY", "one")]}),
            "arguments[0].type",
        ),
        (json!({"result": {"type": "CONSTANT", "key": "x"}}), "result.type"),
    ] {
        assert_eq!(world.wrong(CLASS, patch), field);
    }
}
