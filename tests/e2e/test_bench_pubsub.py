"""`fieldline bench pubsub`: publishers and subscribers on a broker of somebody else, and what it loses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import paho.mqtt.client as mqtt
import pytest

from harness.bench import WRONG, Bench
from harness.mosquitto import Mosquitto
from harness.server import eventually, run_cli

# As tb-mqtt-perf-tests reads it.
FILE = {
    "publisherGroups": [
        {"id": 1, "publishers": 20, "topicPrefix": "a/1/", "clientIdPrefix": None, "isDebugEnabled": False},
        {"id": 2, "publishers": 1, "topicPrefix": "a/2/"},
    ],
    "subscriberGroups": [
        {"id": 1, "subscribers": 3, "topicFilter": "a/#", "expectedPublisherGroups": [1, 2]},
        {
            "id": 2,
            "subscribers": 4,
            "topicFilter": "$share/together/a/1/+",
            "expectedPublisherGroups": [1],
            "persistentSessionInfo": {"clientType": "APPLICATION"},
        },
        {
            "id": 3,
            "subscribers": 2,
            "topicFilter": "a/2/0",
            "expectedPublisherGroups": [2],
            "persistentSessionInfo": {"clientType": "DEVICE"},
            "clientIdPrefix": "device_",
        },
    ],
    "dummyClients": 5,
    "secondsToRun": 2,
    "additionalSecondsToWait": 5,
    "maxMsgsPerPublisherPerSecond": 10,
    "publisherQosValue": 1,
    "subscriberQosValue": 2,
    "minPayloadSize": 300,
    "telemetryKeys": ["lat", "long"],
    "maxConcurrentOperations": 4,
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")


@pytest.fixture
def make_broker(tmp_path: Path):
    brokers = []

    def make(**settings: object) -> Mosquitto:
        broker = Mosquitto(tmp_path / f"mosquitto{len(brokers)}", persistence="false", **settings)
        brokers.append(broker)
        return broker.start()

    yield make
    for broker in brokers:
        broker.kill()


@pytest.fixture
def patient(make_broker) -> Mosquitto:
    """A broker that keeps what its subscribers have not taken yet."""
    return make_broker(max_queued_messages=0, max_inflight_messages=1000)


def at(broker: Mosquitto) -> list:
    return ["--mqtt-host", "127.0.0.1", "--mqtt-port", broker.port, "--quiet"]


def joins(broker: Mosquitto, client_id: str) -> bool:
    """Whether a client of this name finds a session that was kept for it."""
    present = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, clean_session=False)
    client.on_connect = lambda _client, _data, flags, _reason, _properties: present.append(flags.session_present)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    eventually(lambda: present)
    client.disconnect()
    client.loop_stop()
    return present[0]


def only_round(run) -> dict:
    [broker] = run.report["brokers"]
    [outcome] = broker["rounds"]
    return outcome


@pytest.mark.parametrize("qos", [None, 0, 2])
def test_a_file_of_the_tool_is_run_and_each_message_is_counted(bench, tmp_path, patient, qos):
    file, page = tmp_path / "load.json", tmp_path / "report.html"
    file.write_text(json.dumps(FILE))
    options = [] if qos is None else ["--qos", qos]
    run = bench("pubsub", "--config", file, *at(patient), *options, "--html", page)
    assert run.code == 0
    outcome = only_round(run)
    # 21 publishers, 20 messages each; three receive all of them, those of a shared subscription 400 together, two 20 each.
    assert outcome["sent"] == outcome["acknowledged"] == 420
    assert outcome["delivered"] == 3 * 420 + 400 + 2 * 20
    faults = ("failed", "unsent", "lost", "duplicated", "unexpected", "lostConnections")
    assert {name: outcome[name] for name in faults} == dict.fromkeys(faults, 0)
    assert outcome["delivery"]["count"] == outcome["delivered"]
    assert outcome["acknowledgement"]["count"] == 420
    assert sum(round(second["delivered"]) for second in outcome["seconds"]) > 0
    assert run.report["config"]["publisherGroups"][0]["topicPrefix"] == "a/1/"
    ElementTree.fromstring(page.read_text().partition("\n")[2])
    assert patient.address in page.read_text()


def test_a_broker_is_loaded_over_tls(bench, make_broker, authority):
    identity = authority.issue("localhost", server=True)
    broker = make_broker(certfile=identity.certificate, keyfile=identity.key)
    secure = ["--mqtt-tls", "--mqtt-ca", authority.path, "--qos", 2]
    where = ["--mqtt-host", "localhost", "--mqtt-port", broker.port, "--quiet"]
    run = bench("pubsub", "fan-out", "--scale", 0.02, "--duration", 1, *where, *secure)
    outcome = only_round(run)
    assert run.code == 0
    # More than is written or read at once.
    assert (outcome["acknowledged"], outcome["delivered"]) == (50, 50 * 20)
    large = bench("pubsub", "fan-in", "--scale", 0.005, "--duration", 1, "--payload-bytes", 400_000, *where, *secure)
    assert large.code == 0 and only_round(large)["delivered"] == 50


def test_messages_are_the_tools_json(bench, patient):
    seen = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_message = lambda _client, _data, message: seen.append((message.topic, json.loads(message.payload)))
    client.connect("127.0.0.1", patient.port)
    client.loop_start()
    subscribed = []
    client.on_subscribe = lambda *_: subscribed.append(True)
    client.subscribe("europe/#", 1)
    eventually(lambda: subscribed)
    env = {"TEST_RUN_DEFAULT_PUB_SUB_GROUPS_COUNT": "3", "TEST_RUN_DEFAULT_SECONDS_TO_RUN": "1"}
    env |= {"MQTT_HOST": "127.0.0.1", "MQTT_PORT": str(patient.port), "TEST_RUN_PUBLISHER_WARMUP_COUNT": "2"}
    run = bench("pubsub", "p2p", "--quiet", env=env)
    assert run.code == 0 and only_round(run)["delivered"] == 3
    eventually(lambda: len(seen) == 9)
    client.disconnect()
    client.loop_stop()
    assert {topic for topic, _ in seen} == {f"europe/ua/kyiv/{pair}/0" for pair in range(3)}
    assert sorted(message["warmUpMsg"] for _, message in seen) == [False] * 3 + [True] * 6
    assert all(message["createTime"] > 1_600_000_000_000 for _, message in seen)


def test_what_a_broker_drops_is_told(bench, make_broker):
    forgetful = make_broker(max_queued_messages=1, max_inflight_messages=1)
    run = bench("pubsub", "fan-in", "--scale", 0.1, "--in-flight", 20, "--duration", 1, *at(forgetful))
    outcome = only_round(run)
    assert run.code == WRONG
    assert outcome["lost"] > 0 and outcome["lost"] + outcome["delivered"] == outcome["acknowledged"]


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_subscribers_that_were_away_get_what_was_kept_for_them(bench, patient, version):
    run = bench("pubsub", "offline", "--scale", 0.1, "--duration", 1, "--mqtt-version", version, *at(patient))
    outcome = only_round(run)
    assert run.code == 0
    assert outcome["delivered"] == outcome["acknowledged"] == 100
    assert outcome["delivery"]["max"] > 500_000, "they were away for most of the second"
    # The sessions are gone.
    for pair in range(10):
        assert not joins(patient, f"test_sub_client_{pair}_0")


def test_what_topics_retain_comes_to_who_asks_later_and_is_cleared(bench, patient):
    run = bench("pubsub", "retained", "--scale", 0.2, *at(patient))
    outcome = only_round(run)
    assert run.code == 0
    assert (outcome["sent"], outcome["delivered"]) == (2_000, 2 * 2_000)
    # A message of our own comes after what the topics retain, of which there is nothing.
    seen = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_message = lambda _client, _data, message: seen.append(message.topic)
    client.on_subscribe = lambda *_: client.publish("retained/end", "end", 1)
    client.connect("127.0.0.1", patient.port)
    client.subscribe("retained/#", 1)
    client.loop_start()
    eventually(lambda: seen)
    client.disconnect()
    client.loop_stop()
    assert seen == ["retained/end"]


def test_brokers_are_loaded_in_turn_and_stand_side_by_side(bench, make_broker, patient):
    other = make_broker(max_queued_messages=0)
    run = bench(
        "pubsub",
        "fan-out",
        "--scale",
        0.01,
        "--duration",
        1,
        "--rounds",
        2,
        *at(patient),
        "--compare",
        f"other={other.address}",
    )
    assert run.code == 0
    assert [broker["name"] for broker in run.report["brokers"]] == [patient.address, "other"]
    assert [len(broker["rounds"]) for broker in run.report["brokers"]] == [2, 2]
    assert patient.address in run.output and "other" in run.output
    assert all(line.count("/s") >= 2 for line in run.output.splitlines() if line.startswith("deliveries"))


# With sessions that cannot be cleared afterwards, too.
@pytest.mark.parametrize(("load", "clients", "messages"), [("fan-in", 101, 4_000), ("p2p", 20, 40)])
def test_a_broker_that_dies_ends_the_load_in_order(bench, patient, load, clients, messages):
    options = ["--scale", 0.1, "--duration", 4, "--qos", 1]
    process = bench.start("pubsub", load, *options, *at(patient)[:-1])
    for line in process.stderr:
        if "delivered" in line:
            break
    patient.kill()
    run = bench.wait(process)
    outcome = only_round(run)
    assert outcome["lostConnections"] == clients
    assert outcome["acknowledged"] < messages == outcome["sent"] + outcome["unsent"]
    assert run.code in (0, WRONG)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"publishers": 3}, "unknown field"),
        ({"subscriberQosValue": 3}, "a QoS is 0, 1 or 2"),
        ({"dummyClients": 2_000_000}, "are more than 1000000"),
        ({"publisherGroups": []}, "there is no publisher"),
    ],
)
def test_a_load_that_cannot_be_run_is_refused(tmp_path, change, why):
    file = tmp_path / "load.json"
    file.write_text(json.dumps(FILE | change))
    done = run_cli("bench", "pubsub", "--config", file)
    assert done.returncode == 2 and why in done.stderr
