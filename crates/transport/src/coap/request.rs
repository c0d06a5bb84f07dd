//! What a device asks, off its message.

use fieldline_codec::coap::{Block, Code, Kind, Message, OptionNumber, Token, read_uint};

use super::bodies::Key;
use super::exchanges::Peer;

/// Longest segment of a path and argument of a query, bytes (RFC 7252 §5.10).
const MAX_SEGMENT: usize = 255;
/// Begins an observation, and ends it.
const REGISTER: u32 = 0;
const DEREGISTER: u32 = 1;

/// A request that was understood.
pub(super) struct Request {
    pub(super) peer: Peer,
    pub(super) method: Code,
    pub(super) token: Token,
    pub(super) is_confirmable: bool,
    pub(super) path: Vec<String>,
    pub(super) query: Vec<String>,
    pub(super) observe: Option<Observe>,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    /// What the peer says that all blocks of the request will have, bytes.
    pub(super) size1: Option<u32>,
    pub(super) payload: Vec<u8>,
}

/// What a request wants of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Observe {
    Register,
    Deregister,
}

impl Request {
    /// Reads a message. An error is the code to refuse it with.
    pub(super) fn read(message: &Message<'_>, peer: Peer) -> Result<Self, Code> {
        let mut request = Self {
            peer,
            method: message.code,
            token: message.token,
            is_confirmable: message.kind == Kind::Confirmable,
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
                OptionNumber::URI_PATH => request.path.push(segment(value)?),
                OptionNumber::URI_QUERY => request.query.push(segment(value)?),
                OptionNumber::BLOCK1 => request.block1 = Some(block(request.block1, value)?),
                OptionNumber::BLOCK2 => request.block2 = Some(block(request.block2, value)?),
                OptionNumber::OBSERVE => {
                    request.observe = match read_uint(value) {
                        Some(REGISTER) => Some(Observe::Register),
                        Some(DEREGISTER) => Some(Observe::Deregister),
                        _ => None,
                    }
                }
                OptionNumber::SIZE1 => request.size1 = read_uint(value),
                // Devices of this API get JSON whatever they would like.
                OptionNumber::ACCEPT | OptionNumber::URI_HOST | OptionNumber::URI_PORT => {}
                OptionNumber::PROXY_URI | OptionNumber::PROXY_SCHEME => {
                    return Err(Code::PROXYING_NOT_SUPPORTED);
                }
                other if other.is_critical() => return Err(Code::BAD_OPTION),
                _ => {}
            }
        }
        Ok(request)
    }

    /// What a body of the request, or of the response to it, is known by.
    pub(super) fn key(&self) -> Key {
        Key {
            peer: self.peer,
            method: self.method,
            target: format!("{}?{}", self.path.join("/"), self.query.join("&")),
        }
    }

    /// The last argument of a name.
    pub(super) fn argument(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find_map(|argument| {
            let (key, value) = argument.split_once('=')?;
            (key == name).then_some(value)
        })
    }
}

fn segment(value: &[u8]) -> Result<String, Code> {
    if value.len() > MAX_SEGMENT {
        return Err(Code::BAD_OPTION);
    }
    String::from_utf8(value.to_vec()).map_err(|_| Code::BAD_REQUEST)
}

fn block(before: Option<Block>, value: &[u8]) -> Result<Block, Code> {
    match before {
        // Of options that may come once a second one is as if it were unknown.
        Some(_) => Err(Code::BAD_OPTION),
        None => Block::decode(value).ok_or(Code::BAD_REQUEST),
    }
}
