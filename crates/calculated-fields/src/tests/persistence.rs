//! States as bytes.

use proptest::prelude::*;

use super::*;
use crate::FieldStateError;

fn every_kind() -> Vec<(Arc<CompiledField>, CalculatedFieldState)> {
    let square = "[[[0,0],[0,9],[9,9],[9,0]],[[1,1],[2,2]]]";
    let circle = r#"{"latitude":5,"longitude":6,"radius":7}"#;
    let script = field(
        CalculatedFieldType::Script,
        json!({
            "arguments": { "r": rolling("r", 10, 60_000), "s": latest("s"), "u": attribute("u") },
            "expression": "return {};", "output": series(),
        }),
    );
    let mut scripted = state(
        &script,
        &[
            double(&script, "r", NOW - 3, -1.5),
            double(&script, "r", NOW, f64::MAX),
            of(&script, device(1), "s", NOW, KvValueRef::Json("{\"a\":1}")),
        ],
    );
    let undefined = [of(&script, device(1), "r", NOW - 1, KvValueRef::Long(i64::MIN))];
    script
        .update(&mut scripted, &undefined, &[field_id(3)], NOW)
        .unwrap();

    let fence = field(
        CalculatedFieldType::Geofencing,
        json!({
            "entityCoordinates": { "latitudeKeyName": "lat", "longitudeKeyName": "lon" },
            "zoneGroups": { "z": { "perimeterKeyName": "p", "reportStrategy": "REPORT_PRESENCE_STATUS_ONLY" } },
            "output": series(),
        }),
    );
    let mut fenced = state(
        &fence,
        &[
            of(&fence, device(1), "z", NOW, KvValueRef::Json(square)),
            of(&fence, device(2), "z", NOW, KvValueRef::Json(circle)),
            double(&fence, "latitude", NOW, 5.0),
            double(&fence, "longitude", NOW, 5.0),
        ],
    );
    evaluate(&fence, &mut fenced, NOW).unwrap();
    let third = [of(&fence, device(3), "z", NOW, KvValueRef::Json(circle))];
    fence.update(&mut fenced, &third, &[], NOW).unwrap();

    let related = field(
        CalculatedFieldType::RelatedEntitiesAggregation,
        json!({
            "relation": { "direction": "FROM", "relationType": "Contains" },
            "arguments": { "t": latest("t") }, "deduplicationIntervalInSec": 30,
            "metrics": { "n": { "function": "COUNT", "input": { "type": "key", "key": "t" } } },
            "output": series(),
        }),
    );
    let entities = [device(5), device(4)];
    let aggregated = state(
        &related,
        &[
            ArgumentUpdate::Related(&entities),
            of(&related, device(4), "t", NOW, KvValueRef::Bool(true)),
        ],
    );
    let hourly = field(
        CalculatedFieldType::EntityAggregation,
        json!({
            "arguments": { "t": latest("t") },
            "metrics": { "n": { "function": "COUNT", "input": { "type": "key", "key": "t" } } },
            "interval": { "type": "HOUR", "tz": "UTC" }, "output": series(),
        }),
    );
    let open = state(&hourly, &[double(&hourly, "t", NOW, 1.0)]);
    vec![
        (script, scripted),
        (fence, fenced),
        (related, aggregated),
        (hourly, open),
    ]
}

/// What is not stored is only of interest within one evaluation.
fn settled(mut state: CalculatedFieldState) -> CalculatedFieldState {
    state.changed.fill(false);
    state.added.clear();
    state
}

#[test]
fn states_come_back_as_they_were_and_cuts_are_noticed() {
    for (field, state) in every_kind() {
        let bytes = field.encode(&state);
        assert_eq!(field.decode(device(1), &bytes), Ok(settled(state)));
        for cut in 0..bytes.len() {
            assert!(field.decode(device(1), &bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(matches!(
            field.decode(device(1), &longer),
            Err(FieldStateError::Corrupt(_))
        ));
    }
}

#[test]
fn a_state_of_other_arguments_is_stale() {
    let fields = every_kind();
    for (at, (_, state)) in fields.iter().enumerate() {
        let bytes = fields[at].0.encode(state);
        for (other, _) in fields
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, other)| other)
        {
            assert_eq!(other.decode(device(1), &bytes), Err(FieldStateError::Stale));
        }
    }
}

#[test]
fn an_idle_state_is_small() {
    let field = field(
        CalculatedFieldType::Simple,
        json!({
            "arguments": { "a": latest("a"), "b": latest("b") }, "expression": "a + b",
            "output": { "type": "TIME_SERIES", "name": "c" },
        }),
    );
    let state = state(
        &field,
        &[double(&field, "a", NOW, 1.0), double(&field, "b", NOW, 1.0)],
    );
    assert!(field.encode(&state).len() <= 60, "{}", field.encode(&state).len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_decoding(kind in 0usize..4, tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (field, state) = every_kind().swap_remove(kind);
        let mut bytes = field.encode(&state);
        bytes.truncate(9);
        bytes.extend(tail);
        if let Ok(mut state) = field.decode(device(1), &bytes) {
            let _ = field.evaluate(&mut state, &mut NoScriptRunner, NOW);
            prop_assert!(field.decode(device(1), &field.encode(&state)).is_ok());
        }
    }

    #[test]
    fn flipped_bytes_break_nothing(kind in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (field, state) = every_kind().swap_remove(kind);
        let mut bytes = field.encode(&state);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(mut state) = field.decode(device(1), &bytes) {
            let _ = field.evaluate(&mut state, &mut NoScriptRunner, NOW);
            let _ = field.next_check(&state, NOW);
            field.restore(&mut state, NOW);
        }
    }
}
