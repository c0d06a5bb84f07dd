"""The files in `deploy/`, and Fieldline on servers of a moment."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import requests
import yaml

from harness.server import BINARY, REPOSITORY, environment, run_cli

DEPLOY = REPOSITORY / "deploy"
COMPOSE = sorted((DEPLOY / "compose").glob("*.yml"))
CONFIGURATIONS = sorted((DEPLOY / "config").glob("*.toml"))
URL = "postgres://fieldline:secret@127.0.0.1:5432/fieldline"


def seconds(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)(s|ms|m)?", text).groups()
    return float(number) * {None: 1, "s": 1, "ms": 0.001, "m": 60}[unit]


def stop_takes() -> float:
    printed = run_cli("config").stdout
    return seconds(re.search(r'^shutdown-timeout = "([^"]+)"', printed, re.M)[1])


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_compose_files_start_the_program_with_settings_that_it_knows(file):
    services = yaml.safe_load(file.read_text())["services"]
    program = services["fieldline"]
    assert (file.parent / program["build"]["context"] / program["build"]["dockerfile"]).is_file()
    assert seconds(program["stop_grace_period"]) > stop_takes()
    settings = {name: str(value) for name, value in program["environment"].items()}
    # What a person has to fill in; no password stands in the file.
    filled = {name: re.sub(r"\$\{\w+[^}]*\}", "secret", value) for name, value in settings.items()}
    assert all(filled[name] != settings[name] for name in settings if re.search("PASSWORD|_URL", name))
    printed = run_cli("config", env=filled)
    assert printed.returncode == 0, printed.stderr
    for name in filled:
        assert name in printed.stdout, f"{name} has no effect"
    others = set(services) - {"fieldline"}
    assert set(program.get("depends_on", {})) == others
    for name in others:
        # A name and a version, of nobody's own registry.
        assert re.fullmatch(r"[a-z]+(/[a-z]+)?:[\d.]+", services[name]["image"])
    volumes = yaml.safe_load(file.read_text())["volumes"]
    assert {volume.split(":")[0] for one in services.values() for volume in one["volumes"]} == set(volumes)


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.name)
def test_configurations_are_accepted(file):
    assert [one.stem for one in CONFIGURATIONS] == [one.stem for one in COMPOSE]
    env = {} if file.stem == "embedded" else {"FIELDLINE_SQL_URL": URL}
    printed = run_cli("config", "--config", str(file), env=env)
    assert printed.returncode == 0, printed.stderr
    assert "secret" not in file.read_text()


def test_the_unit_is_one(tmp_path):
    unit = (DEPLOY / "systemd/fieldline.service").read_text()
    assert seconds(re.search(r"^TimeoutStopSec=(\w+)$", unit, re.M)[1]) > stop_takes()
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    (tmp_path / "fieldline.service").write_text(unit.replace("/usr/local/bin/fieldline", str(BINARY)))
    drop_ins = tmp_path / "fieldline.service.d"
    drop_ins.mkdir()
    shutil.copy(DEPLOY / "systemd/fieldline-servers.conf", drop_ins)
    checked = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "fieldline.service"], text=True, capture_output=True, timeout=60
    )
    complaints = [line for line in checked.stderr.splitlines() if "fieldline" in line]
    assert complaints == []


@pytest.mark.timeout(240)
def test_run_scale_serves_on_all_servers_and_ends_with_them(tmp_path):
    services = Path(REPOSITORY) / "tests/services"
    log = (tmp_path / "log").open("w+")
    running = subprocess.Popen(
        [services / f"with-{name}.sh" for name in ("kafka", "postgres", "cassandra")]
        + [services / "run-scale.sh", BINARY],
        env=environment({"FIELDLINE_HTTP_LISTEN": "127.0.0.1:0", "FIELDLINE_MQTT_LISTEN": "127.0.0.1:0"}),
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    try:
        said = ""
        while (found := re.search(r"HTTP +(http://\S+)", said)) is None:
            line = running.stdout.readline()
            assert line != "", (tmp_path / "log").read_text()
            said += line
        for server in ("Kafka at 127.0.0.1:", "PostgreSQL at postgres", "Cassandra at 127.0.0.1:"):
            assert server in said
        url = found[1]
        sent = requests.post(f"{url}/api/v1/A1_TEST_TOKEN/telemetry", json={"temperature": 21.5}, timeout=30)
        assert sent.status_code == 200, sent.text
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(60)
