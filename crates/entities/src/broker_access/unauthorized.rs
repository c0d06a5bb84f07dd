//! The clients that were refused last, in memory: whoever is refused must not make the database work.

use std::collections::BTreeMap;

use fieldline_model::entity::UnauthorizedClient;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Most clients that are remembered; of more, those that were refused last.
const MAX_CLIENTS: usize = 10_000;
/// How long a client is remembered, milliseconds.
const REMEMBERED_MS: i64 = 259_200_000;
/// Longest text that is remembered, in characters.
const MAX_TEXT: usize = 255;

/// The clients, oldest first, and the place of each.
#[derive(Default)]
struct Remembered {
    clients: BTreeMap<u64, UnauthorizedClient>,
    places: FxHashMap<String, u64>,
    next: u64,
}

impl Remembered {
    fn forget(&mut self, client_id: &str) -> Option<UnauthorizedClient> {
        let place = self.places.remove(client_id)?;
        self.clients.remove(&place)
    }

    fn forget_oldest(&mut self) {
        if let Some((_, oldest)) = self.clients.pop_first() {
            self.places.remove(&oldest.client_id);
        }
    }

    fn forget_before(&mut self, time_ms: i64) {
        while self
            .clients
            .values()
            .next()
            .is_some_and(|client| client.ts < time_ms)
        {
            self.forget_oldest();
        }
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct UnauthorizedClients(Mutex<Remembered>);

/// The beginning of a text.
fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

impl UnauthorizedClients {
    /// Remembers a client; what was remembered of it is replaced.
    pub(super) fn note(&self, client: UnauthorizedClient) {
        let client = UnauthorizedClient {
            client_id: bounded(&client.client_id),
            username: client.username.as_deref().map(bounded),
            ..client
        };
        let mut remembered = self.0.lock();
        remembered.forget(&client.client_id);
        remembered.forget_before(client.ts - REMEMBERED_MS);
        if remembered.clients.len() >= MAX_CLIENTS {
            remembered.forget_oldest();
        }
        let place = remembered.next;
        remembered.next += 1;
        remembered.places.insert(client.client_id.clone(), place);
        remembered.clients.insert(place, client);
    }

    /// Forgets a client; returns whether it was remembered.
    pub(super) fn forget(&self, client_id: &str) -> bool {
        let mut remembered = self.0.lock();
        !remembered.places.is_empty() && remembered.forget(&bounded(client_id)).is_some()
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let mut remembered = self.0.lock();
        remembered.clients.clear();
        remembered.places.clear();
    }

    /// All that are remembered at a time, milliseconds; those that were refused last come first.
    pub(super) fn all(&self, now_ms: i64) -> Vec<UnauthorizedClient> {
        let mut remembered = self.0.lock();
        remembered.forget_before(now_ms - REMEMBERED_MS);
        remembered.clients.values().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: &str, ts: i64) -> UnauthorizedClient {
        UnauthorizedClient {
            client_id: id.to_owned(),
            ip_address: "127.0.0.1".to_owned(),
            ts,
            username: Some("u".repeat(300)),
            password_provided: true,
            tls_used: false,
            reason: "why".to_owned(),
        }
    }

    #[test]
    fn clients_are_remembered_once_and_so_many() {
        let clients = UnauthorizedClients::default();
        let ids = |now| -> Vec<String> {
            let all = clients.all(now);
            all.into_iter().map(|client| client.client_id).collect()
        };
        for (id, ts) in [("a", 1), ("b", 2), ("a", 3)] {
            clients.note(client(id, ts));
        }
        assert_eq!(ids(3), ["a", "b"]);
        assert_eq!(
            clients.all(3)[0].username.as_deref().map(str::len),
            Some(MAX_TEXT)
        );
        assert!(clients.forget("a") && !clients.forget("a"));
        assert_eq!(ids(3), ["b"]);
        assert!(ids(3 + REMEMBERED_MS).is_empty(), "it was long ago");
        for number in 0..=MAX_CLIENTS {
            clients.note(client(&number.to_string(), 5));
        }
        assert_eq!(clients.all(5).len(), MAX_CLIENTS);
        assert!(!clients.forget("0") && clients.forget("1"));
        clients.clear();
        assert!(clients.all(5).is_empty());
    }
}
