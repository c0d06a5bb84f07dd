//! Signature Version 4.

use chrono::{DateTime, Utc};
use reqwest::Url;
use ring::{digest, hmac};

use crate::percent;
use crate::secret::Secret;

/// Who signs.
#[derive(Debug, Clone)]
pub(crate) struct AwsCredentials {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: Secret,
}

/// What is signed. Header names are in lower case and sorted.
#[derive(Debug)]
pub(crate) struct SignableRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a [u8],
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
}

/// Writes a time as in `x-amz-date`.
pub(crate) fn timestamp(now: DateTime<Utc>) -> String {
    now.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Returns the value of the `Authorization` header.
pub(crate) fn authorization(
    request: &SignableRequest<'_>,
    credentials: &AwsCredentials,
    now: DateTime<Utc>,
) -> String {
    let day = now.format("%Y%m%d").to_string();
    let scope = format!("{day}/{}/{}/aws4_request", request.region, request.service);
    let signed: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    let signed = signed.join(";");
    let canonical = canonical_request(request, &signed);
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        timestamp(now),
        hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref())
    );
    let secret = format!("AWS4{}", credentials.secret_access_key.expose());
    let mut key = hmac_sha256(secret.as_bytes(), &day);
    for part in [request.region, request.service, "aws4_request"] {
        key = hmac_sha256(key.as_ref(), part);
    }
    let signature = hex(hmac_sha256(key.as_ref(), &to_sign).as_ref());
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
        credentials.access_key_id
    )
}

fn canonical_request(request: &SignableRequest<'_>, signed: &str) -> String {
    use std::fmt::Write;
    let mut headers = String::new();
    for (name, value) in request.headers {
        let value: Vec<&str> = value.split_whitespace().collect();
        let _ = writeln!(headers, "{name}:{}", value.join(" "));
    }
    let mut query: Vec<(String, String)> = request
        .url
        .query_pairs()
        .map(|(name, value)| (percent::encode(&name), percent::encode(&value)))
        .collect();
    query.sort();
    let query: Vec<String> = query
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    // The path is encoded once more, as all services but S3 have it.
    let path = percent::encode_with(request.url.path(), |byte| {
        byte == b'/' || percent::is_unreserved(byte)
    });
    let body = hex(digest::digest(&digest::SHA256, request.body).as_ref());
    format!(
        "{}\n{path}\n{}\n{headers}\n{signed}\n{body}",
        request.method,
        query.join("&")
    )
}

fn hmac_sha256(key: &[u8], data: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use fieldline_testkit::fakes::pairs;

    use super::*;

    fn sign(method: &str, url: &str, headers: &[(&str, &str)], body: &str, service: &str) -> String {
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        };
        let signable = SignableRequest {
            method,
            url: &Url::parse(url).unwrap(),
            headers: &pairs(headers),
            body: body.as_bytes(),
            region: "us-east-1",
            service,
        };
        let now = Utc.with_ymd_and_hms(2015, 8, 30, 12, 36, 0).unwrap();
        let header = authorization(&signable, &credentials, now);
        header.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    const DATED: [(&str, &str); 2] = [
        ("host", "example.amazonaws.com"),
        ("x-amz-date", "20150830T123600Z"),
    ];

    // From the test suite that AWS publishes for Signature Version 4.

    #[test]
    fn get_vanilla() {
        assert_eq!(
            sign("GET", "https://example.amazonaws.com/", &DATED, "", "service"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }

    #[test]
    fn get_vanilla_query_order_key_case() {
        assert_eq!(
            sign(
                "GET",
                "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                &DATED,
                "",
                "service"
            ),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
    }

    #[test]
    fn post_x_www_form_urlencoded() {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            DATED[0],
            DATED[1],
        ];
        assert_eq!(
            sign(
                "POST",
                "https://example.amazonaws.com/",
                &headers,
                "Param1=value1",
                "service"
            ),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
    }

    // From the documentation of the signing process: ListUsers of IAM.
    #[test]
    fn list_users() {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ];
        assert_eq!(
            sign(
                "GET",
                "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
                &headers,
                "",
                "iam"
            ),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }
}
