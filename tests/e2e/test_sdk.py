"""ThingsBoard's SDKs for Python, unchanged, against the product."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.chains import SAVE, SWITCH, Chain
from harness.people import create_tenancy
from harness.rest import telemetry, unique
from harness.server import eventually

SDK = Path(__file__).parent / "sdk"
PYTHON = SDK / ".venv/bin/python"


class Program:
    """A program on an SDK, told what to do by lines of JSON, and telling what has happened."""

    def __init__(self, script: str, address: tuple[str, int], token: str):
        command = [PYTHON, "-u", SDK / script, address[0], str(address[1]), token]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def tell(self, *command) -> None:
        print(json.dumps(command), file=self.process.stdin, flush=True)

    def heard(self, kind: str) -> list:
        """What it tells next."""
        line = self.process.stdout.readline()
        told, *what = json.loads(line)
        assert told == kind, line
        return what


@pytest.fixture
def rest(sysadmin):
    """An administrator of a tenant whose rule chain stores what comes and answers calls."""
    rest = create_tenancy(sysadmin).admin
    chain = Chain()
    ways = chain.node(SWITCH)
    chain.connect(ways, "Post telemetry", chain.node(SAVE))
    save = ("telemetry.TbMsgAttributesNode", {"scope": "CLIENT_SCOPE"})
    chain.connect(ways, "Post attributes", chain.node(save))
    chain.connect(ways, "RPC Request from Device", chain.node(("rpc.TbSendRPCReplyNode", {})))
    chain.connect(ways, "RPC Request to Device", chain.node(("rpc.TbSendRPCRequestNode", {"timeoutInSeconds": 60})))
    chain.save(rest, root=True)
    return rest


@pytest.mark.timeout(120)
def test_a_device_on_the_sdk(shared, rest):
    device = rest.create_device()
    with Program("device.py", shared.mqtt_address, device.token) as program:
        assert program.heard("connected") == []
        program.tell("telemetry", {"temperature": 21})
        assert program.heard("sent") == [0]
        program.tell("attributes", {"firmware": "1.2.3"})
        assert program.heard("sent") == [0]
        assert eventually(lambda: rest.values(device.id, "temperature") == [21])
        assert eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE").get("firmware") == "1.2.3")
        rest.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
        assert program.heard("all") == [{"interval": 30}]
        assert program.heard("interval") == [{"interval": 30}]
        program.tell("request", ["firmware"], ["interval"])
        assert program.heard("found") == [{"client": {"firmware": "1.2.3"}, "shared": {"interval": 30}}]
        answer = rest.post(f"/api/rpc/twoway/{device.id}", {"method": "set", "params": {"pin": 1}})
        assert answer.json() == {"echo": {"pin": 1}}
        assert program.heard("call") == [{"method": "set", "params": {"pin": 1}}]
        program.tell("call", "getTime", {"zone": "UTC"})
        assert program.heard("answer") == [{"method": "getTime", "params": {"zone": "UTC"}}]


@pytest.mark.timeout(120)
def test_a_gateway_on_the_sdk(shared, rest):
    gateway = rest.create_device(additionalInfo={"gateway": True})
    name = unique("meter")
    with Program("gateway.py", shared.mqtt_address, gateway.token) as program:
        assert program.heard("connected") == []
        program.tell("connect", name, "meters")
        assert program.heard("done") == []
        device = rest.device_by_name(name)
        assert device["type"] == "meters"
        device = device["id"]["id"]
        program.tell("telemetry", name, [{"ts": 1_700_000_000_000, "values": {"t": 1}}, {"t": 2}])
        assert program.heard("sent") == [0]
        program.tell("attributes", name, {"firmware": "1.2.3"})
        assert program.heard("sent") == [0]
        assert eventually(lambda: rest.values(device, "t") == [1, 2])
        assert eventually(lambda: rest.attributes(device, "CLIENT_SCOPE").get("firmware") == "1.2.3")
        rest.post(telemetry(device, "SHARED_SCOPE"), {"interval": 30})
        assert program.heard("changed") == [{"device": name, "data": {"interval": 30}}]
        program.tell("request", name, ["interval"])
        assert program.heard("found")[1]["value"] == 30
        answer = rest.post(f"/api/rpc/twoway/{device}", {"method": "set", "params": {"pin": 1}})
        assert answer.json() == {"echo": {"pin": 1}}
        assert program.heard("call") == [name, "set", {"pin": 1}]
        program.tell("disconnect", name)
        assert program.heard("done") == []
