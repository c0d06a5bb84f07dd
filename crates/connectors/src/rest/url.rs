//! From the text of a node to a URL.

use reqwest::Url;

use crate::percent;

/// Makes the URL of a request; `query` is `None` for nodes from before there were parameters.
pub(super) fn build(endpoint: &str, query: Option<&[(String, String)]>) -> Result<Url, String> {
    if endpoint.is_empty() {
        return Err("Url string cannot be empty!".to_owned());
    }
    let text = match query {
        Some(query) => with_query(endpoint, query)?,
        None => encoded_by_parts(endpoint),
    };
    if !text.contains("://") {
        return Err("Transport scheme(protocol) must be provided!".to_owned());
    }
    match Url::parse(&text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Err(format!("Unsupported transport scheme: {}", url.scheme()))
        }
        Ok(url) if url.has_host() => Ok(url),
        _ => Err("Url string is invalid!".to_owned()),
    }
}

/// Takes an encoded URL and adds parameters, each encoded once.
fn with_query(endpoint: &str, query: &[(String, String)]) -> Result<String, String> {
    let illegal = |character: char| {
        character.is_control() || character.is_whitespace() || "<>\"{}|\\^`".contains(character)
    };
    if endpoint.contains(illegal) {
        return Err(format!(
            "Invalid request URL: '{endpoint}'. The URL must be valid and properly encoded. Special characters, \
             such as spaces, must be percent-encoded ('/my device/' is '/my%20device/')."
        ));
    }
    if query.is_empty() {
        return Ok(endpoint.to_owned());
    }
    let (rest, fragment) = split(endpoint, '#');
    let (base, present) = split(rest, '?');
    let present = present.unwrap_or_default();
    let mut parameters = Vec::new();
    for parameter in present.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = split(parameter, '=');
        let name = percent::encode(&percent::decode(name));
        parameters.push(match value {
            Some(value) => format!("{name}={}", percent::encode(&percent::decode(value))),
            None => name,
        });
    }
    for (name, value) in query {
        parameters.push(format!("{}={}", percent::encode(name), percent::encode(value)));
    }
    let query = parameters.join("&");
    Ok(match fragment {
        Some(fragment) => format!("{base}?{query}#{fragment}"),
        None => format!("{base}?{query}"),
    })
}

/// Encodes each part of a URL, percent signs too, as nodes did before there were parameters.
fn encoded_by_parts(endpoint: &str) -> String {
    let allowed = |byte: u8| percent::is_unreserved(byte) || b"!$&'()*+,;=:@/".contains(&byte);
    let (rest, _) = split(endpoint, '#');
    let (base, query) = split(rest, '?');
    let path_from = base
        .find("://")
        .map(|at| at + 3)
        .and_then(|from| base.get(from..)?.find('/').map(|at| from + at));
    let mut encoded = match path_from {
        Some(at) => {
            let (host, path) = base.split_at(at);
            format!("{host}{}", percent::encode_with(path, allowed))
        }
        None => base.to_owned(),
    };
    if let Some(query) = query {
        encoded.push('?');
        encoded.push_str(&percent::encode_with(query, |byte| allowed(byte) || byte == b'?'));
    }
    encoded
}

fn split(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use fieldline_testkit::fakes::pairs;

    use super::*;

    #[test]
    fn parameters_are_encoded_once() {
        let query = pairs(&[("email", "a+b@c d"), ("x y", "1&2")]);
        let url = build("http://h:81/p%20q?old=a%20b&flag", Some(&query)).unwrap();
        assert_eq!(
            url.as_str(),
            "http://h:81/p%20q?old=a%20b&flag&email=a%2Bb%40c%20d&x%20y=1%262"
        );
        let kept = build("http://h/p?a=b+c", Some(&[])).unwrap();
        assert_eq!(kept.as_str(), "http://h/p?a=b+c");
    }

    #[test]
    fn urls_of_older_nodes_are_encoded_as_they_were() {
        let url = build("http://h/a b?c=d e+f%20g", None).unwrap();
        assert_eq!(url.as_str(), "http://h/a%20b?c=d%20e+f%2520g");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for text in [
            "",
            "localhost/api",
            "ftp://h/x",
            "http://",
            "http://h/a b",
            "http:///x y",
        ] {
            assert!(build(text, Some(&[])).is_err(), "{text}");
        }
    }
}
