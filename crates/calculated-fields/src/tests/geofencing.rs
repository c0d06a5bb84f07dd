//! Zones, groups of zones, relations with zones; perimeters.

use CalculatedFieldType::Geofencing;

use super::*;
use crate::perimeter::{Perimeter, distance};
use crate::{FieldInputRole, FieldInputSource, RelationChange};

const SQUARE: &str = "[[50.0,30.0],[50.0,31.0],[51.0,31.0],[51.0,30.0]]";
const CIRCLE: &str = r#"{"latitude":50.5,"longitude":30.5,"radius":10000}"#;

fn fence(report: &str, direction: &str) -> Arc<CompiledField> {
    field(
        Geofencing,
        json!({
            "type": "GEOFENCING",
            "entityCoordinates": { "latitudeKeyName": "lat", "longitudeKeyName": "lon" },
            "zoneGroups": { "allowed": {
                "refDynamicSourceConfiguration": { "type": "RELATION_PATH_QUERY",
                    "levels": [{ "direction": "FROM", "relationType": "Zone" }] },
                "perimeterKeyName": "zone", "reportStrategy": report,
                "createRelationsWithMatchedZones": true, "relationType": "In", "direction": direction,
            } },
            "scheduledUpdateEnabled": true, "scheduledUpdateInterval": 60,
            "output": series(),
        }),
    )
}

fn zone<'a>(field: &CompiledField, entity: u128, perimeter: &'a str) -> ArgumentUpdate<'a> {
    of(
        field,
        device(entity),
        "allowed",
        NOW - 1_000,
        KvValueRef::Json(perimeter),
    )
}

fn at(field: &CompiledField, ts: i64, latitude: f64, longitude: f64) -> [ArgumentUpdate<'static>; 2] {
    [
        double(field, "latitude", ts, latitude),
        double(field, "longitude", ts, longitude),
    ]
}

#[test]
fn the_group_reports_what_all_its_zones_say_together() {
    let both = "REPORT_TRANSITION_EVENTS_AND_PRESENCE_STATUS";
    let field = fence(both, "TO");
    assert!(field.follows_relations());
    let need = &field.inputs()[2];
    assert_eq!(need.role, FieldInputRole::Zones);
    assert!(matches!(&need.source, FieldInputSource::Path(levels) if levels.len() == 1));

    let mut state = state(&field, &[zone(&field, 11, SQUARE), zone(&field, 12, CIRCLE)]);
    // Far outside; the centre of both; only in the square; outside again.
    for (step, (latitude, longitude, values, changes)) in [
        (
            10.0,
            10.0,
            json!({ "allowedStatus": "OUTSIDE" }),
            vec![(11, false), (12, false)],
        ),
        (
            50.5,
            30.5,
            json!({ "allowedEvent": "ENTERED", "allowedStatus": "INSIDE" }),
            vec![(11, true), (12, true)],
        ),
        (
            50.1,
            30.1,
            json!({ "allowedStatus": "INSIDE" }),
            vec![(12, false)],
        ),
        (50.1, 30.2, json!({ "allowedStatus": "INSIDE" }), vec![]),
        (
            10.0,
            10.0,
            json!({ "allowedEvent": "LEFT", "allowedStatus": "OUTSIDE" }),
            vec![(11, false)],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let ts = NOW + step as i64;
        field
            .update(&mut state, &at(&field, ts, latitude, longitude), &[], ts)
            .unwrap();
        let outcome = evaluate(&field, &mut state, ts).unwrap();
        assert_eq!(
            bodies(&outcome),
            [json!({ "ts": ts, "values": values })],
            "step {step}"
        );
        let expected: Vec<RelationChange> = changes
            .into_iter()
            .map(|(zone, exists)| RelationChange {
                from: device(zone),
                to: device(1),
                relation_type: "In".into(),
                exists,
            })
            .collect();
        assert_eq!(outcome.relations, expected, "step {step}");
    }
}

#[test]
fn only_what_is_asked_for_is_reported() {
    for (report, first, second) in [
        (
            "REPORT_PRESENCE_STATUS_ONLY",
            Some("OUTSIDE"),
            json!({ "allowedStatus": "INSIDE" }),
        ),
        (
            "REPORT_TRANSITION_EVENTS_ONLY",
            None,
            json!({ "allowedEvent": "ENTERED" }),
        ),
    ] {
        let field = fence(report, "FROM");
        let mut state = state(&field, &[zone(&field, 11, SQUARE)]);
        field
            .update(&mut state, &at(&field, NOW, 0.0, 0.0), &[], NOW)
            .unwrap();
        let outcome = evaluate(&field, &mut state, NOW).unwrap();
        let status = bodies(&outcome)
            .first()
            .map(|body| body["values"]["allowedStatus"].clone());
        assert_eq!(status, first.map(Json::from), "{report}");
        field
            .update(&mut state, &at(&field, NOW, 50.5, 30.5), &[], NOW)
            .unwrap();
        let outcome = evaluate(&field, &mut state, NOW).unwrap();
        assert_eq!(bodies(&outcome)[0]["values"], second, "{report}");
        assert_eq!(outcome.relations[0].from, device(1));
    }
}

#[test]
fn zones_come_and_go() {
    let field = fence("REPORT_TRANSITION_EVENTS_AND_PRESENCE_STATUS", "TO");
    let mut state = state(&field, &[zone(&field, 11, SQUARE)]);
    field
        .update(&mut state, &at(&field, NOW, 50.5, 30.5), &[], NOW)
        .unwrap();
    evaluate(&field, &mut state, NOW).unwrap();

    // The same perimeter again is nothing new; another one is a zone that was not looked at yet.
    assert_eq!(
        field.update(&mut state, &[zone(&field, 11, SQUARE)], &[], NOW),
        Ok(false)
    );
    assert_eq!(
        field.update(&mut state, &[zone(&field, 11, CIRCLE)], &[], NOW),
        Ok(true)
    );
    let values = body(evaluate(&field, &mut state, NOW))["values"].clone();
    assert_eq!(values, json!({ "allowedStatus": "INSIDE" }));

    assert!(field.relations_due(&state, NOW));
    let found = [device(12)];
    let zones = [ArgumentUpdate::Zones {
        argument: 2,
        entities: &found,
    }];
    assert_eq!(field.update(&mut state, &zones, &[], NOW), Ok(true));
    assert!(!field.relations_due(&state, NOW + 60_000));
    assert!(field.relations_due(&state, NOW + 60_001));
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert_eq!(
        outcome.not_ready.as_deref(),
        Some("Required arguments are missing: allowed")
    );

    let broken = field.update(&mut state, &[zone(&field, 12, "[[1],[2]]")], &[], NOW);
    assert!(
        broken
            .unwrap_err()
            .to_string()
            .contains("a corner is not two numbers")
    );
}

#[test]
fn perimeters_hold_what_is_inside() {
    let island = format!("[{SQUARE},[[50.4,30.4],[50.4,30.6],[50.6,30.6],[50.6,30.4]]]");
    let apart = format!("[{SQUARE},[[60.0,30.0],[61.0,31.0]]]");
    for (perimeter, place, inside) in [
        (SQUARE, (50.5, 30.5), true),
        (SQUARE, (50.0, 30.5), false),
        (SQUARE, (49.9, 30.5), false),
        (island.as_str(), (50.2, 30.2), true),
        (island.as_str(), (50.5, 30.5), false),
        (island.as_str(), (50.4, 30.5), false),
        (apart.as_str(), (60.5, 30.5), true),
        (apart.as_str(), (55.0, 30.5), false),
        (CIRCLE, (50.5, 30.6), true),
        (CIRCLE, (50.5, 30.7), false),
        ("[[0,0],[0,4],[2,2],[4,4],[4,0]]", (2.0, 1.0), true),
        ("[[0,0],[0,4],[2,2],[4,4],[4,0]]", (2.0, 3.0), false),
    ] {
        let parsed = Perimeter::parse(perimeter).unwrap();
        assert_eq!(parsed.contains(place), inside, "{perimeter} {place:?}");
    }
    for (broken, problem) in [
        ("5", "expected an object"),
        ("[]", "no corners"),
        ("[[1,2]]", "two corners or more"),
        (r#"{"latitude":1,"longitude":2}"#, "`radius`"),
        ("[[1,2],[3,\"x\"]]", "not two numbers"),
        ("[1", "not JSON"),
    ] {
        let error = Perimeter::parse(broken).unwrap_err();
        assert!(error.contains(problem), "{broken}: {error}");
    }
    // One degree of latitude.
    assert!((distance((0.0, 0.0), (1.0, 0.0)) - 111_195.08).abs() < 0.01);
}

#[test]
fn corners_of_polygons_are_compared_only_so_often() {
    let polygons = |count: usize, corners: usize| {
        let polygon = |at: usize| (0..corners).map(|n| (at as f64, n as f64)).collect();
        Perimeter::polygons((0..count).map(polygon).collect())
    };
    assert!(polygons(1, 10_000).is_ok(), "a single one is compared with none");
    assert!(polygons(2, 1_400).is_ok());
    let refused = polygons(200, 50).unwrap_err();
    assert!(refused.contains("more than 4000000 comparisons"), "{refused}");
}
