//! How devices get their credentials over CoAP: in JSON or as a message, and they are answered in the same way.

use fieldline_codec::coap::Code;
use fieldline_core::services::ProvisionStatus;

use super::admission::is_proven;
use super::reply::Reply;
use super::request::Request;
use super::resources::store_failed;
use super::server::Shared;
use crate::payload::Provision;

/// Gives a device its credentials, or says why not.
pub(super) async fn provision(shared: &Shared, asked: &Request) -> Result<Reply, Reply> {
    let (guard, address) = (&shared.services.guard, asked.peer.address.ip());
    if !guard.admits(address) {
        return Err(Reply::empty(Code::UNAUTHORIZED));
    }
    let wish = Provision::parse(&asked.payload).map_err(|error| {
        shared.metrics.rejected.increment(1);
        Reply::refusal(Code::BAD_REQUEST, error.to_string())
    })?;
    let provisioning = &shared.services.onboarding.provisioning;
    let provisioned = provisioning.provision(&wish.request).await;
    let provisioned = provisioned.map_err(|error| store_failed(&error))?;
    // Whoever guesses keys and secrets is nobody's device.
    if provisioned.status == ProvisionStatus::NotFound && is_proven(asked) {
        guard.was_wrong(address);
    }
    let code = match provisioned.status {
        ProvisionStatus::Success => Code::CREATED,
        ProvisionStatus::NotFound | ProvisionStatus::Failure => Code::BAD_REQUEST,
    };
    Ok(Reply::content(code, wish.answer(&provisioned), wish.format()))
}
