"""Devices of which each point has a derived one and counts towards alarms, so that what rules have done can be checked exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

from .chains import SAVE, SWITCH, Chain, change_default_profile
from .load import Load, Tally
from .rest import Rest, now_ms
from .server import SYSADMIN, Server, eventually

BASE_TS = 1_600_000_000_000
"""Far from the times that the server gives, so that the two cannot overwrite each other."""
STRIDE = 10_000_000
"""How far apart the numbers of two rounds begin. A multiple of the period."""
PERIOD, HIGH, REPEATS = 100, 40, 5
"""The phase of a number is what is left over by the period. The alarm is raised by the fifth phase in succession that is high,
and cleared by one that is low."""
SETTLED_WITHIN_S = 120
MOVED_MS = 60_000
"""How far points that the server gives times are moved at most: where more than one comes in a millisecond, each is moved behind
the last."""
SEEN_WITHIN_MS = 1_000
"""How long after a rule saw a point its alarm is created at most."""
BATCH_WITHIN_MS = 300_000
SETTINGS = {"FIELDLINE_RULES_LANES_PATIENCE": f"{BATCH_WITHIN_MS}ms"}
"""Messages that are late go on in the background, and begin anew behind others after a crash: what counts in the order of messages is
exact only where none is late. Here a database that does not answer must not make them so."""


def wait_for_batches(server: Server) -> None:
    """Has the main queue wait for its batches as long as a database may be away."""
    rest = server.rest(*SYSADMIN)
    for queue in rest.get("/api/queues", serviceType="TB-RULE-ENGINE", pageSize=10, page=0).json()["data"]:
        if queue["name"] == "Main":
            queue["packProcessingTimeout"] = BATCH_WITHIN_MS
            rest.post("/api/queues", queue, serviceType="TB-RULE-ENGINE")


def rises(points: dict[int, int], state: tuple[bool, int]) -> tuple[list[int], tuple[bool, int]]:
    """Times of the points that raise an alarm, and the state behind the last one: whether it is active, and what has counted."""
    active, count = state
    raised = []
    for ts in sorted(points):
        if points[ts] % PERIOD < HIGH:
            active, count = False, 0
        elif not active:
            count += 1
            if count == REPEATS:
                raised.append(ts)
                active = True
    return raised, (active, count)


def begins_with(ts: int, start: int, created: int, *, is_field: bool) -> bool:
    """Whether an alarm has the start of one that the point at `ts` raises."""
    if start == ts:
        return True
    is_moved = ts >= BASE_TS * 11 // 10 and 0 < ts - start <= MOVED_MS
    # Alarms of a profile have the times of their messages, which are not moved. Those of a field have the time of the point,
    # but none begins in the future: where the point was moved ahead of the clock, it begins when the rule saw the point.
    return is_moved and (not is_field or 0 <= created - start <= SEEN_WITHIN_MS)


@dataclass
class Round:
    """A time of load, and what it has left."""

    tallies: list[Tally]
    began: int
    ended: int | None = None
    state: dict[str, tuple[bool, int]] = field(default_factory=dict)
    """State of each device's alarm rule before it."""


class WatchedDevices:
    """Some devices; each device's numbers grow from round to round. Their server runs with [`SETTINGS`]."""

    def __init__(self, server: Server, count: int):
        wait_for_batches(server)
        rest = server.rest()
        profile = rest.get("/api/deviceProfileInfo/default").json()["id"]
        rest.post("/api/calculatedField", {"entityId": profile} | TWICE)
        change_default_profile(rest, profileData={"alarms": [OF_PROFILE]})
        rest.post("/api/alarm/rule", {"entityId": profile} | OF_FIELD)
        chain = Chain().line(
            (("profile.TbDeviceProfileNode", {}), "Success"), (SWITCH, "Post telemetry"), (SAVE, "Success")
        )
        chain.connect(1, "Post attributes", chain.node(("telemetry.TbMsgAttributesNode", {"scope": "CLIENT_SCOPE"})))
        chain.save(rest, root=True)
        self.devices = [rest.create_device() for _ in range(count)]
        self.rounds: list[Round] = []
        self.state = {device.id: (False, 0) for device in self.devices}
        self.alarms = 0
        """How many alarms there were in the rounds that have been checked while they were the last one."""

    @property
    def acknowledged(self) -> int:
        """How many points have been acknowledged, of all rounds."""
        return sum(len(tally.acknowledged) for one in self.rounds for tally in one.tallies)

    def load(self, server: Server, window: int = 10, http: int = 0) -> Load:
        """A new round."""
        if self.rounds:
            self.rounds[-1].ended = now_ms()
        first = len(self.rounds) * STRIDE
        tallies = [Tally(device, "n", first) for device in self.devices]
        self.rounds.append(Round(tallies, now_ms(), state=dict(self.state)))
        return Load(
            server, tallies, window=window, base_ts=BASE_TS, http=http, more=lambda number: {"phase": number % PERIOD}
        )

    def check(self, server: Server, rounds: slice = slice(-1, None)) -> None:
        """Insists on every acknowledged point of the rounds, by default the last one, on its derived point, and on the alarms, each once."""
        rest = server.rest()
        for one in self.rounds[rounds]:
            for tally in one.tallies:
                eventually(lambda: self._check(rest, one, tally), within=SETTLED_WITHIN_S, every=0.2)

    def _check(self, rest: Rest, one: Round, tally: Tally) -> bool:
        device, name = tally.device.id, tally.device.name
        # Half of the devices give times, the others leave that to the server.
        ranges = [(BASE_TS + tally.first, BASE_TS + tally.first + STRIDE), (one.began, one.ended or now_ms() + 60_000)]

        def read(key: str) -> list[dict]:
            return [point for start, end in ranges for point in rest.points(device, key, startTs=start, endTs=end)]

        points, derived = read("n"), read("twice")
        tally.check(points)
        values = {point["ts"]: point["value"] for point in points}
        twice = {point["ts"]: point["value"] for point in derived}
        assert len(twice) == len(derived), f"{name}: derived points are stored more than once"
        wanted = {ts: 2 * value for ts, value in values.items()}
        assert twice == wanted, (
            f"{name}: of {len(wanted)} derived points {len(wanted.keys() - twice.keys())} are missing and "
            f"{len(twice.keys() - wanted.keys())} too many; "
            f"{sum(twice[ts] != wanted[ts] for ts in twice.keys() & wanted.keys())} are wrong"
        )
        raised, state = rises(values, one.state[device])
        is_last = one is self.rounds[-1]
        alarms = [
            alarm
            for alarm in all_alarms(rest, device, one.began)
            if any(start <= alarm["startTs"] < end for start, end in ranges)
        ]
        for kind in (OF_PROFILE["alarmType"], OF_FIELD["name"]):
            found = [alarm for alarm in alarms if alarm["type"] == kind]
            begun = sorted((alarm["startTs"], alarm["createdTime"]) for alarm in found)
            times = [start for start, _ in begun]
            assert len(times) == len(raised) and all(
                begins_with(ts, start, created, is_field=kind == OF_FIELD["name"])
                for ts, (start, created) in zip(raised, begun, strict=True)
            ), (
                f"{name}: {len(times)} alarms {kind}, not {len(raised)}; missing {sorted(set(raised).difference(times))[:5]}, "
                f"too many {sorted(set(times).difference(raised))[:5]}, twice {len(times) - len(set(times))}"
            )
            active = [alarm["startTs"] for alarm in found if not alarm["cleared"]]
            assert active == (times[-1:] if is_last and state[0] else []), (
                f"{name}: alarms {kind} that are active: {active}"
            )
        if is_last:
            self.state[device] = state
            self.alarms += 2 * len(raised)
        return True


def all_alarms(rest: Rest, device: str, since: int) -> list[dict]:
    """All alarms of a device that were created since then."""
    found, page = [], 0
    while True:
        query = {"pageSize": 1000, "page": page, "sortProperty": "createdTime", "sortOrder": "ASC", "startTime": since}
        answer = rest.get(f"/api/alarm/DEVICE/{device}", **query).json()
        found += answer["data"]
        if not answer["hasNext"]:
            return found
        page += 1


TWICE = {
    "type": "SIMPLE",
    "name": "Twice",
    "configuration": {
        "type": "SIMPLE",
        "arguments": {"n": {"refEntityKey": {"key": "n", "type": "TS_LATEST"}}},
        "expression": "n * 2",
        "output": {"type": "TIME_SERIES", "name": "twice", "decimalsByDefault": 0},
        "useLatestTs": True,
    },
}


def _of_profile(operation: str, spec: dict) -> dict:
    predicate = {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": HIGH}}
    key = {"type": "TIME_SERIES", "key": "phase"}
    condition = {"condition": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}], "spec": spec}
    return {"condition": condition, "schedule": None, "alarmDetails": None}


def _of_field(operation: str, **fields) -> dict:
    predicate = {"type": "NUMERIC", "operation": operation, "value": {"staticValue": HIGH}}
    filters = [{"argument": "phase", "valueType": "NUMERIC", "operation": "AND", "predicates": [predicate]}]
    return {"condition": {"expression": {"type": "SIMPLE", "operation": "AND", "filters": filters}} | fields}


# The same rule in both of its forms.
OF_PROFILE = {
    "id": "high",
    "alarmType": "High",
    "createRules": {
        "MAJOR": _of_profile("GREATER_OR_EQUAL", {"type": "REPEATING", "predicate": {"defaultValue": REPEATS}})
    },
    "clearRule": _of_profile("LESS", {"type": "SIMPLE"}),
}
OF_FIELD = {
    "name": "Often",
    "configuration": {
        "type": "ALARM",
        "arguments": {"phase": {"refEntityKey": {"key": "phase", "type": "TS_LATEST"}}},
        "createRules": {
            "MAJOR": _of_field("GREATER_OR_EQUAL", type="REPEATING", count={"staticValue": REPEATS}),
        },
        "clearRule": _of_field("LESS", type="SIMPLE"),
    },
}
