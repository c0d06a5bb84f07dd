"""`fieldline rules replay`: a draft tried out on what is stored, from the command line."""

import json

import pytest

from harness.chains import SAVE, Chain, post, script
from harness.people import PASSWORD
from harness.rest import unique
from harness.server import eventually, run_cli


@pytest.fixture
def server(shared):
    return shared


def replay(server, rest, *options: str):
    account = {"REST_URL": server.http, "REST_USERNAME": rest.user["email"], "REST_PASSWORD": PASSWORD}
    return run_cli("rules", "replay", *options, env=account, timeout=60)


def test_a_draft_is_replayed_and_shown_and_nothing_changes(server, rest, tmp_path):
    device, other = rest.create_device(), rest.create_device()
    for n in range(10):
        post(server, device, {"ts": 1_700_000_000_000 + n * 1000, "values": {"n": n}})
    post(server, other, {"ts": 1_700_000_000_000, "values": {"n": 100}})
    eventually(lambda: len(rest.values(device.id, "n")) == 10 and rest.values(other.id, "n"))
    draft = Chain()
    big = draft.node(script("filter.TbJsFilterNode", "TBEL", "return msg.n >= 4;"), "big enough")
    draft.connect(big, "True", draft.node(SAVE))
    file = tmp_path / "draft.json"
    file.write_text(json.dumps({"firstNodeIndex": 0, "nodes": draft.nodes, "connections": draft.connections}))
    span = ("--from", "1700000000000", "--to", "1700000100000", "--chain", "Root Rule Chain")
    done = replay(server, rest, *span, "--device", device.name, "--draft", str(file), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["messages"] == 10
    [node] = [node for node in report["nodes"] if node["name"] == "big enough"]
    assert (node["input"], node["output"]) == (10, {"True": 6, "False": 4})
    shown = replay(server, rest, *span, "--draft", str(file))
    assert shown.returncode == 0, shown.stderr
    assert "big enough" in shown.stdout and "11" in shown.stdout, shown.stdout
    assert rest.values(device.id, "n") == list(range(10))
    assert len(rest.get("/api/ruleChains", pageSize=10, page=0).json()["data"]) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--chain", "No Such Chain", "--from", "1h"), "No Such Chain"),
        (("--chain", "Root Rule Chain", "--from", "yesterday-ish"), "yesterday-ish"),
        (("--chain", "Root Rule Chain", "--from", "1h", "--device", "nobody"), "nobody"),
        (("--chain", "Root Rule Chain", "--from", "1h", "--draft", "/no/such/file"), "/no/such/file"),
    ],
)
def test_what_cannot_be_replayed_is_said(server, rest, options, told):
    done = replay(server, rest, *options)
    assert done.returncode != 0
    assert told in done.stderr, done.stderr


def test_a_wrong_password_is_said(server, rest):
    account = {"REST_URL": server.http, "REST_USERNAME": rest.user["email"], "REST_PASSWORD": unique("wrong")}
    done = run_cli("rules", "replay", "--chain", "Root Rule Chain", "--from", "1h", env=account)
    assert done.returncode != 0 and "401" in done.stderr, done.stderr
