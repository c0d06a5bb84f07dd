//! Evaluators of user-written configurations, for the fuzz targets.
//!
//! Each function checks that the evaluator stays within its budget, whatever the configuration and the message are.

use fieldline_model::budget::{EvaluationBudget, MAX_MADE_BYTES};
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::{DeviceId, TenantId};
use serde_json::Value;

use crate::bounds::CompileAllowance;
use crate::message::RuleMessage;
use crate::nodes::json_path::JsonPath;
use crate::nodes::regex::{RegexAllowance, WholeMatch};
use crate::nodes::text_template::TextTemplate;

/// Evaluates a path in a document.
pub fn json_path(path: &str, document: &str) {
    let Ok(path) = JsonPath::new(path, &RegexAllowance::default()) else {
        return;
    };
    let Ok(document) = serde_json::from_str::<Value>(document) else {
        return;
    };
    let mut budget = EvaluationBudget::new();
    let first = path.read(&document, &mut budget);
    let mut budget = EvaluationBudget::new();
    let second = path.read(&document, &mut budget);
    assert_eq!(first, second, "the same path finds the same");
    if let Ok(found) = first {
        // Escapes make a text up to six times longer.
        let most = 6 * (MAX_MADE_BYTES as usize + 100 * document.to_string().len());
        assert!(found.to_string().len() <= most, "no more is made than is counted");
    }
}

/// Resolves a template with `${…}` and `$[…]` for a message with this body and a metadata value `key`.
pub fn pattern(template: &str, key: &str, body: &str) {
    let metadata: MetadataMap = [("key", key)].into_iter().collect();
    let message = QueueMessage::new(
        MsgType::PostTelemetry,
        DeviceId::NULL.into(),
        0,
        metadata,
        body.to_owned(),
    );
    let mut msg = RuleMessage::of(TenantId::NULL, message);
    let pattern = TextTemplate::new(template);
    assert_eq!(pattern.text(), template);
    for _ in 0..2 {
        msg.budget.renew();
        if let Ok(text) = pattern.resolve(&mut msg) {
            let most = MAX_MADE_BYTES as usize + template.len() + 8 * body.len();
            assert!(text.len() <= most, "no more is made than is counted");
        }
        if let Ok(text) = pattern.resolve_escaped(&mut msg) {
            assert!(text.len() <= 8 * MAX_MADE_BYTES as usize + template.len() + 8 * body.len());
        }
    }
}

/// Matches a text with a regular expression.
pub fn regex(expression: &str, text: &str) {
    if let Ok(regex) = WholeMatch::new(expression, "", &RegexAllowance::default()) {
        let _ = regex.matches(text, &mut EvaluationBudget::new());
    }
}

/// Checks a node configuration against the limits.
pub fn configuration(text: &str) {
    if let Ok(configuration) = serde_json::from_str::<Value>(text) {
        let _ = CompileAllowance::default().take(&configuration);
    }
}
