//! Codes of requests and responses.

use std::fmt;

/// The code of a request or response: a class of three bits and a detail of five (RFC 7252 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoapCode(pub u8);

impl CoapCode {
    /// Neither request nor response: an acknowledgement, a reset or a ping.
    pub const EMPTY: Self = Self::of(0, 0);
    /// Reads a resource.
    pub const GET: Self = Self::of(0, 1);
    /// Sends data to a resource.
    pub const POST: Self = Self::of(0, 2);
    /// 2.01.
    pub const CREATED: Self = Self::of(2, 1);
    /// 2.02.
    pub const DELETED: Self = Self::of(2, 2);
    /// 2.03.
    pub const VALID: Self = Self::of(2, 3);
    /// 2.05.
    pub const CONTENT: Self = Self::of(2, 5);
    /// 2.31: the next block is expected.
    pub const CONTINUE: Self = Self::of(2, 31);
    /// 4.00.
    pub const BAD_REQUEST: Self = Self::of(4, 0);
    /// 4.01.
    pub const UNAUTHORIZED: Self = Self::of(4, 1);
    /// 4.02: a critical option is not understood.
    pub const BAD_OPTION: Self = Self::of(4, 2);
    /// 4.04.
    pub const NOT_FOUND: Self = Self::of(4, 4);
    /// 4.05.
    pub const METHOD_NOT_ALLOWED: Self = Self::of(4, 5);
    /// 4.08: earlier blocks are missing.
    pub const REQUEST_ENTITY_INCOMPLETE: Self = Self::of(4, 8);
    /// 4.13.
    pub const REQUEST_ENTITY_TOO_LARGE: Self = Self::of(4, 13);
    /// 5.00.
    pub const INTERNAL_SERVER_ERROR: Self = Self::of(5, 0);
    /// 5.03.
    pub const SERVICE_UNAVAILABLE: Self = Self::of(5, 3);
    /// 5.05.
    pub const PROXYING_NOT_SUPPORTED: Self = Self::of(5, 5);

    const fn of(class: u8, detail: u8) -> Self {
        Self(class << 5 | detail)
    }

    /// The class: 0 for requests, 2, 4 and 5 for responses.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Returns whether it is the code of a request.
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.0 != 0
    }

    /// Returns whether it is the code of an error.
    pub const fn is_error(self) -> bool {
        self.class() >= 4
    }
}

impl fmt::Display for CoapCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.0 & 0x1F)
    }
}
