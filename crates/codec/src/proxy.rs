//! The PROXY protocol, versions 1 and 2: a header before the first byte of a connection, in which a proxy names the
//! client.
//!
//! Parsing is strict, because the address decides who is locked out: lengths, families and the end of line must be
//! exact.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// The longest accepted header. Version 1 has at most 107 bytes; version 2 may carry extensions, which are skipped.
pub const MAX_HEADER: usize = 4096;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
const FIXED: usize = 16;
const LONGEST_LINE: usize = 107;
/// `PROXY UNKNOWN` with its end of line.
const SHORTEST_LINE: usize = 15;

/// The connection does not begin with a valid header of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no header of the PROXY protocol: {0}")]
pub struct ProxyError(&'static str);

/// Returns the minimum number of bytes that a header beginning with `input` still lacks; 0 if it is complete. A caller
/// that reads no more than this number reads no byte beyond the header.
///
/// # Errors
/// No header begins like `input`.
pub fn missing_bytes(input: &[u8]) -> Result<usize, ProxyError> {
    let begins = |whole: &[u8]| input.iter().zip(whole).all(|(one, other)| one == other);
    if begins(&SIGNATURE) {
        if input.len() < FIXED {
            return Ok(FIXED.min(SHORTEST_LINE.max(input.len() + 1)) - input.len());
        }
        let length = input.get(14..16).map_or(0, |bytes| {
            bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        });
        if FIXED + length > MAX_HEADER {
            return Err(ProxyError("too long"));
        }
        return Ok((FIXED + length).saturating_sub(input.len()));
    }
    if !begins(b"PROXY ") {
        return Err(ProxyError("it begins with something else"));
    }
    if input.len() < SHORTEST_LINE {
        return Ok(SHORTEST_LINE - input.len());
    }
    match input {
        [.., b'\r', b'\n'] => Ok(0),
        _ if input.len() >= LONGEST_LINE => Err(ProxyError("the line does not end")),
        _ => Ok(1),
    }
}

/// Decodes a complete header: the address of the client, or `None` if the proxy connects on its own behalf or does not
/// know the client.
///
/// # Errors
/// The header is invalid.
pub fn decode(header: &[u8]) -> Result<Option<SocketAddr>, ProxyError> {
    if missing_bytes(header)? != 0 {
        return Err(ProxyError("it is not whole"));
    }
    match header.strip_prefix(&SIGNATURE) {
        Some(rest) => binary(rest),
        None => text(header),
    }
}

fn binary(rest: &[u8]) -> Result<Option<SocketAddr>, ProxyError> {
    let [kind, family, _, _, addresses @ ..] = rest else {
        return Err(ProxyError("it is not whole"));
    };
    if kind >> 4 != 2 {
        return Err(ProxyError("unknown version"));
    }
    match kind & 0x0F {
        0 => return Ok(None),
        1 => {}
        _ => return Err(ProxyError("unknown command")),
    }
    let port = |at: usize| {
        let bytes = addresses.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    };
    let short = ProxyError("too short for its addresses");
    match family {
        // The proxy does not know the family.
        0x00 => Ok(None),
        0x11 => {
            let source: [u8; 4] = addresses
                .get(..4)
                .and_then(|it| it.try_into().ok())
                .ok_or(short)?;
            port(10).ok_or(short)?;
            Ok(Some((Ipv4Addr::from(source), port(8).ok_or(short)?).into()))
        }
        0x21 => {
            let source: [u8; 16] = addresses
                .get(..16)
                .and_then(|it| it.try_into().ok())
                .ok_or(short)?;
            port(34).ok_or(short)?;
            Ok(Some((Ipv6Addr::from(source), port(32).ok_or(short)?).into()))
        }
        _ => Err(ProxyError("not of a TCP connection")),
    }
}

fn text(line: &[u8]) -> Result<Option<SocketAddr>, ProxyError> {
    let wrong = ProxyError("the line is wrong");
    let line = std::str::from_utf8(line).map_err(|_| wrong)?;
    let line = line.strip_suffix("\r\n").ok_or(wrong)?;
    let words: Vec<&str> = line.split(' ').collect();
    let (family, source, target, source_port, target_port) = match words.as_slice() {
        // The rest of the line is to be ignored.
        ["PROXY", "UNKNOWN", ..] => return Ok(None),
        ["PROXY", family, source, target, from, to] => (*family, *source, *target, *from, *to),
        _ => return Err(wrong),
    };
    let address = |text: &str| -> Result<IpAddr, ProxyError> {
        match family {
            "TCP4" => text.parse().map(IpAddr::V4).map_err(|_| wrong),
            "TCP6" => text.parse().map(IpAddr::V6).map_err(|_| wrong),
            _ => Err(wrong),
        }
    };
    let port = |text: &str| -> Result<u16, ProxyError> {
        let is_plain =
            text.bytes().all(|digit| digit.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        text.parse().ok().filter(|_| is_plain).ok_or(wrong)
    };
    address(target)?;
    port(target_port)?;
    Ok(Some(SocketAddr::new(address(source)?, port(source_port)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(kind: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let mut header = SIGNATURE.to_vec();
        header.extend([kind, family]);
        header.extend(u16::try_from(addresses.len()).unwrap().to_be_bytes());
        header.extend(addresses);
        header
    }

    /// Reads like a server: never more than the missing bytes, with bytes of the connection after the header.
    fn read(connection: &[u8]) -> Result<(Option<SocketAddr>, usize), ProxyError> {
        let mut length = 0;
        loop {
            match missing_bytes(&connection[..length])? {
                0 => return decode(&connection[..length]).map(|source| (source, length)),
                more if length + more > connection.len() => return Err(ProxyError("cut off")),
                more => length += more,
            }
        }
    }

    #[test]
    fn headers_say_who_is_behind_the_proxy_and_nothing_behind_them_is_read() {
        let v4 = v2(0x21, 0x11, &[192, 0, 2, 1, 10, 0, 0, 1, 0x12, 0x34, 0, 80]);
        let mut v6 = vec![0; 36];
        v6[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        v6[33] = 9;
        v6.extend([3, 0, 1, 0xFF]);
        for (header, source) in [
            (
                b"PROXY TCP4 192.0.2.1 10.0.0.1 4660 80\r\n".to_vec(),
                Some("192.0.2.1:4660"),
            ),
            (
                b"PROXY TCP6 2001:db8::7 ::1 9 80\r\n".to_vec(),
                Some("[2001:db8::7]:9"),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n".to_vec(), None),
            (v4, Some("192.0.2.1:4660")),
            (v2(0x21, 0x21, &v6), Some("[2001:db8::7]:9")),
            (v2(0x20, 0x00, &[]), None),
            (v2(0x21, 0x00, &[1, 2, 3]), None),
        ] {
            let mut connection = header.clone();
            connection.extend(b"\x10\x0cGET / HTTP/1.1\r\n\r\n");
            let expected = source.map(|text| text.parse().unwrap());
            assert_eq!(read(&connection), Ok((expected, header.len())), "{header:?}");
            for length in 0..header.len() {
                assert!(decode(&header[..length]).is_err(), "{length} of {header:?}");
            }
        }
    }

    #[test]
    fn what_is_not_exact_is_refused() {
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(LONGEST_LINE));
        for line in [
            "GET / HTTP/1.1\r\n\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 4660\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 4660 80 \r\n",
            "PROXY TCP4  192.0.2.1 10.0.0.1 4660 80\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 65536 80\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 +1 80\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 01 80\r\n",
            "PROXY TCP4 2001:db8::7 ::1 1 80\r\n",
            "PROXY TCP6 192.0.2.1 10.0.0.1 1 80\r\n",
            "PROXY UDP4 192.0.2.1 10.0.0.1 1 80\r\n",
            "proxy TCP4 192.0.2.1 10.0.0.1 1 80\r\n",
            long.as_str(),
        ] {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
        let twelve = [192, 0, 2, 1, 10, 0, 0, 1, 0, 1, 0, 80];
        for header in [
            v2(0x11, 0x11, &twelve),
            v2(0x22, 0x11, &twelve),
            v2(0x21, 0x12, &twelve),
            v2(0x21, 0x31, &twelve),
            v2(0x21, 0x11, &twelve[..11]),
            v2(0x21, 0x21, &twelve),
            v2(0x21, 0x11, &[0; MAX_HEADER]),
        ] {
            assert!(read(&header).is_err(), "{header:?}");
        }
        assert!(
            read(&v2(0x21, 0x11, &[0; MAX_HEADER - FIXED])).is_ok(),
            "at the limit"
        );
    }
}
