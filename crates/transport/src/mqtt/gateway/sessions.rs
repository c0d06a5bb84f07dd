//! The sessions of the devices behind a gateway.

use std::sync::Arc;

use fieldline_core::ingest::ActivityListener as _;
use fieldline_devices::directory::DeviceHandle;
use fieldline_devices::downlink::Subscriptions;
use fieldline_devices::sessions::{SessionControl, SessionGuard, SessionOrigin};
use fieldline_model::DeviceId;
use fieldline_model::entity::Device;
use rustc_hash::FxHashMap;

use super::GatewayError;
use crate::mqtt::connection::MqttShared;
use crate::mqtt::packet_handler::PacketHandler;

/// Most devices behind one gateway.
const MAX_DEVICES: usize = 50_000;

/// The gateway state of a connection.
#[derive(Default)]
pub(in crate::mqtt) struct GatewaySessions {
    /// The device, if it is a gateway.
    device: Option<Device>,
    /// Whether `device` must be looked up again.
    is_stale: bool,
    sessions: FxHashMap<Arc<str>, SessionGuard>,
    /// The name by which the gateway knows a device that has a session.
    names: FxHashMap<DeviceId, Arc<str>>,
    /// Time of the last activity report for the devices behind it, seconds of the coarse clock.
    heard_s: Option<u32>,
}

impl GatewaySessions {
    /// Marks the state as stale after the device has changed, and with it perhaps whether it is a gateway.
    pub(in crate::mqtt) fn outdate(&mut self) {
        self.is_stale = true;
    }
}

impl PacketHandler {
    /// Whether the device is a gateway; looked up when first needed.
    pub(super) async fn is_gateway(&mut self, shared: &MqttShared) -> Result<bool, GatewayError> {
        let subject = self.device().subject;
        if self.cold.gateway().is_none_or(|gateway| gateway.is_stale) {
            let device = shared.services.onboarding.gateways.gateway(subject).await?;
            let gateway = self.cold.gateway_or_new();
            gateway.device = device;
            gateway.is_stale = false;
            if gateway.device.is_none() {
                self.end_sub_sessions(shared);
            }
        }
        let gateway = self.cold.gateway();
        Ok(gateway.is_some_and(|gateway| gateway.device.is_some()))
    }

    /// Returns the device of that name behind the gateway, with an open session; creates the device if it does not
    /// exist.
    pub(super) async fn open_sub_device(
        &mut self,
        shared: &MqttShared,
        name: &str,
        device_type: &str,
    ) -> Result<Arc<DeviceHandle>, GatewayError> {
        let services = &shared.services;
        let control = self.guard.control().clone();
        let Some(gateway) = self.cold.gateway_mut() else {
            return Err(GatewayError::UnknownTopic);
        };
        if let Some(session) = gateway.sessions.get(name) {
            let device = session.device();
            if !device.is_revoked() && session.control().close_reason().is_none() {
                if device.is_stale() {
                    services.directory.refresh(device).await?;
                }
                return Ok(device.clone());
            }
        }
        let Some(speaker) = &gateway.device else {
            return Err(GatewayError::UnknownTopic);
        };
        if gateway.sessions.len() >= MAX_DEVICES {
            return Err(GatewayError::Full);
        }
        let device = services
            .onboarding
            .gateways
            .device(speaker, name, device_type)
            .await?;
        if device.id == speaker.id {
            return Err(GatewayError::Malformed(
                "a gateway is not behind itself".to_owned(),
            ));
        }
        let Some(handle) = services.directory.by_device(&device).await? else {
            return Err(GatewayError::Failed(
                "the device was deleted meanwhile".to_owned(),
            ));
        };
        let name: Arc<str> = name.into();
        let session = Arc::new(SessionControl::behind(control, name.clone()));
        let origin = SessionOrigin {
            gateway: Some(self.guard.device().id),
            since_ms: services.clock.now_ms(),
            ..self.guard.origin()
        };
        // The device may have a session under its former name, and would get every message twice.
        let former = gateway.names.insert(handle.id, name.clone());
        let former = former.filter(|former| *former != name);
        let guard = services.sessions.open_from(handle.clone(), session, origin);
        let wants = Subscriptions::ATTRIBUTES.and(Subscriptions::RPC);
        services
            .rpc
            .set_subscriptions(handle.subject, guard.control(), wants);
        services.activity.record_connect(handle.subject);
        let replaced = gateway.sessions.insert(name, guard);
        if let Some(replaced) = replaced.filter(|session| session.device().id != handle.id) {
            gateway.names.remove(&replaced.device().id);
        }
        if let Some(former) = former {
            self.end_sub_session(shared, &former);
        }
        Ok(handle)
    }

    /// If the gateway's settings say so, reports activity for all devices behind it when the gateway itself is heard,
    /// at most once a second.
    pub(in crate::mqtt) fn receive_from_sub_devices(&mut self, shared: &MqttShared) {
        let Some(gateway) = self.cold.gateway_mut() else {
            return;
        };
        let now_s = shared.keep_alive.now_s();
        if gateway.heard_s == Some(now_s) || !self.guard.device().role().overwrites_activity {
            return;
        }
        gateway.heard_s = Some(now_s);
        let now_ms = shared.services.clock.now_ms();
        let behind = gateway.sessions.values();
        let heard: Vec<_> = behind.map(|session| (session.device().subject, now_ms)).collect();
        shared.services.activity.record_activities(&heard);
    }

    /// Ends the session of a device behind the gateway if it was closed, unless a new one has replaced it.
    pub(super) fn end_closed_sub_session(&mut self, shared: &MqttShared, name: &str) {
        let gateway = self.cold.gateway();
        let session = gateway.and_then(|gateway| gateway.sessions.get(name));
        if session.is_some_and(|session| session.control().close_reason().is_some()) {
            self.end_sub_session(shared, name);
        }
    }

    /// Ends the session of a device behind the gateway.
    pub(super) fn end_sub_session(&mut self, shared: &MqttShared, name: &str) {
        let Some(gateway) = self.cold.gateway_mut() else {
            return;
        };
        if let Some(session) = gateway.sessions.remove(name) {
            let device = session.device().id;
            if gateway.names.get(&device).is_some_and(|now| **now == *name) {
                gateway.names.remove(&device);
            }
            end(shared, &session);
        }
    }

    /// Ends the sessions of all devices behind the gateway.
    pub(in crate::mqtt) fn end_sub_sessions(&mut self, shared: &MqttShared) {
        let Some(gateway) = self.cold.gateway_mut() else {
            return;
        };
        gateway.names.clear();
        for (_, session) in gateway.sessions.drain() {
            end(shared, &session);
        }
    }
}

fn end(shared: &MqttShared, session: &SessionGuard) {
    if session.end() {
        shared
            .services
            .activity
            .record_disconnect(session.device().subject);
    }
}
