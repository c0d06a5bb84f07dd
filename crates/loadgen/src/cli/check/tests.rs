use clap::Parser;

use crate::cli::BenchCommand;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: BenchCommand,
}

/// Checks options given as one line.
fn verdict(options: &str) -> Result<(), String> {
    let arguments = ["bench"].into_iter().chain(options.split(' '));
    let cli = Cli::try_parse_from(arguments).map_err(|error| error.to_string())?;
    match cli.command {
        BenchCommand::Telemetry(args) => args.check(),
        BenchCommand::Connections(args) => args.check(),
        other => panic!("{other:?} has no check"),
    }
    .map_err(|error| error.to_string())
}

#[test]
fn what_makes_no_sense_is_refused_by_its_name() {
    for (options, name) in [
        ("telemetry --rate 0", "--rate"),
        ("telemetry --rate NaN", "--rate"),
        ("telemetry --rate -5", "--rate"),
        ("telemetry --rate 1e9", "--rate"),
        ("telemetry --duration 0", "--duration"),
        ("telemetry --duration inf", "--duration"),
        ("telemetry --alarms=-1", "--alarms"),
        ("telemetry --alarms-until NaN", "--alarms-until"),
        ("telemetry --in-flight 0", "--in-flight"),
        ("telemetry --in-flight 70000", "--in-flight"),
        ("telemetry --in-flight 65535 --device-end 5000", "--in-flight"),
        ("telemetry --in-flight 2 --device-api HTTP", "--in-flight"),
        ("telemetry --device-api COAP", "--device-api"),
        ("telemetry --users 0", "--users"),
        ("telemetry --qos 3", "--qos"),
        ("telemetry --payload KEYS:0", "--payload"),
        ("telemetry --payload KEYS:10001", "--payload"),
        ("telemetry --payload BYTES:10", "--payload"),
        ("telemetry --payload CUSTOM", "--payload"),
        (
            "telemetry --payload INDUSTRIAL_PLC --payload-points 0",
            "--payload-points",
        ),
        (
            "telemetry --payload INDUSTRIAL_PLC:5 --payload-points 6",
            "--payload-points",
        ),
        ("telemetry --rest-pool-size 0", "--rest-pool-size"),
        ("telemetry --rest-pool-size 1000", "--rest-pool-size"),
        ("telemetry --server-pid 4294967295", "--server-pid"),
        ("telemetry --own-server --mqtt-tls", "--mqtt-tls"),
        ("telemetry --device-start 5 --device-end 5", "--device-end"),
        ("telemetry --device-end 4000000000", "--device-end"),
        ("telemetry --use-instance --device-count 0", "--device-count"),
        ("telemetry --use-instance --instance 4294967295", "--instance"),
        (
            "telemetry --use-instance --instance-from-name --instance-name node",
            "--instance-name",
        ),
        (
            "telemetry --instance-from-name --instance-regex ^x",
            "INSTANCE_IDX_REGEX",
        ),
        ("telemetry --name-format UUID", "DEVICE_NAME_FORMAT"),
        ("telemetry --test-api gateway", "TEST_API"),
        (
            "telemetry --update-root-rule-chain true",
            "UPDATE_ROOT_RULE_CHAIN",
        ),
        ("telemetry --patience=-1", "--patience"),
        ("telemetry --probes NaN", "--probes"),
        ("telemetry --warm-up-pack 0", "--warm-up-pack"),
        (
            "telemetry --json /nowhere/report.json",
            "--json /nowhere/report.json",
        ),
        ("connections --counts 5,5", "--counts"),
        ("connections --counts 0", "--counts"),
        ("connections --settle NaN", "--settle"),
        ("connections --opening 0", "--opening"),
    ] {
        let refused = verdict(options).expect_err(options);
        assert!(refused.contains(name), "{options}: {refused}");
    }
}

#[test]
fn what_makes_sense_is_taken() {
    for options in [
        "telemetry",
        "telemetry --rate 0.5 --duration 0.5 --probes 0 --patience 0",
        "telemetry --in-flight 100 --device-end 5000",
        "telemetry --device-api http --in-flight 1",
        "telemetry --payload INDUSTRIAL_PLC --payload-points 5",
        "telemetry --payload INDUSTRIAL_PLC:5 --payload-points 5",
        "telemetry --instance-regex ([0-9]+)$ --test-api DEVICE",
        "connections --counts 0,10",
    ] {
        assert_eq!(verdict(options), Ok(()), "{options}");
    }
}

#[test]
fn several_load_generators_divide_the_devices() {
    let range = |options: &str| {
        let arguments = ["bench", "telemetry"].into_iter().chain(options.split(' '));
        match Cli::try_parse_from(arguments).expect("options").command {
            BenchCommand::Telemetry(args) => args.devices.range().map(|range| (range.start, range.end)),
            other => panic!("{other:?}"),
        }
    };
    for (options, expected) in [
        ("--device-start 5 --device-end 8", (5, 8)),
        ("--use-instance --instance 2 --device-count 10", (20, 30)),
        (
            "--use-instance --device-count 10 --instance-from-name --instance-name load4-12",
            (120, 130),
        ),
    ] {
        assert_eq!(range(options).expect(options), expected);
    }
}
