//! Language models that answer questions.

mod client;
mod config;
mod gemini;
mod messages;
mod model;
mod openai;

pub use client::{AiClient, ChatRequest, PromptPart};
pub use config::{AiConfig, ResponseFormat};
pub use model::{AiModelConfig, AiProvider, AiProviderConfig, OllamaAuth};
