"""What administrators see of the publish/subscribe broker and change of it, over REST and on the command line."""

from __future__ import annotations

import json
import queue

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from harness.broker import BrokerClient, broker_settings
from harness.faults import Faults
from harness.people import create_tenancy
from harness.rest import Rest, now_ms, unique
from harness.server import SYSADMIN, Server, eventually, run_cli, split_address

PAGE = {"pageSize": 100, "page": 0}
WAIT_S = 10


class Client:
    """A client of MQTT 5 whose session outlives its connection if it says for how long."""

    def __init__(self, server: Server, client_id: str, expiry_s: int = 0, **options):
        self.client_id = client_id
        self.messages: queue.Queue = queue.Queue()
        self._connected: queue.Queue = queue.Queue()
        self._subscribed: queue.Queue = queue.Queue()
        self._left: queue.Queue = queue.Queue()
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5, reconnect_on_failure=False
        )
        self.client.username_pw_set("me", "secret")
        self.client.on_connect = lambda _c, _u, _flags, code, _p: self._connected.put(code)
        self.client.on_disconnect = lambda _c, _u, _flags, code, _p: self._left.put(code)
        self.client.on_subscribe = lambda _c, _u, _mid, codes, _p: self._subscribed.put(codes)
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        if will := options.get("will"):
            self.client.will_set(will, b"gone", qos=1)
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = expiry_s
        host, port = split_address(server.listening["broker"])
        self.client.connect(host, port, keepalive=30, clean_start=expiry_s == 0, properties=properties)
        self.client.loop_start()
        assert self._connected.get(timeout=WAIT_S).value == 0

    def subscribe(self, *filters: str, qos: int = 1) -> None:
        for one in filters:
            self.client.subscribe(one, qos)
            assert [code.value for code in self._subscribed.get(timeout=WAIT_S)] == [qos]

    def publish(self, topic: str, payload: bytes | str, qos: int = 1, *, retain: bool = False) -> None:
        self.client.publish(topic, payload, qos, retain=retain).wait_for_publish(WAIT_S)

    def left(self):
        """The reason for which the connection has ended."""
        return self._left.get(timeout=WAIT_S)

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    settings = {"FIELDLINE_BROKER_LISTEN": "127.0.0.1:0", "FIELDLINE_BROKER_ACCESS": "anyone"}
    server = Server(tmp_path_factory.mktemp("broker-admin"), env=settings)
    with server.lent():
        yield server


@pytest.fixture
def sysadmin(server) -> Rest:
    return server.rest(*SYSADMIN)


@pytest.fixture
def join(server):
    """Makes clients that leave with the test."""
    clients: list[Client] = []

    def connect(client_id: str | None = None, expiry_s: int = 0, **options) -> Client:
        clients.append(Client(server, client_id or unique("client"), expiry_s, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.leave()


def cli(server: Server, *arguments: str) -> str:
    account = {"REST_URL": server.http, "REST_USERNAME": SYSADMIN[0], "REST_PASSWORD": SYSADMIN[1]}
    done = run_cli("broker", *arguments, env=account)
    assert done.returncode == 0, done.stderr
    return done.stdout


def session(sysadmin: Rest, client_id: str) -> dict:
    return sysadmin.get("/api/client-session", clientId=client_id).json()


def rows(sysadmin: Rest, path: str, **params) -> list[dict]:
    return sysadmin.get(path, **(PAGE | params)).json()["data"]


def names(found: list[dict]) -> list[str]:
    return [row["clientId"] for row in found]


def test_the_system_says_whether_the_broker_runs(sysadmin, make_server):
    assert sysadmin.get("/api/system/params").json()["hasMqttBroker"] is True
    without = make_server("without").start()
    assert without.rest().get("/api/system/params").json()["hasMqttBroker"] is False


def test_sessions_are_listed_and_shown(server, sysadmin, join):
    prefix = unique("seen")
    here, away = join(f"{prefix}-here"), join(f"{prefix}-away", 600)
    here.subscribe("a/#", "b", qos=2)
    away.subscribe("c")
    away.leave()
    eventually(lambda: session(sysadmin, away.client_id)["connectionState"] == "DISCONNECTED")

    found = rows(sysadmin, "/api/client-session", textSearch=prefix.upper(), sortProperty="clientId", sortOrder="DESC")
    assert names(found) == [here.client_id, away.client_id]
    assert found[0]["connectionState"] == "CONNECTED" and found[0]["subscriptionsCount"] == 2
    assert found[0]["clientIpAdr"] == "127.0.0.1" and found[0]["cleanStart"] is True
    assert found[0]["connectedAt"] > 0 and found[0]["disconnectedAt"] == 0
    assert found[1]["disconnectedAt"] >= found[1]["connectedAt"]

    one = session(sysadmin, here.client_id)
    assert [row["topicFilter"] for row in one["subscriptions"]] == ["a/#", "b"]
    assert one["subscriptions"][0]["qos"] == "EXACTLY_ONCE" and one["keepAliveSeconds"] == 30
    assert one["sessionId"] == found[0]["sessionId"] and one["sessionEndTs"] == -1
    gone = session(sysadmin, away.client_id)
    assert gone["sessionExpiryInterval"] == 600
    assert gone["sessionEndTs"] == gone["disconnectedAt"] + 600_000
    details = sysadmin.get("/api/client-session/details", clientId=here.client_id).json()
    assert details["mqttVersion"] == "5.0" and details["username"] == "me"

    of_prefix = {"textSearch": prefix}
    for params, expected in (
        ({"connectedStatusList": "DISCONNECTED"}, [away]),
        ({"connectedStatusList": ["CONNECTED", "DISCONNECTED"]}, [away, here]),
        ({"cleanStartList": "true"}, [here]),
        ({"subscriptions": 1, "subscriptionOperation": "GREATER"}, [here]),
        ({"clientTypeList": "APPLICATION"}, []),
        ({"clientIpAddress": "127.0"}, [away, here]),
        ({"startTime": 0, "endTime": 1}, []),
    ):
        found = rows(sysadmin, "/api/v2/client-session", **of_prefix, **params)
        assert names(found) == [client.client_id for client in expected], params
    counts = sysadmin.get("/api/client-session/info").json()
    assert counts["totalCount"] == counts["connectedCount"] + counts["disconnectedCount"]
    assert counts["disconnectedCount"] >= 1
    sysadmin.get("/api/client-session", clientId="nobody", expect=404)


def test_a_client_is_disconnected_and_its_session_removed(sysadmin, join):
    watcher = join()
    watcher.subscribe("wills/+")
    client = join(expiry_s=600, will=f"wills/{unique('will')}")
    client.subscribe("x")
    ids = {"clientId": client.client_id, "sessionId": session(sysadmin, client.client_id)["sessionId"]}
    answer = sysadmin.delete("/api/client-session/remove", **ids, expect=409).json()
    assert answer["message"] == "Client is currently connected"
    sysadmin.delete("/api/client-session/disconnect", **(ids | {"clientId": watcher.client_id}), expect=404)

    sysadmin.delete("/api/client-session/disconnect", **ids)
    assert client.left().value == 0x98
    assert watcher.messages.get(timeout=WAIT_S).payload == b"gone"
    eventually(lambda: session(sysadmin, client.client_id)["connectionState"] == "DISCONNECTED")
    sysadmin.delete("/api/client-session/disconnect", **ids)
    sysadmin.delete("/api/client-session/remove", **ids)
    sysadmin.get("/api/client-session", clientId=client.client_id, expect=404)
    assert sysadmin.get("/api/subscription", clientId=client.client_id).json() == []


def test_subscriptions_are_replaced_and_survive_a_kill(server, sysadmin, join):
    client, publisher = join(expiry_s=600), join()
    client.subscribe("old", "kept")
    options = {"noLocal": False, "retainAsPublish": True, "retainHandling": 2}
    new = {"topicFilter": "new/+", "qos": "AT_LEAST_ONCE", "options": options, "subscriptionId": 7}
    kept = {"topicFilter": "kept", "qos": "AT_LEAST_ONCE", "options": None, "subscriptionId": None}
    body = {"clientId": client.client_id, "subscriptions": [new, kept]}
    assert sysadmin.post("/api/subscription", body).json() == body
    for topic in ("old", "new/1", "kept"):
        publisher.publish(topic, topic)
    received = [client.messages.get(timeout=WAIT_S) for _ in range(2)]
    assert {message.topic for message in received} == {"new/1", "kept"}
    assert client.messages.empty()

    wrong = {"topicFilter": "a/#/b", "qos": "AT_MOST_ONCE"}
    sysadmin.post("/api/subscription", body | {"subscriptions": [wrong]}, expect=400)
    sysadmin.post("/api/subscription", body | {"clientId": "nobody"}, expect=404)
    before = session(sysadmin, client.client_id)
    server.kill()
    server.start()
    sysadmin = server.rest(*SYSADMIN)
    after = session(sysadmin, client.client_id)
    for name in ("subscriptions", "sessionId", "clientIpAdr", "keepAliveSeconds", "connectedAt"):
        assert after[name] == before[name]
    assert after["connectionState"] == "DISCONNECTED"


def test_subscriptions_of_all_are_found(server, sysadmin, join):
    place = unique("place")
    clients = sorted((join() for _ in range(2)), key=lambda client: client.client_id)
    for client in clients:
        client.subscribe(f"$share/group/{place}/+")
    clients[0].subscribe(f"{place}/1", qos=2)
    found = rows(sysadmin, "/api/subscription/all", topic=f"{place}/1")
    mine = [row for row in found if place in row["subscription"]["topicFilter"]]
    assert len(mine) == 3
    found = rows(sysadmin, "/api/subscription/all", topicFilter=place.upper(), qosList="2")
    assert names(found) == [clients[0].client_id]
    (group,) = rows(sysadmin, "/api/subscription", textSearch=place, shareNameSearch="group")
    assert group["topicFilter"] == f"{place}/+" and len(group["clients"]) == 2
    own = sysadmin.get("/api/subscription", clientId=clients[1].client_id).json()
    assert [(row["shareName"], row["topicFilter"]) for row in own] == [("group", f"{place}/+")]
    listed = json.loads(cli(server, "subscriptions", "--topic", f"{place}/1", "--json"))["data"]
    assert {row["clientId"] for row in listed} >= {client.client_id for client in clients}
    table = cli(server, "subscriptions", "--client", clients[0].client_id).splitlines()
    assert table[0].split() == ["FILTER", "QOS", "OPTIONS"] and len(table) == 3


def test_retained_messages_are_found_and_stay_deleted(server, sysadmin, join):
    place, publisher = unique("retained"), join()
    for number, qos in enumerate((0, 1, 2)):
        publisher.publish(f"{place}/{number}", f"Value {number}", qos, retain=True)
    of_place = {"topicName": place}
    found = eventually(lambda: rows(sysadmin, "/api/retained-msg/v2", **of_place))
    assert [row["topic"] for row in found] == [f"{place}/{number}" for number in range(3)]
    assert [row["qos"] for row in found] == [0, 1, 2] and found[0]["createdTime"] > 0
    for params, expected in (({"qosList": "1,2"}, 2), ({"payload": "value 2"}, 1), ({"startTime": 0, "endTime": 1}, 0)):
        assert len(rows(sysadmin, "/api/retained-msg/v2", **of_place, **params)) == expected, params
    one = sysadmin.get("/api/retained-msg", topicName=f"{place}/1").json()
    assert one["payload"] == "Value 1" and one["userProperties"] is None
    assert cli(server, "retained", f"{place}/1") == "Value 1\n"
    assert f"{place}/2" in cli(server, "retained", "--limit", "1000")

    sysadmin.delete("/api/retained-msg", topicName=f"{place}/1")
    sysadmin.delete("/api/retained-msg", topicName=f"{place}/1", expect=404)
    server.kill()
    server.start()
    found = rows(server.rest(*SYSADMIN), "/api/retained-msg/v2", **of_place)
    assert [row["topic"] for row in found] == [f"{place}/0", f"{place}/2"]


def test_a_will_is_as_old_as_its_publication(server, sysadmin, join):
    topic, publisher = unique("will"), join()
    client = BrokerClient(server.broker_address, will={"topic": f"{topic}/will", "payload": "gone", "retain": True})
    assert client.connect() == 0
    publisher.publish(f"{topic}/before", "still there", retain=True)
    client.vanish()
    found = eventually(lambda: len(found := rows(sysadmin, "/api/retained-msg/v2", topicName=topic)) == 2 and found)
    created = {row["topic"]: row["createdTime"] for row in found}
    assert created[f"{topic}/will"] >= created[f"{topic}/before"]


def test_queues_and_statistics_count(server, sysadmin, join):
    topic, publisher, away = unique("topic"), join(), join(expiry_s=600)
    away.subscribe(topic)
    away.leave()
    eventually(lambda: session(sysadmin, away.client_id)["connectionState"] == "DISCONNECTED")
    for _ in range(3):
        publisher.publish(topic, b"1234")
    (own,) = rows(sysadmin, "/api/client-session/queues", textSearch=away.client_id)
    assert own["queuedMsgs"] == 3 and own["droppedMsgs"] == 0
    table = [line.split() for line in cli(server, "queues", "--limit", "1000").splitlines()]
    assert [away.client_id, "DISCONNECTED", "DEVICE", "3", "0"] in table

    def latest(entity: str, **params) -> dict:
        return sysadmin.get("/api/timeseries/latest", entityId=entity, **params).json()

    of_publisher = latest(publisher.client_id)
    assert of_publisher["receivedPubMsgs"][0]["value"] == 3
    assert of_publisher["qos1ReceivedPubMsgs"][0]["value"] == 3
    total = latest("total")
    assert total["sessions"][0]["value"] >= 2 and total["subscriptions"][0]["value"] >= 1
    assert latest("total", keys="sessions", useStrictDataTypes="false").keys() == {"sessions"}
    assert latest("nobody") == {}


@pytest.mark.files
def test_each_minute_of_the_statistics_is_stored(make_server, tmp_path):
    faults = Faults(tmp_path)
    began_ms = now_ms()
    server = make_server(env=broker_settings(sys_interval="0s") | faults.env).start()
    rest = server.rest(*SYSADMIN)
    publisher = Client(server, "publisher")
    for _ in range(3):
        publisher.publish("a", b"1234")
    # Whichever minute it is, it is over.
    faults.set_clock(90)

    def values(keys: str, entity: str = "total", **params) -> dict:
        whole = {"startTs": began_ms - 60_000, "endTs": began_ms + 600_000} | params
        return rest.get(f"/api/timeseries/{entity}/values", keys=keys, **whole).json()

    def summed(key: str) -> int:
        # A minute may have ended between two messages.
        (point,) = values(key, agg="SUM", interval=660_000)[key]
        return point["value"]

    eventually(lambda: summed("incomingMsgs") == 3)
    assert summed("droppedMsgs") == 3, "nobody has subscribed"
    assert summed("processedBytes") == summed("inboundPayloadTraffic") == 12
    newest = values("sessions,incomingMsgs", limit=1)
    (last,) = newest["sessions"]
    assert last["value"] == 1 and last["ts"] % 60_000 == 0 and newest["incomingMsgs"][0]["ts"] == last["ts"]
    assert values("sessions", "fieldline", limit=1, useStrictDataTypes="false")["sessions"][0]["value"] == "1"
    assert values("receivedPubMsgs", "publisher") == {}
    publisher.leave()

    server.kill()
    server.start()
    rest = server.rest(*SYSADMIN)
    assert summed("incomingMsgs") == 3
    rest.delete("/api/timeseries/fieldline/delete", keys="incomingMsgs", deleteAllDataForKeys="true")
    assert values("incomingMsgs,sessions", endTs=last["ts"] + 1).keys() == {"sessions"}


def test_a_history_that_cannot_be_is_refused(sysadmin):
    whole = {"keys": "sessions", "startTs": 0, "endTs": 1}
    for wrong in ({"keys": ""}, {"startTs": "now"}, {"agg": "MEDIAN"}, {"limit": 0}, {"orderBy": "UP"}):
        answer = sysadmin.get("/api/timeseries/total/values", **(whole | wrong), expect=400).json()
        assert next(iter(wrong)) in answer["message"]
    path = "/api/timeseries/total/delete"
    assert "startTs" in sysadmin.delete(path, keys="sessions", expect=400).json()["message"]
    assert sysadmin.get("/api/timeseries/nobody/values", **whole).json() == {}


def test_the_command_line_shows_and_disconnects_clients(server, sysadmin, join):
    client = join("terminal\x1b[31m-" + unique("red"))
    shown = cli(server, "sessions", "--limit", "1000")
    assert shown.splitlines()[0].split()[:2] == ["CLIENT", "STATE"]
    assert "\\u{1b}[31m" in shown and "\x1b" not in shown
    one = cli(server, "sessions", "--client", client.client_id)
    assert "CONNECTED" in one and "user name    me" in one
    as_json = json.loads(cli(server, "sessions", "--client", client.client_id, "--json"))
    assert as_json["clientId"] == client.client_id
    assert cli(server, "disconnect", client.client_id).endswith(" is disconnected\n")
    assert client.left().value == 0x98

    refused = run_cli(
        "broker", "disconnect", "nobody", "--url", server.http, "--username", SYSADMIN[0], "--password", SYSADMIN[1]
    )
    assert refused.returncode == 1 and "404" in refused.stderr


def test_only_system_administrators_see_the_broker(sysadmin):
    tenancy = create_tenancy(sysadmin)
    for rest in (tenancy.admin, tenancy.customer_user):
        for path in ("/api/client-session", "/api/subscription/all", "/api/retained-msg"):
            rest.get(path, **PAGE, expect=403)
        rest.post("/api/subscription", {"clientId": "a", "subscriptions": []}, expect=403)
        rest.delete("/api/client-session/disconnect", clientId="a", sessionId="a", expect=403)
        rest.get("/api/timeseries/total/values", keys="sessions", startTs=0, endTs=1, expect=403)


def test_a_broker_that_is_off_says_so(shared):
    answer = shared.rest(*SYSADMIN).get("/api/client-session", **PAGE, expect=404).json()
    assert answer["message"].startswith("The MQTT broker is off")
