//! Filters datagrams before they reach the DTLS library.
//!
//! The library buffers handshake records without checking the sender, and reassembles fragments recursively. This
//! filter drops what no honest peer sends before it gets there: handshakes in many small pieces, messages larger than
//! any certificate chain, empty records, records of unexpected epochs. Repeated handshakes are limited per session, by
//! its allowance.

/// Bytes of a record's header (RFC 6347 §4.1).
const RECORD: usize = 13;
/// Bytes of a handshake fragment's header (RFC 6347 §4.2.2).
const FRAGMENT: usize = 12;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// Most records in one datagram, and most handshake fragments over all of its records.
const MAX_RECORDS: usize = 16;
const MAX_FRAGMENTS: usize = 16;
/// Longest handshake message, bytes: a chain of certificates.
const MAX_MESSAGE: usize = 16 << 10;
/// Most messages of one handshake.
const MAX_SEQUENCE: u16 = 16;
/// Longest encrypted handshake record, bytes: Finished takes less than a hundred.
const MAX_FINISHED: usize = 128;

/// The kind of content of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatagramContent {
    /// The first message of a new handshake.
    Begins,
    /// A continued handshake, in the clear or encrypted.
    Handshake,
    /// Application data or alerts of a session.
    Session,
}

/// Examines the records of a datagram; `None` if it must be dropped.
pub(super) fn inspect(datagram: &[u8]) -> Option<DatagramContent> {
    let (mut rest, mut content, mut parts) = (datagram, None, MAX_FRAGMENTS);
    for _ in 0..MAX_RECORDS {
        let header = rest.first_chunk::<RECORD>()?;
        let [kind, _, _, epoch_high, epoch_low, .., length_high, length_low] = *header;
        let epoch = u16::from_be_bytes([epoch_high, epoch_low]);
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        // The library takes an empty record for the end of the session, whoever sent it.
        if length == 0 {
            return None;
        }
        let body = rest.get(RECORD..RECORD + length)?;
        let of_record = match (kind, epoch) {
            (HANDSHAKE, 0) => fragments(body, &mut parts)?,
            (HANDSHAKE, 1) if length <= MAX_FINISHED => DatagramContent::Handshake,
            (CHANGE_CIPHER_SPEC, 0) => DatagramContent::Handshake,
            (APPLICATION_DATA, 1) | (ALERT, 0 | 1) => DatagramContent::Session,
            _ => return None,
        };
        content = match (content, of_record) {
            (None, first) => Some(first),
            (Some(DatagramContent::Session), DatagramContent::Session) => Some(DatagramContent::Session),
            (Some(DatagramContent::Begins), _) => Some(DatagramContent::Begins),
            (Some(_), _) => Some(DatagramContent::Handshake),
        };
        rest = rest.get(RECORD + length..)?;
        if rest.is_empty() {
            return content;
        }
    }
    None
}

/// Whether a datagram of the server begins with ServerHello, its first message after the cookie.
pub(super) fn is_server_hello(datagram: &[u8]) -> bool {
    datagram.first() == Some(&HANDSHAKE) && datagram.get(RECORD) == Some(&SERVER_HELLO)
}

/// The client random of the handshake that this datagram begins.
pub(super) fn random(datagram: &[u8]) -> Option<&[u8]> {
    let hello = datagram.get(RECORD + FRAGMENT..)?;
    // It follows the version.
    hello.get(2..34)
}

/// Examines the handshake fragments of an unencrypted record; `left` is the number of fragments still allowed.
fn fragments(record: &[u8], left: &mut usize) -> Option<DatagramContent> {
    let (mut rest, mut content) = (record, DatagramContent::Handshake);
    while !rest.is_empty() {
        *left = left.checked_sub(1)?;
        let header = rest.first_chunk::<FRAGMENT>()?;
        let [kind, l2, l1, l0, s1, s0, o2, o1, o0, f2, f1, f0] = *header;
        let number = |high, middle, low| u32::from_be_bytes([0, high, middle, low]) as usize;
        let (length, offset, part) = (number(l2, l1, l0), number(o2, o1, o0), number(f2, f1, f0));
        let sequence = u16::from_be_bytes([s1, s0]);
        let is_sound =
            length <= MAX_MESSAGE && offset + part <= length && part > 0 && sequence < MAX_SEQUENCE;
        if !is_sound {
            return None;
        }
        if kind == CLIENT_HELLO && sequence == 0 {
            content = DatagramContent::Begins;
        }
        rest = rest.get(FRAGMENT + part..)?;
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, epoch: u8, body: &[u8]) -> Vec<u8> {
        let mut record = vec![kind, 254, 253, 0, epoch, 0, 0, 0, 0, 0, 1];
        record.extend_from_slice(&(body.len() as u16).to_be_bytes());
        record.extend_from_slice(body);
        record
    }

    fn part(kind: u8, length: u16, sequence: u8, offset: u8, part: &[u8]) -> Vec<u8> {
        let [high, low] = length.to_be_bytes();
        let mut bytes = vec![
            kind,
            0,
            high,
            low,
            0,
            sequence,
            0,
            0,
            offset,
            0,
            0,
            part.len() as u8,
        ];
        bytes.extend_from_slice(part);
        bytes
    }

    #[test]
    fn only_what_honest_peers_send_is_let_through() {
        let hello = part(CLIENT_HELLO, 2, 0, 0, &[1, 2]);
        assert_eq!(
            inspect(&record(HANDSHAKE, 0, &hello)),
            Some(DatagramContent::Begins)
        );
        let again = part(CLIENT_HELLO, 2, 1, 0, &[1, 2]);
        assert_eq!(
            inspect(&record(HANDSHAKE, 0, &again)),
            Some(DatagramContent::Handshake)
        );
        let last = [
            record(HANDSHAKE, 0, &part(16, 40, 2, 8, &[7; 32])),
            record(CHANGE_CIPHER_SPEC, 0, &[1]),
            record(HANDSHAKE, 1, &[0; 40]),
        ];
        assert_eq!(inspect(&last.concat()), Some(DatagramContent::Handshake));
        let data = record(APPLICATION_DATA, 1, &[0; 40]);
        assert_eq!(
            inspect(&[data.clone(), data.clone()].concat()),
            Some(DatagramContent::Session)
        );

        let many_parts: Vec<u8> = (0..=MAX_FRAGMENTS as u8)
            .flat_map(|at| part(11, 64, 2, at, &[0]))
            .collect();
        let halves = record(
            HANDSHAKE,
            0,
            &part(11, 64, 2, 0, &[0]).repeat(MAX_FRAGMENTS / 2 + 1),
        );
        assert_eq!(inspect(&halves), Some(DatagramContent::Handshake));
        for (what, datagram) in [
            ("nothing", Vec::new()),
            ("CoAP without DTLS", vec![0x40, 1, 0, 1]),
            ("cut off", data[..20].to_vec()),
            ("many parts", record(HANDSHAKE, 0, &many_parts)),
            ("many parts in two", [halves.as_slice(), &halves].concat()),
            ("an empty part", record(HANDSHAKE, 0, &part(11, 64, 2, 0, &[]))),
            (
                "a part beyond the end",
                record(HANDSHAKE, 0, &part(11, 1, 2, 1, &[0])),
            ),
            (
                "a huge message",
                record(HANDSHAKE, 0, &part(11, 16_385, 2, 0, &[0])),
            ),
            ("a late message", record(HANDSHAKE, 0, &part(11, 1, 16, 0, &[0]))),
            ("a large encrypted handshake", record(HANDSHAKE, 1, &[0; 129])),
            ("an empty record", record(APPLICATION_DATA, 1, &[])),
            (
                "an empty record behind another",
                [data.clone(), record(ALERT, 1, &[])].concat(),
            ),
            ("data in the clear", record(APPLICATION_DATA, 0, &[0; 4])),
            ("another epoch", record(APPLICATION_DATA, 2, &[0; 4])),
            ("many records", record(ALERT, 0, &[1, 0]).repeat(MAX_RECORDS + 1)),
        ] {
            assert_eq!(inspect(&datagram), None, "{what}");
        }
    }

    #[test]
    fn an_address_is_proven_by_what_follows_the_cookie() {
        assert!(is_server_hello(&record(
            HANDSHAKE,
            0,
            &part(SERVER_HELLO, 2, 1, 0, &[1, 2])
        )));
        // HelloVerifyRequest asks for the cookie, and goes to any address.
        assert!(!is_server_hello(&record(
            HANDSHAKE,
            0,
            &part(3, 2, 0, 0, &[1, 2])
        )));
        assert!(!is_server_hello(&record(CHANGE_CIPHER_SPEC, 0, &[1])));
        assert!(!is_server_hello(&[]));
    }
}
