"""Bytes that rot on the disk: damage is reported with file and position, never served and never passed over."""

import json
import random
import re
import shutil
from pathlib import Path

import pytest
import requests

from harness.disk import flip, written_length
from harness.load import Load, Tally
from harness.rest import now_ms, telemetry
from harness.server import Server, StartFailed, eventually

pytestmark = pytest.mark.files

SEGMENTS = "journal"
SERIES = "series"


def segments(server: Server) -> list[Path]:
    """Files of the journal that hold records, oldest first."""
    found = [
        path for path in (server.data_dir / SEGMENTS).rglob("*") if path.is_file() and written_length(path) > 10_000
    ]
    assert found, f"no segments in {server.data_dir / SEGMENTS}"
    return sorted(found)


@pytest.fixture
def killed(make_server):
    """A server that was killed under load, with what it had acknowledged."""
    # Nothing is forgotten by the journal before the damage is done.
    server = make_server(env={"FIELDLINE_JOURNAL_RETAIN_BYTES": "1GiB"})
    rest = server.start().rest()
    tallies = [Tally(rest.create_device(), "n") for _ in range(4)]
    with Load(server, tallies) as load:
        eventually(lambda: load.acknowledged > 2000)
        server.kill()
    return server, tallies


def check_all(server: Server, tallies: list[Tally]) -> None:
    rest = server.rest()
    for tally in tallies:
        eventually(lambda: tally.check(rest.points(tally.device.id, "n")) or True)


@pytest.mark.parametrize("place", [0.02, 0.5, 0.9])
def test_a_corrupt_byte_in_the_middle_of_the_journal_stops_the_start_with_a_report(killed, place):
    server, tallies = killed
    segment = segments(server)[0]
    position = int(written_length(segment) * place)
    flip(segment, position)

    with pytest.raises(StartFailed):
        server.start()
    report = server.log().rsplit("--- ", 1)[-1]
    assert segment.name in report, "the report does not name the file"
    numbers = [int(number) for number in re.findall(r"\b\d+\b", report)]
    assert any(position - 200_000 <= number <= position for number in numbers), "the report does not say where"
    assert "panicked" not in report

    # A refusal changes nothing: with the byte mended, all is there.
    flip(segment, position)
    server.start()
    check_all(server, tallies)
    server.stop()


def test_an_operator_may_give_damaged_records_up(killed):
    server, tallies = killed
    segment = segments(server)[0]
    flip(segment, written_length(segment) // 2)
    usual = server.env
    server.env = usual | {"FIELDLINE_JOURNAL_DISCARD_DAMAGED": "true"}
    server.start()
    rest = server.rest()
    for tally in tallies:
        values = rest.values(tally.device.id, "n")
        assert len(values) == len(set(values)) and set(values) <= set(range(tally.sent))
    server.stop()
    server.env = usual
    server.start().stop()


TAILS = {
    "garbage": lambda written, rng: rng.randbytes(777),
    "the beginning of a block": lambda written, rng: written[:300],
    "zeros": lambda written, rng: bytes(5000),
    "one byte": lambda written, rng: b"F",
}


@pytest.mark.parametrize("tail", TAILS)
def test_an_unfinished_write_at_the_end_of_the_journal_is_cut_off(killed, tail):
    server, tallies = killed
    segment = segments(server)[-1]
    end = written_length(segment)
    with segment.open("r+b") as file:
        begin = file.read(1000)
        file.seek(end)
        file.write(TAILS[tail](begin, random.Random(1)))
    server.start()
    check_all(server, tallies)
    server.stop()


@pytest.mark.parametrize("bytes_lost", [1, 30, 200])
def test_a_journal_whose_end_is_missing_starts(killed, bytes_lost):
    server, tallies = killed
    segment = segments(server)[-1]
    with segment.open("r+b") as file:
        file.truncate(written_length(segment) - bytes_lost)
    rest = server.start().rest()
    # What was cut off was the last write of the log only, which a power cut could have taken before it was acknowledged.
    for tally in tallies:
        values = eventually(lambda: rest.values(tally.device.id, "n"))
        missing = tally.acknowledged.difference(values)
        assert len(missing) <= 100 and all(number > max(values) for number in missing)
    device = rest.create_device()
    assert post(server, device, '{"a":1}') == 200
    server.stop()
    rest = server.start().rest()
    assert eventually(lambda: rest.values(device.id, "a")) == [1]


@pytest.mark.parametrize("loss", ["the end of the journal", "damaged records given up", "all of the journal"])
def test_what_is_acknowledged_after_the_journal_has_lost_records_is_stored(make_server, loss):
    """The stores are ahead of the journal then: positions that were used already are used again."""
    # What the stores have applied is durable at once, and the journal keeps what is to be damaged.
    often = {"FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "20ms"}
    server = make_server(env=often | {"FIELDLINE_JOURNAL_RETAIN_BYTES": "1GiB"})
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(6)]
    for number in range(40):
        for device in devices:
            assert post(server, device, f'{{"before":{number}}}') == 200
    for device in devices:
        eventually(lambda: len(rest.values(device.id, "before")) == 40)
    server.stop()

    usual = server.env
    segment = segments(server)[-1]
    if loss == "the end of the journal":
        with segment.open("r+b") as file:
            file.truncate(written_length(segment) // 2)
    elif loss == "damaged records given up":
        flip(segment, written_length(segment) // 2)
        server.env = usual | {"FIELDLINE_JOURNAL_DISCARD_DAMAGED": "true"}
    else:
        shutil.rmtree(server.data_dir / SEGMENTS)

    rest = server.start().rest()
    for number in range(40):
        for device in devices:
            assert post(server, device, f'{{"after":{number}}}') == 200
    for device in devices:
        eventually(lambda: rest.values(device.id, "after") == list(range(40)))
        assert rest.values(device.id, "before") == list(range(40)), "what the stores had is gone"
    server.kill()
    server.env = usual
    rest = server.start().rest()
    for device in devices:
        eventually(lambda: rest.values(device.id, "after") == list(range(40)))


@pytest.fixture
def with_series(make_server):
    """A server, stopped, with series on its disk, and what is in them."""
    # Small enough that tables are written and rows are packed.
    server = make_server(env={"FIELDLINE_SERIES_MEMTABLE": "1MiB", "FIELDLINE_SERIES_PACK_BYTES": "256KiB"})
    rest = server.start().rest()
    rng = random.Random(5)
    base = now_ms() - 1_000_000_000
    # Random numbers do not compress, so that there is something to damage.
    series = {rest.create_device(): [round(rng.random(), 15) for _ in range(20_000)] for _ in range(12)}
    for device, values in series.items():
        for start in range(0, len(values), 5_000):
            elements = [{"ts": base + n * 1000, "values": {"v": values[n]}} for n in range(start, start + 5_000)]
            assert post(server, device, json.dumps(elements)) == 200
    for device, values in series.items():
        eventually(lambda: len(rest.values(device.id, "v")) == len(values))
    server.stop()
    return server, series


def post(server: Server, device, body: str) -> int:
    return requests.post(f"{server.http}/api/v1/{device.token}/telemetry", data=body, timeout=30).status_code


def largest_file(folder: Path, pattern: str) -> Path:
    found = max(folder.rglob(pattern), key=written_length)
    assert written_length(found) > 300_000, f"{found} is too small to be damaged in the middle"
    return found


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_corrupt_byte_in_a_time_series_table_is_an_error_of_some_series_alone(with_series, place):
    server, series = with_series
    table = largest_file(server.data_dir / SERIES, "tables/*")
    flip(table, int(written_length(table) * place))

    rest = server.start().rest()
    broken = []
    for device, values in series.items():
        path = telemetry(device.id, "values/timeseries")
        query = {"keys": "v", "startTs": 0, "endTs": now_ms(), "limit": 100_000, "orderBy": "ASC"}
        try:
            answer = rest.get(path, **query, useStrictDataTypes="true", expect=None)
        except requests.exceptions.ChunkedEncodingError:
            # A long answer that is under way when the damage is found is broken off, which no client takes for whole.
            broken.append(None)
            continue
        if answer.status_code == 200:
            assert [point["value"] for point in answer.json()["v"]] == values, "damage was served as data"
        else:
            broken.append(answer)
    assert broken, "the damage was not noticed"
    assert len(broken) <= len(series) // 3, f"{len(broken)} of {len(series)} series fail for one damaged byte"
    assert all(answer is None or (answer.status_code == 500 and answer.text) for answer in broken)
    report = server.log().rsplit("--- ", 1)[-1]
    assert "corrupt" in report, f"the operator is not told: {report}"

    # Everybody goes on sending, those with damaged series too: only ranges that the damage lies in cannot be read.
    for device in series:
        assert post(server, device, '{"later":1}') == 200
    for device in series:
        path, query = telemetry(device.id, "values/timeseries"), {"keys": "later", "useStrictDataTypes": "true"}
        assert eventually(lambda: rest.get(path, **query).json()["later"][0]["value"]) == 1
    server.stop()


def test_corrupt_bytes_in_the_log_of_the_time_series_engine_stop_the_start_with_a_report(with_series):
    server, _ = with_series
    series, backup = server.data_dir / SERIES, server.home / "backup"
    shutil.copytree(series, backup)
    log = largest_file(series, "*.jnl")
    # More than one: the log has the length of a value twice and reads one of them, so that a byte of the other means nothing.
    flip(log, written_length(log) // 2, count=16)
    with pytest.raises(StartFailed):
        server.start()
    # Either the damage itself is found, or that what was durable has gone with it; that depends on where the bytes lie.
    report = server.log().rsplit("ERROR", 1)[-1]
    assert str(series) in report and " is damaged" in report, report
    assert "panicked" not in report
    # As the report says. The engine may have cut off what it could not read.
    shutil.rmtree(series)
    shutil.copytree(backup, series)
    server.start().stop()
