"""A log that cannot be written harms nothing else: its reader is gone, its disk is full, or nobody reads it."""

import contextlib
import os
from collections.abc import Iterator

import pytest
import requests

from harness.chains import SAVE, SWITCH, Chain, post
from harness.disk import fill, small_disk
from harness.server import STOP_WITHIN_S, Server, eventually

LOST = "fieldline_log_lost_lines_total"
NOISY = {"FIELDLINE_LOG": "trace"}


@contextlib.contextmanager
def piped(server: Server) -> Iterator[int]:
    """Starts a server that logs into a pipe; gives the end to read from, which is closed with the test if it is not."""
    reader, server.stderr = os.pipe()
    try:
        server.spawn()
    finally:
        os.close(server.stderr)
    try:
        yield reader
    finally:
        with contextlib.suppress(OSError):
            os.close(reader)


def works(server: Server, rounds: int = 40) -> None:
    """Provokes log lines in all parts of the server, and insists that everybody is answered."""
    rest = server.rest()
    device = rest.create_device()
    for n in range(rounds):
        post(server, device, {"ts": 1000 + n, "values": {"n": n}})
        if n % 10 == 0:
            chain = Chain()
            chain.connect(chain.node(SWITCH), "Post telemetry", chain.node(SAVE))
            chain.save(rest, root=True)
        wrong = requests.post(f"{server.http}/api/v1/nobody/telemetry", json={"n": n}, timeout=30)
        assert wrong.status_code == 401, wrong.text
    eventually(lambda: rest.values(device.id, "n") == list(range(rounds)), within=30)
    assert server.running
    assert requests.get(f"{server.http}/readyz", timeout=10).status_code == 200


def test_a_reader_of_the_log_that_dies_takes_nothing_with_it(make_server):
    server = make_server(env=NOISY)
    with piped(server) as reader:
        with open(reader, "rb", closefd=False) as log:
            # Up to a line that all starts have.
            eventually(lambda: b"ingest resumes" in log.read1(1 << 16))
        os.close(reader)
        eventually(server.is_ready)
        works(server)
        assert server.metrics()[LOST] > 0
        server.stop()


@pytest.mark.root
def test_a_full_disk_below_the_log_stops_only_the_log(make_server, tmp_path):
    with small_disk(tmp_path / "log", 4) as disk:
        server = make_server(env=NOISY)
        server.log_path = disk / "server.log"
        server.start()
        ballast = disk / "ballast"
        fill(ballast)
        works(server)
        assert server.metrics()[LOST] > 0
        ballast.unlink()
        # It goes on by itself, and says that something is missing. The disk may be full of the log again by then.
        server.log_path.write_bytes(b"")
        eventually(lambda: works(server, 1) or "log lines were lost" in server.log(), within=40)
        server.stop()


def test_a_log_that_nobody_reads_holds_nobody_up(make_server):
    server = make_server(env=NOISY)
    with piped(server):
        eventually(server.is_ready)

        def has_lost_lines() -> bool:
            works(server, 100)
            return server.metrics().get(LOST, 0) > 0

        # As long as it takes to fill the pipe and the memory for what waits.
        eventually(has_lost_lines, within=120)
        works(server)
        assert server.stop() < STOP_WITHIN_S
