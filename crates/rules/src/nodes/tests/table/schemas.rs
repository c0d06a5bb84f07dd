//! Schemas of configurations, against what the nodes read.

use super::checker::misfit;
use super::*;

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

#[test]
fn default_and_filled_configurations_fit_the_schema_of_their_type() {
    let filled = valid_configurations();
    let mut misfits = Vec::new();
    for row in rows() {
        let class = row.class;
        let node_type = super::super::node_type(class);
        let schema = (node_type.schema)();
        assert_eq!(schema["type"], "object", "{class} has no schema");
        assert_eq!(
            schema["$schema"], "https://json-schema.org/draft/2020-12/schema",
            "{class}"
        );
        let default = (node_type.default_configuration)();
        misfits.extend(misfit(&schema, &default, class));
        for (_, configuration) in filled.iter().filter(|(it, _)| it.class == class) {
            misfits.extend(misfit(&schema, configuration, class));
        }
        for field in default.as_object().into_iter().flat_map(|fields| fields.keys()) {
            let is_known = properties(&schema).any(|(name, _)| name == field);
            if is_known == row.unread.contains(&field.as_str()) {
                misfits.push(format!("{class}: {field} is in the schema: {is_known}"));
            }
        }
        let more = with(&default, &json!({ "ofAnotherVersion": [1] }));
        // Unknown fields are kept.
        misfits.extend(misfit(&schema, &more, class));
    }
    assert_eq!(misfits, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_read_what_their_schemas_name() {
    let world = World::new().await;
    let mut wrong = Vec::new();
    for (node_type, filled) in valid_configurations() {
        let class = node_type.class;
        // There is no way to fill it in: another field is named, whatever the others are.
        let is_hopeless = blamed(&world, node_type, filled.clone()).is_some();
        let schema = (node_type.schema)();
        for (field, known) in properties(&schema) {
            let names = |found: Option<String>| {
                found
                    .as_deref()
                    .and_then(|found| found.strip_prefix(field.as_str()))
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let odd = with(&filled, &json!({ field: {"odd": [{}]} }));
            if !names(blamed(&world, node_type, odd)) {
                wrong.push(format!("{class}: {field} is in the schema, but not read"));
            }
            let choices = known["enum"].as_array().into_iter().flatten();
            for choice in choices.filter(|choice| !choice.is_null()) {
                let chosen = with(&filled, &json!({ field: choice }));
                if !is_hopeless && names(blamed(&world, node_type, chosen)) {
                    wrong.push(format!("{class}: {field} offers {choice}, which is refused"));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn descriptors_come_with_the_schema_of_their_type() {
    let catalog = NodeTypeCatalog::new();
    for descriptor in catalog.descriptors() {
        let served = serde_json::to_value(descriptor).unwrap();
        let schema = &served["configurationDescriptor"]["nodeDefinition"]["configurationSchema"];
        assert_eq!(schema["type"], "object", "{}", descriptor.class);
    }
}

/// What editors are told beside the values.
#[test]
fn schemas_tell_forms_what_a_value_is_chosen_with() {
    let at = |class: &str, pointer: &str| {
        let schema = (super::super::node_type(class).schema)();
        let found = schema.pointer(pointer);
        found
            .cloned()
            .unwrap_or_else(|| panic!("{class}: no {pointer} in {schema:#}"))
    };
    for (class, pointer, expected) in [
        (
            "filter.TbJsFilterNode",
            "/properties/tbelScript/x-editor",
            json!("script"),
        ),
        (
            "filter.TbJsFilterNode",
            "/properties/tbelScript/x-language",
            json!("TBEL"),
        ),
        (
            "action.TbClearAlarmNode",
            "/properties/alarmDetailsBuildJs/x-language",
            json!("JS"),
        ),
        (
            "action.TbClearAlarmNode",
            "/properties/alarmType/x-editor",
            json!("template"),
        ),
        (
            "flow.TbRuleChainInputNode",
            "/properties/ruleChainId/x-editor",
            json!("ruleChainId"),
        ),
        (
            "notification.TbNotificationNode",
            "/properties/targets/x-editor",
            json!("targets"),
        ),
        ("ai.TbAiNode", "/properties/timeoutSeconds/maximum", json!(600)),
        ("ai.TbAiNode", "/properties/timeoutSeconds/x-unit", json!("s")),
        (
            "ai.TbAiNode",
            "/properties/responseFormat/oneOf/2/properties/schema/x-editor",
            json!("json"),
        ),
        (
            "rest.TbRestApiCallNode",
            "/properties/proxyPassword/x-editor",
            json!("password"),
        ),
        (
            "rest.TbRestApiCallNode",
            "/properties/credentials/oneOf/1/properties/type/const",
            json!("basic"),
        ),
        (
            "mqtt.azure.TbAzureIotHubNode",
            "/properties/credentials/oneOf/0/properties/type/const",
            json!("sas"),
        ),
        ("math.TbMathNode", "/properties/operation/enum/0", json!("CUSTOM")),
        (
            "telemetry.TbMsgAttributesNode",
            "/properties/scope/enum/0",
            json!("SERVER_SCOPE"),
        ),
        (
            "telemetry.TbMsgTimeseriesNode",
            "/properties/processingSettings/oneOf/3/properties/webSockets/oneOf/2/properties/type/const",
            json!("SKIP"),
        ),
        (
            "geo.TbGpsGeofencingActionNode",
            "/properties/perimeterType/enum",
            json!(["POLYGON", "CIRCLE", null]),
        ),
    ] {
        assert_eq!(at(class, pointer), expected, "{class} {pointer}");
    }
}
