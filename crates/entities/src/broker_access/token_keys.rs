//! The keys that signatures of tokens are checked with, each with the algorithms that it is for.

use std::ops::RangeInclusive;

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
/// Bytes of a key of Ed25519: the library takes them to be there.
const EDWARDS_BYTES: usize = 32;
/// Bytes of the modulus of an RSA key: shorter ones can be broken, and the library knows no longer ones.
const RSA_BYTES: RangeInclusive<usize> = 256..=512;
/// Why a key cannot be used.
const PRIVATE: &str = "The key is private! Only its public key, or its certificate, should be specified!";
const UNKNOWN_CURVE: &str =
    "The elliptic curve of the public key is not supported: it must be P-256 or P-384!";
const UNREADABLE: &str = "Failed to parse public key: it must be RSA, EC or Ed25519 in PEM!";
const RSA_SIZE: &str = "The RSA key must have 2048 to 4096 bits!";
const EDWARDS_SIZE: &str = "The Ed25519 key must have 32 bytes!";

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
        let (Ok(key), algorithms) = found else {
            return Err(UNREADABLE.to_owned());
        };
        let bytes = key.try_get_as_bytes().map_err(|_| UNREADABLE.to_owned())?;
        if algorithms == RSA {
            check_modulus(modulus_of(bytes).ok_or(UNREADABLE)?)?;
        } else if algorithms == EDWARDS {
            check_edwards(bytes)?;
        }
        Ok(Self { key, algorithms })
    }

    /// One that a server publishes; `None` for a kind that tokens are not signed with.
    ///
    /// # Errors
    /// It is of such a kind, but cannot be used.
    pub(super) fn published(key: &Jwk) -> Result<Option<Self>, &'static str> {
        const BROKEN: &str = "The key cannot be read!";
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| BROKEN);
        let algorithms = match &key.algorithm {
            AlgorithmParameters::RSA(parameters) => {
                check_modulus(&decoded(&parameters.n)?)?;
                &RSA[..]
            }
            AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
                EllipticCurve::P256 => &P256[..],
                EllipticCurve::P384 => &P384[..],
                _ => return Ok(None),
            },
            AlgorithmParameters::OctetKeyPair(parameters) => match parameters.curve {
                EllipticCurve::Ed25519 => {
                    check_edwards(&decoded(&parameters.x)?)?;
                    &EDWARDS[..]
                }
                _ => return Ok(None),
            },
            // A secret that is published is none.
            _ => return Ok(None),
        };
        let key = DecodingKey::from_jwk(key).map_err(|_| BROKEN)?;
        Ok(Some(Self { key, algorithms }))
    }

    /// Whether tokens may be signed so.
    pub(super) fn is_for(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    /// The claims of a token, or what is wrong with it.
    pub(super) fn claims(&self, token: &str, algorithm: Algorithm) -> Result<Map<String, Value>, String> {
        if !self.is_for(algorithm) {
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

fn check_modulus(modulus: &[u8]) -> Result<(), &'static str> {
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    match RSA_BYTES.contains(&(modulus.len() - zeros)) {
        true => Ok(()),
        false => Err(RSA_SIZE),
    }
}

fn check_edwards(key: &[u8]) -> Result<(), &'static str> {
    match key.len() {
        EDWARDS_BYTES => Ok(()),
        _ => Err(EDWARDS_SIZE),
    }
}

/// The modulus of an RSA key in DER (RFC 8017, appendix A.1.1).
fn modulus_of(key: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    value_of(value_of(key, SEQUENCE)?, INTEGER)
}

/// The first value in DER, if that is its tag.
fn value_of(der: &[u8], tag: u8) -> Option<&[u8]> {
    let (&[own, length], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => {
            let (&[length], rest) = rest.split_first_chunk::<1>()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (&length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(length)), rest)
        }
        _ => return None,
    };
    rest.get(..length).filter(|_| own == tag)
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
    /// The public part of another key, and a token that it has signed, whose header names none.
    pub(in super::super) const OTHER_X: &str = "DI8vNKfZSUStEOvx6sKdbcSXObu-zRODIqRwP98YJD4";
    pub(in super::super) const TOKEN_WITHOUT_NAME: &str = "eyJhbGciOiJFZERTQSJ9.e30.\
        b8sPkvUcgQMu5USU6q9KzNewuaxKv4D9TrcYTabFoNw8h1oNa9cKJbUxifJYm4abJkBieF4fU2ZWorOc9oDVAg";
    pub(in super::super) const TOKEN_WITH_CRIT: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6Im9uZSIsImNyaXQi\
        OlsiZXhwMiJdLCJleHAyIjoxfQ.e30.\
        Uepp_tDRwVbjFX1x2RPukJtS1cO8_Vedf4eHN2-WOyN65ThAixmoK7vnm5f2JoAA46JlXNP96SuVBQYAT4hVCg";
    pub(in super::super) const ED25519_PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAFFhSwdPOvwKk2sL7wK77E2mGs1gvnEG/V52U8MwHJ8s=\n-----END PUBLIC KEY-----\n";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::samples::{ED25519_PEM, OTHER_X, TOKEN_ONE, TOKEN_WITH_CRIT};
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
        assert!(matches!(VerifyingKey::published(&p521), Ok(None)));
    }

    #[test]
    fn keys_have_the_size_that_they_should_have() {
        let published = |key: Value| {
            let key: Jwk = serde_json::from_value(key).expect("a key");
            VerifyingKey::published(&key).map(|key| key.is_some())
        };
        let edwards = |curve: &str, x: &str| published(json!({ "kty": "OKP", "crv": curve, "x": x }));
        assert_eq!(edwards("Ed25519", OTHER_X), Ok(true));
        assert_eq!(edwards("P-256", OTHER_X), Ok(false));
        for wrong in ["", "eA", &format!("{OTHER_X}AAAA")] {
            assert_eq!(edwards("Ed25519", wrong), Err(EDWARDS_SIZE), "{wrong}");
        }
        assert!(edwards("Ed25519", "?").is_err());
        let rsa = |zeros: usize, bytes: usize| {
            let modulus = [vec![0_u8; zeros], vec![0xb7_u8; bytes]].concat();
            published(json!({ "kty": "RSA", "n": URL_SAFE_NO_PAD.encode(modulus), "e": "AQAB" }))
        };
        for (zeros, bytes) in [(0, 256), (1, 256), (0, 512), (9, 512)] {
            assert_eq!(rsa(zeros, bytes), Ok(true), "{bytes}");
        }
        for (zeros, bytes) in [(0, 0), (256, 0), (0, 128), (1, 255), (0, 513), (0, 70_000)] {
            assert_eq!(rsa(zeros, bytes), Err(RSA_SIZE), "{bytes}");
        }

        let rsa_1024 = pem(&[
            "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCX3kbxm2LwKbcf9NjUJuVx6e+s",
            "bpyyxuENeK8iC2R7zLA9w+ToveP0SBDDpPWGKcVjc0QKsflBbVHUxx+gl/bVaLmk",
            "FCLAFJgtHEDdkB/k6NQIUjDCDNbg2NEwnYkQo+CY3WsNGRmURNofZEkngaUHA0/5",
            "yaqHMcs2klms4dROAQIDAQAB",
        ]);
        let rsa_2048 = pem(&[
            "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAq1iyHzdRotvwCyeqJ8Xx",
            "fwCOo3OMPqJnGdv4VSjkTgRnSZWUrH8DpSy2D5inNqU6GrrvYBslxzlQ9yKMoFjQ",
            "G62ilmsC3I9R08wCUhSZzymTzCX/V3lLCLMenp0nw8NnArdLuDjS4m2HEuByJMxy",
            "rHk2pP+PAYhq98yzo6t6BZkbN7N+MYKpqKAV2k0aZFhRHhn2sNwkPwwDZmw61lLg",
            "BjGN+HlQn2QjBLfY9Q3gxILQwwiY6vwC/KD61QzChYdpXwxqryZSafaMPMDksOgO",
            "fxaJtQRDvDgi33oMiKT6zUj3C3o28uAngnQ//hk67dugStEnFr7joKnPr43accgt",
            "fwIDAQAB",
        ]);
        assert!(VerifyingKey::of_pem(&rsa_2048).is_ok());
        // One byte is missing.
        let edwards = pem(&["MCkwBQYDK2VwAyAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw=="]);
        for (text, why) in [(rsa_1024, RSA_SIZE), (edwards, EDWARDS_SIZE)] {
            assert_eq!(VerifyingKey::of_pem(&text).err().as_deref(), Some(why));
        }
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
