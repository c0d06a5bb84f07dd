//! Ranges of IP addresses in the usual notation.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses such as `10.0.0.0/8` or `2001:db8::/32`, or a single address. An IPv4-mapped IPv6 address
/// (`::ffff:10.0.0.1`) counts as the IPv4 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpRange {
    network: IpAddr,
    prefix: u8,
}

impl IpRange {
    /// Returns whether an address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                u64::from(network.to_bits()) >> shift == u64::from(address.to_bits()) >> shift
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => match 128 - u32::from(self.prefix) {
                128 => true,
                shift => network.to_bits() >> shift == address.to_bits() >> shift,
            },
            _ => false,
        }
    }
}

impl FromStr for IpRange {
    type Err = String;

    /// Fails if the text is not an address, the prefix is too long, or bits are set after it: `10.0.0.1/8` may mean the
    /// single address or the whole range.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no address and no range of addresses such as 10.0.0.0/8");
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let mut network: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let mut prefix = match prefix {
            // Without this check, a sign would be parsed as well.
            Some(digits) if !digits.bytes().all(|digit| digit.is_ascii_digit()) => return Err(wrong()),
            Some(digits) => digits
                .parse::<u8>()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or_else(wrong)?,
            None => bits,
        };
        if let (IpAddr::V6(_), v4 @ IpAddr::V4(_)) = (network, network.to_canonical())
            && prefix >= 96
        {
            (network, prefix) = (v4, prefix - 96);
        }
        let has_rest = match network {
            IpAddr::V4(network) => u64::from(network.to_bits()) << prefix & u64::from(u32::MAX) != 0,
            IpAddr::V6(network) => prefix < 128 && network.to_bits() << prefix != 0,
        };
        if has_rest {
            return Err(format!("`{text}` has bits set behind its prefix"));
        }
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_begins_with_its_prefix() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "ffff::1", "1.2.3.4"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::1", "::1", "::2"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"),
        ] {
            let range: IpRange = range.parse().unwrap();
            assert!(range.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!range.contains(outside.parse().unwrap()), "{range} {outside}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "10",
            "10.0.0/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.1/8",
            "::/129",
            "2001:db8::1/64",
            "localhost",
            "10.0.0.0/8/8",
            "0x7f.0.0.1",
        ] {
            assert!(text.parse::<IpRange>().is_err(), "{text}");
        }
    }
}
