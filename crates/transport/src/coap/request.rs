//! Requests, read from CoAP messages.

use fieldline_codec::coap::{
    CoapBlock, CoapCode, CoapMessage, CoapMessageType, CoapOptionNumber, CoapToken, read_uint,
};

use super::blockwise::BlockwiseKey;
use super::exchanges::CoapPeer;

/// Longest path segment or query argument, bytes (RFC 7252 §5.10).
const MAX_SEGMENT: usize = 255;
/// Values of the Observe option that begin and end an observation.
const REGISTER: u32 = 0;
const DEREGISTER: u32 = 1;

/// A decoded request.
pub(super) struct CoapRequest {
    pub(super) peer: CoapPeer,
    pub(super) method: CoapCode,
    pub(super) token: CoapToken,
    pub(super) is_confirmable: bool,
    pub(super) path: Vec<String>,
    pub(super) query: Vec<String>,
    pub(super) observe: Option<ObserveOption>,
    pub(super) block1: Option<CoapBlock>,
    pub(super) block2: Option<CoapBlock>,
    /// Size of the whole body as announced by the peer, bytes.
    pub(super) size1: Option<u32>,
    pub(super) payload: Vec<u8>,
}

/// The meaning of a request's Observe option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObserveOption {
    Register,
    Deregister,
}

impl CoapRequest {
    /// Reads a message. An error is the code of the refusal.
    pub(super) fn read(message: &CoapMessage<'_>, peer: CoapPeer) -> Result<Self, CoapCode> {
        let mut request = Self {
            peer,
            method: message.code,
            token: message.token,
            is_confirmable: message.kind == CoapMessageType::Confirmable,
            path: Vec::new(),
            query: Vec::new(),
            observe: None,
            block1: None,
            block2: None,
            size1: None,
            payload: message.payload.to_vec(),
        };
        for (number, value) in message.options() {
            match number {
                CoapOptionNumber::URI_PATH => request.path.push(segment(value)?),
                CoapOptionNumber::URI_QUERY => request.query.push(segment(value)?),
                CoapOptionNumber::BLOCK1 => request.block1 = Some(block(request.block1, value)?),
                CoapOptionNumber::BLOCK2 => request.block2 = Some(block(request.block2, value)?),
                CoapOptionNumber::OBSERVE => {
                    request.observe = match read_uint(value) {
                        Some(REGISTER) => Some(ObserveOption::Register),
                        Some(DEREGISTER) => Some(ObserveOption::Deregister),
                        _ => None,
                    }
                }
                CoapOptionNumber::SIZE1 => request.size1 = read_uint(value),
                // The format is that of the device's profile, whatever the request accepts.
                CoapOptionNumber::ACCEPT | CoapOptionNumber::URI_HOST | CoapOptionNumber::URI_PORT => {}
                CoapOptionNumber::PROXY_URI | CoapOptionNumber::PROXY_SCHEME => {
                    return Err(CoapCode::PROXYING_NOT_SUPPORTED);
                }
                other if other.is_critical() => return Err(CoapCode::BAD_OPTION),
                _ => {}
            }
        }
        Ok(request)
    }

    /// The key of the request's body, or of its response.
    pub(super) fn key(&self) -> BlockwiseKey {
        BlockwiseKey {
            peer: self.peer,
            method: self.method,
            target: format!("{}?{}", self.path.join("/"), self.query.join("&")),
        }
    }

    /// Returns the last query argument with that name.
    pub(super) fn argument(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find_map(|argument| {
            let (key, value) = argument.split_once('=')?;
            (key == name).then_some(value)
        })
    }
}

fn segment(value: &[u8]) -> Result<String, CoapCode> {
    if value.len() > MAX_SEGMENT {
        return Err(CoapCode::BAD_OPTION);
    }
    String::from_utf8(value.to_vec()).map_err(|_| CoapCode::BAD_REQUEST)
}

fn block(before: Option<CoapBlock>, value: &[u8]) -> Result<CoapBlock, CoapCode> {
    match before {
        // A repeated option that may occur only once is treated as an unknown option.
        Some(_) => Err(CoapCode::BAD_OPTION),
        None => CoapBlock::decode(value).ok_or(CoapCode::BAD_REQUEST),
    }
}
