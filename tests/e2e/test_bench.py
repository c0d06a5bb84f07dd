"""`fieldline bench`: the load generator, its reports, and the servers it measures against."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness.bench import WRONG, Bench, Run
from harness.paho_device import PahoDevice
from harness.rest import Rest, telemetry
from harness.server import BINARY, Server, _die_with_parent, environment, eventually, run_cli, split_address

MISSING_AFTER = ["--patience", "1"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")


@pytest.fixture(scope="module")
def target(tmp_path_factory, authority):
    """A server for the loads of this file, with TLS."""
    identity = authority.issue("localhost", server=True)
    env = {
        "FIELDLINE_MQTTS_LISTEN": "127.0.0.1:0",
        "FIELDLINE_MQTTS_CERTIFICATE": identity.certificate,
        "FIELDLINE_MQTTS_PRIVATE_KEY": identity.key,
    }
    server = Server(tmp_path_factory.mktemp("bench"), env=env)
    try:
        yield server.start()
        server.close()
    finally:
        server.kill()


def at(server: Server, *, tls=None) -> list[str]:
    """Options for a load on a server."""
    host, port = server.mqtts_address if tls else server.mqtt_address
    found = ["--rest-url", server.http, "--mqtt-host", host, "--mqtt-port", port]
    if tls:
        found += ["--mqtt-tls", "--mqtt-ca", tls.path]
    return [*found, "--server-pid", server.process.pid, "--quiet"]


def device(rest: Rest, number: int) -> str:
    """Id of a device of the load generator."""
    return rest.device_by_name(f"DW{number:08}")["id"]["id"]


def is_sending(rest: Rest, number: int) -> bool:
    """Whether something of a device is stored, so that a load is under way."""
    return rest.latest(device(rest, number), "pulseCounter")["pulseCounter"] is not None


def check_consistent(run: Run) -> None:
    """What holds for every report, whatever happened."""
    outcome, seconds = run.outcome, run.report["seconds"]
    assert outcome["sent"] == outcome["acknowledged"] + outcome["failed"]
    assert outcome["latency"]["count"] == outcome["acknowledged"]
    assert sum(second["latency"]["count"] for second in seconds) == outcome["acknowledged"]
    assert outcome["latency"]["p50"] <= outcome["latency"]["p99"] <= outcome["latency"]["max"]
    assert outcome["rate"] * run.report["load"]["durationSeconds"] <= outcome["acknowledged"] * 1.001


def check_all_stored(run: Run) -> None:
    """Everything was acknowledged and is stored, once."""
    assert run.code == 0, run.errors
    check_consistent(run)
    sent = run.outcome["sent"]
    assert sent > 0 and run.outcome["acknowledged"] == sent
    assert (run.outcome["failed"], run.outcome["lostConnections"]) == (0, 0)
    verification = run.verification
    assert (verification["acknowledged"], verification["stored"]) == (sent, sent)
    assert (verification["missing"], verification["surplus"]) == (0, 0)
    assert verification["devices"] == run.report["load"]["devices"]
    assert run.report["connecting"]["failed"] == 0
    assert "are stored" in run.output
    # The server is on this machine, and has metrics.
    assert run.outcome["serverUsPerMessage"] > 0 and run.outcome["generatorUsPerMessage"] > 0
    assert run.outcome["lagEnd"] >= 0 and run.outcome["serverMemoryPeak"] > 1 << 20


LOAD = ["--device-end", 20, "--duration", 0.5]
CLOSED = ["--in-flight", 3]
# Evenly divided among the devices.
OPEN = ["--rate", 400]


@pytest.mark.parametrize("pace", [CLOSED, OPEN], ids=["closed", "open"])
def test_what_is_acknowledged_over_mqtt_is_stored(tmp_path, target, pace):
    # At the same time, which is what a platform is for; each with devices of its own.
    loads = [(qos, Bench(tmp_path / str(qos)), 1000 + 20 * qos) for qos in (0, 1, 2)]
    started = [
        bench.start(
            *["telemetry", *at(target), *LOAD, *pace, "--payload", "ENERGY", "--qos", qos],
            *["--device-start", first, "--device-end", first + 20],
        )
        for qos, bench, first in loads
    ]
    for (qos, bench, _), process in zip(loads, started, strict=True):
        run = bench.wait(process)
        check_all_stored(run)
        load = run.report["load"]
        assert (load["protocol"], load["qos"], load["points"], load["connections"]) == ("mqtt", qos, 3, 20)
        if pace is OPEN:
            assert (run.outcome["sent"], run.outcome["unsent"], load["rate"]) == (200, 0, 400)
        else:
            # More than is in flight at once: it went on.
            assert run.outcome["sent"] > 60 and load["inFlight"] == 3


def test_a_load_is_not_mistaken_for_the_one_before(bench, target):
    # Without acknowledgements to wait for, a device sends more than a message a millisecond, and each has a time of its own.
    run = bench("telemetry", *at(target), "--qos", 0, "--in-flight", 50, "--device-end", 1, "--duration", 0.5)
    check_all_stored(run)
    assert any("ahead of the clock" in text for text in run.report["remarks"])
    check_all_stored(bench("telemetry", *at(target), *LOAD, *OPEN))


def test_what_is_acknowledged_over_tls_is_stored(bench, target, authority):
    run = bench("telemetry", *at(target, tls=authority), *LOAD, "--in-flight", 20, "--qos", 2)
    check_all_stored(run)
    assert run.report["load"]["protocol"] == "mqtts"


def test_a_server_that_cannot_be_trusted_is_refused(bench, target, authority, tmp_path):
    other = type(authority)(tmp_path / "other")
    run = bench("telemetry", *at(target, tls=other), *LOAD)
    assert run.code == 1 and run.report is None
    assert "certificate" in run.errors


@pytest.mark.parametrize("pace", [["--in-flight", 1], OPEN], ids=["closed", "open"])
def test_what_is_acknowledged_over_http_is_stored(bench, target, pace):
    run = bench("telemetry", *at(target), *LOAD, *pace, "--device-api", "HTTP", "--users", 7)
    check_all_stored(run)
    assert (run.report["load"]["protocol"], run.report["load"]["connections"]) == ("http", 7)
    if pace is OPEN:
        assert (run.outcome["sent"], run.outcome["unsent"]) == (200, 0)


def test_http_devices_have_a_server_of_their_own_and_a_limit(bench):
    run = bench(
        *["telemetry", "--own-server", *LOAD, "--device-api", "http", "--users", 5, "--in-flight", 1],
        *["--limit", "fsync", "--quiet"],
        # These are for another server.
        env={"REST_USERNAME": "somebody", "REST_PASSWORD": "else"},
    )
    check_all_stored(run)
    assert run.report["limit"]["rate"] > 0 and "HTTP" in run.report["limit"]["what"]


def test_attributes_arrive_as_client_attributes(bench, target):
    run = bench("telemetry", *at(target), *LOAD, *OPEN, "--telemetry", "false", "--device-start", 10)
    assert run.code == 0
    check_consistent(run)
    assert (run.outcome["acknowledged"], run.outcome["unsent"]) == (200, 0)
    assert "verification" not in run.report and any("not counted" in text for text in run.report["remarks"])
    rest = target.rest()
    found = eventually(lambda: rest.attributes(device(rest, 15), "CLIENT_SCOPE"))
    assert set(found) >= {"pulseCounter", "leakage", "batteryLevel"}


def test_a_server_that_is_killed_under_load_costs_connections_and_nothing_acknowledged(bench, make_server):
    server = make_server().start()
    # It comes back where it was.
    server.env |= {f"FIELDLINE_{kind.upper()}_LISTEN": server.listening[kind] for kind in ("http", "mqtt")}
    rest = server.rest()
    load = bench.start("telemetry", *at(server), "--device-end", 20, "--in-flight", 5, "--duration", 3)
    eventually(lambda: is_sending(rest, 19))
    server.kill()
    server.start()
    run = bench.wait(load)
    assert run.code == 0, run.errors
    check_consistent(run)
    assert run.outcome["lostConnections"] == 20
    # Each was waiting for an answer.
    assert run.outcome["failed"] >= 20
    verification = run.verification
    assert verification["acknowledged"] == run.outcome["acknowledged"]
    assert (verification["missing"], verification["surplus"]) == (0, 0)
    assert run.outcome["acknowledged"] <= verification["stored"] <= run.outcome["sent"]
    assert any("connection that was lost" in text for text in run.report["remarks"])
    # The process whose time was taken has ended.
    assert "serverUsPerMessage" not in run.outcome


def test_what_is_missing_is_called_missing(bench, target):
    rest = target.rest()
    first = 100
    load = bench.start(
        *["telemetry", *at(target), "--device-start", first, "--device-end", first + 5, "--in-flight", 1],
        *["--duration", 1, *MISSING_AFTER],
    )
    eventually(lambda: is_sending(rest, first + 3))
    robbed = device(rest, first + 3)
    rest.delete(telemetry(robbed, "timeseries/delete"), keys="pulseCounter", deleteAllDataForKeys="true")
    run = bench.wait(load)
    assert run.code == WRONG
    check_consistent(run)
    assert run.verification["missing"] > 0
    assert run.verification["examples"] == [f"DW{first + 3:08}"]
    assert run.verification["stored"] + run.verification["missing"] == run.outcome["acknowledged"]
    assert "MISSING" in run.output


def test_a_report_is_kept_where_nothing_can_be_counted_any_more(bench, make_server):
    server = make_server().start()
    rest = server.rest()
    load = bench.start(
        *["telemetry", *at(server), "--device-end", 3, "--in-flight", 1, "--duration", 1, "--probes", 0],
        *MISSING_AFTER,
    )
    eventually(lambda: is_sending(rest, 2))
    server.kill()
    run = bench.wait(load)
    assert run.code == 1 and "cannot be reached" in run.errors
    check_consistent(run)
    assert run.outcome["acknowledged"] > 0 and run.outcome["lostConnections"] == 3
    assert "verification" not in run.report


# -- limit servers --


@contextlib.contextmanager
def limit_server(bench: Bench, *options):
    """A limit server and the address it tells."""
    process = subprocess.Popen(
        [BINARY, "bench", "limit", "--listen", "127.0.0.1:0", *options],
        env=environment({"TMPDIR": bench.temporary}),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=_die_with_parent,
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        yield process, split_address(line.split()[-1])
        assert process.poll() is None, "it ended by itself"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
        assert not any(bench.temporary.iterdir())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("options", [[], ["--fsync"]], ids=["plain", "fsync"])
def test_limit_servers_answer_ordinary_clients(bench, options):
    with limit_server(bench, *options) as (_, address):
        for version in ("3.1.1", "5.0"):
            with PahoDevice(address, version, username="anybody") as client:
                assert client.connect() == 0
                for qos in (0, 1, 2):
                    assert client.publish("some/topic", "x" * 1000, qos) == 0
        for qos in "012":
            said = subprocess.run(
                ["mosquitto_pub", "-h", address[0], "-p", str(address[1]), "-q", qos, "-t", "a", "-l"],
                input="one\ntwo\nthree\n",
                text=True,
                capture_output=True,
                timeout=20,
            )
            assert said.returncode == 0, said.stderr
        logs = [path.name for path in bench.temporary.rglob("*") if path.is_file()]
        assert logs == (["limit.log"] if options else [])


def test_the_limit_server_of_http_answers_curl(bench):
    with limit_server(bench, "--http") as (_, (host, port)):
        for path, status in [("telemetry", "200"), ("attributes", "200"), ("other", "404")]:
            url = f"http://{host}:{port}/api/v1/TOKEN/{path}"
            said = subprocess.run(
                ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "-d", '{"a":1}', url],
                text=True,
                capture_output=True,
                timeout=20,
            )
            assert said.stdout == status


# -- other commands --


def test_a_scenario_is_one_command_with_all_its_reports(bench, tmp_path):
    page = tmp_path / "report.html"
    run = bench("scenario", "A", "--scale", 0.02, "--duration", 2, "--html", page)
    check_all_stored(run)
    report, load = run.report, run.report["load"]
    assert (load["devices"], load["rate"], load["payload"]) == (100, 20, "SMART_METER")
    assert (run.outcome["sent"], run.outcome["unsent"]) == (40, 0)
    assert report["provisioning"]["created"] == 100
    assert report["limit"]["rate"] > 0 and report["limit"]["serverUsPerMessage"] >= 0
    assert report["queryable"]["count"] > 0
    assert sum(second["sent"] > 0 for second in report["seconds"]) == 2
    html = page.read_text()
    assert "scenario A, scaled by 0.02" in html and "<svg" in html and "are stored" in html


def test_scenarios_are_listed_with_and_without_being_asked(bench):
    listed = [run_cli("bench", "scenario", *name).stdout for name in ([], ["list"])]
    assert listed[0] == listed[1] and re.search(r"^A +5000 +1000 ", listed[0], re.M)


def test_idle_connections_are_counted_timed_and_weighed(bench, target):
    run = bench(
        *["connections", "--counts", "50,100", "--settle", 0, "--messages", 1, "--rest-url", target.http],
        *["--mqtt-port", target.mqtt_address[1], "--server-pid", target.process.pid],
    )
    assert run.code == 0, run.errors
    steps = run.report["steps"]
    assert [step["connections"] for step in steps] == [50, 100]
    assert all(step["connectionsPerSecond"] > 0 and step["anonymousBytes"] > 1 << 20 for step in steps)
    slope = (steps[1]["anonymousBytes"] - steps[0]["anonymousBytes"]) / 50
    assert run.report["bytesPerConnection"] == pytest.approx(slope)
    assert run.report["limitConnectionsPerSecond"] > 0


def test_the_variables_of_thingsboards_tool_are_honoured(bench, target):
    host, port = target.mqtt_address
    env = {
        "REST_URL": target.http,
        "REST_POOL_SIZE": 2,
        "MQTT_HOST": host,
        "MQTT_PORT": port,
        "MQTT_SSL_ENABLED": "false",
        "DEVICE_API": "MQTT",
        "DEVICE_COUNT": 10,
        "USE_INSTANCE_IDX": "true",
        "USE_INSTANCE_IDX_REGEX": "true",
        "INSTANCE_IDX_REGEX_SOURCE": "load-generator-30",
        "INSTANCE_IDX_REGEX": "([0-9]+)$",
        "DEVICE_CREATE_ON_START": "true",
        "DEVICE_PROFILE": "controllers",
        "DEVICE_DELETE_ON_COMPLETE": "true",
        "WARMUP_ENABLED": "true",
        "WARMUP_PACK_SIZE": 4,
        "TEST_PAYLOAD_TYPE": "INDUSTRIAL_PLC",
        "TEST_PAYLOAD_DATAPOINTS": 7,
        "TEST_SEQUENTIAL": "true",
        "MESSAGES_PER_SECOND": 200,
        "DURATION_IN_SECONDS": 0.5,
        "ALARMS_PER_SECOND": 0,
    }
    run = bench("telemetry", "--quiet", env=env)
    check_all_stored(run)
    load = run.report["load"]
    assert (load["devices"], load["points"], load["rate"], load["alarmsPerSecond"]) == (10, 7, 200, 0)
    assert run.outcome["sent"] == 100
    rest = target.rest()
    found = rest.get("/api/deviceProfileInfos", pageSize=10, page=0, textSearch="controllers").json()
    assert [profile["name"] for profile in found["data"]] == ["controllers"]
    for number in (300, 309):
        rest.get("/api/tenant/devices", deviceName=f"DW{number:08}", expect=404)
    # What is said on the command line comes first.
    run = bench("telemetry", "--quiet", "--rate", 100, env=env | {"TEST_PAYLOAD_TYPE": "SMART_TRACKER"})
    check_all_stored(run)
    assert (run.outcome["sent"], run.report["load"]["points"]) == (50, 5)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--rate", "0"], "--rate"),
        (["--duration", "-1"], "--duration"),
        (["--in-flight", "0"], "--in-flight"),
        (["--qos", "3"], "--qos"),
        (["--payload", "NOTHING"], "--payload"),
        (["--device-start", "9", "--device-end", "9"], "--device-end"),
        (["--own-server", "--mqtt-tls"], "--mqtt-tls"),
        (["--mqtt-tls", "--mqtt-ca", "/dev/null"], "--mqtt-ca"),
        (["--mqtt-host", "no.such.host.invalid"], "--mqtt-host"),
        (["--rest-url", "nowhere"], "--rest-url"),
        (["--html", "/no/such/folder/report.html"], "--html /no/such/folder/report.html"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(bench, options, name):
    run = bench("telemetry", *options)
    assert run.code == 2 and run.report is None
    assert name in run.errors, run.errors


def test_a_custom_expression_for_the_instance_is_refused(bench):
    run = bench("telemetry", env={"USE_INSTANCE_IDX_REGEX": "true", "INSTANCE_IDX_REGEX": "^node-([0-9]+)"})
    assert run.code == 2 and "INSTANCE_IDX_REGEX" in run.errors


# -- what is left behind --


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_load_that_is_broken_off_leaves_no_server_behind(bench, end):
    load = bench.start("telemetry", "--own-server", *LOAD, "--duration", 60, "--quiet")
    listening = eventually(lambda: next(bench.temporary.rglob("listening.json"), None))
    server = eventually(lambda: children(load.pid))
    load.send_signal(end)
    load.communicate(timeout=20)
    eventually(lambda: all(map(has_ended, server)))
    if end == signal.SIGKILL:
        # Nobody can clean up after that.
        assert load.returncode == -signal.SIGKILL
    else:
        assert load.returncode == 128 + end
        assert not listening.exists() and not any(bench.temporary.iterdir())
