//! Google's token server for service accounts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::server::RecordedRequest;

/// Made for these tests and used nowhere else.
const KEY: &str = include_str!("service-account.key");

/// The key file of a service account whose tokens come from this server.
pub fn key_file(server: &str) -> String {
    json!({
        "type": "service_account", "client_email": "test@project.iam.gserviceaccount.com", "private_key": KEY,
        "private_key_id": "key-1", "token_uri": format!("{server}/token"),
    })
    .to_string()
}

/// Gives a token to whoever signs with the key of the service account.
pub fn token(request: &RecordedRequest) -> String {
    let form = request.form();
    let field = |name: &str| form.iter().find(|(field, _)| field == name).unwrap().1.clone();
    assert_eq!(field("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let assertion = field("assertion");
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref())
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .expect("the signature is wrong");
    let part =
        |text: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap() };
    let (header, claims) = signed.split_once('.').unwrap();
    assert_eq!(
        part(header),
        json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"})
    );
    let claims = part(claims);
    assert_eq!(claims["iss"], "test@project.iam.gserviceaccount.com");
    assert!(claims["aud"].as_str().unwrap().ends_with("/token"));
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        3600
    );
    json!({"access_token": "token-1", "expires_in": 3600, "scope": claims["scope"]}).to_string()
}
