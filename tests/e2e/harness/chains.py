"""Rule chains as the tests build them, and an HTTP server that rule nodes call."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

from harness.rest import Rest, now_ms, unique

PREFIX = "org.thingsboard.rule.engine."

SAVE = ("telemetry.TbMsgTimeseriesNode", {"defaultTTL": 0, "useServerTs": False})
REPLY = ("rest.TbSendRestApiCallReplyNode", {})
CALL = {"requestMethod": "POST", "headers": {"Content-Type": "application/json"}, "readTimeoutMs": 0}
"""Settings of a node that calls a [`Service`], but its address."""
REACHES_SERVICES = {"FIELDLINE_EGRESS_ALLOW": "127.0.0.1"}
"""Lets the nodes of a server reach a [`Service`], which is on this machine."""
SWITCH = ("filter.TbMsgTypeSwitchNode", {"version": 0})


@dataclass
class Chain:
    """Nodes and connections in the making; `save` sends them in the form in which chains are exported."""

    nodes: list[dict] = field(default_factory=list)
    connections: list[dict] = field(default_factory=list)

    def node(self, class_and_configuration: tuple[str, dict], name: str | None = None, **fields) -> int:
        """Adds a node and returns its index."""
        class_name, configuration = class_and_configuration
        self.nodes.append(
            {
                "type": PREFIX + class_name,
                "name": name or f"{class_name.rsplit('.', 1)[-1]} {len(self.nodes)}",
                "configuration": configuration,
                "additionalInfo": {"layoutX": 100 * len(self.nodes), "layoutY": 100},
            }
            | fields
        )
        return len(self.nodes) - 1

    def connect(self, source: int, label: str, target: int) -> Chain:
        """Leads a label of a node to another one."""
        self.connections.append({"fromIndex": source, "toIndex": target, "type": label})
        return self

    def line(self, *steps: tuple[tuple[str, dict], str]) -> Chain:
        """Adds nodes one behind the other, each with the label that leads on from it."""
        before = None
        for step, label in steps:
            index = self.node(step)
            if before is not None:
                self.connect(before[0], before[1], index)
            before = (index, label)
        return self

    def save(self, rest: Rest, name: str | None = None, *, root: bool = False, expect: int = 200) -> dict:
        """Creates a chain of these nodes; returns it, or the answer that refuses it."""
        chain = rest.post("/api/ruleChain", {"name": name or unique("chain"), "type": "CORE"}).json()
        answer = self.update(rest, chain["id"], expect=expect)
        if expect == 200 and root:
            rest.post(f"/api/ruleChain/{chain['id']['id']}/root")
        return chain if expect == 200 else answer

    def update(self, rest: Rest, chain_id: dict, *, expect: int = 200) -> dict:
        """Replaces nodes and connections of a chain."""
        body = {
            "ruleChainId": chain_id,
            "firstNodeIndex": 0,
            "nodes": self.nodes,
            "connections": self.connections,
            "ruleChainConnections": None,
        }
        return rest.post("/api/ruleChain/metadata", body, expect=expect).json()


def post(server, device, body, kind: str = "telemetry") -> None:
    """Sends telemetry or attributes of a device over HTTP."""
    answer = requests.post(f"{server.http}/api/v1/{device.token}/{kind}", json=body, timeout=30)
    assert answer.status_code == 200, answer.text


def transform(lang: str, body: str) -> tuple[str, dict]:
    """A node that makes another body by a script; what it returns is telemetry."""
    turned = f"return {{msg: {body}, metadata: metadata, msgType: 'POST_TELEMETRY_REQUEST'}};"
    return script("transform.TbTransformMsgNode", lang, turned)


def change_default_profile(rest: Rest, **fields) -> dict:
    """Changes the default device profile; fields of `profileData` are merged with what is there."""
    profile = rest.get("/api/deviceProfileInfo/default").json()
    whole = rest.get(f"/api/deviceProfile/{profile['id']['id']}").json()
    whole["profileData"] |= fields.pop("profileData", {})
    return rest.post("/api/deviceProfile", whole | fields).json()


def queue(name: str | None = None, submit: str = "BURST", processing: str = "SKIP_ALL_FAILURES", **fields) -> dict:
    """A queue of a name of its own, with these strategies."""
    name = name or unique("Queue").replace("-", "")
    return {
        "name": name,
        "topic": f"tb_rule_engine.{name.lower()}",
        "pollInterval": 25,
        "partitions": 2,
        "consumerPerPartition": True,
        "packProcessingTimeout": 10_000,
        "submitStrategy": {"type": submit, "batchSize": 10},
        "processingStrategy": {
            "type": processing,
            "retries": 0,
            "failurePercentage": 0,
            "pauseBetweenRetries": 0,
            "maxPauseBetweenRetries": 0,
        },
    } | fields


def counted(rest: Rest, prefix: str) -> int:
    """The sum of what message count nodes of this prefix have kept with the tenant."""
    path = f"/api/plugins/telemetry/TENANT/{rest.user['tenantId']['id']}"
    keys = [key for key in rest.get(f"{path}/keys/timeseries").json() if key.startswith(f"{prefix}_")]
    if not keys:
        return 0
    query = {"startTs": 0, "endTs": now_ms() + 1, "limit": 1000, "useStrictDataTypes": "true"}
    points = rest.get(f"{path}/values/timeseries", keys=keys[0], **query).json()[keys[0]]
    return sum(point["value"] for point in points)


def alarms(rest: Rest, entity: str, kind: str = "DEVICE") -> list[dict]:
    """Alarms that are shown at an entity, newest first."""
    page = {"pageSize": 100, "page": 0, "sortProperty": "createdTime", "sortOrder": "DESC"}
    return rest.get(f"/api/alarm/{kind}/{entity}", **page).json()["data"]


def script(class_name: str, lang: str, body: str) -> tuple[str, dict]:
    """A scripted node."""
    return class_name, {"scriptLang": lang, "jsScript": body, "tbelScript": body}


def events(rest: Rest, entity_type: str, entity_id: str, kind: str) -> list[dict]:
    """Events of an entity, oldest first."""
    user = rest.get("/api/auth/user").json()
    page = rest.get(
        f"/api/events/{entity_type}/{entity_id}/{kind}",
        tenantId=user["tenantId"]["id"],
        pageSize=1000,
        page=0,
    ).json()
    return sorted(page["data"], key=lambda event: event["createdTime"])


class Service:
    """An HTTP server that remembers what it was sent. `answer` gives the status for a body, and may take its time."""

    def __init__(self, answer=lambda body: 200):
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"null")
                status = service.answer(body)
                with service.lock:
                    service.received.append(body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "15")
                self.end_headers()
                self.wfile.write(b'{"answered":42}')

            def log_message(self, *_):
                pass

        self.answer = answer
        self.lock = threading.Lock()
        self.received: list = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
