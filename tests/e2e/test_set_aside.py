"""A record that kills the process: it is set aside after the second time, and everybody else is served.

What kills is a fault of the machine (`faults.c`): the process ends when a worker of the rule engine logs a certain text, as
a rule chain with a "log" node has it do.
"""

import base64
import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import requests

from harness.chains import (
    CALL,
    REACHES_SERVICES,
    SAVE,
    SWITCH,
    Chain,
    Service,
    change_default_profile,
    post,
    queue,
    script,
)
from harness.faults import WRITE, Faults
from harness.load import Load, Tally
from harness.people import create_tenancy
from harness.rest import Rest
from harness.server import START_WITHIN_S, SYSADMIN, Server, eventually

DEADLY = "deadly-text-of-a-test"
SAID = "return 'said ' + msg.text;"
KEEPS_TEXT = "metadata.text = msg.text; return {msg: msg, metadata: metadata, msgType: msgType};"
PUTS_TEXT_BACK = "return {msg: {text: metadata.text}, metadata: metadata, msgType: msgType};"
LOG = ("action.TbLogNode", {"scriptLang": "JS", "jsScript": SAID, "tbelScript": SAID})
PATIENT = "patient"
PAGE = {"pageSize": 100, "page": 0}
KILLS = int(os.environ.get("KILLS", 10))


class Answers:
    """What a service answers: who is patient after a while, or once all are let go, what kills only then."""

    def __init__(self, patience: float):
        self.patience = {PATIENT: patience, DEADLY: 60.0}
        self.begun: list[str] = []
        self.all_go = threading.Event()

    def __call__(self, body: dict) -> int:
        text = body.get("text")
        self.begun.append(text)
        if text in self.patience:
            self.all_go.wait(self.patience[text])
        return 200

    def wait_for(self, text: str) -> None:
        """Waits until a message of this text is in hand."""
        eventually(lambda: text in self.begun)


class Site:
    """A server with two tenants: one has a chain that logs what its devices say, the other one none of that."""

    def __init__(self, server: Server, service: Service | None = None):
        self.server = server
        self.demo = server.start().rest()
        self.bystander = self.demo.create_device()
        self.tenancy = create_tenancy(self.sysadmin())
        self.admin = self.tenancy.admin
        chain = Chain().line((LOG, "Success"), (SAVE, "Success"))
        if service is not None:
            # Which keeps in hand what was logged.
            call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
            chain.connect(0, "Success", call)
        self.chain = chain.save(self.admin, root=True)
        self.device = self.admin.create_device()
        post(server, self.device, {"text": "harmless"})
        eventually(lambda: self.admin.latest(self.device.id, "text") == {"text": "harmless"})
        self.settle()

    def sysadmin(self) -> Rest:
        return self.server.rest(*SYSADMIN)

    def settle(self) -> None:
        """Waits until nothing is on its way."""

        def settled() -> bool:
            waiting = ("ingest_lag_records", "rules_lane_messages")
            return not any(value for name, value in self.server.metrics().items() if any(of in name for of in waiting))

        eventually(settled)

    def again(self) -> None:
        """What is known of users is of the process before: they use the new one's address."""
        for rest in (self.demo, self.admin):
            rest.base = self.server.http

    def send_deadly(self) -> None:
        """Sends what kills; whether that is acknowledged before the process ends, is a matter of luck."""
        with contextlib.suppress(requests.ConnectionError):
            post(self.server, self.device, {"text": DEADLY})


def crash_until_set_aside(site: Site, answers: Answers) -> int:
    """Starts the server again and again until it stays up; returns how often it has died."""
    deaths = 0
    while True:
        site.server.process.wait(20)
        site.server.process = None
        # What was only beside it goes through from now on.
        answers.patience[PATIENT] = 0
        deaths += 1
        assert deaths <= 4, "the process dies of it again and again"
        site.server.spawn()
        if stays_up(site.server):
            return deaths


def crash_until(site: Site, is_over: Callable[[], object]) -> None:
    """The same for what is begun at some time after the start, until this says that it will not be begun again."""
    deaths = 0
    while not lives_until(site, is_over):
        deaths += 1
        assert deaths <= 10, "the process dies of it again and again"
        site.server.process = None
        site.server.spawn()
    assert deaths >= 2


def lives_until(site: Site, is_over: Callable[[], object]) -> bool:
    """Whether this is so before the server dies."""

    def outcome() -> str | None:
        if site.server.process.poll() is not None:
            return "dead"
        if answer_of(site.server, "/readyz") != 200:
            return None
        site.again()
        return "over" if is_over() else None

    return eventually(outcome, within=60) == "over"


def stays_up(server: Server) -> bool:
    """Whether a server that was started has replayed everything, rather than died."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            return False
        if answer_of(server, "/readyz") == 200:
            return True
        time.sleep(0.02)
    raise AssertionError("neither up nor dead")


def listed(rest: Rest) -> list[dict]:
    return rest.get("/api/setAside", **PAGE).json()["data"]


@pytest.fixture
def answers():
    """Answers that come late as long as the test goes on."""
    late = Answers(patience=3)
    yield late
    late.all_go.set()


@contextlib.contextmanager
def die_with(faults: Faults, answers: Answers, *in_hand: str) -> Iterator[None]:
    """Lets what is logged in this block be written, which kills, once messages of these texts are in hand."""
    answers.begun.clear()
    with faults.stall(WRITE, thread="log"):
        yield
        for text in in_hand:
            answers.wait_for(text)


@pytest.mark.parametrize("company", [False, True], ids=["alone", "beside another"])
def test_a_record_that_kills_is_set_aside_and_replayed_once_its_chain_is_repaired(
    make_server, tmp_path, answers, company
):
    answers.patience[PATIENT] = 60
    with Service(answers) as service:
        a_record_that_kills_is_set_aside(make_server, tmp_path, service, company)


def a_record_that_kills_is_set_aside(make_server, tmp_path, service: Service, company: bool) -> None:
    faults = Faults(tmp_path)
    checkpoints = {"FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "1h"} if company else {}
    # Nothing leaves for a slow lane: it would be in hand once more there when the process dies.
    settings = {"FIELDLINE_INGEST_WORKERS": "2", "FIELDLINE_RULES_LANES_PATIENCE": "1m"} | checkpoints
    server = make_server(env=faults.env | REACHES_SERVICES | settings)
    site = Site(server, service)
    answers = service.answer
    # Enough that some are another worker's.
    others = [site.admin.create_device() for _ in range(16)] if company else []
    site.settle()
    with faults.die_of(DEADLY, thread="log"):
        with die_with(faults, answers, DEADLY, *[PATIENT] * company):
            site.send_deadly()
            answers.wait_for(DEADLY)
            for other in others:
                post(server, other, {"text": PATIENT})
        deaths = crash_until_set_aside(site, answers)
        # Twice where nothing else was in hand, and once more where something was.
        assert deaths == (3 if company else 2)
        site.again()

        # Everybody else is served.
        post(server, site.bystander, {"n": 1})
        eventually(lambda: site.demo.latest(site.bystander.id, "n") == {"n": 1})
        post(server, site.device, {"other": 2})
        eventually(lambda: site.admin.latest(site.device.id, "other") == {"other": 2})

        [info] = listed(site.admin)
        assert info["reason"] == "KILLED_PROCESS" and info["deaths"] == 2
        assert info["entityId"] == {"entityType": "DEVICE", "id": site.device.id}
        assert info["queueName"] == "Main" and info["receivedTime"] > 0
        path = f"/api/setAside/{info['id']['id']}"
        record = site.admin.get(path).json()
        assert DEADLY.encode() in base64.b64decode(record["payload"])
        assert len(base64.b64decode(record["payload"])) == info["size"]
        [row] = record["content"]["rows"]
        assert row["values"] == {"text": DEADLY}
        # It is the tenant's, and the system administrator's.
        assert listed(site.demo) == []
        for method in ("GET", "DELETE"):
            site.demo.call(method, path, expect=404)
        site.demo.post(f"{path}/replay", expect=404)
        assert listed(site.sysadmin()) == [info]
        metrics = server.metrics()
        assert metrics['fieldline_set_aside_records_total{reason="KILLED_PROCESS"}'] == 1
        [line] = [line for line in server.log().splitlines() if "set a record aside" in line]
        assert site.device.id in line and DEADLY not in line and "ERROR" in line

        # What is still broken kills again, and the record comes back; the one before is there as well where no checkpoint
        # knew that it had been set aside.
        for other in others:
            eventually(lambda other=other: site.admin.latest(other.id, "text") == {"text": PATIENT})
        if not company:
            eventually(lambda: "are stored or set aside" in server.log())
        site.settle()
        with die_with(faults, answers, DEADLY):
            site.admin.post(f"{path}/replay")
        assert crash_until_set_aside(site, answers) == 2
        site.again()
        kept = listed(site.admin)
        assert len(kept) == (2 if company else 1)

        # The chain is repaired over REST: nothing is logged any more.
        chain = Chain().line((SAVE, "Success"))
        chain.update(site.admin, site.chain["id"])
        for info in kept:
            site.admin.post(f"/api/setAside/{info['id']['id']}/replay")
        eventually(lambda: site.admin.latest(site.device.id, "text") == {"text": DEADLY})
        assert listed(site.admin) == []
        site.admin.post(f"/api/setAside/{info['id']['id']}/replay", expect=404)


def test_a_message_that_kills_in_a_slow_lane_is_set_aside(make_server, tmp_path, answers):
    faults = Faults(tmp_path)
    server = make_server(env=faults.env | REACHES_SERVICES)
    with Service(answers) as service, contextlib.ExitStack() as fault:
        fault.enter_context(faults.die_of(DEADLY, thread="log"))
        site = Site(server, service)
        # What is moved again and again goes on in the lane of its tenant, where it is logged and then waits.
        chain = Chain()
        moves = [chain.node(("flow.TbCheckpointNode", {}), queueName="Main") for _ in range(10)]
        logs = chain.node(LOG)
        call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
        # What the call is answered takes the place of the message, whose text is put back in the end.
        keep = chain.node(script("transform.TbTransformMsgNode", "JS", KEEPS_TEXT))
        back = chain.node(script("transform.TbTransformMsgNode", "JS", PUTS_TEXT_BACK))
        for one, next_one in pairwise([*moves, logs, keep, call, back, chain.node(SAVE)]):
            chain.connect(one, "Success", next_one)
        chain.update(site.admin, site.chain["id"])
        # One that is innocent waits beside it at each death.
        innocent = site.admin.create_device()
        post(server, innocent, {"text": PATIENT})
        site.send_deadly()
        crash_until(site, lambda: listed(site.admin))
        # Its message has come to the lane once more with each death: nothing is waited for any longer.
        answers.all_go.set()
        post(server, site.bystander, {"n": 1})
        eventually(lambda: site.demo.latest(site.bystander.id, "n") == {"n": 1})
        # Which comes through, too.
        eventually(lambda: site.admin.latest(innocent.id, "text") == {"text": PATIENT})
        site.settle()
        [info] = listed(site.admin)
        assert info["reason"] == "KILLED_PROCESS"
        assert info["entityId"] == {"entityType": "DEVICE", "id": site.device.id}
        assert site.admin.latest(site.device.id, "text") == {"text": "harmless"}
        # Once the machine is mended, it goes its way from where it was, with nobody before it.
        fault.close()
        site.admin.post(f"/api/setAside/{info['id']['id']}/replay")
        eventually(lambda: site.admin.latest(site.device.id, "text") == {"text": DEADLY})
        assert listed(site.admin) == []


def test_something_kept_that_kills_when_it_comes_due_is_given_up(make_server, tmp_path, answers):
    faults = Faults(tmp_path)
    server = make_server(env=faults.env | REACHES_SERVICES)
    with Service(answers) as service, faults.die_of(DEADLY, thread="log"):
        site = Site(server, service)
        delay = {"periodInSeconds": 1, "maxPendingMsgs": 10, "useMetadataPeriodInSecondsPatterns": False}
        call = ("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url})
        steps = (("delay.TbMsgDelayNode", delay), "Success"), (LOG, "Success"), (call, "Success"), (SAVE, "Success")
        Chain().line(*steps).update(site.admin, site.chain["id"])
        site.send_deadly()
        crash_until(site, lambda: server.metrics().get("fieldline_rules_given_up_total"))
        post(server, site.bystander, {"n": 1})
        eventually(lambda: site.demo.latest(site.bystander.id, "n") == {"n": 1})
        assert server.metrics()["fieldline_rules_given_up_total"] == 1


def test_ports_are_open_while_the_replay_does_not_get_on(make_server):
    server = make_server(env=REACHES_SERVICES)
    site = Site(server)
    stubborn = queue(processing="RETRY_FAILED")
    site.sysadmin().post("/api/queues", stubborn, serviceType="TB_RULE_ENGINE")
    change_default_profile(site.admin, defaultQueueName=stubborn["name"])
    with Service(lambda _: 503) as service:
        call = ("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url})
        only_telemetry = (SWITCH, "Post telemetry")
        Chain().line(only_telemetry, (call, "Success"), (SAVE, "Success")).update(site.admin, site.chain["id"])
        device = site.admin.create_device()
        post(server, device, {"n": 1})
        eventually(lambda: service.received)
        server.kill()
        server.spawn()
        # It is tried again as it was before. People get at what is broken, and devices are served.
        eventually(lambda: answer_of(server, "/healthz") == 200, within=START_WITHIN_S)
        ready = requests.get(f"{server.http}/readyz", timeout=5)
        assert ready.status_code == 503 and "received before the start" in ready.text
        site.again()
        post(server, site.bystander, {"n": 2})
        eventually(lambda: site.demo.latest(site.bystander.id, "n") == {"n": 2})
        post(server, device, {"ts": 5, "values": {"m": 3}})
        Chain().line(only_telemetry, (SAVE, "Success")).update(site.admin, site.chain["id"])
        eventually(lambda: site.admin.values(device.id, "m") == [3] and site.admin.values(device.id, "n") == [1])
    eventually(lambda: answer_of(server, "/readyz") == 200)
    assert listed(site.sysadmin()) == []


def answer_of(server: Server, path: str) -> int:
    """The status of an answer, 0 where there is none."""
    try:
        server.listening = json.loads((server.data_dir / "listening.json").read_text())
        return requests.get(f"{server.http}{path}", timeout=5).status_code
    except (OSError, ValueError):
        return 0


def test_a_stop_does_not_wait_for_an_evaluation_and_that_proves_nothing(make_server):
    server = make_server(env={"FIELDLINE_SHUTDOWN_TIMEOUT": "2s"})
    site = Site(server)
    spins = "var begun = Date.now(); while (Date.now() - begun < 7000) {} return true;"
    slow = Chain().line((script("filter.TbJsFilterNode", "JS", spins), "True"), (SAVE, "Success"))
    slow.update(site.admin, site.chain["id"])
    post(server, site.device, {"text": "slow"})
    for _ in range(3):
        server.process.terminate()
        server.process.wait(10)
        server.process = None
        server.spawn()
        eventually(lambda: answer_of(server, "/healthz") == 200)
        site.again()
    Chain().line((SAVE, "Success")).update(site.admin, site.chain["id"])
    post(server, site.device, {"repaired": 1})
    eventually(lambda: site.admin.latest(site.device.id, "repaired") == {"repaired": 1}, within=30)
    assert listed(site.sysadmin()) == []


@pytest.mark.timeout(60 + 10 * KILLS)
def test_kills_under_load_set_nothing_aside(make_server, seed):
    server = make_server()
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(6)]
    for number in range(KILLS):
        tallies = [Tally(device, f"round{number}") for device in devices]
        with Load(server, tallies, window=seed.choice([1, 20]), base_ts=1_600_000_000_000 + number * 10_000_000):
            time.sleep(seed.uniform(0.05, 0.5))
            server.kill()
        if number % 3 == 2:
            # While what was in hand is taken up one by one.
            server.spawn()
            time.sleep(seed.uniform(0, 0.2))
            server.kill()
        rest = server.start().rest()
        for tally in tallies:
            eventually(lambda tally=tally: tally.check(rest.points(tally.device.id, tally.key)) or True)
    assert listed(server.rest(*SYSADMIN)) == []
    assert "set a record aside" not in server.log()
