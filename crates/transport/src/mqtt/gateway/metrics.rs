//! Latency of messages through gateways, from the timestamps that gateways attach: collected by connector and reported
//! as telemetry of the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_devices::directory::DeviceHandle;
use fieldline_model::record::RecordBatch;
use fieldline_model::{DeviceId, json};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tracing::warn;

use super::GatewayError;
use crate::TransportServices;
use crate::payload;

static REPORT_GATE: LogGate = LogGate::new(2);

/// Gateways with collected metrics at a time; those of further gateways are dropped.
const MAX_GATEWAYS: usize = 10_000;
/// Connectors of one gateway.
const MAX_CONNECTORS: usize = 100;
/// Longest name of a connector, bytes.
const MAX_NAME: usize = 255;
/// Name of the field of a telemetry element that holds the metadata.
const FIELD: &str = "metadata";

/// Metadata that a gateway attaches to a message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewayMetadata {
    connector: String,
    /// Time at which the gateway received the message, milliseconds.
    received_ts: i64,
    /// Time at which the gateway published it, milliseconds.
    published_ts: i64,
}

/// Removes the gateway's metadata from the telemetry of a device, and collects it in `found`.
pub(super) fn take_metadata(
    body: &mut Box<RawValue>,
    found: &mut Vec<GatewayMetadata>,
) -> Result<(), GatewayError> {
    if !body.get().contains("\"metadata\"") {
        return Ok(());
    }
    let malformed = |error: serde_json::Error| GatewayError::Malformed(error.to_string());
    let elements: Vec<&RawValue> = serde_json::from_str(body.get()).map_err(malformed)?;
    let mut out = String::with_capacity(body.get().len());
    for element in elements {
        out.push(if out.is_empty() { '[' } else { ',' });
        let text = element.get();
        if !text.starts_with('{') {
            out.push_str(text);
            continue;
        }
        out.push('{');
        let mut is_first = true;
        for (name, value) in json::entries(text.as_bytes())? {
            if name == FIELD {
                let metadata: GatewayMetadata = serde_json::from_str(value.get()).map_err(malformed)?;
                if metadata.connector.len() > MAX_NAME {
                    return Err(GatewayError::Malformed(
                        "the name of the connector is too long".to_owned(),
                    ));
                }
                found.push(metadata);
                continue;
            }
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
            json::write_string(&name, &mut out);
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
    }
    if out.is_empty() {
        out.push('[');
    }
    out.push(']');
    *body = RawValue::from_string(out).map_err(malformed)?;
    Ok(())
}

/// The metrics collected since the last report.
#[derive(Default)]
pub(in crate::mqtt) struct GatewayMetrics(Mutex<FxHashMap<DeviceId, GatewayReport>>);

struct GatewayReport {
    gateway: Arc<DeviceHandle>,
    connectors: BTreeMap<String, ConnectorMetrics>,
}

#[derive(Default)]
struct ConnectorMetrics {
    count: i64,
    /// From receipt by the gateway to its publish.
    gateway: GatewayLatency,
    /// From the gateway's publish to this server.
    transport: GatewayLatency,
}

/// Latency statistics, milliseconds.
#[derive(Default)]
struct GatewayLatency {
    sum: i64,
    min: Option<i64>,
    max: Option<i64>,
}

impl GatewayLatency {
    fn add(&mut self, ms: i64) {
        self.sum = self.sum.saturating_add(ms);
        self.min = Some(self.min.map_or(ms, |min| min.min(ms)));
        self.max = Some(self.max.map_or(ms, |max| max.max(ms)));
    }

    fn write(&self, name: &str, count: i64, out: &mut String) {
        let average = self.sum.checked_div(count).unwrap_or(0);
        let (min, max) = (self.min.unwrap_or(0), self.max.unwrap_or(0));
        out.push_str(&format!(
            "\"avg{name}\":{average},\"min{name}\":{min},\"max{name}\":{max}"
        ));
    }
}

impl GatewayReport {
    fn to_json(&self) -> String {
        let mut out = String::from("{\"gatewayMetrics\":{");
        for (index, (name, connector)) in self.connectors.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            json::write_string(name, &mut out);
            out.push_str(":{");
            connector.gateway.write("GwLatency", connector.count, &mut out);
            out.push(',');
            connector
                .transport
                .write("TransportLatency", connector.count, &mut out);
            out.push('}');
        }
        out.push_str("}}");
        out
    }
}

impl GatewayMetrics {
    /// Adds the metadata of messages that arrived at `now_ms`.
    pub(super) fn add(&self, gateway: &Arc<DeviceHandle>, found: Vec<GatewayMetadata>, now_ms: i64) {
        if found.is_empty() {
            return;
        }
        let mut gateways = self.0.lock();
        if gateways.len() >= MAX_GATEWAYS && !gateways.contains_key(&gateway.id) {
            return;
        }
        let gathered = gateways.entry(gateway.id).or_insert_with(|| GatewayReport {
            gateway: gateway.clone(),
            connectors: BTreeMap::new(),
        });
        // If the device was changed meanwhile, the report uses the new handle.
        gathered.gateway = gateway.clone();
        for metadata in found {
            let is_full = gathered.connectors.len() >= MAX_CONNECTORS;
            if is_full && !gathered.connectors.contains_key(&metadata.connector) {
                continue;
            }
            let connector = gathered.connectors.entry(metadata.connector).or_default();
            connector.count += 1;
            let published = metadata.published_ts;
            connector
                .gateway
                .add(published.saturating_sub(metadata.received_ts));
            connector.transport.add(now_ms.saturating_sub(published));
        }
    }

    /// Reports at intervals until it is stopped.
    pub(in crate::mqtt) async fn run(
        self: Arc<Self>,
        services: Arc<TransportServices>,
        interval: Duration,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let is_stopping = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if is_stopping {
                return;
            }
            self.report(&services).await;
        }
    }

    async fn report(&self, services: &TransportServices) {
        let gathered = std::mem::take(&mut *self.0.lock());
        for gathered in gathered.into_values() {
            let gateway = &gathered.gateway;
            if gateway.is_revoked() {
                continue;
            }
            let mut batch = RecordBatch::new();
            let ttl_seconds = gateway.settings().ttl_seconds;
            let text = gathered.to_json();
            let written = payload::telemetry(services, gateway, ttl_seconds, text.as_bytes(), &mut batch);
            let outcome = match written {
                Ok(()) => super::append(services, gateway, &batch)
                    .await
                    .map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = outcome
                && let Some(suppressed) = REPORT_GATE.open()
            {
                warn!(gateway = %gateway.id, error, suppressed, "cannot report how long messages of a gateway take");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Option<(String, usize)> {
        let mut body = RawValue::from_string(text.to_owned()).unwrap();
        let mut found = Vec::new();
        take_metadata(&mut body, &mut found).ok()?;
        Some((body.get().to_owned(), found.len()))
    }

    #[test]
    fn what_a_gateway_says_of_a_message_is_taken_out_of_it() {
        let metadata = r#"{"connector":"c","receivedTs":1,"publishedTs":5}"#;
        let text = format!(
            r#"[{{"ts":1,"values":{{"metadata":7}},"metadata":{metadata}}},{{"a":1.50,"metadata":{metadata}}}]"#
        );
        let left = r#"[{"ts":1,"values":{"metadata":7}},{"a":1.50}]"#.to_owned();
        assert_eq!(taken(&text), Some((left, 2)));
        for untouched in [r#"[{"a":1}]"#, "[]", r#"[{"ts":1,"values":{"metadata":1}}]"#] {
            assert_eq!(taken(untouched), Some((untouched.to_owned(), 0)));
        }
        for wrong in [r#"[{"metadata":7}]"#, r#"[{"metadata":{"connector":"c"}}]"#] {
            assert_eq!(taken(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn connectors_are_reported_with_their_least_most_and_average() {
        let mut connector = ConnectorMetrics::default();
        for ms in [4, 8, 0] {
            connector.count += 1;
            connector.gateway.add(ms);
            connector.transport.add(10 * ms);
        }
        let mut out = String::new();
        connector.gateway.write("GwLatency", connector.count, &mut out);
        assert_eq!(out, r#""avgGwLatency":4,"minGwLatency":0,"maxGwLatency":8"#);
    }
}
