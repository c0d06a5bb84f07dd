"""An installation moves between the databases it can be on, whole, and whatever cuts the copy off."""

import json
import signal
import subprocess
import uuid

import pytest

from harness.cassandra import cassandra_server
from harness.chains import SAVE, Chain, change_default_profile
from harness.kafka import kafka_server
from harness.load import Load, Tally
from harness.postgres import create_database, postgres_server
from harness.server import BINARY, StartFailed, environment, eventually, run_cli

# What is moved begins on files; the other places are named.
pytestmark = pytest.mark.files

BASE_TS = 1_600_000_000_000
MANY = 70
"""Values of an entity that take several pages where a row is a page."""


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as url:
        yield url


def table(settings: dict) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in settings.items() if not isinstance(value, dict)]


def config_file(path, data_dir, sections: dict[str, dict]) -> str:
    """Writes a configuration."""
    lines = [f"data-dir = {json.dumps(str(data_dir))}"]
    for name, settings in sections.items():
        lines += [f"[{name}]", *table(settings)]
    path.write_text("\n".join(lines))
    return str(path)


def variables(sections: dict[str, dict]) -> dict[str, str]:
    """The same settings as environment variables."""
    return {
        f"FIELDLINE_{name}_{key}".replace("-", "_").replace(".", "_").upper(): str(value)
        for name, settings in sections.items()
        for key, value in settings.items()
    }


class Home:
    """An installation: its databases, its data directory and a server on them."""

    def __init__(self, tmp_path, make_server, name: str, sections: dict[str, dict] | None = None, demo: bool = False):
        self.server = make_server(name, demo=demo, env=variables(sections or {}))
        self.config = config_file(tmp_path / f"{name}.toml", self.server.data_dir, sections or {})


def migrate(source: Home, target: Home, timeout: float = 120) -> subprocess.CompletedProcess:
    return run_cli("migrate", "--from", source.config, "--to", target.config, timeout=timeout)


def cut_off(source: Home, target: Home, lines: int) -> None:
    """Kills a copy that has said so many lines of how far it is."""
    command = [BINARY, "migrate", "--from", source.config, "--to", target.config]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as copy:
        for _ in range(lines):
            assert copy.stdout.readline()
        copy.kill()
    assert copy.returncode == -signal.SIGKILL


def rule(limit: int, spec: dict) -> dict:
    key = {"type": "TIME_SERIES", "key": "level"}
    predicate = {"type": "NUMERIC", "operation": "LESS", "value": {"defaultValue": limit}}
    condition = {"condition": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}], "spec": spec}
    return {"condition": condition, "schedule": None, "alarmDetails": None}


class Contents:
    """What an installation holds, and the same again somewhere else."""

    def __init__(self, server):
        rest = server.rest()
        often = {"type": "REPEATING", "predicate": {"defaultValue": 3}}
        alarm = {"id": "often", "alarmType": "Often", "createRules": {"MINOR": rule(20, often)}, "clearRule": None}
        change_default_profile(rest, profileData={"alarms": [alarm]})
        kept = {"persistAlarmRulesState": True, "fetchAlarmRulesStateOnStart": True}
        Chain().line((("profile.TbDeviceProfileNode", kept), "Success"), (SAVE, "Success")).save(rest, root=True)
        self.devices = [rest.create_device() for _ in range(12)]
        self.tallies: list[Tally] = []
        self.alarmed = self.devices[0]
        for level in (10, 11):
            self.level(rest, level)
        many = {f"key{number}": number for number in range(MANY)}
        for device in self.devices:
            path = f"/api/plugins/telemetry/DEVICE/{device.id}"
            rest.post(f"{path}/SERVER_SCOPE", many | {"note": "ä" * 300})
            rest.post(f"{path}/timeseries/ANY", {"ts": BASE_TS, "values": many})
        rest.post("/api/dashboard", {"title": "Kept", "configuration": {"widgets": {}}})
        self.seen = self.look(rest)

    def level(self, rest, value: int) -> None:
        body = {"level": value}
        rest.call("POST", f"/api/v1/{self.alarmed.token}/telemetry", json=body)

    def load(self, server, name: str) -> None:
        """Sends until the server is killed, so that its log has what is not stored."""
        tallies = [Tally(device, name) for device in self.devices]
        with Load(server, tallies, window=20, base_ts=BASE_TS + 10_000_000 * len(self.tallies), http=1) as load:
            eventually(lambda: load.acknowledged > 2_000)
            server.kill()
        self.tallies += tallies

    def look(self, rest) -> dict:
        lists = ("/api/tenant/devices", "/api/tenant/dashboards", "/api/ruleChains", "/api/customers", "/api/users")
        seen = {path: rest.get(path, pageSize=1000, page=0).json() for path in lists}
        for device in self.devices:
            path = f"/api/plugins/telemetry/DEVICE/{device.id}/values"
            attributes = rest.get(f"{path}/attributes/SERVER_SCOPE").json()
            # Whether a device is active changes by itself.
            seen[device.id] = sorted(
                (one["key"], str(one["value"])) for one in attributes if one["key"] == "note" or "key" in one["key"][:3]
            )
            seen[f"{device.id} latest"] = rest.latest(device.id, *(f"key{number}" for number in range(MANY)))
        return seen

    def check(self, server) -> None:
        rest = server.rest()
        for tally in self.tallies:
            eventually(lambda tally=tally: tally.check(rest.points(tally.device.id, tally.key)) or True)
        assert self.look(rest) == self.seen

    def check_state(self, server) -> None:
        """What an alarm rule has counted before goes on where it was."""
        rest = server.rest()
        path = f"/api/alarm/DEVICE/{self.alarmed.id}"
        assert rest.get(path, pageSize=10, page=0).json()["data"] == []
        self.level(rest, 12)
        eventually(lambda: [one["type"] for one in rest.get(path, pageSize=10, page=0).json()["data"]] == ["Often"])


SMALL = {"pack-bytes": "64KiB"}
"""So that rows are packed into chunks meanwhile."""


@pytest.mark.timeout(300)
def test_an_installation_moves_to_kafka_postgres_and_cassandra_and_back(make_server, tmp_path, postgres):
    with cassandra_server() as cassandra, kafka_server() as kafka:
        there = {
            "sql": {"url": create_database(postgres)},
            "series": {"kind": "cassandra"} | SMALL,
            "cassandra": {
                "nodes": cassandra.address,
                "keyspace": f"test_{uuid.uuid4().hex}",
                "replication": "SimpleStrategy:1",
            },
            "journal": {"kind": "kafka"},
            "journal.kafka": {"servers": kafka.address, "partitions": 6},
        }
        here = Home(tmp_path, make_server, "here", {"series": SMALL}, demo=True)
        contents = Contents(here.server.start())
        contents.load(here.server, "first")

        far = Home(tmp_path, make_server, "far", there)
        copied = migrate(here, far)
        assert copied.returncode == 0, copied.stdout + copied.stderr
        assert "all of it is there and the same" in copied.stdout
        far.server.start(within=90)
        contents.check(far.server)
        contents.load(far.server, "second")

        back = Home(tmp_path, make_server, "back")
        copied = migrate(far, back)
        assert copied.returncode == 0, copied.stdout + copied.stderr
        back.server.start()
        contents.check(back.server)
        contents.check_state(back.server)


@pytest.mark.timeout(180)
def test_a_copy_that_is_cut_off_goes_on_and_nobody_uses_half_of_it(make_server, tmp_path, postgres):
    here = Home(tmp_path, make_server, "here", {"series": SMALL}, demo=True)
    contents = Contents(here.server.start())
    contents.load(here.server, "first")
    there = {"sql": {"url": create_database(postgres)}, "series": {"kind": "sql"}}
    far = Home(tmp_path, make_server, "far", there)
    for lines in (1, 4, 9):
        cut_off(here, far, lines)
        with pytest.raises(StartFailed, match="has not copied all of"):
            far.server.start()
    other = Home(tmp_path, make_server, "other", demo=True)
    other.server.start()
    other.server.stop()
    refused = migrate(other, far)
    assert refused.returncode == 1 and "is being filled from" in refused.stderr
    copied = migrate(here, far)
    assert copied.returncode == 0, copied.stdout + copied.stderr
    far.server.start()
    contents.check(far.server)
    contents.check_state(far.server)


def test_what_cannot_be_copied_is_refused(make_server, tmp_path, postgres):
    here = Home(tmp_path, make_server, "here", demo=True)
    here.server.start()
    there = {"sql": {"url": create_database(postgres)}, "series": {"kind": "sql"}}
    far = Home(tmp_path, make_server, "far", there)
    used = migrate(here, far)
    assert used.returncode == 1 and "another process is using it" in used.stderr
    here.server.stop()
    same = migrate(here, here)
    assert same.returncode == 1 and "both name the same database of entities" in same.stderr
    missing = run_cli("migrate", "--from", str(tmp_path / "none.toml"), "--to", far.config)
    assert missing.returncode == 1 and "none.toml" in missing.stderr
    nothing = run_cli("migrate", "--from", str(tmp_path / "nothing"), "--to", far.config)
    assert nothing.returncode == 1 and "nothing/entities.db" in nothing.stderr
    assert not (tmp_path / "nothing").exists()
    copied = migrate(here, far)
    assert copied.returncode == 0, copied.stderr
    again = migrate(here, far)
    assert again.returncode == 1 and "has entities already: name an empty database" in again.stderr
    # The one that was copied is as it was.
    here.server.start()
    assert here.server.rest().get("/api/tenant/devices", pageSize=10, page=0).json()["totalElements"] > 0
