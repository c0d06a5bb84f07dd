//! The messages of a load: the JSON of `tb-mqtt-perf-tests`, with a stamp in its payload by which each message is known again.
//!
//! ```text
//! {"createTime":1700000000000,"warmUpMsg":false,"payload":"…"}
//! payload := base64(keys and numbers) · run, publisher, number (8 hexadecimal digits each) · due (16) · filling
//! ```
//!
//! Hexadecimal digits are base64 as well, so that others can decode the payload.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const HEAD: &[u8] = b"{\"createTime\":";
const TIME_DIGITS: usize = 13;
const WARM_UP: &[u8] = b",\"warmUpMsg\":";
/// `false`, or `true` and a space.
const FLAG: usize = 5;
const PAYLOAD: &[u8] = b",\"payload\":\"";
const TAIL: &[u8] = b"\"}";
/// Digits of the stamp: a multiple of four, as base64 needs them.
const STAMP: usize = 40;
/// Bytes that the stamp takes once it is decoded.
const STAMP_BYTES: usize = STAMP / 4 * 3;
/// The number of messages that are not counted.
pub(super) const UNCOUNTED: u32 = u32::MAX;

/// What a message is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageStamp {
    /// The run, so that what is left of another one is not counted.
    pub(super) run: u32,
    /// The publisher.
    pub(super) publisher: u32,
    /// Its message, from 0; [`UNCOUNTED`] for those before the load.
    pub(super) number: u32,
    /// When it was to be sent, microseconds since the beginning of the run.
    pub(super) due_us: u64,
}

/// Makes messages of the same length, and reads them.
pub(super) struct MessageTemplate {
    bytes: Vec<u8>,
    stamp_at: usize,
}

impl MessageTemplate {
    /// Messages whose payload has at least so many bytes once it is decoded, and begins with these keys.
    pub(super) fn new(keys: &[String], least: usize) -> Self {
        let mut text = keys
            .iter()
            .enumerate()
            .map(|(at, key)| format!("{key}:{:02}", at % 100))
            .collect::<Vec<_>>()
            .join(",");
        // Base64 of three bytes has no padding.
        text.extend(std::iter::repeat_n(' ', (3 - text.len() % 3) % 3));
        let filling = least.saturating_sub(text.len() + STAMP_BYTES).div_ceil(3) * 4;
        let mut bytes = HEAD.to_vec();
        bytes.extend_from_slice(&[b'0'; TIME_DIGITS]);
        bytes.extend_from_slice(WARM_UP);
        bytes.extend_from_slice(&[b' '; FLAG]);
        bytes.extend_from_slice(PAYLOAD);
        bytes.extend_from_slice(STANDARD.encode(&text).as_bytes());
        let stamp_at = bytes.len();
        bytes.extend(std::iter::repeat_n(b'0', STAMP));
        // What compresses well would flatter brokers that compress.
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        bytes.extend((0..filling).map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(random >> 58) as usize]
        }));
        bytes.extend_from_slice(TAIL);
        Self { bytes, stamp_at }
    }

    /// Bytes of a message.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The message of a stamp, made at a time in milliseconds since 1970.
    pub(super) fn write(&mut self, created_ms: i64, stamp: &MessageStamp) -> &[u8] {
        let created = u64::try_from(created_ms).unwrap_or_default();
        put_decimal(self.bytes.get_mut(HEAD.len()..HEAD.len() + TIME_DIGITS), created);
        let flag_at = HEAD.len() + TIME_DIGITS + WARM_UP.len();
        if let Some(flag) = self.bytes.get_mut(flag_at..flag_at + FLAG) {
            flag.copy_from_slice(if stamp.number == UNCOUNTED {
                b"true "
            } else {
                b"false"
            });
        }
        let mut at = self.stamp_at;
        for (value, digits) in [
            (u64::from(stamp.run), 8),
            (u64::from(stamp.publisher), 8),
            (u64::from(stamp.number), 8),
            (stamp.due_us, 16),
        ] {
            put_hexadecimal(self.bytes.get_mut(at..at + digits), value);
            at += digits;
        }
        &self.bytes
    }

    /// The stamp of a message that this template has made.
    pub(super) fn read(&self, message: &[u8]) -> Option<MessageStamp> {
        let stamp = message.get(self.stamp_at..self.stamp_at + STAMP)?;
        let part = |from: usize, to: usize| hexadecimal(stamp.get(from..to)?);
        Some(MessageStamp {
            run: part(0, 8)? as u32,
            publisher: part(8, 16)? as u32,
            number: part(16, 24)? as u32,
            due_us: part(24, 40)?,
        })
    }
}

fn put_decimal(digits: Option<&mut [u8]>, mut value: u64) {
    for digit in digits.into_iter().flatten().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn put_hexadecimal(digits: Option<&mut [u8]>, mut value: u64) {
    for digit in digits.into_iter().flatten().rev() {
        *digit = b"0123456789abcdef"[(value & 15) as usize];
        value >>= 4;
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_message_is_the_json_of_the_tool_and_known_again() {
        let keys = ["lat".to_owned(), "long".to_owned()];
        let mut template = MessageTemplate::new(&keys, 256);
        let stamp = MessageStamp {
            run: 0xfeed_0123,
            publisher: 70_000,
            number: 12,
            due_us: 987_654_321,
        };
        let message = template.write(1_700_000_000_123, &stamp).to_vec();
        assert_eq!(message.len(), template.len());
        assert_eq!(template.read(&message), Some(stamp));
        let json: Value = serde_json::from_slice(&message).unwrap();
        assert_eq!(json["createTime"], 1_700_000_000_123_i64);
        assert_eq!(json["warmUpMsg"], false);
        let payload = STANDARD.decode(json["payload"].as_str().unwrap()).unwrap();
        assert!(payload.starts_with(b"lat:00,long:01"));
        assert!((256..259).contains(&payload.len()), "{}", payload.len());

        let before = MessageStamp {
            number: UNCOUNTED,
            ..stamp
        };
        let json: Value = serde_json::from_slice(template.write(1_700_000_000_123, &before)).unwrap();
        assert_eq!(json["warmUpMsg"], true);
        assert_eq!(template.read(b"{}"), None);
        assert_eq!(template.read(&[b'x'; 400]), None);
    }
}
