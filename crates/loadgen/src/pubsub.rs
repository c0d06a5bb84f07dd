//! `bench pubsub`: publishers and subscribers on any MQTT broker, or on several in turn.

use std::net::SocketAddr;

use fieldline_codec::MqttProtocolVersion;

use crate::cli::{ClientVersion, PubSubArgs};
use crate::engine::now_ms;
use crate::error::{LoadError, LoadResult};
use crate::process::machine;
use crate::report::{write_json, write_page};
use crate::target;
use crate::telemetry::check_files;

mod client;
mod config;
mod engine;
mod html;
mod message;
mod packets;
mod plan;
mod presets;
mod publishing;
mod receipts;
mod report;
mod run;
#[cfg(test)]
mod tests;

use config::PubSubConfig;
use engine::ClientSettings;
use presets::{PRESETS, set};
use report::{BrokerResult, PubSubReport};
use run::PubSubRound;

/// A broker under load.
struct BrokerTarget {
    name: String,
    host: String,
    address: SocketAddr,
    pid: Option<u32>,
}

/// Runs the load on each broker in turn. Returns false if messages that were acknowledged have not arrived.
pub(crate) fn run(args: &PubSubArgs) -> LoadResult<bool> {
    let name = args.preset.as_deref().unwrap_or("list");
    if name == "list" && (args.config.is_none() || args.preset.is_some()) {
        for preset in PRESETS {
            say(&format!("{:<10} {}", preset.name, preset.what));
        }
        return Ok(true);
    }
    let (title, config) = load_of(args, name)?;
    args.mqtt.check()?;
    args.output.check()?;
    check_files(config.clients() as usize)?;
    let brokers = brokers_of(args)?;
    let mut report = PubSubReport {
        title,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: now_ms(),
        machine: machine(),
        load: report::in_words(&config, args.in_flight),
        in_flight: args.in_flight,
        config: Some(config.clone()),
        brokers: brokers
            .iter()
            .map(|broker| BrokerResult {
                name: broker.name.clone(),
                rounds: Vec::new(),
            })
            .collect(),
    };
    let mut failure = None;
    'rounds: for round in 0..args.rounds {
        for (broker, result) in brokers.iter().zip(&mut report.brokers) {
            if !args.output.quiet {
                eprintln!("{}, round {} of {}", broker.name, round + 1, args.rounds);
            }
            let round = PubSubRound {
                config: &config,
                settings: settings_of(args, broker)?,
                warm_up: args.warm_up,
                pid: broker.pid,
                run: rand::random(),
            };
            let mut watch = |second: &report::PubSubSecond| {
                if !args.output.quiet {
                    eprintln!("{}", report::progress(second));
                }
            };
            match round.run(&mut watch) {
                Ok(outcome) => result.rounds.push(outcome),
                Err(error) => {
                    failure = Some(LoadError::Engine(format!("{}: {error}", broker.name)));
                    break 'rounds;
                }
            }
        }
    }
    // What was measured before something failed is told all the same.
    report.brokers.retain(|broker| !broker.rounds.is_empty());
    if report.brokers.is_empty()
        && let Some(failure) = failure
    {
        return Err(failure);
    }
    say(report.text().trim_end());
    if let Some(path) = &args.output.json {
        write_json(&report, path)?;
    }
    if let Some(path) = &args.output.html {
        write_page(&html::page(&report), path)?;
    }
    failure.map_or_else(|| Ok(report.has_lost_nothing()), Err)
}

/// The output may be closed: whoever reads it may have seen enough.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The load that is asked for, and its name.
fn load_of(args: &PubSubArgs, name: &str) -> LoadResult<(String, PubSubConfig)> {
    if !(args.scale > 0.0 && args.scale.is_finite()) {
        return Err(LoadError::InvalidOption(format!("--scale {}", args.scale)));
    }
    let file = args.config.as_ref().filter(|_| args.preset.is_none());
    let (title, mut config) = match file {
        Some(_) if (args.scale - 1.0).abs() > f64::EPSILON => {
            return Err(LoadError::InvalidOption(
                "--scale is for presets: a file says how many clients there are".to_owned(),
            ));
        }
        Some(path) => (path.display().to_string(), PubSubConfig::read(path)?),
        None => {
            let found = presets::find(name, args.scale, &args.point_to_point);
            let unknown = || {
                let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
                LoadError::InvalidOption(format!("there is no load '{name}', only {}", names.join(", ")))
            };
            (name.to_owned(), found.ok_or_else(unknown)?)
        }
    };
    set(&mut config.rate, args.rate);
    set(&mut config.seconds_to_run, args.duration);
    set(&mut config.publisher_qos, args.qos);
    set(&mut config.subscriber_qos, args.qos);
    set(&mut config.min_payload_size, args.payload_bytes);
    config.check()?;
    Ok((title, config))
}

fn brokers_of(args: &PubSubArgs) -> LoadResult<Vec<BrokerTarget>> {
    let broker = |name: String, host: &str, port: u16, option: &str, pid: Option<u32>| {
        let address = target::resolve(option, host, port)?;
        LoadResult::Ok(BrokerTarget {
            name,
            host: host.to_owned(),
            address,
            pid: pid.or_else(|| target::local_pid(address)),
        })
    };
    let (host, port) = (args.mqtt.mqtt_host.as_str(), args.mqtt.mqtt_port);
    let first = format!("{host}:{port}");
    let mut brokers = vec![broker(first, host, port, "--mqtt-host", args.mqtt.server_pid)?];
    for named in &args.compare {
        let (name, address) = named.split_once('=').unwrap_or((named, named));
        let parts = address.rsplit_once(':');
        let Some((host, port)) = parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) else {
            return Err(LoadError::InvalidOption(format!(
                "--compare {named}: expected HOST:PORT or NAME=HOST:PORT"
            )));
        };
        brokers.push(broker(name.to_owned(), host, port, "--compare", None)?);
    }
    Ok(brokers)
}

fn settings_of(args: &PubSubArgs, broker: &BrokerTarget) -> LoadResult<ClientSettings> {
    Ok(ClientSettings {
        target: broker.address,
        tls: args.mqtt.tls(&broker.host)?,
        version: match args.mqtt_version {
            ClientVersion::V311 => MqttProtocolVersion::V311,
            ClientVersion::V5 => MqttProtocolVersion::V5,
        },
        username: args.username.clone(),
        password: args.password.clone(),
        keep_alive: args.keep_alive,
        in_flight: args.in_flight,
    })
}
