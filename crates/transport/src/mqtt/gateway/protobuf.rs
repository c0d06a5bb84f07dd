//! Messages of gateways whose profile sets Protobuf payloads.

use fieldline_model::json;
use fieldline_protobuf::api::{
    self, ClaimDevice, ConnectMsg, GatewayAttributesMsg, GatewayAttributesRequestMsg, GatewayClaimMsg,
    GatewayRpcResponseMsg, GatewayTelemetryMsg,
};

use super::GatewayError;
use super::messages::{GatewayAttributeRequest, GatewayBody, GatewayCommand, GatewayRpcAnswer, named, some};

impl GatewayCommand {
    /// Parses a Protobuf message by its topic, given without `v1/gateway`.
    pub(super) fn parse_protobuf(topic: &str, payload: &[u8]) -> Result<Self, GatewayError> {
        Ok(match topic {
            "/connect" => {
                let connect: ConnectMsg = api::read(payload)?;
                Self::Connect(named(connect.device_name)?, Some(connect.device_type))
            }
            "/disconnect" => Self::Disconnect(named(api::read::<ConnectMsg>(payload)?.device_name)?),
            "/telemetry" => {
                let message: GatewayTelemetryMsg = api::read(payload)?;
                let devices = message.msg.into_iter();
                let devices = devices.map(|device| (device.device_name, device.msg.unwrap_or_default()));
                Self::Telemetry(some(
                    devices.map(|(name, msg)| (name, GatewayBody::Protobuf(msg))),
                )?)
            }
            "/attributes" => {
                let message: GatewayAttributesMsg = api::read(payload)?;
                let devices = message.msg.into_iter();
                let devices = devices.map(|device| (device.device_name, device.msg.unwrap_or_default()));
                Self::Attributes(some(
                    devices.map(|(name, msg)| (name, GatewayBody::Protobuf(msg))),
                )?)
            }
            "/attributes/request" => {
                let request: GatewayAttributesRequestMsg = api::read(payload)?;
                Self::Request(GatewayAttributeRequest {
                    id: request.id,
                    device: named(request.device_name)?,
                    client: request.client,
                    keys: request.keys,
                })
            }
            "/rpc" => {
                let answer: GatewayRpcResponseMsg = api::read(payload)?;
                Self::Answer(GatewayRpcAnswer {
                    device: named(answer.device_name)?,
                    id: answer.id,
                    data: answer.data,
                })
            }
            "/claim" => {
                let message: GatewayClaimMsg = api::read(payload)?;
                let devices = message.msg.into_iter();
                Self::Claim(some(devices.map(|device| {
                    let ClaimDevice {
                        secret_key,
                        duration_ms,
                    } = device.claim_request.unwrap_or_default();
                    let claim = json::ClaimPayload {
                        secret_key,
                        duration_ms,
                    };
                    (device.device_name, claim)
                }))?)
            }
            _ => return Err(GatewayError::UnknownTopic),
        })
    }
}
