//! Address of the client behind trusted proxies: `Forwarded` (RFC 7239) or `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};

use fieldline_event_loop::TrustedProxies;
use hyper::HeaderMap;
use hyper::header::{FORWARDED, HeaderName, HeaderValue};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Headers that only a trusted proxy may set.
const FORWARDING_HEADERS: [HeaderName; 5] = [
    FORWARDED,
    FORWARDED_FOR,
    FORWARDED_PROTO,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-real-ip"),
];

/// Returns the client that sent a request from `peer`. If the peer is not trusted, these headers are removed, so that
/// no later handler believes them.
pub(super) fn resolve_client(
    proxies: &TrustedProxies,
    peer: SocketAddr,
    headers: &mut HeaderMap,
) -> SocketAddr {
    if !proxies.contains(peer.ip()) {
        for name in FORWARDING_HEADERS {
            headers.remove(name);
        }
        return peer;
    }
    let standard = headers
        .contains_key(FORWARDED)
        .then(|| walk(proxies, peer.ip(), elements(headers)));
    let usual = headers
        .contains_key(FORWARDED_FOR)
        .then(|| walk(proxies, peer.ip(), hops(headers)));
    if let Some((_, Some(proto))) = &standard
        && let Ok(proto) = HeaderValue::from_str(proto)
    {
        headers.entry(FORWARDED_PROTO).or_insert(proto);
    }
    let caller = match (standard, usual) {
        // A proxy that sets one of the two headers passes the other one on as the client sent it, and there is no way
        // to tell which one that is.
        (Some((standard, _)), Some((usual, _))) if standard != usual => peer.ip(),
        (Some((caller, _)), _) | (None, Some((caller, _))) => caller,
        (None, None) => peer.ip(),
    };
    if caller == peer.ip() {
        peer
    } else {
        SocketAddr::new(caller, 0)
    }
}

/// One hop of a request: the address it came from, if known, and the protocol.
type ForwardedHop = (Option<IpAddr>, Option<String>);

/// Origin of a request, as far as it is known.
type ForwardedOrigin = (IpAddr, Option<String>);

/// Walks from the nearest hop to the first one that is not a trusted proxy: anything farther away was claimed by that
/// hop. If a hop is unknown, the origin is the last trusted one.
fn walk(
    proxies: &TrustedProxies,
    peer: IpAddr,
    hops: impl IntoIterator<Item = ForwardedHop>,
) -> ForwardedOrigin {
    let mut last = (peer, None);
    for (address, proto) in hops {
        match address {
            None => break,
            Some(address) if proxies.contains(address) => last = (address, proto.or(last.1)),
            Some(address) => return (address, proto.or(last.1)),
        }
    }
    last
}

/// Returns the hops of `X-Forwarded-For`, the nearest first.
fn hops(headers: &HeaderMap) -> Vec<ForwardedHop> {
    let mut hops = Vec::new();
    for value in headers.get_all(FORWARDED_FOR) {
        match value.to_str() {
            Ok(value) => hops.extend(value.split(',').map(|hop| (address(hop.trim()), None))),
            Err(_) => hops.push((None, None)),
        }
    }
    hops.reverse();
    hops
}

/// Returns the hops of `Forwarded`, the nearest first.
fn elements(headers: &HeaderMap) -> Vec<ForwardedHop> {
    let mut hops = Vec::new();
    for value in headers.get_all(FORWARDED) {
        match value.to_str() {
            Ok(value) if is_balanced(value) => hops.extend(unquoted(value, ',').map(element)),
            // A quote that a client left open would hide the elements that the proxy appended.
            _ => hops.push((None, None)),
        }
    }
    hops.reverse();
    hops
}

/// Parses one element: `for=192.0.2.60;proto=https;by=203.0.113.43`. A parameter given twice counts as unknown.
fn element(text: &str) -> ForwardedHop {
    let mut found: ForwardedHop = (None, None);
    let mut is_known = false;
    for pair in unquoted(text, ';') {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        let value = value.trim();
        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'))
            .unwrap_or(value);
        match name.trim() {
            name if name.eq_ignore_ascii_case("for") => {
                found.0 = address(value).filter(|_| !is_known);
                is_known = true;
            }
            name if name.eq_ignore_ascii_case("proto") => found.1 = Some(value.to_ascii_lowercase()),
            _ => {}
        }
    }
    found
}

/// Whether all quotes are closed.
fn is_balanced(text: &str) -> bool {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in text.chars() {
        if character == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    !is_quoted
}

/// Splits at separators outside quotes.
fn unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |character: char| {
        let splits = character == separator && !is_quoted;
        if character == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = character == '\\' && !is_escaped;
        splits
    })
}

/// Parses an address, with or without a port: `192.0.2.1:80`, `[2001:db8::1]:80`. `unknown` and names give `None`.
fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip().to_canonical());
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    Some(IpAddr::V6(inner.parse().ok()?).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "10.0.0.1:5000";

    fn called(peer: &str, given: &[(&'static str, &str)]) -> (String, HeaderMap) {
        let proxies = TrustedProxies::parse(&["10.0.0.0/24".to_owned(), "fd00::/64".to_owned()]).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, value.parse().unwrap());
        }
        let caller = resolve_client(&proxies, peer.parse().unwrap(), &mut headers);
        (caller.ip().to_string(), headers)
    }

    #[test]
    fn the_nearest_hop_that_is_not_trusted_is_the_caller() {
        for (value, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("198.51.100.9, 192.0.2.1", "192.0.2.1"),
            ("198.51.100.9, 192.0.2.1, 10.0.0.7", "192.0.2.1"),
            ("10.0.0.9, 10.0.0.7", "10.0.0.9"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("192.0.2.1, unknown", "10.0.0.1"),
            ("192.0.2.1, unknown, 10.0.0.7", "10.0.0.7"),
            ("192.0.2.1,", "10.0.0.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(
                called(PROXY, &[("x-forwarded-for", value)]).0,
                expected,
                "{value}"
            );
        }
        let two = [
            ("x-forwarded-for", "198.51.100.9"),
            ("x-forwarded-for", "192.0.2.1"),
        ];
        assert_eq!(called(PROXY, &two).0, "192.0.2.1", "two headers are one list");
        for (value, expected) in [
            ("for=192.0.2.1", "192.0.2.1"),
            ("For=\"[2001:db8::1]:4711\";proto=https", "2001:db8::1"),
            (
                "for=198.51.100.9, for=192.0.2.1;by=10.0.0.3, for=\"10.0.0.3:1\"",
                "192.0.2.1",
            ),
            ("for=192.0.2.1;by=\"a,for=198.51.100.9\"", "192.0.2.1"),
            ("for=_hidden", "10.0.0.1"),
            ("for=198.51.100.9;by=\", for=192.0.2.1", "10.0.0.1"),
            ("for=192.0.2.1;for=192.0.2.2", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            assert_eq!(called(PROXY, &[("forwarded", value)]).0, expected, "{value}");
        }
    }

    #[test]
    fn who_is_not_trusted_is_not_heard() {
        let given = [
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "192.0.2.1"),
            ("host", "h"),
        ];
        let (caller, headers) = called("203.0.113.5:1", &given);
        assert_eq!((caller.as_str(), headers.len()), ("203.0.113.5", 1));
    }

    #[test]
    fn two_headers_that_differ_name_nobody() {
        let forged = [
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=198.51.100.9"),
        ];
        assert_eq!(called(PROXY, &forged).0, "10.0.0.1");
        let same = [
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1;proto=https"),
        ];
        let (caller, headers) = called(PROXY, &same);
        assert_eq!(caller, "192.0.2.1");
        assert_eq!(headers[FORWARDED_PROTO], "https");
    }
}
