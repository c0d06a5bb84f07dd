//! Keep-alive (MQTT 5 §3.1.2.10), as arithmetic on the caller's clock.

/// A keep-alive interval; zero turns it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAliveInterval {
    secs: u16,
}

impl KeepAliveInterval {
    /// Makes an interval of `secs` seconds.
    pub const fn from_secs(secs: u16) -> Self {
        Self { secs }
    }

    /// Returns the interval in seconds.
    pub const fn secs(self) -> u16 {
        self.secs
    }

    /// Returns when the server drops a client it last heard from at `last_ms`: one and a half intervals later.
    #[inline]
    pub const fn deadline_ms(self, last_ms: u64) -> Option<u64> {
        match self.secs {
            0 => None,
            secs => Some(last_ms.saturating_add(secs as u64 * 1500)),
        }
    }

    /// Returns by when the client must send something after `last_ms`: one interval later.
    #[inline]
    pub const fn ping_due_ms(self, last_ms: u64) -> Option<u64> {
        match self.secs {
            0 => None,
            secs => Some(last_ms.saturating_add(secs as u64 * 1000)),
        }
    }
}
