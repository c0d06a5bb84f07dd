//! The clients that may not connect.

use std::net::IpAddr;

use fieldline_model::entity::{BlockedClient, BlockedClientType, RegexMatchTarget};
use rustc_hash::FxHashMap;

use super::patterns::WholePattern;

/// Looks up blocked clients.
#[derive(Default)]
pub(super) struct BlockedClients {
    exact: FxHashMap<(BlockedClientType, String), i64>,
    patterns: Vec<(WholePattern, RegexMatchTarget, i64)>,
}

fn is_over(expiration_time: i64, now_ms: i64) -> bool {
    expiration_time > 0 && now_ms > expiration_time
}

impl BlockedClients {
    pub(super) fn new(blocked: Vec<BlockedClient>) -> Self {
        let mut found = Self::default();
        for client in blocked {
            match (client.kind, client.target) {
                (BlockedClientType::Regex, Some(target)) => {
                    // It was one when it was saved.
                    if let Ok(pattern) = WholePattern::new(&client.value) {
                        found.patterns.push((pattern, target, client.expiration_time));
                    }
                }
                (BlockedClientType::Regex, None) => {}
                (kind, _) => {
                    found.exact.insert((kind, client.value), client.expiration_time);
                }
            }
        }
        found
    }

    /// Whether a client may not connect now.
    pub(super) fn has(&self, client_id: &str, username: Option<&str>, address: IpAddr, now_ms: i64) -> bool {
        if self.exact.is_empty() && self.patterns.is_empty() {
            return false;
        }
        let address = address.to_canonical().to_string();
        let is_blocked = |kind, value: &str| {
            let until = self.exact.get(&(kind, value.to_owned()));
            until.is_some_and(|until| !is_over(*until, now_ms))
        };
        is_blocked(BlockedClientType::ClientId, client_id)
            || username.is_some_and(|name| is_blocked(BlockedClientType::Username, name))
            || is_blocked(BlockedClientType::IpAddress, &address)
            || self.patterns.iter().any(|(pattern, target, until)| {
                let value = match target {
                    RegexMatchTarget::ByClientId => Some(client_id),
                    RegexMatchTarget::ByUsername => username,
                    RegexMatchTarget::ByIpAddress => Some(address.as_str()),
                };
                !is_over(*until, now_ms) && value.is_some_and(|value| pattern.may_match(value))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(
        kind: BlockedClientType,
        value: &str,
        target: Option<RegexMatchTarget>,
        until: i64,
    ) -> BlockedClient {
        BlockedClient {
            kind,
            value: value.to_owned(),
            target,
            expiration_time: until,
            description: None,
        }
    }

    #[test]
    fn clients_are_blocked_by_what_they_are_until_that_expires() {
        let regex = BlockedClientType::Regex;
        let blocked = BlockedClients::new(vec![
            block(BlockedClientType::ClientId, "c", None, 0),
            block(BlockedClientType::Username, "u", None, 100),
            block(BlockedClientType::IpAddress, "192.0.2.1", None, 0),
            block(regex, "bad-.*", Some(RegexMatchTarget::ByClientId), 0),
            block(regex, "[xy]", Some(RegexMatchTarget::ByUsername), 100),
            block(regex, r"198\.51\..*", Some(RegexMatchTarget::ByIpAddress), 0),
        ]);
        let here = IpAddr::from([127, 0, 0, 1]);
        let has = |client, user, address, now| blocked.has(client, user, address, now);
        assert!(!has("d", None, here, 0) && !has("d", Some("c"), here, 0));
        assert!(has("c", None, here, 0));
        assert!(has("d", Some("u"), here, 100) && !has("d", Some("u"), here, 101));
        assert!(has("d", None, IpAddr::from([192, 0, 2, 1]), 0));
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().expect("an address");
        assert!(has("d", None, mapped, 0));
        assert!(has("bad-1", None, here, 0) && !has("a bad-1", None, here, 0));
        assert!(has("d", Some("y"), here, 0) && !has("d", Some("y"), here, 101));
        assert!(has("d", None, IpAddr::from([198, 51, 0, 7]), 0));
        let all_but = "(?:(?!trusted).)*";
        let strangers = block(regex, all_but, Some(RegexMatchTarget::ByClientId), 0);
        let strangers = BlockedClients::new(vec![strangers]);
        assert!(strangers.has(&"x".repeat(11_000), None, here, 0));
        assert!(!strangers.has("trusted", None, here, 0));
        assert!(!BlockedClients::default().has("c", Some("u"), here, 0));
    }
}
