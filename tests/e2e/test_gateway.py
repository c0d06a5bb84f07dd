"""ThingsBoard's IoT gateway, the real one, with its MQTT connector fed by a local Mosquitto."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from harness.chains import SAVE, SWITCH, Chain
from harness.people import create_tenancy
from harness.rest import Rest, telemetry
from harness.server import SYSADMIN, Server, _die_with_parent, eventually

GATEWAY = Path(__file__).parent / "gateway/.venv/bin/thingsboard-gateway"
MOSQUITTO = shutil.which("mosquitto") or "/usr/sbin/mosquitto"


class Field:
    """The plant: a Mosquitto, and somebody who hears everything that is published there."""

    def __init__(self, home: Path):
        home.mkdir()
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            (home / "mosquitto.conf").write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
            with (home / "log").open("wb") as log:
                self.process = subprocess.Popen(
                    [MOSQUITTO, "-c", home / "mosquitto.conf"],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    preexec_fn=_die_with_parent,
                )
            # Another program may have been faster to take the port.
            if eventually(lambda: self._is_up() or self.process.poll() is not None) and self.process.poll() is None:
                break
        self.heard: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self.client.on_message = self._on_message
        self.client.connect("127.0.0.1", self.port)
        self.client.loop_start()
        subscribed = threading.Event()
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.subscribe("to/#", 1)
        assert subscribed.wait(10)

    def _is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _on_message(self, _client, _userdata, message) -> None:
        self.heard.put((message.topic, message.payload))
        # What is asked on a topic is answered on the one beside it.
        if "/ask/" in message.topic:
            answer_topic = message.topic.replace("to/", "from/").replace("/ask/", "/answer/")
            self.client.publish(answer_topic, json.dumps({"heard": json.loads(message.payload)}), 1)

    def say(self, topic: str, body) -> None:
        """Publishes; returns once the broker has it."""
        self.client.publish(topic, json.dumps(body), 1).wait_for_publish(10)

    def next(self) -> tuple[str, bytes]:
        """What is published next for the devices."""
        return self.heard.get(timeout=20)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
        self.process.kill()
        self.process.wait()


class Gateway:
    """The gateway's process."""

    def __init__(self, home: Path, server: Server, token: str, field: Field):
        self.home = home
        configuration = home / "config"
        configuration.mkdir(parents=True)
        host, port = server.mqtt_address
        everything = {
            "thingsboard": {
                "host": host,
                "port": port,
                "remoteConfiguration": True,
                "remoteShell": False,
                "statistics": {"enable": True, "statsSendPeriodInSeconds": 2, "enableCustom": False},
                "checkConnectorsConfigurationInSeconds": 60,
                "handleDeviceRenaming": True,
                "minPackSendDelayMS": 10,
                "qos": 1,
                "security": {"type": "accessToken", "accessToken": token},
            },
            "storage": {
                "type": "sqlite",
                "data_file_path": f"{home}/data/data.db",
                "messages_ttl_check_in_hours": 1,
                "messages_ttl_in_days": 7,
                "max_read_records_count": 1000,
            },
            "grpc": {"enabled": False},
            "connectors": [{"name": "Plant", "type": "mqtt", "configuration": "plant.json"}],
        }
        (configuration / "tb_gateway.json").write_text(json.dumps(everything))
        (configuration / "plant.json").write_text(json.dumps(connector(field.port)))
        console = {"class": "logging.StreamHandler", "formatter": "plain", "level": 0, "stream": "ext://sys.stdout"}
        names = ("service", "connector", "converter", "tb_connection", "storage", "database", "extension")
        logs = {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "plain": {"class": "logging.Formatter", "format": "%(asctime)s %(name)s %(levelname)s %(message)s"}
            },
            "handlers": {"consoleHandler": console},
            "loggers": {name: {"handlers": ["consoleHandler"], "level": "INFO", "propagate": False} for name in names},
            "root": {"level": "ERROR", "handlers": ["consoleHandler"]},
        }
        (configuration / "logs.json").write_text(json.dumps(logs))
        (home / "data").mkdir()
        (home / "logs").mkdir()
        with (home / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [GATEWAY],
                cwd=home,
                env={"PATH": os.environ["PATH"], "HOME": str(home), "TB_GW_CONFIG_DIR": f"{configuration}/"},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,
            )

    def log(self) -> str:
        return (self.home / "log").read_text(errors="replace")

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def connector(port: int) -> dict:
    """What the gateway makes of the topics of the plant."""

    def named(after: str) -> dict:
        return {
            "deviceNameExpressionSource": "topic",
            "deviceNameExpression": f"(?<=from/)(.*?)(?=/{after})",
            "deviceProfileExpressionSource": "constant",
            "deviceProfileExpression": "Thermometer",
        }

    return {
        "broker": {
            "host": "127.0.0.1",
            "port": port,
            "clientId": "gateway",
            "version": 5,
            "maxMessageNumberPerWorker": 10,
            "maxNumberOfWorkers": 10,
            "security": {"type": "anonymous"},
        },
        "mapping": [
            {
                "topicFilter": "from/+/data",
                "subscriptionQos": 1,
                "converter": {
                    "type": "json",
                    "deviceInfo": named("data"),
                    "sendDataOnlyOnChange": False,
                    "timeout": 60000,
                    "attributes": [{"type": "string", "key": "model", "value": "${model}"}],
                    "timeseries": [
                        {"type": "integer", "key": "n", "value": "${n}", "tsField": "${at}"},
                        {"type": "double", "key": "temperature", "value": "${temperature}", "tsField": "${at}"},
                    ],
                },
            }
        ],
        "requestsMapping": {
            "connectRequests": [{"topicFilter": "from/+/connect", "deviceInfo": named("connect")}],
            "disconnectRequests": [{"topicFilter": "from/+/disconnect", "deviceInfo": named("disconnect")}],
            "attributeRequests": [],
            "attributeUpdates": [
                {
                    "deviceNameFilter": ".*",
                    "attributeFilter": ".*",
                    "topicExpression": "to/${deviceName}/${attributeKey}",
                    "valueExpression": '{"value": ${attributeValue}}',
                    "retain": False,
                }
            ],
            "serverSideRpc": [
                {
                    "type": "twoWay",
                    "deviceNameFilter": ".*",
                    "methodFilter": "ask",
                    "requestTopicExpression": "to/${deviceName}/ask/${requestId}",
                    "responseTopicExpression": "from/${deviceName}/answer/${requestId}",
                    "responseTopicQoS": 1,
                    "responseTimeout": 10000,
                    "valueExpression": "${params}",
                },
                {
                    "type": "oneWay",
                    "deviceNameFilter": ".*",
                    "methodFilter": "tell",
                    "requestTopicExpression": "to/${deviceName}/tell",
                    "valueExpression": "${params}",
                },
            ],
        },
    }


@pytest.fixture
def server(make_server):
    return make_server().start()


def tenant_of(server: Server) -> Rest:
    """An administrator of a tenant whose chain stores what comes and sends calls on."""
    rest = create_tenancy(server.rest(*SYSADMIN)).admin
    chain = Chain()
    ways = chain.node(SWITCH)
    chain.connect(ways, "Post telemetry", chain.node(SAVE))
    chain.connect(ways, "Post attributes", chain.node(("telemetry.TbMsgAttributesNode", {"scope": "CLIENT_SCOPE"})))
    chain.connect(ways, "RPC Request to Device", chain.node(("rpc.TbSendRPCRequestNode", {"timeoutInSeconds": 60})))
    chain.save(rest, root=True)
    return rest


def measured(n: int) -> dict:
    """What the boiler says; each at a time of its own, because a later value at the same time takes the place of the first."""
    at = datetime.fromtimestamp(1_700_000_000 + n, UTC).isoformat()
    return {"at": at, "n": n, "temperature": 20.5, "model": "T-1"}


def find(rest: Rest, name: str) -> dict | None:
    found = rest.get("/api/tenant/devices", deviceName=name, expect=None)
    return found.json() if found.status_code == 200 else None


@pytest.mark.timeout(180)
def test_the_gateway_and_the_plant_behind_it(tmp_path, server):
    rest = tenant_of(server)
    own = rest.create_device("gateway", additionalInfo={"gateway": True})
    field = Field(tmp_path / "field")
    gateway = Gateway(tmp_path / "gateway", server, own.token, field)
    try:
        walk(server, rest, own, field)
    except BaseException:
        print(gateway.log()[-6000:])
        raise
    finally:
        gateway.close()
        field.close()


def walk(server: Server, rest: Rest, own, field: Field) -> None:
    # It asks for its configuration and tells about itself; then the connector listens to the plant.
    eventually(lambda: rest.attributes(own.id, "CLIENT_SCOPE").get("Version"), within=40)
    sent = 0

    def arrives() -> dict | None:
        nonlocal sent
        field.say("from/boiler/data", measured(sent))
        sent += 1
        return find(rest, "boiler")

    boiler = eventually(arrives, within=40, every=0.2)
    assert boiler["type"] == "Thermometer"
    boiler = boiler["id"]["id"]
    eventually(lambda: rest.values(boiler, "n"))
    assert eventually(lambda: rest.attributes(boiler, "CLIENT_SCOPE").get("model") == "T-1")
    field.say("from/pump/connect", {})
    pump = eventually(lambda: find(rest, "pump"))["id"]["id"]

    # Back to the plant: shared attributes and calls.
    rest.post(telemetry(boiler, "SHARED_SCOPE"), {"interval": 30})
    assert field.next() == ("to/boiler/interval", b'{"value": 30}')
    answer = rest.post(f"/api/rpc/twoway/{boiler}", {"method": "ask", "params": {"pin": 7}})
    assert answer.json() == {"heard": {"pin": 7}}
    assert field.next()[0].startswith("to/boiler/ask/")
    rest.post(f"/api/rpc/oneway/{pump}", {"method": "tell", "params": {"on": True}})
    topic, body = field.next()
    assert (topic, json.loads(body)) == ("to/pump/tell", {"on": True})
    # The gateway itself is asked, too.
    devices = rest.post(f"/api/rpc/twoway/{own.id}", {"method": "gateway_devices", "params": {}}).json()
    assert "boiler" in json.dumps(devices)
    eventually(lambda: rest.latest(own.id))

    # The device gets another name: the gateway is told, and calls it so from then on, also to a server that never knew the
    # old one.
    renamed = rest.get(f"/api/device/{boiler}").json() | {"name": "kettle"}
    rest.post("/api/device", renamed)

    def notices() -> dict:
        calls = rest.get(f"/api/rpc/persistent/device/{own.id}", pageSize=10, page=0).json()["data"]
        return {call["request"]["body"]["method"]: call["status"] for call in calls}

    assert eventually(lambda: notices() == {"gateway_device_renamed": "DELIVERED"})

    # The server is away, and nothing of what the plant says is lost.
    before = rest.values(boiler, "n")
    server.env |= {f"FIELDLINE_{kind.upper()}_LISTEN": server.listening[kind] for kind in ("http", "mqtt")}
    server.kill()
    for n in range(1000, 1200):
        field.say("from/boiler/data", measured(n))
    server.start()
    wanted = set(before) | set(range(1000, 1200))

    def all_there() -> bool:
        missing = wanted - set(rest.values(boiler, "n"))
        assert not missing, f"missing: {sorted(missing)}"
        return True

    eventually(all_there, within=40)
    assert find(rest, "boiler") is None

    # A device behind it is deleted; the gateway goes on for the other.
    rest.delete(f"/api/device/{pump}")
    assert find(rest, "pump") is None
    assert eventually(lambda: notices().get("gateway_device_deleted") == "DELIVERED")
    field.say("from/boiler/data", measured(2000))
    assert eventually(lambda: 2000 in rest.values(boiler, "n"))
