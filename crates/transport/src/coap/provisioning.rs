//! Provisioning over CoAP, in JSON or Protobuf; the response has the format of the request.

use fieldline_codec::coap::CoapCode;
use fieldline_entities::services::ProvisionStatus;

use super::admission::is_proven;
use super::reply::CoapReply;
use super::request::CoapRequest;
use super::resources::store_failed;
use super::server::CoapShared;
use crate::payload::ProvisionPayload;

/// Gives a device its credentials, or tells it why not.
pub(super) async fn provision(shared: &CoapShared, asked: &CoapRequest) -> Result<CoapReply, CoapReply> {
    let (guard, address) = (&shared.services.guard, asked.peer.address.ip());
    if !guard.try_admit(address) {
        return Err(CoapReply::empty(CoapCode::UNAUTHORIZED));
    }
    let wish = ProvisionPayload::parse(&asked.payload).map_err(|error| {
        shared.metrics.rejected.increment(1);
        CoapReply::refusal(CoapCode::BAD_REQUEST, error.to_string())
    })?;
    let provisioning = &shared.services.onboarding.provisioning;
    let provisioned = provisioning.provision(&wish.request).await;
    let provisioned = provisioned.map_err(|error| store_failed(&error))?;
    // Wrong keys and secrets count against the address, as there is no device to blame.
    if provisioned.status == ProvisionStatus::NotFound && is_proven(asked) {
        guard.record_failure(address);
    }
    let code = match provisioned.status {
        ProvisionStatus::Success => CoapCode::CREATED,
        ProvisionStatus::NotFound | ProvisionStatus::Failure => CoapCode::BAD_REQUEST,
    };
    Ok(CoapReply::content(code, wish.answer(&provisioned), wish.format()))
}
