use std::time::Duration;

use fieldline_connectors::ConnectorConfig;
use fieldline_connectors::ai::{AiClient, AiConfig, AiModelConfig, ChatRequest, PromptPart, ResponseFormat};
use fieldline_connectors::egress::Egress;
use fieldline_testkit::fakes::aws::{SECRET, is_signed};
use fieldline_testkit::fakes::google;
use fieldline_testkit::fakes::server::{FakeHttpServer, RecordedRequest, answer};
use serde_json::{Value, json};

fn format(format: Value) -> ResponseFormat {
    let node = json!({"modelId": {"entityType": "AI_MODEL", "id": "i"}, "userPrompt": "u", "responseFormat": format});
    AiConfig::from_json(&node).unwrap().response_format
}

fn schema() -> ResponseFormat {
    format(json!({"type": "JSON_SCHEMA", "schema": {
        "title": "Answer", "$schema": "s", "type": "object", "properties": {"ok": {"type": "boolean", "default": null}},
        "required": ["ok"],
    }}))
}

fn reduced_schema() -> Value {
    json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
}

/// Asks a model of a provider that answers so; returns its body and the request.
async fn ask(provider: Value, format: &ResponseFormat, said: Value) -> (Value, RecordedRequest) {
    let server = FakeHttpServer::start(move |request| match request.target.as_str() {
        "/token" => answer(200, &[], &google::token(request)),
        _ => answer(200, &[], &said.to_string()),
    })
    .await;
    let mut model = json!({"modelId": "m:1", "temperature": 0.5, "topP": null, "maxOutputTokens": 99});
    model
        .as_object_mut()
        .unwrap()
        .extend(provider.as_object().unwrap().clone());
    if model["providerConfig"].get("serviceAccountKey").is_some() {
        model["providerConfig"]["serviceAccountKey"] = json!(google::key_file(&server.url));
    }
    let model = AiModelConfig::from_json(&model).unwrap();
    let client = AiClient::with_endpoint(&model, Some(&server.url), &Egress::open()).unwrap();
    let image = PromptPart::of_resource("image/png", vec![1, 2, 3]);
    let contents = [PromptPart::Text("question".to_owned()), image];
    let request = ChatRequest {
        system_prompt: Some("be brief"),
        contents: &contents,
        format,
        timeout: Duration::from_secs(10),
    };
    let outcome = client.send(&request).await.unwrap();
    assert!(outcome.metadata.is_empty());
    (
        serde_json::from_str(&outcome.body.unwrap()).unwrap(),
        server.last(),
    )
}

#[tokio::test]
async fn openai_and_those_who_speak_like_it() {
    let said = |text: &str| json!({"choices": [{"message": {"content": text}}]});
    let openai = json!({"provider": "OPENAI", "providerConfig": {"apiKey": "k"}});
    let (body, request) = ask(openai, &schema(), said(r#"{"ok": true}"#)).await;
    assert_eq!(body, json!({"ok": true}));
    assert_eq!(request.target, "/chat/completions");
    assert_eq!(request.header("authorization"), "Bearer k");
    let content = json!([
        {"type": "text", "text": "question"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}},
    ]);
    assert_eq!(
        request.json(),
        json!({
            "model": "m:1", "temperature": 0.5, "max_tokens": 99,
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": content}],
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "Answer", "strict": false, "schema": reduced_schema(),
            }},
        })
    );

    let azure =
        json!({"provider": "AZURE_OPENAI", "providerConfig": {"endpoint": "http://x", "apiKey": "k"}});
    let (body, request) = ask(azure, &format(json!({"type": "TEXT"})), said("just text")).await;
    assert_eq!(body, json!({"response": "just text"}));
    assert_eq!(
        request.target,
        "/openai/deployments/m%3A1/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(request.header("api-key"), "k");
    assert!(request.json().get("response_format").is_none());

    let github = json!({"provider": "GITHUB_MODELS", "providerConfig": {"personalAccessToken": "p"}});
    let (_, request) = ask(github, &ResponseFormat::Json, said("{}")).await;
    assert_eq!(request.header("authorization"), "Bearer p");
    assert_eq!(request.json()["max_completion_tokens"], 99);
    assert_eq!(request.json()["response_format"], json!({"type": "json_object"}));

    let mistral = json!({"provider": "MISTRAL_AI", "providerConfig": {"apiKey": "k"}});
    let (_, request) = ask(mistral, &ResponseFormat::Json, said("{}")).await;
    assert_eq!(
        request.json()["messages"][1]["content"][1]["image_url"],
        "data:image/png;base64,AQID"
    );
}

#[tokio::test]
async fn anthropic_and_bedrock() {
    let anthropic = json!({"provider": "ANTHROPIC", "providerConfig": {"apiKey": "k"}});
    let said = json!({"content": [{"type": "text", "text": "{\"ok\":"}, {"type": "text", "text": "false}"}]});
    let (body, request) = ask(anthropic, &schema(), said).await;
    assert_eq!(body, json!({"ok": false}));
    assert_eq!(
        (request.target.as_str(), request.header("x-api-key")),
        ("/messages", "k")
    );
    assert_eq!(request.header("anthropic-version"), "2023-06-01");
    let sent = request.json();
    assert_eq!(
        (&sent["system"], &sent["max_tokens"]),
        (&json!("be brief"), &json!(99))
    );
    assert_eq!(
        sent["output_config"]["format"],
        json!({"type": "json_schema", "schema": reduced_schema()})
    );
    assert_eq!(sent["messages"][0]["content"][1]["source"]["data"], "AQID");

    let keys = json!({"region": "us-east-1", "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET});
    let bedrock = json!({"provider": "AMAZON_BEDROCK", "providerConfig": keys});
    let said = json!({"output": {"message": {"content": [{"text": "hello"}]}}});
    let (body, request) = ask(bedrock, &schema(), said).await;
    assert_eq!(body, json!({"response": "hello"}));
    assert_eq!(request.target, "/model/m%3A1/converse");
    is_signed(&request, "us-east-1", "bedrock");
    assert_eq!(
        request.json()["inferenceConfig"],
        json!({"temperature": 0.5, "maxTokens": 99})
    );
}

#[tokio::test]
async fn gemini_and_ollama() {
    let said =
        json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "{}"}]}}]});
    let gemini = json!({"provider": "GOOGLE_AI_GEMINI", "providerConfig": {"apiKey": "k"}});
    let (body, request) = ask(gemini, &schema(), said.clone()).await;
    assert_eq!(body, json!({}));
    assert_eq!(
        (request.target.as_str(), request.header("x-goog-api-key")),
        ("/models/m%3A1:generateContent", "k")
    );
    let sent = request.json();
    assert_eq!(sent["generationConfig"]["responseJsonSchema"], reduced_schema());
    assert_eq!(sent["systemInstruction"]["parts"][0]["text"], "be brief");

    let vertex = json!({"projectId": "p", "location": "l", "serviceAccountKey": "", "fileName": "f"});
    let vertex = json!({"provider": "GOOGLE_VERTEX_AI_GEMINI", "providerConfig": vertex});
    let (_, request) = ask(vertex, &ResponseFormat::Json, said).await;
    assert_eq!(request.header("authorization"), "Bearer token-1");
    assert_eq!(
        request.target,
        "/v1/projects/p/locations/l/publishers/google/models/m%3A1:generateContent"
    );

    let auth = json!({"type": "BASIC", "username": "u", "password": "p"});
    let ollama = json!({"provider": "OLLAMA", "providerConfig": {"baseUrl": "http://x", "auth": auth}});
    let (_, request) = ask(ollama, &schema(), json!({"message": {"content": "{}"}})).await;
    assert_eq!(
        (request.target.as_str(), request.header("authorization")),
        ("/api/chat", "Basic dTpw")
    );
    let sent = request.json();
    assert_eq!(
        (&sent["format"], &sent["stream"]),
        (&reduced_schema(), &json!(false))
    );
    assert_eq!(
        sent["messages"][1],
        json!({"role": "user", "content": "question", "images": ["AQID"]})
    );
    assert_eq!(sent["options"], json!({"temperature": 0.5, "num_predict": 99}));
}

#[tokio::test]
async fn refusals_and_late_answers_are_failures() {
    let model = json!({"provider": "OPENAI", "providerConfig": {"apiKey": "sk-secret"}, "modelId": "m"});
    let config = AiModelConfig::from_json(&model).unwrap();
    assert!(!format!("{config:?}").contains("sk-secret"));
    let server = FakeHttpServer::always(429, json!({"error": {"message": "quota exceeded"}})).await;
    let client = AiClient::with_endpoint(&config, Some(&server.url), &Egress::open()).unwrap();
    let contents = [PromptPart::Text("q".to_owned())];
    let mut request = ChatRequest {
        system_prompt: None,
        contents: &contents,
        format: &ResponseFormat::Json,
        timeout: Duration::from_secs(10),
    };
    assert_eq!(
        client.send(&request).await.unwrap_err().message,
        "429 Too Many Requests: quota exceeded"
    );

    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let client = AiClient::with_endpoint(&config, Some(&url), &Egress::open()).unwrap();
    request.timeout = Duration::from_millis(50);
    assert_eq!(
        client.send(&request).await.unwrap_err().message,
        "model did not answer in time"
    );

    let node = json!({"modelId": "i", "userPrompt": "u", "timeoutSeconds": 601});
    assert_eq!(AiConfig::from_json(&node).unwrap_err().field(), "timeoutSeconds");
    let keyless = json!({"provider": "ANTHROPIC", "providerConfig": {}, "modelId": "m"});
    assert_eq!(
        AiModelConfig::from_json(&keyless).unwrap_err().field(),
        "providerConfig.apiKey"
    );
}
