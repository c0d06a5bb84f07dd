//! The options of a load of publishers and subscribers; ThingsBoard's `tb-mqtt-perf-tests` has some of them as well.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{MqttServerArgs, OutputArgs};

/// The version of MQTT that the clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientVersion {
    /// 3.1.1.
    #[value(name = "3.1.1")]
    V311,
    /// 5.0.
    #[value(name = "5")]
    V5,
}

/// Options of a load of publishers and subscribers.
#[derive(Debug, Clone, Args)]
pub struct PubSubArgs {
    /// Name of a preset; `list`, or no name and no file, lists all of them.
    #[arg(value_name = "PRESET")]
    pub(crate) preset: Option<String>,
    /// JSON file of tb-mqtt-perf-tests that describes the load, where no preset is named.
    #[arg(long, env = "TEST_RUN_CONFIGURATION_FILE", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mqtt: MqttServerArgs,
    /// Puts the same load on another broker as well, in turn with the first one; may be repeated.
    #[arg(long, value_name = "[NAME=]HOST:PORT")]
    pub(crate) compare: Vec<String>,
    /// Runs on each broker; what is told are medians.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Version of MQTT.
    #[arg(long, value_enum, default_value = "5")]
    pub(crate) mqtt_version: ClientVersion,
    /// User name of all clients but those of APPLICATION subscribers, which have none.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) username: String,
    /// Password that goes with the user name.
    #[arg(long, env = "MQTT_PASSWORD", value_name = "TEXT", hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// Keep-alive, seconds.
    #[arg(
        long,
        env = "CLIENT_KEEP_ALIVE_SECONDS",
        value_name = "SECONDS",
        default_value_t = 600
    )]
    pub(crate) keep_alive: u16,
    /// Factor by which the clients of a preset are scaled.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Keeps that many messages of each publisher unacknowledged, instead of a rate; with QoS 0, sends that many as soon
    /// as the system accepts more.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) in_flight: Option<u16>,
    /// Messages a second of each publisher, in place of the load's own.
    #[arg(long, value_name = "NUMBER", conflicts_with = "in_flight")]
    pub(crate) rate: Option<f64>,
    /// Length of the load in place of its own, seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) duration: Option<f64>,
    /// QoS of publishers and subscribers, in place of the load's own.
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(crate) qos: Option<u8>,
    /// Least bytes of a payload, in place of the load's own.
    #[arg(long, value_name = "BYTES")]
    pub(crate) payload_bytes: Option<usize>,
    /// Messages of each publisher before the load.
    #[arg(
        long,
        env = "TEST_RUN_PUBLISHER_WARMUP_COUNT",
        value_name = "NUMBER",
        default_value_t = 10
    )]
    pub(crate) warm_up: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) point_to_point: PointToPointArgs,
}

/// The load of `p2p`, by the environment of tb-mqtt-perf-tests.
#[derive(Debug, Clone, Args)]
pub(crate) struct PointToPointArgs {
    /// Pairs of a publisher and a subscriber of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_PUB_SUB_GROUPS_COUNT", value_name = "NUMBER")]
    pub(crate) pairs: Option<u32>,
    /// Seconds of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_SECONDS_TO_RUN", hide = true)]
    pub(crate) default_seconds: Option<f64>,
    /// Seconds that `p2p` waits for messages after the load.
    #[arg(long, env = "TEST_RUN_DEFAULT_ADDITIONAL_SECONDS_TO_WAIT", hide = true)]
    pub(crate) default_wait: Option<f64>,
    /// Idle connections of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_DUMMY_CLIENTS", hide = true)]
    pub(crate) default_dummies: Option<u32>,
    /// Messages a second of each publisher of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_MAX_MSGS_PER_PUBLISHER_PER_SECOND", hide = true)]
    pub(crate) default_rate: Option<f64>,
    /// QoS of the publishers of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_PUBLISHER_QOS", hide = true, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(crate) default_publisher_qos: Option<u8>,
    /// QoS of the subscribers of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_SUBSCRIBER_QOS", hide = true, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub(crate) default_subscriber_qos: Option<u8>,
    /// Least bytes of a payload of `p2p`.
    #[arg(long, env = "TEST_RUN_DEFAULT_MIN_PAYLOAD_SIZE", hide = true)]
    pub(crate) default_payload: Option<usize>,
    /// Clients of `p2p` that are connected at a time.
    #[arg(long, env = "TEST_RUN_DEFAULT_MAX_CONCURRENT_OPERATIONS", hide = true)]
    pub(crate) default_opening: Option<usize>,
}
