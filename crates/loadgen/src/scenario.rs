//! Published benchmark loads, each run with one command.

use crate::cli::{
    DeviceApi, DeviceArgs, ForeignArgs, INSTANCE_REGEX, LoadArgs, MqttServerArgs, ReportArgs, ScenarioArgs,
    TargetArgs, TelemetryArgs,
};
use crate::error::{LoadError, LoadResult};
use crate::payload::PayloadKind;
use crate::telemetry;

/// A published load.
struct Scenario {
    name: &'static str,
    what: &'static str,
    devices: f64,
    rate: f64,
    alarms: f64,
    payload: PayloadKind,
    /// Users of a load over HTTP, which is a closed loop.
    users: Option<f64>,
}

impl Scenario {
    const fn meters(name: &'static str, devices: f64, rate: f64, alarms: f64, what: &'static str) -> Self {
        Self {
            name,
            what,
            devices,
            rate,
            alarms,
            payload: PayloadKind::SmartMeter,
            users: None,
        }
    }

    const fn bytes(name: &'static str, bytes: usize, what: &'static str) -> Self {
        Self {
            payload: PayloadKind::Bytes(bytes),
            ..Self::meters(name, 30_000.0, 10_000.0, 0.0, what)
        }
    }
}

const SCENARIOS: [Scenario; 11] = [
    Scenario::meters("A", 5_000.0, 1_000.0, 10.0, "ThingsBoard on AWS, scenario A"),
    Scenario::meters(
        "Ax3",
        5_000.0,
        3_000.0,
        30.0,
        "scenario A at three times its rate",
    ),
    Scenario::meters(
        "Ax10",
        5_000.0,
        10_000.0,
        100.0,
        "scenario A at ten times its rate",
    ),
    Scenario::meters("B", 5_000.0, 5_000.0, 50.0, "ThingsBoard on AWS, scenario B"),
    Scenario::meters(
        "Bx3",
        5_000.0,
        15_000.0,
        150.0,
        "scenario B at three times its rate",
    ),
    Scenario::meters("C", 25_000.0, 10_000.0, 50.0, "ThingsBoard on AWS, scenario C"),
    Scenario::meters("D", 100_000.0, 5_000.0, 0.0, "ThingsBoard on AWS, scenario D"),
    Scenario::meters("E", 100_000.0, 10_000.0, 0.0, "ThingsBoard on AWS, scenario E"),
    Scenario::bytes("stress-270", 270, "stress report of 2021, messages of 270 bytes"),
    Scenario::bytes("stress-1k", 1_024, "stress report of 2021, messages of 1 KB"),
    Scenario {
        payload: PayloadKind::SmartMeter,
        users: Some(500.0),
        ..Scenario::meters(
            "http",
            500.0,
            0.0,
            0.0,
            "stress report of 2021, 500 users who post over HTTP",
        )
    },
];

/// Runs a scenario, or lists all of them. Returns whether every acknowledged message is stored.
pub(crate) fn run(args: &ScenarioArgs) -> LoadResult<bool> {
    if args.name.eq_ignore_ascii_case("list") {
        print!("{}", list());
        return Ok(true);
    }
    telemetry::run(&telemetry_of(args)?)
}

fn list() -> String {
    let mut text = String::from("name          devices  messages/s  alarms/s  payload      what\n");
    for scenario in &SCENARIOS {
        let rate = match scenario.users {
            Some(users) => format!("{users} users"),
            None => scenario.rate.to_string(),
        };
        text.push_str(&format!(
            "{:12} {:>8} {rate:>11} {:>9}  {:12} {}\n",
            scenario.name,
            scenario.devices,
            scenario.alarms,
            scenario.payload.to_string(),
            scenario.what
        ));
    }
    text
}

/// Returns the options that a scenario stands for.
fn telemetry_of(args: &ScenarioArgs) -> LoadResult<TelemetryArgs> {
    let wanted = args.name.replace('×', "x");
    let scenario = SCENARIOS
        .iter()
        .find(|scenario| scenario.name.eq_ignore_ascii_case(&wanted))
        .ok_or_else(|| {
            let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            LoadError::InvalidOption(format!(
                "`{}` is none of the scenarios {}",
                args.name,
                names.join(", ")
            ))
        })?;
    if !(args.scale > 0.0 && args.scale <= 100.0) {
        return Err(LoadError::InvalidOption(
            "--scale must be more than 0 and at most 100".to_owned(),
        ));
    }
    let (mqtt_host, mqtt_port) = args
        .mqtt
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)))
        .ok_or_else(|| LoadError::InvalidOption(format!("--mqtt `{}` is not HOST:PORT", args.mqtt)))?;
    let at_least_one = |number: f64| (number * args.scale).round().max(1.0);
    let title = match args.scale {
        1.0 => format!("scenario {}: {}", scenario.name, scenario.what),
        scale => format!("scenario {}, scaled by {scale}: {}", scenario.name, scenario.what),
    };
    Ok(TelemetryArgs {
        target: TargetArgs {
            rest_url: args.rest_url.clone().unwrap_or_default(),
            username: args.username.clone(),
            password: args.password.clone(),
            rest_pool_size: 8,
            mqtt: MqttServerArgs {
                mqtt_host,
                mqtt_port,
                mqtt_tls: false,
                mqtt_ca: None,
                server_pid: None,
            },
            own_server: args.rest_url.is_none(),
        },
        devices: DeviceArgs {
            device_start: 0,
            device_end: at_least_one(scenario.devices) as u32,
            device_count: 0,
            use_instance: false,
            instance: 0,
            instance_from_name: false,
            instance_name: String::new(),
            instance_regex: INSTANCE_REGEX.to_owned(),
            device_profile: None,
            name_format: "DEFAULT".to_owned(),
            create: true,
            delete: false,
        },
        load: LoadArgs {
            device_api: if scenario.users.is_some() {
                DeviceApi::Http
            } else {
                DeviceApi::Mqtt
            },
            users: at_least_one(scenario.users.unwrap_or(1.0)) as usize,
            payload: scenario.payload,
            payload_points: None,
            telemetry: true,
            qos: 1,
            rate: (scenario.rate * args.scale).max(0.1),
            in_flight: scenario.users.map(|_| 1),
            duration: args.duration,
            alarms: scenario.alarms * args.scale,
            alarms_from: 0.0,
            alarms_until: f64::MAX,
            sequential: false,
            seed: 0,
            warm_up: true,
            warm_up_pack: 200,
            enabled: true,
        },
        report: ReportArgs {
            verify: true,
            patience: 120.0,
            probes: 5.0,
            limit: args.limit,
            output: args.output.clone(),
        },
        foreign: ForeignArgs {
            test_api: "device".to_owned(),
            update_root_rule_chain: false,
            revert_root_rule_chain: false,
        },
        title,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OutputArgs;

    fn asked(name: &str, scale: f64) -> ScenarioArgs {
        ScenarioArgs {
            name: name.to_owned(),
            scale,
            duration: 1.0,
            rest_url: None,
            mqtt: "localhost:1883".to_owned(),
            username: String::new(),
            password: String::new(),
            limit: crate::cli::LimitComparison::None,
            output: OutputArgs {
                json: None,
                html: None,
                quiet: true,
            },
        }
    }

    #[test]
    fn scenarios_are_found_by_name_and_scaled_as_a_whole() {
        let args = telemetry_of(&asked("A×3", 0.1)).expect("a scenario");
        assert_eq!(args.devices.device_end, 500);
        assert!((args.load.rate - 300.0).abs() < 1e-9 && (args.load.alarms - 3.0).abs() < 1e-9);
        assert!(args.target.own_server);
        args.check().expect("options that make sense");
    }

    #[test]
    fn every_scenario_makes_sense_at_every_scale() {
        for scenario in &SCENARIOS {
            for scale in [0.0001, 1.0, 10.0] {
                let args = telemetry_of(&asked(scenario.name, scale)).expect("a scenario");
                args.check().expect("options that make sense");
            }
        }
    }

    #[test]
    fn all_are_listed() {
        let list = list();
        assert_eq!(list.lines().count(), SCENARIOS.len() + 1);
        assert!(list.contains("stress-270"), "{list}");
        assert!(run(&asked("list", 1.0)).is_ok_and(|done| done));
    }

    #[test]
    fn unknown_names_and_scales_are_refused() {
        assert!(telemetry_of(&asked("F", 1.0)).is_err_and(|error| error.to_string().contains("stress-270")));
        assert!(telemetry_of(&asked("A", 0.0)).is_err());
    }
}
