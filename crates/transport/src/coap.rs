//! The CoAP device API: `/api/v1/{token}/{feature}` over UDP, and `/api/v1/{feature}` over DTLS with a client certificate.
//!
//! The message layer handles a datagram first (duplicates, acknowledgements: [`exchanges`]). If it carries a block of a
//! larger body, [`blockwise`] reassembles the body. Then [`resources`] serves the request, in the same way as HTTP. An
//! observation is a session of the device ([`observe`]), like an MQTT connection.
//!
//! A request refused because the server is overloaded gets no answer; the peer of a confirmable message retransmits it,
//! at growing intervals. A request that was accepted but cannot be stored is answered with 5.03 and a time to retry.

mod admission;
mod blockwise;
mod counts;
mod dtls;
mod exchanges;
mod firmware;
mod observe;
mod provisioning;
mod reply;
mod request;
mod request_limiter;
mod resources;
mod server;

use std::net::SocketAddr;

use fieldline_core::options::{ByteSize, HumanDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::dtls::{DtlsCredentials, DtlsSetupError, Options as SecureOptions};
pub use self::server::CoapServer;

/// Settings of the CoAP device server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// UDP address that devices send to without DTLS, usually port 5683. Not set: no CoAP without DTLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Largest body of a request, in one datagram or in blocks; a larger one is refused with 4.13.
    pub max_payload: ByteSize,
    /// Memory for all bodies in blocks: requests that have not arrived whole, and responses that were not fetched
    /// whole. Beyond it they are refused with 5.03.
    pub block_memory: ByteSize,
    /// Most requests in progress at a time; further ones get no answer, so that the peer retransmits them.
    pub max_requests: usize,
    /// A request that takes longer than this is acknowledged first, and answered in a separate response.
    pub acknowledge_after: HumanDuration,
    /// An observer that is silent for this long is pinged, unless it saves power.
    pub observer_silence: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: None,
            max_payload: ByteSize(65_536),
            block_memory: ByteSize::mib(64),
            max_requests: 10_000,
            acknowledge_after: HumanDuration::millis(500),
            observer_silence: HumanDuration::secs(86_400),
        }
    }
}
