//! The keys that signatures of tokens are checked with, each with the algorithms that it is for.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde_json::{Map, Value};

const HMAC: [Algorithm; 3] = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
const RSA: [Algorithm; 6] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];
const P256: [Algorithm; 1] = [Algorithm::ES256];
const P384: [Algorithm; 1] = [Algorithm::ES384];
const EDWARDS: [Algorithm; 1] = [Algorithm::EdDSA];
/// The names in DER of keys on elliptic curves, and of the curves that are known here.
const CURVE_OID: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256_OID: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384_OID: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
/// Why a key cannot be used.
const PRIVATE: &str = "The key is private! Only its public key, or its certificate, should be specified!";
const UNKNOWN_CURVE: &str =
    "The elliptic curve of the public key is not supported: it must be P-256 or P-384!";
const UNREADABLE: &str = "Failed to parse public key: it must be RSA, EC or Ed25519 in PEM!";

/// The header of a token.
///
/// # Errors
/// It cannot be read, or asks for extensions (RFC 7515 §4.1.11), none of which is known here.
pub(super) fn header_of(token: &str) -> Result<Header, &'static str> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| "no token")?;
    let encoded = token.split('.').next().unwrap_or_default();
    let decoded = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| "no token")?;
    let fields: Map<String, Value> = serde_json::from_slice(&decoded).map_err(|_| "no token")?;
    if fields.contains_key("crit") {
        return Err("the header of the token asks for extensions");
    }
    Ok(header)
}

/// A key with the algorithms that it is for: the header of a token does not choose beyond them.
pub(super) struct VerifyingKey {
    key: DecodingKey,
    algorithms: &'static [Algorithm],
}

impl VerifyingKey {
    /// A secret that whoever signs has, too.
    pub(super) fn of_secret(secret: &str) -> Self {
        Self {
            key: DecodingKey::from_secret(secret.as_bytes()),
            algorithms: &HMAC,
        }
    }

    /// A public key, or that of a certificate.
    ///
    /// # Errors
    /// It is none, or one that is not known here.
    pub(super) fn of_pem(text: &str) -> Result<Self, String> {
        if text.contains("PRIVATE KEY-----") {
            return Err(PRIVATE.to_owned());
        }
        let pem = text.trim().as_bytes();
        let der = der_of(text).unwrap_or_default();
        let has = |name: &[u8]| der.windows(name.len()).any(|part| part == name);
        let found = if has(CURVE_OID) {
            let algorithms = match (has(P256_OID), has(P384_OID)) {
                (true, _) => &P256[..],
                (false, true) => &P384[..],
                (false, false) => return Err(UNKNOWN_CURVE.to_owned()),
            };
            (DecodingKey::from_ec_pem(pem), algorithms)
        } else {
            match DecodingKey::from_rsa_pem(pem) {
                Ok(key) => (Ok(key), &RSA[..]),
                Err(_) => (DecodingKey::from_ed_pem(pem), &EDWARDS[..]),
            }
        };
        match found {
            (Ok(key), algorithms) => Ok(Self { key, algorithms }),
            (Err(_), _) => Err(UNREADABLE.to_owned()),
        }
    }

    /// One that a server publishes; `None` for a kind that tokens are not signed with.
    pub(super) fn published(key: &Jwk) -> Option<Self> {
        let algorithms = match &key.algorithm {
            AlgorithmParameters::RSA(_) => &RSA[..],
            AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
                EllipticCurve::P256 => &P256[..],
                EllipticCurve::P384 => &P384[..],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(_) => &EDWARDS[..],
            // A secret that is published is none.
            _ => return None,
        };
        let key = DecodingKey::from_jwk(key).ok()?;
        Some(Self { key, algorithms })
    }

    /// The claims of a token, or what is wrong with it.
    pub(super) fn claims(&self, token: &str, algorithm: Algorithm) -> Result<Map<String, Value>, String> {
        if !self.algorithms.contains(&algorithm) {
            return Err(format!(
                "JWT is signed with {algorithm:?}, which is not for the configured key"
            ));
        }
        let mut validation = Validation::new(algorithm);
        validation.leeway = 0;
        validation.required_spec_claims.clear();
        validation.validate_nbf = true;
        // Claims that matter are named in the settings.
        validation.validate_aud = false;
        jsonwebtoken::decode(token, &self.key, &validation)
            .map(|decoded| decoded.claims)
            .map_err(|error| format!("JWT validation failed: {error}"))
    }
}

/// What the first block of PEM has.
fn der_of(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (_, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

/// Keys and tokens of tests.
#[cfg(test)]
pub(super) mod samples {
    /// The public part of the key that the tokens are signed with.
    pub(in super::super) const PUBLIC_X: &str = "FFhSwdPOvwKk2sL7wK77E2mGs1gvnEG_V52U8MwHJ8s";
    /// Tokens without claims, whose headers name the keys `one` and `two`; the third asks for an extension.
    pub(in super::super) const TOKEN_ONE: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6Im9uZSJ9.e30.\
        7EXcp94j0lj9uCvISov59twwmgEvALT-ZOH_91fQfuu_hBBKCu5AsCCeG4hbhM2iRrv0Vbi80MqgvnxqJp29CA";
    pub(in super::super) const TOKEN_TWO: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6InR3byJ9.e30.\
        qNdkr9G2oswIZ2oPUbNf6HxmuM9wuDRCiegFJlySOKBR2eZhEu8w6qkJ_t897PhfZwsRM7Vroinn4G3ziSgnCw";
    pub(in super::super) const TOKEN_WITH_CRIT: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6Im9uZSIsImNyaXQi\
        OlsiZXhwMiJdLCJleHAyIjoxfQ.e30.\
        Uepp_tDRwVbjFX1x2RPukJtS1cO8_Vedf4eHN2-WOyN65ThAixmoK7vnm5f2JoAA46JlXNP96SuVBQYAT4hVCg";
    pub(in super::super) const ED25519_PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAFFhSwdPOvwKk2sL7wK77E2mGs1gvnEG/V52U8MwHJ8s=\n-----END PUBLIC KEY-----\n";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::samples::{ED25519_PEM, TOKEN_ONE, TOKEN_WITH_CRIT};
    use super::*;

    fn pem(lines: &[&str]) -> String {
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            lines.join("\n")
        )
    }

    #[test]
    fn a_public_key_is_for_its_own_algorithms() {
        let p256 = pem(&[
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEcQkA6iG3M9nZeSy5XYEqmybVTBVQ",
            "I/0YF4jzQ/Hi8aPeOnMDkpDdhdX0Tmuk8WkOwIbmk4azS6F2IfR29Q1nRA==",
        ]);
        let p384 = pem(&[
            "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEVYG2Cc/K9GT1jN9NQEjVpIC/723Z8XOm",
            "jYJaTw32QAppBafDSlpfeOHYW4Pcm/fI0+JrNI96IeARLpVh7RygefCkHJpS8y25",
            "FVpI7j1BgiOCZKfbTNNkpZCB1dUH6Plm",
        ]);
        for (text, algorithms) in [
            (p256.as_str(), &P256[..]),
            (p384.as_str(), &P384[..]),
            (ED25519_PEM, &EDWARDS[..]),
        ] {
            let key = VerifyingKey::of_pem(text).expect("a key");
            assert_eq!(key.algorithms, algorithms);
        }
    }

    #[test]
    fn keys_that_are_not_for_tokens_are_refused_with_the_reason() {
        let p521 = pem(&[
            "MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQA2q15Z0nLaMASwWKsV6PHRanpKS7h",
            "9iCn7uJT2QWoZWp1Phgn2cqb1o8FLbxs9rMWEZxCYJZkvFFt1jTsu17NfDIBcU56",
            "J8v2QuLpq9WvcW3COJCCmgnD9M0bq1yd1QyHX72N2pB+GbF3Ar3fRMv01iw1Q5Rd",
            "nIwaTD99eNUjVG52crg=",
        ]);
        let private = p521.replace("PUBLIC", "PRIVATE");
        let bundle = format!("{ED25519_PEM}{}", ED25519_PEM.replace("PUBLIC", "EC PRIVATE"));
        for (text, why) in [
            (p521.as_str(), "P-256 or P-384"),
            (private.as_str(), "private"),
            (bundle.as_str(), "private"),
            ("no key", "parse"),
        ] {
            let error = VerifyingKey::of_pem(text).err().expect("no key");
            assert!(error.contains(why), "{error}");
        }
        let (x, y) = (
            "ANqteWdJy2jAEsFirFejx0Wp6Sku4fYgp-7iU9kFqGVqdT4YJ9nKm9aPBS28bPazFhGcQmCWZLxRbdY07LtezXwy",
            "AXFOeifL9kLi6avVr3FtwjiQgpoJw_TNG6tcndUMh1-9jdqQfhmxdwK930TL9NYsNUOUXZyMGkw_fXjVI1RudnK4",
        );
        let p521: Jwk =
            serde_json::from_value(json!({ "kty": "EC", "crv": "P-521", "x": x, "y": y })).expect("a key");
        assert!(VerifyingKey::published(&p521).is_none());
    }

    #[test]
    fn a_header_that_asks_for_extensions_is_refused() {
        assert!(header_of(TOKEN_ONE).is_ok());
        let key = VerifyingKey::of_pem(ED25519_PEM).expect("a key");
        assert!(key.claims(TOKEN_ONE, Algorithm::EdDSA).is_ok());
        assert!(header_of(TOKEN_WITH_CRIT).is_err());
        for none in ["", "a", "a.b.c"] {
            assert_eq!(header_of(none).err(), Some("no token"));
        }
    }
}
