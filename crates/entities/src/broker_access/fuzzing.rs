//! What clients show who have not been let in, for the fuzz target.

use std::sync::LazyLock;

use jsonwebtoken::jwk::Jwk;

use super::scram::{ClientFirst, ScramAlgorithm, ScramChallenge, ScramKeys};
use super::token_keys::{VerifyingKey, header_of};

static KEYS: LazyLock<ScramKeys> =
    LazyLock::new(|| ScramKeys::of_password(ScramAlgorithm::Sha256, "a password"));

/// Takes the two messages of a client of SCRAM: nobody is let in who does not know the password, and what is answered repeats
/// the client's nonce.
pub fn scram_exchange(first: &[u8], last: &[u8]) {
    let Some(parsed) = ClientFirst::parse(first) else {
        return;
    };
    assert!(!parsed.user_name.is_empty() && parsed.user_name.len() <= first.len());
    let (challenge, answer) = ScramChallenge::with_nonce(&parsed, KEYS.clone(), "own");
    let answer = String::from_utf8(answer).expect("a text");
    let (nonce, _) = answer.split_once("own,s=").expect("an answer");
    let sent = format!("r={}", nonce.strip_prefix("r=").expect("a nonce"));
    assert!(first.windows(sent.len()).any(|part| part == sent.as_bytes()));
    assert!(challenge.finish(last).is_err(), "without the password");
}

/// Checks a token by its own key, in PEM or as a server publishes it.
pub fn token(key: &str, token: &str) {
    let published = serde_json::from_str::<Jwk>(key).ok();
    let published = published.and_then(|key| VerifyingKey::published(&key).ok().flatten());
    let Some(key) = published.or_else(|| VerifyingKey::of_pem(key).ok()) else {
        return;
    };
    if let Ok(header) = header_of(token) {
        let claims = key.claims(token, header.alg);
        assert!(claims.is_err() || key.is_for(header.alg));
    }
}
