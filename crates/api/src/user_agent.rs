//! The client software, from the header `User-Agent`: enough to recognize one's own logins and sessions.

use axum::http::{HeaderMap, header};

/// Browser, system and device of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserAgent {
    /// Name and version of the browser.
    pub(crate) browser: String,
    /// Name of the operating system.
    pub(crate) os: &'static str,
    /// Kind of the device.
    pub(crate) device: &'static str,
}

/// Longest version that is kept.
const MAX_VERSION: usize = 20;

/// Browsers by a word that identifies them; those that also claim to be another browser come first.
const BROWSERS: [(&str, &str); 12] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("CriOS/", "Chrome Mobile iOS"),
    ("FxiOS/", "Firefox iOS"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
    ("curl/", "curl"),
    ("python-requests/", "Python Requests"),
    ("PostmanRuntime/", "PostmanRuntime"),
    ("okhttp/", "okhttp"),
];

const SYSTEMS: [(&str, &str); 7] = [
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Mac OS X", "Mac OS X"),
    ("CrOS", "Chrome OS"),
    ("Linux", "Linux"),
];

const DEVICES: [(&str, &str); 4] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android device"),
    ("Macintosh", "Mac"),
];

impl UserAgent {
    /// Parses the header of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        Self::parse(text.unwrap_or_default())
    }

    /// Parses a header; `Other` if it contains nothing known, `Unknown` if it is empty.
    pub(crate) fn parse(header: &str) -> Self {
        if header.is_empty() {
            return Self {
                browser: "Unknown".to_owned(),
                os: "Unknown",
                device: "Unknown",
            };
        }
        let named = |list: &[(&str, &'static str)]| {
            let found = list.iter().find(|(word, _)| header.contains(word));
            found.map_or("Other", |(_, name)| *name)
        };
        let browser = BROWSERS.iter().find_map(|(word, name)| {
            let (_, rest) = header.split_once(word)?;
            let version = |c: &char| c.is_ascii_digit() || *c == '.';
            let version: String = rest.chars().take_while(version).take(MAX_VERSION).collect();
            Some(format!("{name} {version}").trim_end().to_owned())
        });
        Self {
            browser: browser.unwrap_or_else(|| "Other".to_owned()),
            os: named(&SYSTEMS),
            device: named(&DEVICES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_clients_are_recognized() {
        for (header, browser, os, device) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox 128.0",
                "Linux",
                "Other",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 \
                 Safari/537.36 Edg/120.0.2210.91",
                "Edge 120.0.2210.91",
                "Windows",
                "Other",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/17.2 Mobile/15E148 Safari/604.1",
                "Safari 17.2",
                "iOS",
                "iPhone",
            ),
            ("curl/8.5.0", "curl 8.5.0", "Other", "Other"),
            ("", "Unknown", "Unknown", "Unknown"),
            ("ünknown", "Other", "Other", "Other"),
        ] {
            let agent = UserAgent::parse(header);
            assert_eq!(
                (agent.browser.as_str(), agent.os, agent.device),
                (browser, os, device),
                "{header}"
            );
        }
    }
}
