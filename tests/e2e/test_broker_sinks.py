"""Bridges of the broker to HTTP servers and Kafka."""

from __future__ import annotations

import itertools
import json
import threading
import time

import pytest

from harness.bridges import bridged, is_up, sink
from harness.kafka import kafka_server
from harness.server import eventually
from harness.web_server import WebRequest, WebServer


def test_messages_go_to_an_http_server(make_server, tmp_path, join):
    with WebServer(lambda request: (200, {})) as http:
        toml = sink("http", "whole", "a/#", url=f"{http.url}/whole", payload="json", username="u", password="p")
        toml += sink("http", "plain", "b", url=f"{http.url}/plain?x=1", payload="text", payload_only=True, method="PUT")
        server = bridged(make_server, tmp_path, toml).start()
        assert eventually(lambda: is_up(server, "whole") and is_up(server, "plain"), within=20)
        client = join(server=server)
        client.publish("a/1", '{"t": 21}', UserProperty=[("k", "v")])
        client.publish("b", "plain text", 0)
        assert eventually(lambda: len(http.requests) == 2)
        requests = {request.path: request for request in http.requests}
        whole = requests["/whole"]
        body = json.loads(whole.body)
        assert abs(body.pop("ts") / 1_000 - time.time()) < 60
        assert body == {
            "payload": {"t": 21},
            "topicName": "a/1",
            "eventType": "PUBLISH_MSG",
            "qos": 1,
            "retain": False,
            "props": {"k": "v"},
            "metadata": {"integrationName": "whole"},
        }
        assert (whole.method, whole.headers["authorization"]) == ("POST", "Basic dTpw")
        plain = requests["/plain"]
        assert (plain.method, plain.body, plain.query) == ("PUT", "plain text", {"x": "1"})


def test_a_server_that_is_away_gets_everything_later_and_in_order(make_server, tmp_path, join):
    status = {"now": 503}
    with WebServer(lambda request: (status["now"], {})) as http:
        toml = sink("http", "sink", "a", url=http.url, payload="text", payload_only=True)
        server = bridged(make_server, tmp_path, toml).start()
        assert eventually(lambda: is_up(server, "sink"), within=20)
        client = join(server=server)
        for number in range(300):
            client.send("a", str(number), 1)
        assert client.publish("a", "last") == 0
        assert eventually(lambda: len(http.requests) > 5)
        # Neither a crash nor a long silence takes anything of it.
        server.kill()
        status["now"] = 200
        http.requests.clear()
        server.start()
        assert eventually(lambda: any(request.body == "last" for request in http.requests), within=60)
        got = [request.body for request in http.requests]
        assert list(dict.fromkeys(got)) == [*(str(number) for number in range(300)), "last"]


@pytest.mark.timeout(180)
def test_nothing_is_given_up_by_a_long_silence_of_the_server(make_server, tmp_path, join):
    """Nor by its end: what is taken then is no reason to give up what was tried in vain before."""
    answers = itertools.repeat(500)
    with WebServer(lambda request: (next(answers), {})) as http:
        toml = sink("http", "sink", "a/+", url=http.url, payload="text", payload_only=True)
        server = bridged(make_server, tmp_path, toml).start()
        client = join(server=server)
        sent = [f"{topic} {number}" for number in range(10) for topic in range(5)]
        for text in sent:
            client.publish(f"a/{text[0]}", text)
        # More attempts than a message that is at fault itself would have.
        assert eventually(lambda: sum(one.body == "0 0" for one in http.requests) > 5, within=60)
        assert not is_up(server, "sink")
        answers = itertools.chain([200, 500, 503] * 10, itertools.repeat(200))
        carried = 'bridge_messages_total{bridge="sink",direction="out"}'
        assert eventually(lambda: server.metrics().get(carried) == len(sent), within=90)
        assert {request.body for request in http.requests} == set(sent)
        assert server.metrics().get('bridge_refused_messages_total{bridge="sink"}') == 0
        assert eventually(lambda: is_up(server, "sink"))


def test_a_request_has_the_headers_of_the_settings_and_any_payload(make_server, tmp_path, join):
    with WebServer(lambda request: (200, "x" * 1_000_000)) as http:
        toml = sink("http", "sink", "a", url=http.url, headers={"X-Site": "7"}, payload_only=True)
        server = bridged(make_server, tmp_path, toml).start()
        client = join(server=server)
        client.publish("a", b"\0\xff")
        assert eventually(lambda: http.requests)
        request = http.requests[0]
        assert (request.headers["x-site"], request.body) == ("7", "AP8=")
        # Nobody asks for what the server says to it, however long.
        assert eventually(
            lambda: server.metrics().get('bridge_messages_total{bridge="sink",direction="out"}') == 1, within=20
        )
        assert len(http.requests) == 1


def test_a_server_that_is_silent_is_asked_again(make_server, tmp_path, join):
    release, silent = threading.Event(), {"now": True}

    def answer(request: WebRequest) -> tuple[int, object]:
        if silent.pop("now", False):
            release.wait(60)
        return 200, {}

    with WebServer(answer) as http:
        toml = sink("http", "sink", "a", url=http.url, timeout="1s", payload="text", payload_only=True)
        server = bridged(make_server, tmp_path, toml).start()
        join(server=server).publish("a", "1")
        assert eventually(lambda: [request.body for request in http.requests] == ["1", "1"], within=30)
        release.set()


def test_a_message_that_nobody_takes_does_not_stop_the_others(make_server, tmp_path, join):
    with WebServer(lambda request: (400 if request.body == "poison" else 200, {})) as http:
        toml = sink("http", "sink", "a", url=http.url, payload="text", payload_only=True)
        server = bridged(make_server, tmp_path, toml).start()
        assert eventually(lambda: is_up(server, "sink"), within=20)
        client = join(server=server)
        client.publish("a", "poison")
        client.publish("a", b"\xff no text")
        for number in range(150):
            client.publish("a", str(number))
        assert eventually(
            lambda: {str(number) for number in range(150)} <= {one.body for one in http.requests}, within=60
        )
        refused = 'bridge_refused_messages_total{bridge="sink"}'
        assert eventually(lambda: server.metrics().get(refused) == 2, within=60)
        assert sum(request.body == "poison" for request in http.requests) == 5


@pytest.mark.timeout(240)
def test_messages_go_to_kafka(make_server, tmp_path, join):
    with kafka_server() as kafka:
        toml = sink(
            "kafka", "sink", "plant/#", servers=kafka.address, topic="from.${topic}", payload="text", payload_only=True
        )
        server = bridged(make_server, tmp_path, toml).start()
        assert eventually(lambda: is_up(server, "sink"), within=20)
        client = join(server=server)
        for number in range(100):
            client.publish("plant/line1", str(number))
        carried = 'bridge_messages_total{bridge="sink",direction="out"}'
        assert eventually(lambda: server.metrics().get(carried) == 100, within=60)
        read = kafka.tool(
            "consumer.ConsoleConsumer",
            "--topic",
            "from.plant.line1",
            "--from-beginning",
            "--max-messages",
            "100",
            "--property",
            "print.key=true",
        )
        lines = [line for line in read.splitlines() if line.startswith("plant/line1\t")]
        assert lines == [f"plant/line1\t{number}" for number in range(100)]
