//! The language of OpenAI, which many speak, and that of Ollama, which is close to it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::client::{ChatRequest, PromptPart};
use super::config::{ResponseFormat, reduce_schema, schema_name};
use super::model::{AiModelConfig, AiProvider};

/// Leaves out what is not set.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect::<Map<_, _>>(),
        ),
        other => other,
    }
}

/// The body of a request for a chat completion.
pub(super) fn completion(model: &AiModelConfig, request: &ChatRequest<'_>) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = request.system_prompt() {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.push(json!({"role": "user", "content": user_content(model.provider, request.contents)}));
    let github = model.provider == AiProvider::GitHubModels;
    let limit = if github {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    without_nulls(json!({
        "model": model.model_id,
        "messages": messages,
        "temperature": model.temperature,
        "top_p": model.top_p,
        "frequency_penalty": model.frequency_penalty,
        "presence_penalty": model.presence_penalty,
        limit: model.max_output_tokens,
        "response_format": response_format(request.format, github),
    }))
}

fn response_format(format: &ResponseFormat, strict: bool) -> Value {
    match format {
        ResponseFormat::Text => Value::Null,
        ResponseFormat::Json => json!({"type": "json_object"}),
        ResponseFormat::JsonSchema { schema } => json!({
            "type": "json_schema",
            "json_schema": {"name": schema_name(schema), "strict": strict, "schema": reduce_schema(schema)},
        }),
    }
}

fn user_content(provider: AiProvider, contents: &[PromptPart]) -> Value {
    if let [PromptPart::Text(text)] = contents {
        return Value::from(text.as_str());
    }
    let mistral = provider == AiProvider::MistralAi;
    let parts = contents.iter().map(|content| match content {
        PromptPart::Text(text) => json!({"type": "text", "text": text}),
        PromptPart::Image { media_type, data } => {
            let url = data_url(media_type, data);
            let url = if mistral {
                Value::from(url)
            } else {
                json!({"url": url})
            };
            json!({"type": "image_url", "image_url": url})
        }
        PromptPart::Pdf(data) if mistral => {
            json!({"type": "document_url", "document_url": data_url("application/pdf", data)})
        }
        PromptPart::Pdf(data) => json!({
            "type": "file",
            "file": {"filename": "document.pdf", "file_data": data_url("application/pdf", data)},
        }),
    });
    Value::Array(parts.collect())
}

fn data_url(media_type: &str, data: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(data))
}

/// Finds the text in an answer.
pub(super) fn completion_text(answer: &Value) -> Option<String> {
    text_of(answer.pointer("/choices/0/message/content")?)
}

/// The body of a request to Ollama; fails for what it does not take.
pub(super) fn ollama(model: &AiModelConfig, request: &ChatRequest<'_>) -> Result<Value, String> {
    let mut text = Vec::new();
    let mut images = Vec::new();
    for content in request.contents {
        match content {
            PromptPart::Text(part) => text.push(part.as_str()),
            PromptPart::Image { data, .. } => images.push(STANDARD.encode(data)),
            PromptPart::Pdf(_) => return Err("Ollama takes no PDF documents".to_owned()),
        }
    }
    let mut messages = Vec::new();
    if let Some(system) = request.system_prompt() {
        messages.push(json!({"role": "system", "content": system}));
    }
    let images = if images.is_empty() {
        Value::Null
    } else {
        json!(images)
    };
    messages.push(without_nulls(
        json!({"role": "user", "content": text.join("\n"), "images": images}),
    ));
    let options = without_nulls(json!({
        "temperature": model.temperature,
        "top_p": model.top_p,
        "top_k": model.top_k,
        "num_ctx": model.context_length,
        "num_predict": model.max_output_tokens,
    }));
    let format = match request.format {
        ResponseFormat::Text => Value::Null,
        ResponseFormat::Json => Value::from("json"),
        ResponseFormat::JsonSchema { schema } => reduce_schema(schema),
    };
    Ok(without_nulls(json!({
        "model": model.model_id,
        "messages": messages,
        "stream": false,
        "format": format,
        "options": options,
    })))
}

/// Finds the text in an answer of Ollama.
pub(super) fn ollama_text(answer: &Value) -> Option<String> {
    text_of(answer.pointer("/message/content")?)
}

/// A text, or the texts of a list of parts.
pub(super) fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(
            parts
                .iter()
                .filter(|part| part.get("thought").and_then(Value::as_bool) != Some(true))
                .filter_map(|part| part.get("text")?.as_str())
                .collect(),
        ),
        _ => None,
    }
}
