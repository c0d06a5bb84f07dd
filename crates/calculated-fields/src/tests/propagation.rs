//! Values for related entities.

use CalculatedFieldType::Propagation;

use super::*;
use crate::OutputTargets;

fn propagation(expression: Option<&str>) -> Arc<CompiledField> {
    field(
        Propagation,
        json!({
            "type": "PROPAGATION",
            "arguments": { "temperature": latest("t"), "model": attribute("m") },
            "relation": { "direction": "TO", "relationType": "Contains" },
            "applyExpressionToResolvedArguments": expression.is_some(), "expression": expression,
            "output": series(),
        }),
    )
}

fn told(outcome: &FieldOutcome) -> (Vec<EntityId>, Json) {
    let output = &outcome.outputs[0];
    let OutputTargets::Entities(entities) = &output.targets else {
        panic!("{outcome:?}");
    };
    (
        entities.clone(),
        serde_json::from_str(&output.message_body()).unwrap(),
    )
}

#[test]
fn changed_arguments_go_to_all_and_all_arguments_to_new_ones() {
    let field = propagation(None);
    let mut state = field.new_state(device(1));
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert!(
        outcome
            .not_ready
            .unwrap()
            .ends_with("Missing arguments to propagate: model, temperature")
    );

    let related = [device(21), device(22)];
    field
        .update(&mut state, &[ArgumentUpdate::Related(&related)], &[], NOW)
        .unwrap();
    let missing = evaluate(&field, &mut state, NOW).unwrap().not_ready.unwrap();
    assert_eq!(missing, "Required arguments are missing: model, temperature");

    // One argument is enough.
    field
        .update(&mut state, &[double(&field, "temperature", NOW, 20.0)], &[], NOW)
        .unwrap();
    let outcome = evaluate(&field, &mut state, NOW).unwrap();
    assert_eq!(
        told(&outcome),
        (
            related.to_vec(),
            json!({ "ts": NOW, "values": { "temperature": 20.0 } })
        )
    );

    let model = [of(&field, device(1), "model", NOW + 1, KvValueRef::Text("x"))];
    field.update(&mut state, &model, &[], NOW + 1).unwrap();
    let outcome = evaluate(&field, &mut state, NOW + 1).unwrap();
    assert_eq!(
        told(&outcome),
        (
            related.to_vec(),
            json!({ "ts": NOW + 1, "values": { "model": "x" } })
        )
    );

    let added = [
        ArgumentUpdate::RelatedAdded(device(20)),
        ArgumentUpdate::RelatedRemoved(device(22)),
    ];
    assert_eq!(field.update(&mut state, &added, &[], NOW + 2), Ok(true));
    let outcome = evaluate(&field, &mut state, NOW + 2).unwrap();
    let all = json!({ "ts": NOW + 1, "values": { "model": "x", "temperature": 20.0 } });
    assert_eq!(told(&outcome), (vec![device(20)], all));
    assert_eq!(state.related(), [device(20), device(21)]);
}

#[test]
fn a_script_makes_the_result_once_all_arguments_are_there() {
    let field = propagation(Some("return {\"text\": model + temperature};"));
    let related = [device(21)];
    let mut state = state(
        &field,
        &[
            ArgumentUpdate::Related(&related),
            double(&field, "temperature", NOW, 2.5),
        ],
    );
    let mut scripts = Scripts::new();
    assert!(
        field
            .evaluate(&mut state, &mut scripts, NOW)
            .unwrap()
            .not_ready
            .is_some()
    );
    let model = [of(&field, device(1), "model", NOW, KvValueRef::Text("x"))];
    field.update(&mut state, &model, &[], NOW).unwrap();
    let outcome = field.evaluate(&mut state, &mut scripts, NOW).unwrap();
    assert_eq!(told(&outcome), (related.to_vec(), json!({ "text": "x2.5" })));
}

#[test]
fn there_are_no_more_targets_than_the_tenant_may_have() {
    let field = propagation(None);
    let mut state = field.new_state(device(1));
    let many: Vec<EntityId> = (1..=101).map(device).collect();
    let error = field
        .update(&mut state, &[ArgumentUpdate::Related(&many)], &[], NOW)
        .unwrap_err();
    assert_eq!(error, FieldEvaluationError::TooManyEntities(100));
    assert_eq!(state.related().len(), 100);
    assert!(
        field
            .update(&mut state, &[ArgumentUpdate::RelatedAdded(device(500))], &[], NOW)
            .is_err()
    );
    assert_eq!(
        field.update(&mut state, &[ArgumentUpdate::RelatedRemoved(device(1))], &[], NOW),
        Ok(true)
    );
    assert_eq!(
        field.update(&mut state, &[ArgumentUpdate::RelatedAdded(device(500))], &[], NOW),
        Ok(true)
    );
}
