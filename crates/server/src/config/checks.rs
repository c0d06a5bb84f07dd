//! Checks that the types of the settings cannot make: values that cannot work, and settings that contradict each other.

use fieldline_core::options::HumanDuration;
use fieldline_journal::JournalKind;
use fieldline_storage::series::SeriesKind;
use tracing_subscriber::EnvFilter;

use super::Config;

const SECOND: HumanDuration = HumanDuration::secs(1);
const MILLISECOND: HumanDuration = HumanDuration::millis(1);
const HOUR: HumanDuration = HumanDuration::secs(3_600);
const MAX_COAP_PAYLOAD: u64 = 16 << 20;

/// Returns the problems, each with its key and what is allowed.
pub(super) fn contradictions(config: &Config) -> Vec<String> {
    let mut found: Vec<String> = [
        general(config),
        http(config),
        devices(config),
        coap(config),
        ingest(config),
        rules(config),
        events(config),
        stores(config),
    ]
    .into_iter()
    .flatten()
    .filter(|(holds, _)| !holds)
    .map(|(_, text)| text.to_owned())
    .collect();
    // The parts with checks of their own name their keys without the section.
    let parts = [
        ("http", config.http.problem()),
        ("egress", config.egress.rules().err()),
        ("journal", config.journal.check().err()),
        ("series", config.series.problem()),
        ("api", config.api.problem()),
        ("broker", config.broker.problem()),
        ("bridges", bridges_problem(config)),
        ("calls", config.calls.problem()),
    ];
    found.extend(
        parts
            .into_iter()
            .filter_map(|(part, problem)| problem.map(|text| format!("`{part}`: {text}"))),
    );
    found
}

fn bridges_problem(config: &Config) -> Option<String> {
    if !config.bridges.is_empty() && !config.broker.is_enabled() {
        return Some("they need the broker: give it an address, such as `broker.listen`".to_owned());
    }
    let address = fieldline_bridge::reachable(config.mqtt.listen).ip();
    if !config.bridges.devices.is_empty()
        && config.mqtt.proxy_protocol
        && config.http.proxies().contains(address)
    {
        return Some(format!(
            "`devices` come from {address}, which `mqtt.proxy-protocol` takes for a proxy: leave it out of \
             `http.trusted-proxies`"
        ));
    }
    config.bridges.problem()
}

/// Whether a condition holds, and the message if it does not.
type ConfigCheck = (bool, &'static str);

fn general(config: &Config) -> Vec<ConfigCheck> {
    vec![
        (
            !config.data_dir.as_os_str().is_empty(),
            "`data-dir` must not be empty",
        ),
        (
            is_filter(&config.log),
            "`log` must be off, error, warn, info, debug or trace, or directives such as info,fieldline_transport=debug",
        ),
        (
            config.admin_password.as_ref().is_none_or(|text| text.len() >= 6),
            "`admin-password` must have 6 characters or more",
        ),
        (
            config.shutdown_timeout >= SECOND,
            "`shutdown-timeout` must be 1s or more",
        ),
    ]
}

fn stores(config: &Config) -> Vec<ConfigCheck> {
    let kind = config.series.kind;
    let is_outside = kind != SeriesKind::Embedded;
    let cassandra = config
        .cassandra
        .problem()
        .filter(|_| kind == SeriesKind::Cassandra);
    vec![
        (
            kind != SeriesKind::Sql || config.sql.url.is_some(),
            "`series.kind` = \"sql\" needs `sql.url`, the PostgreSQL database that keeps the time series",
        ),
        (
            kind != SeriesKind::Cassandra || config.sql.url.is_some(),
            "`series.kind` = \"cassandra\" needs `sql.url`, the PostgreSQL database that says how far the journal is stored",
        ),
        (cassandra.is_none(), cassandra.unwrap_or_default()),
        // How far Kafka is read is kept with the values.
        (
            config.journal.kind != JournalKind::Kafka || is_outside,
            "`journal.kind` = \"kafka\" needs `series.kind` = \"sql\" or \"cassandra\": what Kafka has given up would be on this machine alone",
        ),
    ]
}

fn http(config: &Config) -> Vec<ConfigCheck> {
    let http = &config.http;
    vec![
        (
            http.max_connections >= 1,
            "`http.max-connections` must be 1 or more",
        ),
        (
            http.header_timeout >= MILLISECOND,
            "`http.header-timeout` must be more than 0",
        ),
        (
            http.body_timeout >= MILLISECOND,
            "`http.body-timeout` must be more than 0",
        ),
        (
            http.request_timeout >= MILLISECOND,
            "`http.request-timeout` must be more than 0",
        ),
        (
            http.write_timeout >= MILLISECOND,
            "`http.write-timeout` must be more than 0",
        ),
        (
            http.max_device_body.0 >= 1,
            "`http.max-device-body` must be more than 0",
        ),
        (
            // A tenant that is alone may hold three eighths of the memory.
            http.device_body_memory.0 >= http.max_device_body.0.saturating_mul(8).div_ceil(3),
            "`http.device-body-memory` must be at least 8/3 of `http.max-device-body`, or the largest bodies are never taken",
        ),
    ]
}

fn devices(config: &Config) -> Vec<ConfigCheck> {
    let mqtt = &config.mqtt;
    vec![
        (
            mqtt.max_connections >= 1,
            "`mqtt.max-connections` must be 1 or more",
        ),
        (
            mqtt.event_loops <= 1_024,
            "`mqtt.event-loops` must be 1,024 or less, each is a thread",
        ),
        (
            !mqtt.proxy_protocol || !config.http.trusted_proxies.is_empty(),
            "`mqtt.proxy-protocol` needs `http.trusted-proxies`, nobody else is believed",
        ),
        (
            !config.broker.proxy_protocol || !config.http.trusted_proxies.is_empty(),
            "`broker.proxy-protocol` needs `http.trusted-proxies`, nobody else is believed",
        ),
        (
            (256..=268_435_455).contains(&mqtt.max_packet.0),
            "`mqtt.max-packet` must be 256B to 268435455B, the largest packet of MQTT",
        ),
        // Records are larger than the text they come from. A device resends a packet whose records do not fit.
        (
            mqtt.max_packet.0.saturating_mul(2) <= config.journal.max_append.0,
            "`journal.max-append` must be at least twice `mqtt.max-packet`, or the largest packets are never taken",
        ),
        (
            mqtt.chunk_memory.0 >= 96 << 20,
            "`mqtt.chunk-memory` must be at least 96MiB, or the largest packages are never sent whole",
        ),
        (
            mqtt.connect_timeout >= MILLISECOND,
            "`mqtt.connect-timeout` must be more than 0",
        ),
        (
            mqtt.inactivity_timeout >= SECOND,
            "`mqtt.inactivity-timeout` must be 1s or more",
        ),
        (
            mqtt.sessions_per_device >= 1,
            "`mqtt.sessions-per-device` must be 1 or more",
        ),
        (
            config.mqtt.gateway_metrics_interval >= SECOND,
            "`mqtt.gateway-metrics-interval` must be 1s or more",
        ),
        (
            config.address_guard.max_wrong_credentials >= 1,
            "`address-guard.max-wrong-credentials` must be 1 or more",
        ),
        (
            config.address_guard.block_timeout >= SECOND,
            "`address-guard.block-timeout` must be 1s or more",
        ),
        (
            config.claiming.duration >= SECOND,
            "`claiming.duration` must be 1s or more",
        ),
        (
            config.mqtts.listen.is_none()
                || (config.mqtts.certificate.is_some() && config.mqtts.private_key.is_some()),
            "`mqtts.listen` needs `mqtts.certificate` and `mqtts.private-key`",
        ),
        (
            config.activity.inactivity_timeout >= SECOND,
            "`activity.inactivity-timeout` must be 1s or more",
        ),
        (
            config.usage.report_interval >= SECOND,
            "`usage.report-interval` must be 1s or more",
        ),
    ]
}

fn coap(config: &Config) -> Vec<ConfigCheck> {
    let (coap, coaps) = (&config.coap, &config.coaps);
    vec![
        (
            (1..=MAX_COAP_PAYLOAD).contains(&coap.max_payload.0),
            "`coap.max-payload` must be 1B to 16MiB, the most that blocks of the smallest size can number",
        ),
        (
            coap.block_memory >= coap.max_payload,
            "`coap.block-memory` must be at least `coap.max-payload`, or the largest bodies are never taken",
        ),
        (
            (coap.listen.is_none() && coaps.listen.is_none())
                || coap.max_payload.0.saturating_mul(2) <= config.journal.max_append.0,
            "`journal.max-append` must be at least twice `coap.max-payload`",
        ),
        (coap.max_requests >= 1, "`coap.max-requests` must be 1 or more"),
        (
            coap.acknowledge_after <= SECOND,
            "`coap.acknowledge-after` must be at most 1s, or devices send their requests again before",
        ),
        (
            coap.observer_silence >= SECOND,
            "`coap.observer-silence` must be 1s or more",
        ),
        (
            coaps.listen.is_none() || (coaps.certificate.is_some() && coaps.private_key.is_some()),
            "`coaps.listen` needs `coaps.certificate` and `coaps.private-key`",
        ),
        (
            coaps.max_sessions >= 1 && coaps.max_sessions_per_address >= 1 && coaps.max_handshakes >= 1,
            "`coaps.max-sessions`, `coaps.max-sessions-per-address` and `coaps.max-handshakes` must be 1 or more",
        ),
        (
            coaps.handshake_timeout >= SECOND && coaps.inactivity_timeout >= SECOND,
            "`coaps.handshake-timeout` and `coaps.inactivity-timeout` must be 1s or more",
        ),
    ]
}

fn ingest(config: &Config) -> Vec<ConfigCheck> {
    let ingest = &config.ingest;
    vec![
        (
            (1..=1_024).contains(&ingest.partitions),
            "`ingest.partitions` must be 1 to 1024",
        ),
        (
            (1..=256).contains(&ingest.workers),
            "`ingest.workers` must be 1 to 256",
        ),
        (ingest.batch.0 >= 4_096, "`ingest.batch` must be 4KiB or more"),
    ]
}

fn rules(config: &Config) -> Vec<ConfigCheck> {
    vec![
        (
            (1..=64).contains(&config.rules.queue_workers),
            "`rules.queue-workers` must be 1 to 64",
        ),
        (
            config.rules.statistics_interval >= SECOND,
            "`rules.statistics-interval` must be 1s or more",
        ),
        (
            config.rules.lanes.count <= 64,
            "`rules.lanes.count` must be at most 64",
        ),
        (
            config.rules.lanes.patience >= HumanDuration::millis(10),
            "`rules.lanes.patience` must be 10ms or more",
        ),
        (
            config.rules.lanes.timeout >= SECOND,
            "`rules.lanes.timeout` must be 1s or more",
        ),
    ]
}

fn events(config: &Config) -> Vec<ConfigCheck> {
    let is_hour_or_nothing = |span: HumanDuration| span == HumanDuration::secs(0) || span >= HOUR;
    vec![
        (
            is_hour_or_nothing(config.events.debug_ttl),
            "`events.debug-ttl` must be 1h or more, or 0s for ever",
        ),
        (
            is_hour_or_nothing(config.events.ttl),
            "`events.ttl` must be 1h or more, or 0s for ever",
        ),
    ]
}

/// Whether the text is a level, or directives that each name a level. `inof` alone would count as the name of a target:
/// everything of that target would be logged, and nothing of the others.
fn is_filter(text: &str) -> bool {
    let is_level = |text: &str| {
        ["off", "error", "warn", "info", "debug", "trace"]
            .iter()
            .any(|level| text.eq_ignore_ascii_case(level))
    };
    let names_level = |directive: &str| {
        is_level(match directive.rsplit_once('=') {
            Some((_, level)) => level,
            None => directive,
        })
    };
    text.split(',').all(names_level) && text.parse::<EnvFilter>().is_ok()
}

#[cfg(test)]
mod tests {
    use fieldline_core::options::ByteSize;

    use super::*;

    type Change = fn(&mut Config);

    #[test]
    fn the_defaults_contradict_nothing() {
        assert_eq!(contradictions(&Config::default()), [""; 0]);
    }

    #[test]
    fn limits_that_rule_each_other_out_are_named() {
        let cases: [(Change, &str); 10] = [
            (
                |config| config.series.kind = SeriesKind::Cassandra,
                "`series.kind` = \"cassandra\" needs `sql.url`",
            ),
            (
                |config| {
                    config.series.kind = SeriesKind::Cassandra;
                    config.sql.url = Some("postgres://localhost/fieldline".to_owned());
                    config.cassandra.replication = Some("SimpleStrategy:0".to_owned());
                },
                "`cassandra.replication`",
            ),
            (
                |config| {
                    config.journal.kind = JournalKind::Kafka;
                    config.journal.kafka.servers = Some("localhost:9092".to_owned());
                },
                "`series.kind` = \"sql\"",
            ),
            (
                |config| config.events.ttl = HumanDuration::millis(1),
                "`events.ttl`",
            ),
            (
                |config| config.http.device_body_memory = ByteSize::mib(1),
                "`http.device-body-memory`",
            ),
            (
                |config| config.mqtt.max_packet = ByteSize::mib(8),
                "`journal.max-append`",
            ),
            (
                |config| config.mqtt.inactivity_timeout = HumanDuration::millis(999),
                "`mqtt.inactivity-timeout`",
            ),
            (
                |config| config.mqtt.connect_timeout = HumanDuration::secs(0),
                "`mqtt.connect-timeout`",
            ),
            (
                |config| config.http.request_timeout = HumanDuration::secs(0),
                "`http.request-timeout`",
            ),
            (
                |config| config.shutdown_timeout = HumanDuration::millis(10),
                "`shutdown-timeout`",
            ),
        ];
        for (change, key) in cases {
            let mut config = Config::default();
            change(&mut config);
            let found = contradictions(&config);
            assert!(
                matches!(found.as_slice(), [only] if only.contains(key)),
                "{key}: {found:?}"
            );
        }
    }

    #[test]
    fn a_log_directive_without_a_level_is_refused() {
        for text in [
            "info",
            "WARN",
            "info,fieldline_transport=debug",
            "off,[login{device}]=trace",
        ] {
            assert!(is_filter(text), "{text}");
        }
        for text in [
            "",
            "inof",
            "verbose",
            "info,fieldline_transport",
            "info,=",
            "info,hyper=loud",
        ] {
            assert!(!is_filter(text), "{text}");
        }
    }
}
