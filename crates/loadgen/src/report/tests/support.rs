//! A sample report, and a check of markup.

use crate::report::{
    ConnectResult, LatencySummary, LimitServerResult, LoadOutcome, LoadProvisioning, LoadReport, LoadSecond,
    LoadSpec, MachineSpec, VerificationResult,
};

/// A plausible run of that many seconds, with all parts of a report.
pub(super) fn sample(seconds: usize) -> LoadReport {
    let latency = |ms: f64| LatencySummary {
        count: 99_000,
        mean: ms * 1_100.0,
        p50: (ms * 1_000.0) as u64,
        p90: (ms * 1_600.0) as u64,
        p99: (ms * 2_500.0) as u64,
        p999: (ms * 3_000.0) as u64,
        max: (ms * 4_500.0) as u64,
    };
    let wave = |i: usize, period: f64| (i as f64 / period).sin();
    LoadReport {
        title: "scenario B, scale 0.1".to_owned(),
        version: "0.1.0".to_owned(),
        started_at: 1_772_366_400_000,
        machine: MachineSpec {
            cores: 2,
            memory_bytes: 25_165_824_000,
            processor: "Example Processor 2.5 GHz".to_owned(),
            system: "Linux 6.1".to_owned(),
        },
        load: LoadSpec {
            protocol: "mqtt".to_owned(),
            target: "127.0.0.1:1883".to_owned(),
            devices: 5_000,
            connections: 5_000,
            qos: 1,
            payload: "smart-meter".to_owned(),
            payload_bytes: 52.5,
            points: 3,
            in_flight: Some(1),
            duration_seconds: seconds as f64,
            ..LoadSpec::default()
        },
        provisioning: Some(LoadProvisioning {
            created: 4_000,
            found: 1_000,
            seconds: 3.25,
        }),
        connecting: ConnectResult {
            connected: 5_000,
            failed: 0,
            seconds: 0.25,
        },
        outcome: LoadOutcome {
            sent: 300_000,
            acknowledged: 300_000,
            rate: 81_250.0,
            latency: latency(45.2),
            server_us_per_message: Some(12.0),
            generator_us_per_message: Some(7.25),
            server_memory_peak: Some(183_500_800),
            lag_peak: Some(1_204),
            lag_end: Some(0),
            ..LoadOutcome::default()
        },
        limit: Some(LimitServerResult {
            what: "parse and acknowledge".to_owned(),
            rate: 97_000.0,
            latency: latency(30.0),
            server_us_per_message: Some(8.0),
            connections_per_second: 25_000.0,
        }),
        queryable: Some(latency(180.0)),
        verification: Some(VerificationResult {
            devices: 5_000,
            acknowledged: 300_000,
            stored: 300_000,
            seconds: 0.8,
            ..VerificationResult::default()
        }),
        seconds: (0..seconds)
            .map(|i| LoadSecond {
                at: (i + 1) as f64,
                sent: 82_000.0 + 4_000.0 * wave(i, 3.0),
                acknowledged: 81_250.0 + 4_500.0 * wave(i, 2.7),
                failed: 0.0,
                latency: latency(45.0 + 8.0 * wave(i, 4.1)),
                server_cores: Some(1.2 + 0.1 * wave(i, 1.9)),
                generator_cores: Some(0.7 + 0.05 * wave(i, 2.3)),
                server_memory: Some(150_000_000 + 3_000 * i as u64),
                lag: Some((600.0 + 600.0 * wave(i, 5.0)) as u64),
            })
            .collect(),
        remarks: vec!["Generator and server share the cores.".to_owned()],
    }
}

/// Panics if elements do not nest, an attribute is not quoted, or a character is forbidden in XML.
pub(super) fn check_xml(page: &str) {
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").expect("a document type");
    assert!(
        !rest.contains(|c: char| c.is_control() && c != '\n'),
        "control characters"
    );
    let mut open: Vec<&str> = Vec::new();
    while let Some((text, after)) = rest.split_once('<') {
        check_text(text);
        let (tag, after) = after.split_once('>').expect("tags end");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {rest:.80}");
            continue;
        }
        let inside = tag.strip_suffix('/').unwrap_or(tag);
        let (name, mut attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        assert!(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()),
            "<{tag}>"
        );
        while let Some((attribute, value)) = attributes.split_once("=\"") {
            assert!(
                attribute
                    .trim_start()
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "<{tag}>"
            );
            let (value, more) = value.split_once('"').expect("quoted values");
            check_text(value);
            attributes = more;
        }
        assert_eq!(attributes.trim(), "", "<{tag}>");
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!((open.len(), rest.trim()), (0, ""), "everything is closed");
}

/// Panics if text contains markup.
fn check_text(text: &str) {
    assert!(!text.contains(['<', '>']), "{text}");
    for after in text.split('&').skip(1) {
        let (entity, _) = after.split_once(';').expect("entities end");
        assert!(
            matches!(entity, "amp" | "lt" | "gt" | "quot" | "#39"),
            "&{entity};"
        );
    }
}
