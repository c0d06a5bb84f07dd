//! SCRAM (RFC 5802, RFC 7677): clients that prove that they know a password without sending it. The server's side.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fieldline_core::ports::BrokerRefusal;
use ring::{digest, hmac, pbkdf2};
use serde::{Deserialize, Serialize};

use super::values::TopicRuleLists;

/// Times that a password is hashed; TBMQ's, which does not store it either.
const ITERATIONS: u32 = 4_096;
/// Bytes of a salt.
const SALT: usize = 16;
/// Longest message of a client, bytes.
const MAX_MESSAGE: usize = 4 << 10;
/// Least and most characters of a client's nonce.
const NONCE: std::ops::RangeInclusive<usize> = 8..=256;

/// The hash that a mechanism is built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ScramAlgorithm {
    #[serde(rename = "SHA_256")]
    Sha256,
    #[serde(rename = "SHA_512")]
    Sha512,
}

impl ScramAlgorithm {
    /// The one of an authentication method of MQTT 5.
    pub(super) fn of_method(method: &str) -> Option<Self> {
        match method {
            "SCRAM-SHA-256" => Some(Self::Sha256),
            "SCRAM-SHA-512" => Some(Self::Sha512),
            _ => None,
        }
    }

    const fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    const fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }

    const fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }

    /// Bytes of a hash.
    pub(super) const fn length(self) -> usize {
        match self {
            Self::Sha256 => digest::SHA256_OUTPUT_LEN,
            Self::Sha512 => digest::SHA512_OUTPUT_LEN,
        }
    }

    fn sign(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        hmac::sign(&hmac::Key::new(self.hmac(), key), message)
            .as_ref()
            .to_vec()
    }
}

/// The value of `SCRAM` credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScramValue {
    #[serde(default)]
    pub(super) user_name: Option<String>,
    /// Only in a request.
    #[serde(default, skip_serializing)]
    pub(super) password: Option<String>,
    pub(super) algorithm: ScramAlgorithm,
    /// What follows is Base64.
    #[serde(default)]
    pub(super) salt: Option<String>,
    #[serde(default)]
    pub(super) server_key: Option<String>,
    #[serde(default)]
    pub(super) stored_key: Option<String>,
    #[serde(default)]
    pub(super) auth_rules: Option<TopicRuleLists>,
}

/// What is stored of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScramKeys {
    pub(super) algorithm: ScramAlgorithm,
    salt: Vec<u8>,
    server_key: Vec<u8>,
    stored_key: Vec<u8>,
}

impl ScramKeys {
    /// The keys of a password. Takes some milliseconds.
    pub(super) fn of_password(algorithm: ScramAlgorithm, password: &str) -> Self {
        Self::salted(algorithm, password, rand::random::<[u8; SALT]>().to_vec())
    }

    fn salted(algorithm: ScramAlgorithm, password: &str, salt: Vec<u8>) -> Self {
        let mut salted = vec![0; algorithm.length()];
        let iterations = std::num::NonZeroU32::new(ITERATIONS).unwrap_or(std::num::NonZeroU32::MIN);
        pbkdf2::derive(
            algorithm.pbkdf2(),
            iterations,
            &salt,
            password.as_bytes(),
            &mut salted,
        );
        let client_key = algorithm.sign(&salted, b"Client Key");
        Self {
            algorithm,
            server_key: algorithm.sign(&salted, b"Server Key"),
            stored_key: digest::digest(algorithm.digest(), &client_key).as_ref().to_vec(),
            salt,
        }
    }

    /// The keys of a value; `None` where they are incomplete.
    pub(super) fn of_value(value: &ScramValue) -> Option<Self> {
        let bytes = |text: &Option<String>| STANDARD.decode(text.as_deref()?).ok();
        let keys = Self {
            algorithm: value.algorithm,
            salt: bytes(&value.salt)?,
            server_key: bytes(&value.server_key)?,
            stored_key: bytes(&value.stored_key)?,
        };
        let length = value.algorithm.length();
        let is_complete = (1..=64).contains(&keys.salt.len())
            && keys.server_key.len() == length
            && keys.stored_key.len() == length;
        is_complete.then_some(keys)
    }

    /// Puts the keys into a value, in the place of a password.
    pub(super) fn put_into(&self, value: &mut ScramValue) {
        value.password = None;
        value.algorithm = self.algorithm;
        value.salt = Some(STANDARD.encode(&self.salt));
        value.server_key = Some(STANDARD.encode(&self.server_key));
        value.stored_key = Some(STANDARD.encode(&self.stored_key));
    }
}

/// The first message of a client.
#[derive(Debug)]
pub(super) struct ClientFirst<'a> {
    pub(super) user_name: String,
    nonce: &'a str,
    /// The message without its header.
    bare: &'a str,
    /// What says that no channel is bound, and for whom the user acts.
    header: &'a str,
}

/// A message that is none of SCRAM, or proves nothing.
pub(super) const REFUSED: BrokerRefusal = BrokerRefusal::Unknown;

impl<'a> ClientFirst<'a> {
    /// Reads the message; `None` if it is none, or asks for what is not there: channels are not bound.
    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        let message = text(message)?;
        let rest = message.strip_prefix("n,")?;
        let (acts_for, bare) = rest.split_once(',')?;
        let header = message.get(..message.len() - bare.len())?;
        let mut fields = bare.split(',');
        let user_name = name(fields.next()?.strip_prefix("n=")?)?;
        let nonce = fields.next()?.strip_prefix("r=")?;
        // Extensions follow, which may be passed over but for the mandatory ones, which come first.
        let is_printable = nonce.bytes().all(|byte| (0x21..0x7F).contains(&byte));
        if !NONCE.contains(&nonce.len()) || !is_printable || user_name.is_empty() {
            return None;
        }
        if !acts_for.is_empty() && name(acts_for.strip_prefix("a=")?)? != user_name {
            return None;
        }
        Some(Self {
            user_name,
            nonce,
            bare,
            header,
        })
    }
}

fn text(message: &[u8]) -> Option<&str> {
    let message = std::str::from_utf8(message).ok()?;
    (message.len() <= MAX_MESSAGE && !message.contains('\0')).then_some(message)
}

/// A name, in which commas and equals signs are written as `=2C` and `=3D`.
fn name(written: &str) -> Option<String> {
    let mut name = String::with_capacity(written.len());
    let mut parts = written.split('=');
    name.push_str(parts.next()?);
    for part in parts {
        let (sign, rest) = part.split_at_checked(2)?;
        name.push(match sign {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        name.push_str(rest);
    }
    Some(name)
}

/// An exchange that has begun: the client knows salt and nonce, and has to prove that it knows the password.
pub(super) struct ScramChallenge {
    keys: ScramKeys,
    /// `c=` with the header of the client's first message, as its last one has to repeat it.
    binding: String,
    nonce: String,
    first_messages: String,
}

impl ScramChallenge {
    /// Answers the first message of a client; returns the message to send as well.
    pub(super) fn new(first: &ClientFirst<'_>, keys: ScramKeys) -> (Self, Vec<u8>) {
        let own: [u8; 18] = rand::random();
        Self::with_nonce(first, keys, &STANDARD.encode(own))
    }

    pub(super) fn with_nonce(first: &ClientFirst<'_>, keys: ScramKeys, own: &str) -> (Self, Vec<u8>) {
        let nonce = format!("{}{own}", first.nonce);
        let answer = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(&keys.salt));
        let challenge = Self {
            keys,
            binding: format!("c={}", STANDARD.encode(first.header)),
            nonce,
            first_messages: format!("{},{answer}", first.bare),
        };
        (challenge, answer.into_bytes())
    }

    /// Checks the last message of the client; returns the message that proves that the server knows the password's keys.
    ///
    /// # Errors
    /// It proves nothing.
    pub(super) fn finish(&self, message: &[u8]) -> Result<Vec<u8>, BrokerRefusal> {
        self.proof_of_server(message).ok_or(REFUSED)
    }

    fn proof_of_server(&self, message: &[u8]) -> Option<Vec<u8>> {
        let message = text(message)?;
        let (without_proof, proof) = message.rsplit_once(",p=")?;
        let mut fields = without_proof.split(',');
        let nonce = [
            fields.next()? == self.binding,
            fields.next()?.strip_prefix("r=")? == self.nonce,
        ];
        if nonce != [true, true] {
            return None;
        }
        let ScramKeys {
            algorithm,
            server_key,
            stored_key,
            ..
        } = &self.keys;
        let signed = format!("{},{without_proof}", self.first_messages);
        let mut client_key = algorithm.sign(stored_key, signed.as_bytes());
        let proof = STANDARD.decode(proof).ok()?;
        if proof.len() != client_key.len() {
            return None;
        }
        for (byte, proof) in client_key.iter_mut().zip(&proof) {
            *byte ^= proof;
        }
        let shown = digest::digest(algorithm.digest(), &client_key);
        // Not compared byte by byte until one differs: how long that takes would tell where.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.keys.salt);
        hmac::verify(&key, shown.as_ref(), hmac::sign(&key, stored_key).as_ref()).ok()?;
        let signature = algorithm.sign(server_key, signed.as_bytes());
        Some(format!("v={}", STANDARD.encode(signature)).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677 §3.
    const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const OWN: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const LAST: &[u8] = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn challenge(first: &[u8], password: &str) -> (ScramChallenge, Vec<u8>) {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("a salt");
        let keys = ScramKeys::salted(ScramAlgorithm::Sha256, password, salt);
        let first = ClientFirst::parse(first).expect("a message");
        ScramChallenge::with_nonce(&first, keys, OWN)
    }

    #[test]
    fn the_exchange_of_the_standard_succeeds() {
        let (challenge, answer) = challenge(FIRST, "pencil");
        assert_eq!(
            answer,
            b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let proven = challenge.finish(LAST).expect("a proof");
        assert_eq!(proven, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        let (other, _) = challenge(FIRST, "pencils");
        assert!(other.finish(LAST).is_err(), "another password");
        let (right, _) = challenge(FIRST, "pencil");
        let last = std::str::from_utf8(LAST).expect("text");
        for wrong in [
            last.replace("c=biws", "c=eSws"),
            last.replace("k0,", "k1,"),
            last.replace("VQ=", "VR="),
            last.replace("dHzb", "dHzc"),
            last.replace(",p=dHzb", ",p="),
            last.replace(",p=", ",q="),
            last.replace("c=biws,", ""),
            "x".repeat(MAX_MESSAGE + 1),
            String::new(),
        ] {
            assert!(right.finish(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn first_messages_are_read_as_the_standard_says() {
        let read = |message: &str| ClientFirst::parse(message.as_bytes()).map(|first| first.user_name);
        assert_eq!(read("n,,n=a=2Cb=3Dc,r=12345678"), Some("a,b=c".to_owned()));
        assert_eq!(read("n,a=user,n=user,r=12345678,x=1"), Some("user".to_owned()));
        for wrong in [
            "",
            "n,,n=,r=12345678",
            "n,,n=a=2cb,r=12345678",
            "n,,n=a=,r=12345678",
            "n,,n=a",
            "n,,n=a,r=1234567",
            "n,,n=a,r=12 345678",
            "n,,m=x,n=a,r=12345678",
            "n,a=other,n=user,r=12345678",
            "y,,n=a,r=12345678",
            "p=tls-unique,,n=a,r=12345678",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(ClientFirst::parse(b"n,,n=\xff,r=12345678").is_none());
    }

    #[test]
    fn keys_are_stored_in_the_place_of_a_password() {
        let keys = ScramKeys::of_password(ScramAlgorithm::Sha512, "secret");
        let mut value: ScramValue =
            serde_json::from_str(r#"{"userName":"u","password":"secret","algorithm":"SHA_512"}"#)
                .expect("a value");
        assert_eq!(ScramKeys::of_value(&value), None);
        keys.put_into(&mut value);
        let stored = serde_json::to_string(&value).expect("JSON");
        assert!(!stored.contains("secret") && !stored.contains("password"));
        assert_eq!(
            ScramKeys::of_value(&serde_json::from_str(&stored).expect("a value")),
            Some(keys)
        );
        value.algorithm = ScramAlgorithm::Sha256;
        assert_eq!(ScramKeys::of_value(&value), None, "keys of another length");
    }
}
