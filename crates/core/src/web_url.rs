//! URLs of servers in settings.

/// Whether a text names something on a server: `http` or `https`, with a host, and without a user's name and password, which would
/// be shown with it.
pub fn is_web_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty()
            && !host.starts_with(':')
            && !host.contains('@')
            && !text.contains(|letter: char| {
                letter.is_whitespace() || letter.is_control() || "<>\"{}|\\^`".contains(letter)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::is_web_url;

    #[test]
    fn a_url_names_a_host_and_no_user() {
        for right in [
            "http://a",
            "https://a.example:8443/path?x=1@2#y",
            "http://[::1]:80/",
        ] {
            assert!(is_web_url(right), "{right}");
        }
        for wrong in [
            "",
            "a",
            "ftp://a",
            "http://",
            "http:///a",
            "http://:80",
            "http://u:p@a",
            "http://a b",
            "http://a/${topic}",
        ] {
            assert!(!is_web_url(wrong), "{wrong}");
        }
    }
}
