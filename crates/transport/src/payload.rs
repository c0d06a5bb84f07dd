//! Converts device payloads to journal records, and stored attributes to responses.

use fieldline_core::ports::StoreResult;
use fieldline_devices::directory::DeviceHandle;
use fieldline_entities::services::ProvisionRequest;
use fieldline_model::json::{self, JsonError};
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::{Attribute, AttributeScope};

use crate::TransportServices;

mod format;
mod provision;

pub(crate) use format::{PayloadError, PayloadFormat, notification, response};
pub(crate) use provision::ProvisionPayload;

/// Adds a telemetry message to the batch. A message without data points adds nothing.
pub(crate) fn telemetry(
    services: &TransportServices,
    device: &DeviceHandle,
    ttl_seconds: u32,
    payload: &[u8],
    batch: &mut RecordBatch,
) -> Result<(), JsonError> {
    let now_ms = services.clock.now_ms();
    let mut record = batch.begin_telemetry(device.subject, now_ms, ttl_seconds);
    json::telemetry(payload, &services.json, || device.times.next(now_ms), &mut record)?;
    record.finish();
    Ok(())
}

/// Adds a message with client attributes to the batch. A message without attributes adds nothing.
pub(crate) fn attributes(
    services: &TransportServices,
    device: &DeviceHandle,
    payload: &[u8],
    batch: &mut RecordBatch,
) -> Result<(), JsonError> {
    let mut record = batch.begin_attributes(device.subject, services.clock.now_ms(), AttributeScope::Client);
    json::attributes(payload, &services.json, record.buffer())?;
    record.finish();
    Ok(())
}

/// Reads the provisioning request of a device that asks for its credentials.
pub(crate) fn provision_request(payload: &[u8]) -> Result<ProvisionRequest, JsonError> {
    json::read(
        payload,
        "expected `provisionDeviceKey` and `provisionDeviceSecret`",
    )
}

/// The attributes that a device asks for; if both lists are absent, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DeviceAttributeRequest {
    pub(crate) client_keys: Option<Vec<String>>,
    pub(crate) shared_keys: Option<Vec<String>>,
}

impl DeviceAttributeRequest {
    /// Reads `{"clientKeys": "a,b", "sharedKeys": "c"}`.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, JsonError> {
        let request = json::attribute_request(payload)?;
        Ok(Self {
            client_keys: request.client_keys,
            shared_keys: request.shared_keys,
        })
    }

    /// Returns the response to the device as JSON: see [`RequestedAttributes::to_json`].
    pub(crate) async fn answer(
        &self,
        services: &TransportServices,
        device: &DeviceHandle,
    ) -> StoreResult<String> {
        Ok(self.find(services, device).await?.to_json())
    }

    /// Reads the requested attributes from the store.
    pub(crate) async fn find(
        &self,
        services: &TransportServices,
        device: &DeviceHandle,
    ) -> StoreResult<RequestedAttributes> {
        let all = self.client_keys.is_none() && self.shared_keys.is_none();
        let mut found = RequestedAttributes::default();
        for (scope, keys, found) in [
            (AttributeScope::Client, &self.client_keys, &mut found.client),
            (AttributeScope::Shared, &self.shared_keys, &mut found.shared),
        ] {
            if all || keys.is_some() {
                let attributes = &services.attributes;
                *found = attributes.get(device.subject, scope, keys.as_deref()).await?;
            }
        }
        Ok(found)
    }
}

/// The requested attributes that exist.
#[derive(Debug, Default)]
pub(crate) struct RequestedAttributes {
    pub(crate) client: Vec<Attribute>,
    pub(crate) shared: Vec<Attribute>,
}

impl RequestedAttributes {
    /// Whether no attribute was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_empty() && self.shared.is_empty()
    }

    /// Returns `{"client": {…}, "shared": {…}}`, without a scope that has no values.
    pub(crate) fn to_json(&self) -> String {
        let mut out = String::from("{");
        for (name, found) in [("client", &self.client), ("shared", &self.shared)] {
            if found.is_empty() {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            json::write_string(name, &mut out);
            out.push(':');
            write_object(found, &mut out);
        }
        out.push('}');
        out
    }
}

pub(crate) fn write_object(attributes: &[Attribute], out: &mut String) {
    out.push('{');
    for (index, attribute) in attributes.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        json::write_string(&attribute.key, out);
        out.push(':');
        attribute.value.as_ref().write_json(out);
    }
    out.push('}');
}
