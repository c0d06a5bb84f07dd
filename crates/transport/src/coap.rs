//! The CoAP device API: `/api/v1/{token}/{feature}` over UDP, and `/api/v1/{feature}` over DTLS with a client certificate.
//!
//! A datagram goes up through the message layer (duplicates, acknowledgements: [`exchanges`]), is put together with others
//! where it is a block of a larger body ([`blockwise`]), and is served by [`resources`], which work as those of HTTP
//! do. An observation is a session of the device ([`observe`]), like a connection of MQTT.
//!
//! What cannot be taken because the server has its hands full is not answered: the peer of a confirmable message sends it
//! again by itself, ever more seldom. What was taken but cannot be stored is answered with 5.03 and when to try again.

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
    /// Memory that bodies in blocks may take together, of requests that have not come whole and of responses that have not
    /// been fetched whole; beyond it they are refused with 5.03.
    pub block_memory: ByteSize,
    /// Requests that are worked on at a time; further ones are left to the peer to repeat.
    pub max_requests: usize,
    /// A request that is not answered by then is acknowledged first, and answered when the answer is there.
    pub acknowledge_after: HumanDuration,
    /// An observer that was not heard for this long is asked whether it is still there, unless it saves power.
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
