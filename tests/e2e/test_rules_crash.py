"""kill -9 while rule chains keep something: delays, windows, alarm conditions that have to last."""

import time
from concurrent.futures import ThreadPoolExecutor

from harness.chains import CALL, REACHES_SERVICES, SAVE, SWITCH, Chain, Service, alarms, change_default_profile, post
from harness.rest import Rest
from harness.server import Server, eventually

# So often that a kill finds what is kept durable.
QUICK = {"FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "50ms"}


def restart(server: Server) -> Rest:
    """kill -9, and up again."""
    server.kill()
    return server.start().rest()


def settle(server: Server, rest: Rest, device, key: str, values: list) -> None:
    eventually(lambda: sorted(rest.values(device.id, key)) == values)


def delayed_messages_survive_a_kill_and_come_once(server):
    rest = server.start().rest()
    delay = ("delay.TbMsgDelayNode", {"periodInSeconds": 4, "maxPendingMsgs": 1000})
    device = rest.create_device()
    Chain().line((delay, "Success"), (SAVE, "Success")).save(rest, root=True)
    for n in range(10):
        post(server, device, {"ts": 1_700_000_000_000 + n, "values": {"n": n}})
    eventually(lambda: server.lag() == 0)
    assert rest.values(device.id, "n") == []
    rest = restart(server)
    settle(server, rest, device, "n", list(range(10)))


def a_window_of_deduplication_survives_a_kill(server):
    rest = server.start().rest()
    window = {"interval": 4, "strategy": "LAST", "maxPendingMsgs": 100, "maxRetries": 3}
    node = ("deduplication.TbMsgDeduplicationNode", window)
    device = rest.create_device()
    Chain().line((node, "Success"), (SAVE, "Success")).save(rest, root=True)
    for n in range(5):
        post(server, device, {"ts": 1_700_000_000_000 + n, "values": {"n": n}})
    eventually(lambda: server.lag() == 0)
    rest = restart(server)
    settle(server, rest, device, "n", [4])


def a_condition_that_has_to_last_goes_on_after_a_kill_and_raises_its_alarm_once(server):
    rest = server.start().rest()
    key = {"type": "TIME_SERIES", "key": "level"}
    predicate = {"type": "NUMERIC", "operation": "LESS", "value": {"defaultValue": 20}}
    condition = {
        "condition": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}],
        "spec": {"type": "DURATION", "unit": "SECONDS", "predicate": {"defaultValue": 6}},
    }
    rule = {"condition": condition, "schedule": None, "alarmDetails": None}
    low = {"id": "low", "alarmType": "Low", "createRules": {"MAJOR": rule}, "clearRule": None}
    change_default_profile(rest, profileData={"alarms": [low]})
    Chain().line((("profile.TbDeviceProfileNode", {}), "Success"), (SAVE, "Success")).save(rest, root=True)
    device = rest.create_device()
    begun = time.time()
    post(server, device, {"level": 10})
    eventually(lambda: rest.values(device.id, "level") == [10])
    rest = restart(server)
    assert alarms(rest, device.id) == []
    # A later message is one that the condition has lasted for.
    while time.time() < begun + 7:
        post(server, device, {"level": 11})
        time.sleep(0.5)
    [alarm] = eventually(lambda: alarms(rest, device.id))
    rest = restart(server)
    post(server, device, {"level": 12})
    eventually(lambda: 12 in rest.values(device.id, "level"))
    assert [found["id"] for found in alarms(rest, device.id)] == [alarm["id"]], "it was raised twice"


def a_calculated_alarm_that_has_to_last_goes_on_after_a_kill_and_is_raised_once(server):
    rest = server.start().rest()
    device = rest.create_device()
    filters = [
        {
            "argument": "level",
            "valueType": "NUMERIC",
            "operation": "AND",
            "predicates": [{"type": "NUMERIC", "operation": "LESS", "value": {"staticValue": 20}}],
        }
    ]
    condition = {
        "type": "DURATION",
        "unit": "SECONDS",
        "value": {"staticValue": 6},
        "expression": {"type": "SIMPLE", "operation": "AND", "filters": filters},
    }
    rest.post(
        "/api/alarm/rule",
        {
            "entityId": device.json["id"],
            "name": "Low",
            "configuration": {
                "type": "ALARM",
                "arguments": {"level": {"refEntityKey": {"key": "level", "type": "TS_LATEST"}}},
                "createRules": {"CRITICAL": {"condition": condition}},
            },
        },
    )
    begun = time.monotonic()
    post(server, device, {"level": 10})
    eventually(lambda: rest.values(device.id, "level") == [10] and server.lag() == 0)
    rest = restart(server)
    assert alarms(rest, device.id) == [], "it has not lasted"
    # Nothing more is sent: a timer that was kept raises it.
    [alarm] = eventually(lambda: alarms(rest, device.id), within=30)
    lasted = time.monotonic() - begun
    assert lasted > 5, f"it was raised after {lasted} s"
    assert (alarm["type"], alarm["severity"], alarm["status"]) == ("Low", "CRITICAL", "ACTIVE_UNACK")
    eventually(lambda: server.lag() == 0)
    rest = restart(server)
    post(server, device, {"level": 11})
    eventually(lambda: 11 in rest.values(device.id, "level") and server.lag() == 0)
    assert [found["id"] for found in alarms(rest, device.id)] == [alarm["id"]], "it was raised twice"


def test_what_chains_keep_survives_a_kill(make_server):
    """Side by side, each with a server of its own: most of their time they wait."""
    scenarios = (
        delayed_messages_survive_a_kill_and_come_once,
        a_window_of_deduplication_survives_a_kill,
        a_condition_that_has_to_last_goes_on_after_a_kill_and_raises_its_alarm_once,
        a_calculated_alarm_that_has_to_last_goes_on_after_a_kill_and_is_raised_once,
    )

    def play(scenario) -> None:
        server = make_server(scenario.__name__, env=QUICK)
        scenario(server)
        # It would be killed with the thread that has started it.
        server.close()

    with ThreadPoolExecutor() as pool:
        running = [pool.submit(play, scenario) for scenario in scenarios]
    for scenario in running:
        scenario.result()


def test_retries_go_on_after_a_kill(make_server):
    server = make_server(env=QUICK | REACHES_SERVICES)
    rest = server.start().rest()
    status = {"now": 503}
    with Service(lambda _: status["now"]) as service:
        change_default_profile(rest, defaultQueueName="HighPriority")
        device = rest.create_device()
        chain = Chain()
        # What is no telemetry cannot be saved, and would be tried again until the server's patience at its end is over.
        switch = chain.node(SWITCH)
        call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
        chain.connect(switch, "Post telemetry", call).connect(call, "Success", chain.node(SAVE))
        chain.save(rest, root=True)
        for n in range(5):
            post(server, device, {"ts": 1_700_000_000_000 + n, "values": {"n": n}})
        eventually(lambda: service.received)
        server.kill()
        status["now"] = 200
        rest = server.start().rest()
        eventually(lambda: len(rest.values(device.id, "answered")) == 5, within=30)
