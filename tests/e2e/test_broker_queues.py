"""The node and the queues of the publish/subscribe broker as TBMQ shows those of its Kafka."""

from __future__ import annotations

import json

import pytest

from harness.broker import BrokerClient
from harness.certificates import Authority
from harness.people import create_tenancy
from harness.providers import ALL, credentials_broker
from harness.rest import Rest, unique
from harness.server import SYSADMIN, Server, eventually, split_address

PAGE = {"pageSize": 100, "page": 0}
GROUP = "application-persisted-msg-consumer-group-"
TOPIC = "tbmq.msg.app."


@pytest.fixture(scope="module")
def server(tmp_path_factory, authority: Authority):
    with credentials_broker(tmp_path_factory.mktemp("broker-queues"), authority) as server:
        yield server


@pytest.fixture
def sysadmin(server: Server) -> Rest:
    return server.rest(*SYSADMIN)


@pytest.fixture
def join(server: Server, sysadmin: Rest):
    """Makes clients with credentials of their own, whose sessions stay."""
    clients: list[BrokerClient] = []

    def make(kind: str) -> BrokerClient:
        name = unique("client")
        value = json.dumps({"clientId": name, "authRules": ALL})
        body = {"name": name, "clientType": kind, "credentialsType": "MQTT_BASIC", "credentialsValue": value}
        sysadmin.post("/api/mqtt/client/credentials", body)
        clients.append(BrokerClient(server.broker_address, client_id=name, clean=False, expiry=600))
        assert clients[-1].connect() == 0
        return clients[-1]

    yield make
    for client in clients:
        client.leave()


def rows(rest: Rest, path: str, **params) -> list[dict]:
    return rest.get(f"/api/app/{path}", **(PAGE | params)).json()["data"]


def group_of(rest: Rest, client: BrokerClient) -> dict:
    (group,) = rows(rest, "consumer-groups", textSearch=GROUP + client.client_id)
    return group


def away(rest: Rest, client: BrokerClient) -> bool:
    client.leave()
    session = rest.get("/api/client-session", clientId=client.client_id).json()
    return session["connectionState"] == "DISCONNECTED"


def test_queues_of_applications_are_topics(server, sysadmin, join):
    topic, application, device = unique("topic"), join("APPLICATION"), join("DEVICE")
    for client in (application, device):
        client.subscribe(topic)
    here = {"state": "STABLE", "groupId": GROUP + application.client_id, "members": 1, "lag": 0}
    assert group_of(sysadmin, application) == here
    assert rows(sysadmin, "consumer-groups", textSearch=device.client_id) == []

    eventually(lambda: away(sysadmin, application))
    for _ in range(3):
        assert device.publish(topic, "x" * 1_000) == 0
    gone = {"state": "EMPTY", "groupId": GROUP + application.client_id, "members": 0, "lag": 3}
    assert group_of(sysadmin, application) == gone
    for path in ("kafka-topics", "kafka-topics/v2"):
        (queue,) = rows(sysadmin, path, textSearch=application.client_id, sortProperty="size", sortOrder="DESC")
        assert queue.pop("size") >= 3_000
        assert queue == {"name": TOPIC + application.client_id, "partitions": 1, "replicationFactor": 1}
    assert [row["name"] for row in rows(sysadmin, "kafka-topics", textSearch="broker")] == ["broker"]
    (place,) = rows(sysadmin, "cluster-info")
    assert place.pop("brokerSize") > 3_000 and place == {"brokerId": 0, "address": "localhost"}

    refused = sysadmin.delete("/api/app/consumer-group", groupId=gone["groupId"], expect=400).json()
    assert "session" in refused["message"]
    server.kill()
    server.start()
    sysadmin = server.rest(*SYSADMIN)
    assert group_of(sysadmin, application) == gone
    (queue,) = rows(sysadmin, "kafka-topics", textSearch=application.client_id)
    assert queue["size"] >= 3_000
    session = sysadmin.get("/api/client-session", clientId=application.client_id).json()
    sysadmin.delete("/api/client-session/remove", clientId=application.client_id, sessionId=session["sessionId"])
    assert rows(sysadmin, "consumer-groups", textSearch=application.client_id) == []
    sysadmin.delete("/api/app/consumer-group", groupId=gone["groupId"], expect=404)


def test_the_node_shows_what_it_is(server, sysadmin, join):
    join("DEVICE")
    assert sysadmin.get("/api/app/brokers").json() == ["fieldline"]
    config = sysadmin.get("/api/app/config").json()
    ports = {name: split_address(server.listening[name])[1] for name in ("broker", "broker_tls")}
    assert config["tcpPort"] == ports["broker"] and config["tlsPort"] == ports["broker_tls"]
    assert config["tcpListenerEnabled"] is True and config["wsListenerEnabled"] is False and config["wsPort"] == 0
    assert config["tcpMaxPayloadSize"] == 1 << 20
    assert config["basicAuthEnabled"] is True and config["jwtAuthEnabled"] is False
    assert config["existsBasicCredentials"] is True and config["existsScramCredentials"] is False
    (service,) = sysadmin.get("/api/app/service/info").json()["data"]
    assert service["serviceId"] == "fieldline" and service["status"] == "ACTIVE" and service["lastUpdateTime"] > 0
    assert service["cpuCount"] >= 1 and 0 <= service["diskUsage"] <= 100

    def port(name: str, **expect):
        return sysadmin.get("/api/app/listener/port", listenerName=name, **expect).json()

    assert port("MQTT") == ports["broker"] and port("mqtts") == ports["broker_tls"]
    port("WSS", expect=404)
    assert "listenerName" in port("coap", expect=400)["message"]


def test_shared_subscriptions_are_announced_and_kept(server, sysadmin, join):
    path, topic = "/api/app/shared/subs", unique("topic")
    body = {"name": unique("group"), "topicFilter": f"{topic}/+", "partitions": 2}
    made = sysadmin.post(path, body).json()
    assert made == body | {"id": made["id"], "createdTime": made["createdTime"]}
    assert "already" in sysadmin.post(path, body, expect=400).json()["message"]
    for wrong in ({"name": ""}, {"topicFilter": "a/#/b"}, {"topicFilter": ""}, {"partitions": 0}):
        sysadmin.post(path, body | {"topicFilter": topic} | wrong, expect=400)
    renamed = sysadmin.post(path, made | {"name": "other"}).json()
    assert renamed == made | {"name": "other"}
    sysadmin.post(path, made | {"partitions": 3}, expect=400)

    # Whether a group was announced or not makes no difference.
    application = join("APPLICATION")
    assert application.subscribe(f"$share/g/{topic}/+", f"$share/g/{topic}/+/+") == [1, 1]
    application.publish(f"{topic}/1", "announced")
    application.publish(f"{topic}/1/2", "not announced")
    assert sorted(application.texts(2)) == ["announced", "not announced"]

    server.kill()
    server.start()
    sysadmin = server.rest(*SYSADMIN)
    assert sysadmin.get(f"{path}/{made['id']}").json() == renamed
    assert sysadmin.get(path, topic=body["topicFilter"]).json() == renamed
    assert renamed in sysadmin.get(path, **PAGE, sortProperty="topicFilter").json()["data"]
    sysadmin.delete(f"{path}/{made['id']}")
    sysadmin.get(f"{path}/{made['id']}", expect=404)
    sysadmin.get(path, topic=body["topicFilter"], expect=404)


def test_only_system_administrators_see_the_queues(sysadmin):
    tenancy = create_tenancy(sysadmin)
    for rest in (tenancy.admin, tenancy.customer_user):
        for path in ("config", "brokers", "service/info", "cluster-info", "kafka-topics", "consumer-groups"):
            rest.get(f"/api/app/{path}", **PAGE, expect=403)
        rest.delete("/api/app/consumer-group", groupId="broker", expect=403)
        rest.get("/api/app/shared/subs", **PAGE, expect=403)
        rest.post("/api/app/shared/subs", {"name": "a", "topicFilter": "a", "partitions": 1}, expect=403)
