//! Pending OAuth 2 requests to a mail provider: an administrator was redirected there, and the provider redirects the
//! browser back without a token of the platform. The returned `state` is the only proof of who started the request, so
//! the server stores it, where no browser can forge it.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use rand::Rng as _;

/// How long an administrator may take to allow access.
const CONSENT_TIMEOUT_MS: i64 = 600_000;
/// Most pending requests; beyond that the oldest is dropped.
const MAX_CONSENTS: usize = 32;
const STATE_BYTES: usize = 32;

/// Pending requests; see the module.
#[derive(Default)]
pub(crate) struct MailConsents(Mutex<VecDeque<MailConsent>>);

struct MailConsent {
    state: String,
    begun: i64,
    return_path: String,
}

impl MailConsents {
    /// Starts a request; returns the `state` that comes back with the response. The browser then goes to `back_to`.
    pub(crate) fn begin(&self, back_to: String, now: i64) -> String {
        let mut bytes = [0_u8; STATE_BYTES];
        rand::rng().fill(&mut bytes);
        let state = URL_SAFE_NO_PAD.encode(bytes);
        let mut open = self.0.lock();
        if open.len() >= MAX_CONSENTS {
            open.pop_front();
        }
        open.push_back(MailConsent {
            state: state.clone(),
            begun: now,
            return_path: back_to,
        });
        state
    }

    /// Ends a request, which works only once; returns the page that the browser goes to.
    pub(crate) fn end(&self, state: &str, now: i64) -> Option<String> {
        let mut open = self.0.lock();
        let found = open.iter().position(|consent| consent.state == state)?;
        let consent = open.remove(found)?;
        let is_valid = (0..CONSENT_TIMEOUT_MS).contains(&now.saturating_sub(consent.begun));
        is_valid.then_some(consent.return_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_once_and_in_time() {
        let consents = MailConsents::default();
        let state = consents.begin("/a".to_owned(), 0);
        assert_eq!(consents.end("", 1), None);
        assert_eq!(consents.end(&state, 1).as_deref(), Some("/a"));
        assert_eq!(consents.end(&state, 1), None);
        let late = consents.begin("/a".to_owned(), 0);
        assert_eq!(consents.end(&late, CONSENT_TIMEOUT_MS), None);
        let first = consents.begin("/a".to_owned(), 0);
        for _ in 0..MAX_CONSENTS {
            consents.begin("/a".to_owned(), 0);
        }
        assert_eq!(consents.end(&first, 1), None);
        assert_eq!(consents.0.lock().len(), MAX_CONSENTS);
    }
}
