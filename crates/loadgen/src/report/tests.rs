use super::*;

/// A run of so many seconds as it may be, with all parts of a report.
pub(super) fn sample(seconds: usize) -> Report {
    let latency = |ms: f64| Latency {
        count: 99_000,
        mean: ms * 1_100.0,
        p50: (ms * 1_000.0) as u64,
        p90: (ms * 1_600.0) as u64,
        p99: (ms * 2_500.0) as u64,
        p999: (ms * 3_000.0) as u64,
        max: (ms * 4_500.0) as u64,
    };
    let wave = |i: usize, period: f64| (i as f64 / period).sin();
    Report {
        title: "scenario B, scale 0.1".to_owned(),
        version: "0.1.0".to_owned(),
        started_at: 1_772_366_400_000,
        machine: Machine {
            cores: 2,
            memory_bytes: 25_165_824_000,
            processor: "Example Processor 2.5 GHz".to_owned(),
            system: "Linux 6.1".to_owned(),
        },
        load: Load {
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
            ..Load::default()
        },
        provisioning: Some(Provisioning {
            created: 4_000,
            found: 1_000,
            seconds: 3.25,
        }),
        connecting: Connecting {
            connected: 5_000,
            failed: 0,
            seconds: 0.25,
        },
        outcome: Outcome {
            sent: 300_000,
            acknowledged: 300_000,
            rate: 81_250.0,
            latency: latency(45.2),
            server_us_per_message: Some(12.0),
            generator_us_per_message: 7.25,
            server_memory_peak: Some(183_500_800),
            lag_peak: Some(1_204),
            lag_end: Some(0),
            ..Outcome::default()
        },
        limit: Some(Limit {
            what: "parse and acknowledge".to_owned(),
            rate: 97_000.0,
            latency: latency(30.0),
            server_us_per_message: Some(8.0),
            connections_per_second: 25_000.0,
        }),
        queryable: Some(latency(180.0)),
        verification: Some(Verification {
            devices: 5_000,
            acknowledged: 300_000,
            stored: 300_000,
            seconds: 0.8,
            ..Verification::default()
        }),
        seconds: (0..seconds)
            .map(|i| Second {
                at: (i + 1) as f64,
                sent: 82_000.0 + 4_000.0 * wave(i, 3.0),
                acknowledged: 81_250.0 + 4_500.0 * wave(i, 2.7),
                failed: 0.0,
                latency: latency(45.0 + 8.0 * wave(i, 4.1)),
                server_cores: Some(1.2 + 0.1 * wave(i, 1.9)),
                generator_cores: 0.7 + 0.05 * wave(i, 2.3),
                server_memory: Some(150_000_000 + 3_000 * i as u64),
                lag: Some((600.0 + 600.0 * wave(i, 5.0)) as u64),
            })
            .collect(),
        remarks: vec!["Generator and server share the cores.".to_owned()],
    }
}

/// The lines of a summary that begin with a label, without it.
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

the limit        measured     limit     ratio
rate             81,250/s  97,000/s      0.84
CPU a message       12 µs      8 µs      1.50
connections      20,000/s  25,000/s      0.80
The limit is a server that does nothing but parse and acknowledge.

storage        all 300,000 acknowledged messages are stored
               5,000 devices looked at within 0.8 s of the load's end

Note: Generator and server share the cores.
"
    );
}

#[test]
fn the_summary_shouts_about_missing_messages() {
    let mut report = sample(3);
    report.verification = Some(Verification {
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
    report.verification = Some(Verification::default());
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
    let summary = text::summary(&Report::default());
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
    let page = html::page(&Report::default());
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

    let stalled = Second {
        at: 3.0,
        failed: 2.0,
        ..Second::default()
    };
    assert_eq!(
        text::progress(&stalled, 30.0),
        "    3 of 30 s  sent       0/s  acknowledged       0/s  p50     – p99     – ms  cores 0.00  FAILED 2/s"
    );
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
        let lines: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("<path class=\"line"))
            .collect();
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
        second.latency = Latency::default();
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
        second.generator_cores = f64::NEG_INFINITY;
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
    let back: Report = serde_json::from_str(&json).expect("valid");
    write_json(&back, &path).expect("written again");
    assert_eq!(std::fs::read_to_string(&path).expect("read again"), json);
    for (back, second) in back.seconds.iter().zip(&report.seconds) {
        assert!((back.sent - second.sent).abs() < 1e-3, "{back:?} {second:?}");
    }
    let without_seconds = |report: Report| Report {
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
    let back: Report = serde_json::from_str(&json).expect("valid");
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
    for result in [write_json(&sample(1), &path), write_html(&sample(1), &path)] {
        let message = result.expect_err("there is no such directory").to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
}

/// Panics where elements do not nest, an attribute is not quoted, or a character stands where XML forbids it.
fn check_xml(page: &str) {
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
            assert_eq!(open.pop(), Some(name), "before {:.80}", rest);
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

/// Panics where text has something in it that is markup.
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
