//! Wrong configurations are refused by the name of the setting.

use CalculatedFieldType as Type;

use super::*;

/// A right configuration of each type.
fn right(kind: Type) -> Json {
    let metrics = json!({ "n": { "function": "COUNT", "input": { "type": "key", "key": "a" } } });
    let relation = json!({ "direction": "FROM", "relationType": "Contains" });
    match kind {
        Type::Simple => json!({
            "arguments": { "a": latest("a") }, "expression": "a * 2",
            "output": { "type": "TIME_SERIES", "name": "b" },
        }),
        Type::Geofencing => json!({
            "entityCoordinates": { "latitudeKeyName": "lat", "longitudeKeyName": "lon" },
            "zoneGroups": { "z": { "perimeterKeyName": "p", "reportStrategy": "REPORT_PRESENCE_STATUS_ONLY" } },
            "output": series(),
        }),
        Type::RelatedEntitiesAggregation => json!({
            "arguments": { "a": latest("a") }, "relation": relation, "deduplicationIntervalInSec": 10,
            "metrics": metrics, "output": series(),
        }),
        Type::EntityAggregation => json!({
            "arguments": { "a": latest("a") }, "metrics": metrics,
            "interval": { "type": "DAY", "tz": "Europe/Berlin" }, "output": series(),
        }),
        _ => json!({
            "arguments": { "a": latest("a") }, "relation": relation, "expression": "return {\"b\": a};",
            "output": series(),
        }),
    }
}

#[test]
fn each_mistake_is_named() {
    let source =
        json!({ "type": "RELATION_PATH_QUERY", "levels": [{ "direction": "FROM", "relationType": "x" }] });
    let cases: Vec<(Type, &str, Json, &str)> = vec![
        (Type::Simple, "/arguments", json!({}), "configuration.arguments"),
        (
            Type::Simple,
            "/arguments",
            json!({ "ctx": latest("a") }),
            "configuration.arguments.ctx",
        ),
        (
            Type::Simple,
            "/arguments",
            json!({ "1a": latest("a") }),
            "configuration.arguments.1a",
        ),
        (
            Type::Simple,
            "/arguments/a",
            rolling("a", 1, 1),
            "configuration.arguments.a.refEntityKey.type",
        ),
        (
            Type::Simple,
            "/arguments/a/refEntityKey/type",
            json!("LATEST"),
            "configuration.arguments.a.refEntityKey.type",
        ),
        (
            Type::Simple,
            "/arguments/a/refEntityKey/type",
            json!("ATTRIBUTE"),
            "configuration.arguments.a.refEntityKey.scope",
        ),
        (
            Type::Simple,
            "/arguments/a/refEntityKey/scope",
            json!("X"),
            "configuration.arguments.a.refEntityKey.scope",
        ),
        (
            Type::Simple,
            "/arguments/a/refEntityId",
            json!({ "entityType": "USER", "id": Uuid::nil() }),
            "configuration.arguments.a.refEntityId",
        ),
        (
            Type::Simple,
            "/arguments/a/refDynamicSourceConfiguration",
            source,
            "configuration.arguments.a.refDynamicSourceConfiguration.type",
        ),
        (
            Type::Simple,
            "/expression",
            json!("a +"),
            "configuration.expression",
        ),
        (
            Type::Simple,
            "/expression",
            json!("a + c"),
            "configuration.expression",
        ),
        (
            Type::Simple,
            "/expression",
            json!(" "),
            "configuration.expression",
        ),
        (
            Type::Simple,
            "/output/name",
            json!(null),
            "configuration.output.name",
        ),
        (
            Type::Simple,
            "/output/type",
            json!("ATTRIBUTES"),
            "configuration.output.scope",
        ),
        (
            Type::Simple,
            "/output/decimalsByDefault",
            json!(-1),
            "configuration.output.decimalsByDefault",
        ),
        (Type::Simple, "/type", json!("SCRIPT"), "configuration.type"),
        (
            Type::Script,
            "/expression",
            json!("return {"),
            "configuration.expression",
        ),
        (
            Type::Geofencing,
            "/zoneGroups",
            json!({}),
            "configuration.zoneGroups",
        ),
        (
            Type::Geofencing,
            "/zoneGroups/z/reportStrategy",
            json!("ALL"),
            "configuration.zoneGroups.z.reportStrategy",
        ),
        (
            Type::Geofencing,
            "/zoneGroups/z/createRelationsWithMatchedZones",
            json!(true),
            "configuration.zoneGroups.z.relationType",
        ),
        (
            Type::Geofencing,
            "/scheduledUpdateEnabled",
            json!(true),
            "configuration.scheduledUpdateInterval",
        ),
        (
            Type::Geofencing,
            "/entityCoordinates/latitudeKeyName",
            json!(""),
            "configuration.entityCoordinates.latitudeKeyName",
        ),
        (
            Type::Propagation,
            "/relation",
            json!(null),
            "configuration.relation",
        ),
        (
            Type::Propagation,
            "/arguments",
            json!({ "propagationCtx": latest("a") }),
            "configuration.arguments.propagationCtx",
        ),
        (
            Type::Propagation,
            "/arguments/a",
            rolling("a", 1, 1),
            "configuration.arguments.a.refEntityKey.type",
        ),
        (
            Type::RelatedEntitiesAggregation,
            "/metrics",
            json!({}),
            "configuration.metrics",
        ),
        (
            Type::RelatedEntitiesAggregation,
            "/metrics/n/input/key",
            json!("b"),
            "configuration.metrics.n.input.key",
        ),
        (
            Type::RelatedEntitiesAggregation,
            "/metrics/n/function",
            json!("MEDIAN"),
            "configuration.metrics.n.function",
        ),
        (
            Type::RelatedEntitiesAggregation,
            "/metrics/n/filter",
            json!("return ("),
            "configuration.metrics.n.filter",
        ),
        (
            Type::EntityAggregation,
            "/interval/tz",
            json!("Mars/North"),
            "configuration.interval.tz",
        ),
        (
            Type::EntityAggregation,
            "/interval/type",
            json!("CUSTOM"),
            "configuration.interval.durationSec",
        ),
        (
            Type::EntityAggregation,
            "/interval/offsetSec",
            json!(86_400),
            "configuration.interval.offsetSec",
        ),
        (
            Type::EntityAggregation,
            "/arguments/a",
            attribute("a"),
            "configuration.arguments.a.refEntityKey.type",
        ),
        (
            Type::EntityAggregation,
            "/metrics/n/input",
            json!({ "type": "function", "function": "return 1;" }),
            "configuration.metrics.n.input",
        ),
    ];
    for (kind, place, value, setting) in cases {
        assert!(compiled(kind, right(kind)).is_ok(), "{kind:?}");
        let mut wrong = right(kind);
        let (parent, key) = place.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[key] = value;
        let error = compiled(kind, wrong).unwrap_err();
        assert_eq!(error.field(), setting, "{kind:?} {place}: {error}");
    }
    assert_eq!(
        compiled(Type::Simple, json!([])).unwrap_err().field(),
        "configuration"
    );
    assert_eq!(
        compiled(
            Type::Alarm,
            json!({ "arguments": { "a": latest("a") }, "createRules": { "MAJOR": {} } })
        )
        .unwrap_err()
        .field(),
        "type"
    );
}

#[test]
fn fields_of_every_type_are_checked_with_their_scripts() {
    let alarm = |expression: &str| {
        json!({
            "arguments": { "a": latest("a") },
            "createRules": { "MAJOR": { "condition": { "type": "SIMPLE",
                "expression": { "type": "TBEL", "expression": expression } } } },
        })
    };
    for (kind, configuration, problem) in [
        (Type::Alarm, alarm("return a > 5;"), None),
        (
            Type::Alarm,
            alarm("return (;"),
            Some("the script of a condition is wrong"),
        ),
        (
            Type::Alarm,
            json!({ "arguments": { "a": latest("a") }, "createRules": {} }),
            Some("createRules"),
        ),
        (Type::Simple, right(Type::Simple), None),
        (Type::Simple, json!({}), Some("configuration")),
    ] {
        let field = CalculatedField {
            field_type: kind,
            name: "field".to_owned(),
            configuration,
            ..CalculatedField::default()
        };
        let checked = crate::check(&field, &CalculatedFieldLimits::default());
        match problem {
            None => assert_eq!(checked, Ok(())),
            Some(problem) => assert!(checked.unwrap_err().to_string().contains(problem)),
        }
    }
}

#[test]
fn limits_of_the_tenant_are_kept() {
    use fieldline_model::entity::TenantProfile;
    use fieldline_model::entity::calculated_field::CalculatedFieldConfiguration;

    let limits = |settings: Json| {
        CalculatedFieldLimits::of(&TenantProfile {
            profile_data: json!({ "configuration": settings }),
            ..TenantProfile::default()
        })
    };
    assert_eq!(limits(json!({})), CalculatedFieldLimits::default());
    let mut short = right(Type::EntityAggregation);
    short["interval"] = json!({ "type": "CUSTOM", "tz": "UTC", "durationSec": 59 });
    let mut many = right(Type::Simple);
    for name in 'b'..'m' {
        many["arguments"][name.to_string()] = latest("x");
    }
    let mut hasty = right(Type::RelatedEntitiesAggregation);
    hasty["deduplicationIntervalInSec"] = json!(9);
    let mut deep = right(Type::Geofencing);
    let level = json!({ "direction": "TO", "relationType": "x" });
    deep["zoneGroups"]["z"]["refDynamicSourceConfiguration"] =
        json!({ "type": "RELATION_PATH_QUERY", "levels": [level, level, level] });
    for (kind, configuration, setting, allowing) in [
        (
            Type::EntityAggregation,
            short,
            "configuration.interval",
            json!({ "minAllowedAggregationIntervalInSecForCF": 0 }),
        ),
        (
            Type::Simple,
            many,
            "configuration.arguments",
            json!({ "maxArgumentsPerCF": 0 }),
        ),
        (
            Type::RelatedEntitiesAggregation,
            hasty,
            "configuration.deduplicationIntervalInSec",
            json!({ "minAllowedDeduplicationIntervalInSecForCF": 5 }),
        ),
        (
            Type::Geofencing,
            deep,
            "configuration.zoneGroups.z.refDynamicSourceConfiguration.levels",
            json!({ "maxRelationLevelPerCfArgument": 3 }),
        ),
    ] {
        let parsed = CalculatedFieldConfiguration::parse(kind, &configuration).unwrap();
        let error = limits(json!({})).check(&parsed).unwrap_err();
        assert_eq!(error.field(), setting, "{error}");
        assert_eq!(limits(allowing).check(&parsed), Ok(()));
    }
}
