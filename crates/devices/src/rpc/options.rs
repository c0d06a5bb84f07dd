//! Settings of calls to devices and by devices.

use fieldline_core::options::HumanDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In which order the calls that wait for a device are sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RpcSubmitStrategy {
    /// All at once.
    #[default]
    Burst,
    /// The next one once the device has acknowledged the one before.
    SequentialOnAckFromDevice,
    /// The next one once the device has answered the one before, or has not in `response-timeout`.
    SequentialOnResponseFromDevice,
}

/// Settings of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Shortest time that a REST client can give a device to answer; what is shorter is taken for this.
    pub min_timeout: HumanDuration,
    /// Time that a device has to answer where the REST client does not say.
    pub default_timeout: HumanDuration,
    /// In which order calls are sent to a device.
    pub submit_strategy: RpcSubmitStrategy,
    /// Time that a device may take to acknowledge a call over MQTT.
    pub acknowledge_timeout: HumanDuration,
    /// How often a call is sent again that the device has not acknowledged, at most.
    pub max_retries: u32,
    /// Whether the connection of a device ends that has not acknowledged a call by then. The call waits for the next one
    /// instead of failing.
    pub close_on_delivery_timeout: bool,
    /// Time that a device may take to answer what it has acknowledged before the next call is sent; for
    /// `sequential-on-response-from-device`.
    pub response_timeout: HumanDuration,
    /// Time that the rule chains may take to answer a call by a device.
    pub client_timeout: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_timeout: HumanDuration::secs(5),
            default_timeout: HumanDuration::secs(10),
            submit_strategy: RpcSubmitStrategy::Burst,
            acknowledge_timeout: HumanDuration::secs(10),
            max_retries: 5,
            close_on_delivery_timeout: false,
            response_timeout: HumanDuration::secs(30),
            client_timeout: HumanDuration::secs(60),
        }
    }
}

impl Options {
    /// What is wrong with the settings, `None` where nothing is.
    pub fn problem(&self) -> Option<String> {
        let day = HumanDuration::secs(86_400);
        let spans = [
            ("min-timeout", self.min_timeout),
            ("default-timeout", self.default_timeout),
            ("acknowledge-timeout", self.acknowledge_timeout),
            ("response-timeout", self.response_timeout),
            ("client-timeout", self.client_timeout),
        ];
        let wrong = spans
            .into_iter()
            .find(|(_, span)| *span < HumanDuration::millis(1) || *span > day);
        if let Some((name, _)) = wrong {
            return Some(format!("{name} must be more than 0 and at most a day"));
        }
        (self.max_retries > 100).then(|| "max-retries must be at most 100".to_owned())
    }
}
