//! What AWS checks of a request.

use std::fmt::Write;

use ring::{digest, hmac};

use super::server::RecordedRequest;

/// The secret of the access key `AKIDEXAMPLE`.
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        .as_ref()
        .to_vec()
}

/// Checks a signature as the documentation of Signature Version 4 says, from what came over the wire.
pub fn is_signed(request: &RecordedRequest, region: &str, service: &str) {
    let authorization = request.header("authorization");
    let fields = authorization
        .strip_prefix("AWS4-HMAC-SHA256 ")
        .expect("not signed");
    let field = |name: &str| {
        let found = fields.split(", ").find_map(|field| field.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} is missing in {authorization}"))
    };
    let (key, scope) = field("Credential=").split_once('/').unwrap();
    assert_eq!(key, "AKIDEXAMPLE");
    let date = request.header("x-amz-date");
    assert_eq!(scope, format!("{}/{region}/{service}/aws4_request", &date[..8]));

    let names = field("SignedHeaders=");
    for needed in ["host", "x-amz-date", "content-type"] {
        assert!(
            names.split(';').any(|name| name == needed),
            "{needed} is not signed"
        );
    }
    let headers: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", request.header(name)))
        .collect();
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    // The path is encoded already; services other than S3 encode it once more.
    let path = path.replace('%', "%25");
    let mut query: Vec<&str> = query.split('&').collect();
    query.sort_unstable();
    let canonical = format!(
        "{}\n{path}\n{}\n{headers}\n{names}\n{}",
        request.method,
        query.join("&"),
        hex(digest::digest(&digest::SHA256, request.body.as_bytes()).as_ref())
    );
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
        hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref())
    );
    let mut key = mac(format!("AWS4{SECRET}").as_bytes(), &date[..8]);
    for part in [region, service, "aws4_request"] {
        key = mac(&key, part);
    }
    assert_eq!(field("Signature="), hex(&mac(&key, &to_sign)), "of {canonical}");
}
