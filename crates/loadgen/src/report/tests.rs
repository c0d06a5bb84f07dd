mod support;

use super::*;
use support::{check_xml, sample};

/// Returns the lines of a summary that begin with a label, without the label.
fn lines_of<'a>(summary: &'a str, label: &str) -> Vec<&'a str> {
    summary
        .lines()
        .filter_map(|line| line.strip_prefix(label))
        .map(str::trim)
        .collect()
}

#[test]
fn the_summary_of_a_closed_loop_says_how_it_compares_with_the_limit() {
    let summary = text::summary(&sample(30));
    assert_eq!(
        summary,
        "\
scenario B, scale 0.1
2026-03-01 12:00:00 UTC · version 0.1.0 · 2 cores, Example Processor 2.5 GHz, 23.4 GiB, Linux 6.1

load           MQTT QoS 1 to 127.0.0.1:1883, closed loop, 1 in flight on a connection, 30 s
               5,000 devices, 5,000 connections; smart-meter, 3 points in 52.5 bytes
provisioning   4,000 created, 1,000 found, in 3.25 s
connections    5,000 in 0.25 s, 20,000/s; 0 failed, 0 lost under load
messages       300,000 sent, 300,000 acknowledged, 0 failed, 0 unsent
rate           81,250/s acknowledged
CPU a message  server 12 µs, generator 7.25 µs
memory         server 175 MiB at most
lag            1,204 messages at most, 0 messages at the end

latency, ms           p50       p90       p99     p99.9       max
acknowledgement      45.2      72.3       113       136       203
the limit's            30        48        75        90       135
until queryable       180       288       450       540       810

limit          parse and acknowledge
                 measured     limit     ratio
rate             81,250/s  97,000/s      0.84
CPU a message       12 µs      8 µs      1.50
connections      20,000/s  25,000/s      0.80

storage        all 300,000 acknowledged messages are stored
               5,000 devices looked at within 0.8 s of the load's end

Note: Generator and server share the cores."
    );
}

#[test]
fn the_summary_shouts_about_missing_messages() {
    let mut report = sample(3);
    report.verification = Some(VerificationResult {
        devices: 5_000,
        acknowledged: 300_000,
        stored: 299_988,
        missing: 12,
        surplus: 1,
        examples: vec!["meter-17".to_owned(), "meter-\u{1b}[2J204".to_owned()],
        seconds: 60.0,
    });
    let summary = text::summary(&report);
    assert_eq!(
        lines_of(&summary, "storage"),
        [
            "12 MESSAGES ARE MISSING of 300,000 acknowledged, for example of meter-17, meter-\u{FFFD}[2J204",
            "1 MESSAGE stored that were never sent",
        ]
    );
    assert!(!summary.contains("are stored"), "{summary}");

    let page = html::page(&report);
    assert!(
        page.contains("<li class=\"bad\">✗ 12 MESSAGES ARE MISSING"),
        "{page}"
    );
    assert!(!page.contains("class=\"good\""));
}

#[test]
fn a_sample_of_devices_does_not_speak_for_all() {
    let mut report = sample(3);
    report.load.devices = 6_000;
    let summary = text::summary(&report);
    assert_eq!(
        lines_of(&summary, "storage"),
        ["all 300,000 acknowledged messages of the 5,000 devices looked at are stored"]
    );
    report.verification = Some(VerificationResult::default());
    let summary = text::summary(&report);
    assert_eq!(
        lines_of(&summary, "storage"),
        ["no message was acknowledged, so none was looked for"]
    );
}

#[test]
fn the_summary_of_an_open_loop_says_what_was_asked_and_what_was_not_sent() {
    let mut report = sample(3);
    report.load.rate = Some(100_000.0);
    report.load.in_flight = None;
    report.outcome.unsent = 1_204;
    report.outcome.failed = 7;
    let summary = text::summary(&report);
    assert!(
        lines_of(&summary, "load")[0].contains("open loop, 100,000/s"),
        "{summary}"
    );
    assert_eq!(
        lines_of(&summary, "messages"),
        ["300,000 sent, 300,000 acknowledged, 7 failed, 1,204 unsent"]
    );
    let page = html::page(&report);
    assert!(
        page.contains("! 1,204 messages never sent, as the server did not keep up"),
        "{page}"
    );
    assert!(page.contains(">asked 100,000/s</text>"), "{page}");
}

#[test]
fn nothing_is_said_about_what_is_absent() {
    let summary = text::summary(&LoadReport::default());
    for absent in [
        "limit",
        "queryable",
        "storage",
        "memory",
        "lag",
        "provisioning",
        "latency",
        "server",
        "Note",
        "core",
    ] {
        assert!(!summary.contains(absent), "{absent} in {summary}");
    }
    let page = html::page(&LoadReport::default());
    check_xml(&page);
    let body = page.split_once("<body>").expect("a body").1;
    for absent in [
        "Limit",
        "queryable",
        "Verification",
        "Machine",
        "Remarks",
        "Latency",
        "Server memory",
    ] {
        assert!(!body.contains(absent), "{absent} in {body}");
    }
}

#[test]
fn messages_without_acknowledgement_are_not_called_acknowledged() {
    let mut report = sample(3);
    report.load.qos = 0;
    report.verification = None;
    let texts = [
        text::summary(&report),
        html::page(&report)
            .split_once("<details")
            .expect("details")
            .0
            .to_owned(),
    ];
    for text in texts {
        let text = text.replace("parse and acknowledge", "");
        assert!(
            !text.contains("acknowledged") && text.contains("written"),
            "{text}"
        );
    }
}

#[test]
fn lines_of_progress_align_and_hold_what_is_known() {
    let report = sample(12);
    let lines: Vec<String> = report
        .seconds
        .iter()
        .map(|second| text::progress(second, 30.0))
        .collect();
    assert_eq!(
        lines[0],
        "    1 of 30 s  sent  82,000/s  acknowledged  81,250/s  p50    45 p99   113 ms  cores 1.20 + 0.70   \
         143 MiB  lag 600"
    );
    let column = |line: &str| line.find("cores");
    assert!(
        lines.iter().all(|line| column(line) == column(&lines[0])),
        "{lines:#?}"
    );

    let stalled = LoadSecond {
        at: 3.0,
        failed: 2.0,
        ..LoadSecond::default()
    };
    assert_eq!(
        text::progress(&stalled, 30.0),
        "    3 of 30 s  sent       0/s  acknowledged       0/s  p50     – p99     – ms  FAILED 2/s"
    );
    let half_known = LoadSecond {
        server_cores: Some(1.0),
        ..stalled
    };
    let line = text::progress(&half_known, 30.0);
    assert!(line.contains("cores 1.00 +    –"), "{line}");
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_from_elsewhere() {
    let page = html::page(&sample(30));
    check_xml(&page);
    for foreign in ["<script", "http:", "https:", "url(", "@import", "src=", "href="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for promised in [
        "prefers-color-scheme: dark",
        "max-width: 640px",
        "name=\"viewport\"",
        "Example Processor",
    ] {
        assert!(page.contains(promised), "{promised}");
    }
}

#[test]
fn a_page_has_one_line_for_each_series_however_long_the_run() {
    // sent, acknowledged; p50, p99, max; server, generator; memory; lag
    const SERIES: usize = 9;
    for seconds in [1, 2, 600, 10_000] {
        let page = html::page(&sample(seconds));
        check_xml(&page);
        assert_eq!(page.matches("<figure").count(), 5, "{seconds} seconds");
        let kind = if seconds == 1 {
            "<path class=\"dot"
        } else {
            "<path class=\"line"
        };
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with(kind)).collect();
        assert_eq!(lines.len(), SERIES, "{seconds} seconds");
        for line in lines {
            let points = line.matches(['M', 'L']).count();
            assert!(
                (1..=600).contains(&points) && points >= seconds.min(500),
                "{points} points of {seconds} seconds"
            );
        }
        assert_eq!(page.contains("A point stands for"), seconds > 600);
        let drawn = page.split_once("<details").expect("details").0.len();
        assert!(drawn < 400_000, "{drawn} bytes for {seconds} seconds");
    }
    let page = html::page(&sample(0));
    check_xml(&page);
    assert!(!page.contains("<figure") && page.contains("before a second of it was measured"));
}

#[test]
fn series_without_values_have_no_line() {
    let mut report = sample(10);
    for second in &mut report.seconds {
        (second.server_cores, second.server_memory, second.lag) = (None, None, None);
        second.latency = LatencySummary::default();
        second.failed = 3.0;
    }
    let page = html::page(&report);
    check_xml(&page);
    assert_eq!(
        page.matches("<path class=\"line").count(),
        4,
        "sent, acknowledged, failed; generator"
    );
    assert!(!page.contains("Server memory</h3>"));
}

#[test]
fn a_second_without_processor_time_is_a_gap_and_not_zero() {
    let mut report = sample(10);
    report.seconds[4].generator_cores = None;
    report.outcome.generator_us_per_message = None;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("report.json");
    write_json(&report, &path).expect("written");
    let json = std::fs::read_to_string(&path).expect("read");
    assert_eq!(json.matches("generatorCores").count(), 9);
    let back: LoadReport = serde_json::from_str(&json).expect("valid");
    assert_eq!(back.seconds[4].generator_cores, None);
    let summary = text::summary(&report);
    assert_eq!(lines_of(&summary, "CPU a message")[0], "server 12 µs");
}

#[test]
fn an_open_loop_is_not_measured_by_what_it_was_asked_for() {
    let mut report = sample(3);
    report.load.rate = Some(500.0);
    report.load.in_flight = None;
    assert_eq!(report.rate_ratio(), None);
    assert!(report.cpu_ratio().is_some());
}

#[test]
fn titles_and_names_cannot_become_markup() {
    let hostile = "</title></style></script><script>alert('1')</script> & \"x\" ]]> \u{0} \u{1b}[31m\u{FFFF}";
    let mut report = sample(3);
    for text in [
        &mut report.title,
        &mut report.version,
        &mut report.machine.processor,
        &mut report.machine.system,
        &mut report.load.protocol,
        &mut report.load.target,
        &mut report.load.payload,
    ] {
        hostile.clone_into(text);
    }
    report.remarks = vec![hostile.to_owned()];
    if let Some(limit) = &mut report.limit {
        hostile.clone_into(&mut limit.what);
    }
    if let Some(verification) = &mut report.verification {
        (verification.missing, verification.examples) = (1, vec![hostile.to_owned()]);
    }
    let page = html::page(&report);
    check_xml(&page);
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    let summary = text::summary(&report);
    assert!(!summary.contains(['\u{0}', '\u{1b}']), "{summary}");
}

#[test]
fn figures_that_are_no_numbers_are_shown_as_nothing() {
    let mut report = sample(5);
    report.outcome.rate = f64::NAN;
    report.outcome.server_us_per_message = Some(f64::INFINITY);
    report.connecting.seconds = 0.0;
    report.load.payload_bytes = f64::NAN;
    report.load.duration_seconds = f64::NAN;
    for second in &mut report.seconds {
        second.sent = f64::NAN;
        second.acknowledged = 0.0;
        second.generator_cores = Some(f64::NEG_INFINITY);
        second.server_cores = Some(0.0);
    }
    report.seconds[0].at = f64::NAN;
    report.seconds[1].at = f64::INFINITY;
    report.seconds[2].at = f64::MAX;
    let (page, summary) = (html::page(&report), text::summary(&report));
    check_xml(&page);
    for text in [&page, &summary, &text::progress(&report.seconds[0], f64::NAN)] {
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    assert_eq!(lines_of(&summary, "rate")[0], "– acknowledged");
    assert_eq!(report.rate_ratio(), None);
    assert_eq!(report.cpu_ratio(), None);
    assert_eq!(report.connecting.rate(), None);
}

#[test]
fn json_reads_back_as_what_was_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("report.json");
    let report = sample(20);
    write_json(&report, &path).expect("written");
    let json = std::fs::read_to_string(&path).expect("read");
    let back: LoadReport = serde_json::from_str(&json).expect("valid");
    write_json(&back, &path).expect("written again");
    assert_eq!(std::fs::read_to_string(&path).expect("read again"), json);
    for (back, second) in back.seconds.iter().zip(&report.seconds) {
        assert!((back.sent - second.sent).abs() < 1e-3, "{back:?} {second:?}");
    }
    let without_seconds = |report: LoadReport| LoadReport {
        seconds: Vec::new(),
        ..report
    };
    assert_eq!(without_seconds(back), without_seconds(report));
    assert!(
        json.starts_with("{\n  \"title\": \"scenario B, scale 0.1\",\n"),
        "{json}"
    );
    assert_eq!(
        json.lines()
            .filter(|line| line.starts_with("    {\"at\": "))
            .count(),
        20,
        "{json}"
    );
    assert!(json.ends_with("}\n"));

    let mut broken = sample(0);
    broken.outcome.rate = f64::NAN;
    broken.outcome.server_us_per_message = Some(f64::NAN);
    broken.remarks.clear();
    write_json(&broken, &path).expect("written over");
    let json = std::fs::read_to_string(&path).expect("read");
    let back: LoadReport = serde_json::from_str(&json).expect("valid");
    assert!(back.outcome.rate.is_nan() && back.outcome.server_us_per_message.is_none());
    assert!(json.contains("\"seconds\": [],"), "{json}");
}

#[test]
fn the_json_of_a_page_is_that_of_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let report = sample(3);
    let [json, page] = ["report.json", "report.html"].map(|name| directory.path().join(name));
    write_json(&report, &json).expect("written");
    write_html(&report, &page).expect("written");
    let [json, page] = [json, page].map(|path| std::fs::read_to_string(path).expect("read"));
    assert_eq!(page, html::page(&report));
    let (_, embedded) = page.split_once("<pre>").expect("the JSON");
    let (embedded, _) = embedded.split_once("</pre>").expect("the JSON's end");
    assert_eq!(
        embedded
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
        json.trim_end()
    );
}

#[test]
fn an_error_names_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("none").join("report");
    for result in [
        check_writable(&path),
        write_json(&sample(1), &path),
        write_html(&sample(1), &path),
    ] {
        let message = result.expect_err("there is no such directory").to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
    let path = directory.path().join("report");
    check_writable(&path).expect("a place for it");
    assert!(!path.exists(), "nothing was written yet");
    std::fs::write(&path, "before").expect("written");
    check_writable(&path).expect("a place for it");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "before");
}
