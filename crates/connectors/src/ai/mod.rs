//! Language models that answer questions.

mod client;
mod config;
mod gemini;
mod messages;
mod model;
mod openai;

pub use client::{AiClient, ChatRequest, Content};
pub use config::{AiConfig, ResponseFormat};
pub use model::{AiModelConfig, AiProvider, OllamaAuth, ProviderConfig};
