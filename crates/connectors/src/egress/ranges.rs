//! Which addresses are not public, and why.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reason for what tells a machine of a cloud its own secrets.
pub(super) const METADATA: &str = "metadata service of a cloud";

const LOOPBACK: &str = "loopback";
const UNSPECIFIED: &str = "unspecified address";
const LINK_LOCAL: &str = "link-local range";
const PRIVATE: &str = "private range";
const CARRIER: &str = "shared range of carriers";
const MULTICAST: &str = "multicast";
const DOCUMENTATION: &str = "documentation range";
const BENCHMARKING: &str = "benchmarking range";
const RESERVED: &str = "reserved range";

/// Services of clouds outside of the ranges of their own, and inside, where the reason should say more than the range.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    // Of tasks in Amazon's container service.
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// The IPv4 ranges (RFC 6890 and its registry): network, length of the prefix, reason.
const RANGES_V4: [(u32, u32, &str); 16] = [
    (0x0000_0000, 8, UNSPECIFIED),
    (0x0A00_0000, 8, PRIVATE),
    (0x6440_0000, 10, CARRIER),
    (0x7F00_0000, 8, LOOPBACK),
    (0xA9FE_0000, 16, LINK_LOCAL),
    (0xAC10_0000, 12, PRIVATE),
    (0xC000_0000, 24, RESERVED),
    (0xC000_0200, 24, DOCUMENTATION),
    (0xC058_6300, 24, RESERVED),
    (0xC0A8_0000, 16, PRIVATE),
    (0xC612_0000, 15, BENCHMARKING),
    (0xC633_6400, 24, DOCUMENTATION),
    (0xCB00_7100, 24, DOCUMENTATION),
    (0xE000_0000, 4, MULTICAST),
    (0xFFFF_FFFF, 32, "broadcast"),
    (0xF000_0000, 4, RESERVED),
];

/// The IPv6 ranges: the first two groups, length of the prefix, reason.
const RANGES_V6: [(u32, u32, &str); 11] = [
    (0xFC00_0000, 7, PRIVATE),
    (0xFE80_0000, 10, LINK_LOCAL),
    (0xFEC0_0000, 10, PRIVATE),
    (0xFF00_0000, 8, MULTICAST),
    (0x2001_0DB8, 32, DOCUMENTATION),
    (0x3FFF_0000, 20, DOCUMENTATION),
    (0x5F00_0000, 16, RESERVED),
    (0x0100_0000, 32, RESERVED),
    (0x2001_0002, 32, BENCHMARKING),
    // The local half of NAT64: whatever the operator's network maps there.
    (0x0064_FF9B, 32, PRIVATE),
    (0x2001_0010, 28, RESERVED),
];

/// Why an address is not public; `None` for a public one. What it embeds is left to [`embedded`].
pub(super) fn reason(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => reason_v4(address),
        IpAddr::V6(address) => reason_v6(address),
    }
}

fn within(bits: u32, ranges: &[(u32, u32, &'static str)]) -> Option<&'static str> {
    ranges
        .iter()
        .find(|(network, prefix, _)| (bits ^ network).leading_zeros() >= *prefix)
        .map(|(_, _, reason)| *reason)
}

fn reason_v4(address: Ipv4Addr) -> Option<&'static str> {
    if METADATA_V4.contains(&address) {
        return Some(METADATA);
    }
    within(address.to_bits(), &RANGES_V4)
}

fn reason_v6(address: Ipv6Addr) -> Option<&'static str> {
    const NAT64: u128 = 0x0064_FF9B << 96;
    match address {
        Ipv6Addr::UNSPECIFIED => return Some(UNSPECIFIED),
        Ipv6Addr::LOCALHOST => return Some(LOOPBACK),
        // IPv4-compatible, which nothing has used for long (RFC 4291 §2.5.5.1).
        _ if address.to_bits() >> 32 == 0 => return Some(RESERVED),
        _ if address.segments().starts_with(&[0xFD00, 0x0EC2]) => return Some(METADATA),
        // The public half of NAT64 counts by what it embeds.
        _ if address.to_bits() >> 32 == NAT64 >> 32 => return None,
        _ => {}
    }
    let bits = u32::try_from(address.to_bits() >> 96).unwrap_or(u32::MAX);
    within(bits, &RANGES_V6)
}

/// The IPv4 addresses that an IPv6 address stands for, on the way of some gateway: NAT64 (RFC 6052), 6to4 (RFC 3056),
/// Teredo (RFC 4380) and ISATAP (RFC 5214). Mapped ones are IPv4 addresses anyway.
pub(super) fn embedded(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let IpAddr::V6(address) = address.to_canonical() else {
        return Vec::new().into_iter();
    };
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let found = match [a, b, c, d, e, f] {
        [0x64, 0xFF9B, 0, 0, 0, 0] => vec![v4(g, h)],
        [0x2002, ..] => vec![v4(b, c)],
        // Translated by SIIT (RFC 7915).
        [0, 0, 0, 0, 0xFFFF, 0] => vec![v4(g, h)],
        // The address of the server, and that of the client turned over.
        [0x2001, 0, ..] => vec![v4(c, d), v4(!g, !h)],
        [.., 0 | 0x0200, 0x5EFE] => vec![v4(g, h)],
        _ => Vec::new(),
    };
    found.into_iter().map(IpAddr::V4).collect::<Vec<_>>().into_iter()
}
