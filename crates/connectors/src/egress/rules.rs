//! What may be reached beyond public addresses.

use std::net::IpAddr;

use fieldline_codec::address::IpRange;

/// The most ranges and hosts that one list may have.
pub(super) const MAX_ENTRIES: usize = 1000;

/// Ranges of addresses and hosts that may be reached although they are not public.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressRules {
    ranges: Vec<IpRange>,
    hosts: Vec<HostRule>,
}

/// Hosts of a name, or under a name, at one port or at all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostRule {
    /// In lower case; for all hosts under a name with the dot before it.
    name: String,
    is_suffix: bool,
    port: Option<u16>,
}

impl EgressRules {
    /// Reads ranges such as `10.1.0.0/16` and hosts such as `mqtt.corp.example`, `*.corp.example` or
    /// `mqtt.corp.example:1883`, in any order.
    ///
    /// # Errors
    /// An entry is neither, or there are more than 1000.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, String> {
        let mut rules = Self::default();
        if entries.len() > MAX_ENTRIES {
            return Err(format!("has more than {MAX_ENTRIES} entries"));
        }
        for entry in entries {
            let entry = entry.as_ref().trim();
            match entry.parse() {
                Ok(range) => rules.ranges.push(range),
                Err(problem) if entry.contains('/') => return Err(problem),
                Err(_) => rules.hosts.push(HostRule::parse(entry)?),
            }
        }
        Ok(rules)
    }

    /// Both what these and what other rules allow.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.ranges.extend_from_slice(&other.ranges);
        self.hosts.extend_from_slice(&other.hosts);
        self
    }

    /// Whether it names hosts; ranges alone need no names.
    pub fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    pub(super) fn allows(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }

    pub(super) fn allows_host(&self, host: &str, port: u16) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        self.hosts.iter().any(|rule| rule.matches(&host, port))
    }
}

impl HostRule {
    fn parse(entry: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{entry}` is no range of addresses and no host such as mqtt.corp.example or *.corp.example"
            )
        };
        let (host, port) = match entry.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (entry, None),
        };
        let (name, is_suffix) = match host.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (host, false),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_label = |label: &str| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        // What ends in digits is read as an address, however it is written.
        let is_number = last.starts_with(|first: char| first.is_ascii_digit());
        let is_address = name.parse::<IpAddr>().is_ok() && !is_suffix;
        if !name.split('.').all(is_label) || (is_number && !is_address) {
            return Err(wrong());
        }
        Ok(Self {
            name: if is_suffix { format!(".{name}") } else { name },
            is_suffix,
            port,
        })
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        let is_it = if self.is_suffix {
            host.len() > self.name.len() && host.ends_with(&self.name)
        } else {
            host == self.name
        };
        is_it && self.port.is_none_or(|only| only == port)
    }
}
