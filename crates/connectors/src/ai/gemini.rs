//! The language of Gemini.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::client::{ChatRequest, PromptPart};
use super::config::{ResponseFormat, reduce_schema};
use super::model::AiModelConfig;
use super::openai::{text_of, without_nulls};

/// The body of a request for content.
pub(super) fn generate(model: &AiModelConfig, request: &ChatRequest<'_>) -> Value {
    let parts: Vec<Value> = request
        .contents
        .iter()
        .map(|content| match content {
            PromptPart::Text(text) => json!({"text": text}),
            PromptPart::Image { media_type, data } => inline(media_type, data),
            PromptPart::Pdf(data) => inline("application/pdf", data),
        })
        .collect();
    let system = match request.system_prompt() {
        Some(text) => json!({"parts": [{"text": text}]}),
        None => Value::Null,
    };
    let (kind, schema) = match request.format {
        ResponseFormat::Text => (Value::Null, Value::Null),
        ResponseFormat::Json => (Value::from("application/json"), Value::Null),
        ResponseFormat::JsonSchema { schema } => (Value::from("application/json"), reduce_schema(schema)),
    };
    let generation = without_nulls(json!({
        "temperature": model.temperature,
        "topP": model.top_p,
        "topK": model.top_k,
        "frequencyPenalty": model.frequency_penalty,
        "presencePenalty": model.presence_penalty,
        "maxOutputTokens": model.max_output_tokens,
        "responseMimeType": kind,
        "responseJsonSchema": schema,
    }));
    without_nulls(json!({
        "contents": [{"role": "user", "parts": parts}],
        "systemInstruction": system,
        "generationConfig": generation,
    }))
}

fn inline(media_type: &str, data: &[u8]) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": STANDARD.encode(data)}})
}

/// Finds the text in an answer.
pub(super) fn text(answer: &Value) -> Option<String> {
    text_of(answer.pointer("/candidates/0/content/parts")?)
}
