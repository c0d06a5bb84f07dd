//! Reads a server's metrics in the Prometheus text format.

use std::collections::HashMap;
use std::time::Duration;

use ureq::Agent;

use crate::rest::agent;

/// Acknowledged messages that are not stored yet, one value per partition.
const LAG_RECORDS: &str = "fieldline_ingest_lag_records";

/// Longest text that is read.
const MAX_TEXT_BYTES: u64 = 8 * 1024 * 1024;

/// Longest wait for a response; a server that is busy for longer leaves a gap.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The metrics at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricsScrape {
    /// Sums over all labels.
    sums: HashMap<String, f64>,
}

impl MetricsScrape {
    /// Parses the text format; invalid lines are left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut sums = HashMap::new();
        for (name, value) in text.lines().filter_map(parse_sample) {
            *sums.entry(name.to_owned()).or_insert(0.0) += value;
        }
        Self { sums }
    }

    /// Value of a metric: the sum over all labels.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.sums.get(name).copied()
    }

    /// Acknowledged messages that are not stored yet.
    #[must_use]
    pub fn lag_records(&self) -> Option<u64> {
        // The cast saturates, and turns NaN into 0.
        self.value(LAG_RECORDS).map(|lag| lag.round() as u64)
    }
}

/// Parses a line `name{label="text"} value [time]` into name and value; `None` for comments and anything else.
fn parse_sample(line: &str) -> Option<(&str, f64)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let name_end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(name_end);
    let is_name = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
    let values = match rest.strip_prefix('{') {
        Some(labels) => &labels[end_of_labels(labels)?..],
        None => rest,
    };
    let value = values.split_ascii_whitespace().next()?.parse().ok()?;
    (is_name && !name.is_empty()).then_some((name, value))
}

/// Returns the index after the closing brace; quoted values may contain braces and escaped quotes.
fn end_of_labels(labels: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (index, byte) in labels.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Some(index + 1),
            _ => {}
        }
    }
    None
}

/// Scrapes the metrics of a server repeatedly.
#[derive(Debug)]
pub struct MetricsScraper {
    agent: Agent,
    url: String,
    /// Whether the server has said that it has no metrics; then it is not asked again.
    is_absent: bool,
}

impl MetricsScraper {
    /// Creates a scraper for an address, for example `http://127.0.0.1:8080/metrics`.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            agent: agent(1, TIMEOUT),
            url: url.to_owned(),
            is_absent: false,
        }
    }

    /// Returns the current metrics; `None` if the server has none, or does not answer in time.
    pub fn scrape(&mut self) -> Option<MetricsScrape> {
        if self.is_absent {
            return None;
        }
        let mut response = self.agent.get(&self.url).call().ok()?;
        self.is_absent = response.status().is_client_error() || response.status().is_redirection();
        if !response.status().is_success() {
            return None;
        }
        let body = response
            .body_mut()
            .with_config()
            .limit(MAX_TEXT_BYTES)
            .lossy_utf8(true);
        body.read_to_string().ok().map(|text| MetricsScrape::parse(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_labels_add_up() {
        let metrics = MetricsScrape::parse(
            "# HELP fieldline_ingest_lag_records records not stored yet\n\
             # TYPE fieldline_ingest_lag_records gauge\n\
             fieldline_ingest_lag_records{partition=\"0\"} 12\n\
             fieldline_ingest_lag_records{partition=\"1\"} 30\n\
             \n\
             fieldline_sessions 7\n\
             odd{text=\"a } \\\" { b\",other=\"\"} 1.5 1700000000000\n\
             http_seconds_bucket{le=\"+Inf\"} 1e3\n",
        );
        assert_eq!(metrics.lag_records(), Some(42));
        assert_eq!(metrics.value("fieldline_sessions"), Some(7.0));
        assert_eq!(metrics.value("odd"), Some(1.5));
        assert_eq!(metrics.value("http_seconds_bucket"), Some(1000.0));
        assert_eq!(metrics.value("absent"), None);
    }

    #[test]
    fn a_page_that_is_no_metrics_has_none() {
        for text in [
            "<!doctype html>\n<html lang=\"en\">\n<title>x</title> 1\n</html>",
            "name",
            "name{open 1",
            "name{a=\"}\" 1",
            "name x",
            "{} 1",
            "",
        ] {
            assert_eq!(MetricsScrape::parse(text), MetricsScrape::default(), "{text}");
        }
    }
}
