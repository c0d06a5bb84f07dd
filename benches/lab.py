"""What the rows of the table are measured with: a server on a directory of its own, `fieldline bench`, and Markdown."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILT = REPOSITORY / "target/release/fieldline"
REPORTS = REPOSITORY / "bench-out"

START_WITHIN_S = 60
STOP_WITHIN_S = 60
LOOK_EVERY_S = 0.002
SETTLE_WITHIN_S = 60
# A server that takes less processor time in a second has nothing to do.
IDLE_CPU_S = 0.05
# No row takes longer, or something hangs.
ROW_WITHIN_S = 900
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Failed(Exception):
    """A row could not be measured."""


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """`fieldline serve` with its demo tenant, on ports that the system chooses."""

    def __init__(self, lab: Lab, name: str):
        self.lab, self.data = lab, lab.folder / name
        self.process: subprocess.Popen | None = None
        self.listening: dict[str, str] = {}
        self.start_s = 0.0

    def start(self) -> Server:
        """Starts it and waits until it is ready; notes how long that took."""
        (self.data / "listening.json").unlink(missing_ok=True)
        env = {"FIELDLINE_HTTP_LISTEN": "127.0.0.1:0", "FIELDLINE_MQTT_LISTEN": "127.0.0.1:0"}
        began = time.monotonic()
        with (self.lab.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.lab.binary, "serve", "--demo", "--data-dir", self.data],
                env=os.environ | env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > began + START_WITHIN_S:
                text = (self.lab.folder / "server.log").read_text(errors="replace")
                raise Failed(f"the server did not start:\n{text[-2000:]}")
            time.sleep(LOOK_EVERY_S)
        self.start_s = time.monotonic() - began
        return self

    def _is_ready(self) -> bool:
        try:
            self.listening = json.loads((self.data / "listening.json").read_text())
            with urllib.request.urlopen(f"{self.http}/readyz", timeout=5) as answer:
                return answer.status == 200
        except (OSError, ValueError, KeyError):
            return False

    def stop(self) -> None:
        """Ends it in an orderly way, so that everything is written."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_WITHIN_S)
            finally:
                process.kill()
                process.wait()

    @property
    def http(self) -> str:
        """Base address of HTTP."""
        return f"http://{self.listening['http']}"

    def options(self) -> list[str]:
        """Options of `bench` for a load on it."""
        host, _, port = self.listening["mqtt"].rpartition(":")
        return [
            *["--rest-url", self.http, "--mqtt-host", host, "--mqtt-port", port],
            *["--server-pid", str(self.process.pid)],
        ]

    def settle(self) -> None:
        """Waits until it has nothing to do, so that what a load has left to be done is not measured with the next one."""
        before = self.cpu_s()
        for _ in range(SETTLE_WITHIN_S):
            time.sleep(1)
            now = self.cpu_s()
            if now - before < IDLE_CPU_S:
                return
            before = now
        say(f"the server is still busy after {SETTLE_WITHIN_S} s")

    def cpu_s(self) -> float:
        """Processor time that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """Resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+)", status, re.M)[1]) / 1024

    def histogram(self, name: str) -> Histogram:
        """A histogram of its metrics as it is now."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        sample = rf"^{name}%s\s+(\S+)$"
        buckets = re.findall(sample % r'_bucket\{le="([^"]+)"\}', text, re.M)
        total, count = (re.search(sample % part, text, re.M) for part in ("_sum", "_count"))
        if not (buckets and total and count):
            return Histogram({}, 0, 0)
        return Histogram({float(le): float(n) for le, n in buckets}, float(total[1]), float(count[1]))


class Histogram:
    """Times that a server has counted, in seconds."""

    def __init__(self, buckets: dict[float, float], total: float, count: float):
        self.buckets, self.total, self.count = buckets, total, count

    def since(self, before: Histogram) -> Histogram:
        """What was added."""
        buckets = {le: n - before.buckets.get(le, 0) for le, n in self.buckets.items()}
        return Histogram(buckets, self.total - before.total, self.count - before.count)

    def mean_ms(self) -> float | None:
        """The mean."""
        return 1000 * self.total / self.count if self.count else None

    def quantile_ms(self, share: float) -> float | None:
        """A quantile, interpolated within its bucket."""
        wanted, lower, below = share * self.count, 0.0, 0.0
        for upper, counted in sorted(self.buckets.items()):
            if counted >= wanted > 0:
                if upper == float("inf"):
                    return 1000 * lower
                return 1000 * (lower + (upper - lower) * (wanted - below) / max(counted - below, 1e-9))
            lower, below = upper, counted
        return None


class Lab:
    """A folder for everything that is measured, on the disk that is measured, and a binary that nobody builds anew."""

    def __init__(self, folder: Path, seconds: float, program: Path = BUILT):
        self.folder, self.seconds = folder, seconds
        self.binary = folder / "fieldline"
        shutil.copy2(program, self.binary)

    @contextlib.contextmanager
    def server(self, name: str) -> Iterator[Server]:
        """A server that is ended and forgotten afterwards."""
        server = Server(self, name)
        try:
            yield server.start()
            server.stop()
        finally:
            if server.process is not None:
                server.process.kill()
                server.process.wait()
            shutil.rmtree(server.data, ignore_errors=True)

    def bench(self, row: str, command: str, *options) -> dict:
        """Runs `fieldline bench` to its end and returns its report."""
        say(f"{row}: bench {command} {' '.join(map(str, options))}")
        REPORTS.mkdir(exist_ok=True)
        report = REPORTS / f"{re.sub(r'[^A-Za-z0-9]+', '-', row)}.json"
        report.unlink(missing_ok=True)
        done = subprocess.run(
            [self.binary, "bench", command, *map(str, options), "--json", report],
            # The limit's file belongs on the same disk as the server's.
            env=os.environ | {"TMPDIR": str(self.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ROW_WITHIN_S,
            preexec_fn=_die_with_parent,
        )
        if done.returncode != 0 or not report.exists():
            raise Failed(f"{row}: bench ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        found = json.loads(report.read_text())
        for remark in found.get("remarks", []):
            say(f"  {remark}")
        return found

    def load(self, row: str, server: Server, *options) -> dict:
        """A telemetry load on a server that has nothing else to do; everything that it acknowledges has to be stored."""
        server.settle()
        common = ["--duration", self.seconds, "--alarms", 0, "--quiet"]
        return self.bench(row, "telemetry", *server.options(), *common, *options)


@contextlib.contextmanager
def lab(seconds: float, program: Path = BUILT) -> Iterator[Lab]:
    """A lab that is removed with everything in it."""
    where = os.environ.get("BENCH_DIR") or REPOSITORY / "target"
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=where))
    try:
        yield Lab(folder, seconds, program)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(line: str) -> None:
    """Tells how it goes, beside the tables."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


# -- Markdown --


def number(value: float | None, digits: int = 3) -> str:
    """So many significant digits, and all those before the point."""
    if value is None:
        return "–"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(digits - max(whole, 1), 0)}f}"


def ratio(value: float | None, by: float | None) -> float | None:
    """A quotient that means something."""
    return value / by if value is not None and by else None


def table(title: str, head: list[str], rows: list[list]) -> None:
    """Prints a table; the first column holds names, the others figures."""
    lines = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|---" + "|--:" * (len(head) - 1) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    if any(cell.startswith(UNQUIET) for line in lines for cell in line):
        print(f"\n{UNQUIET} The limit before and after the load is far apart: something else used the machine.")
    sys.stdout.flush()


# Before a limit that was not measured on a quiet machine.
UNQUIET = "≈"
COMPARED = ["load", "messages/s", "limit's", "ratio", "goal", "server µs CPU a message", "limit's", "p99 ms", "limit's"]


def compared(name: str, report: dict, goal: str = "–") -> list:
    """A load beside the same load on its limit server."""
    outcome, limit = report["outcome"], report["limit"]
    is_unquiet = any("something else uses this machine" in remark for remark in report["remarks"])
    return [
        name,
        outcome["rate"],
        (f"{UNQUIET} " if is_unquiet else "") + number(limit["rate"]),
        f"{ratio(outcome['rate'], limit['rate']) or 0:.2f}",
        goal,
        outcome.get("serverUsPerMessage"),
        limit.get("serverUsPerMessage"),
        outcome["latency"]["p99"] / 1000,
        limit["latency"]["p99"] / 1000,
    ]
