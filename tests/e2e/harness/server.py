"""Starts, stops and kills the built binary on a data directory of the test's own."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import requests

from .engines import ON_SCALE, engines_for
from .rest import Rest

REPOSITORY = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("FIELDLINE_BIN", REPOSITORY / "target/release/fieldline")).resolve()

# Three servers are asked for everything there.
START_WITHIN_S = 120.0 if ON_SCALE else 20.0
# The promise: SIGTERM ends the process within ten seconds.
STOP_WITHIN_S = 10.0

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)

TENANT = ("tenant@thingsboard.org", "tenant")
SYSADMIN = ("sysadmin@thingsboard.org", "sysadmin")
CUSTOMER = ("customer@thingsboard.org", "customer")


class StartFailed(AssertionError):
    """The server ended, or did not become ready, after it was started."""


def _die_with_parent() -> None:
    """Runs in the child: an aborted test run leaves no server behind."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without its Fieldline settings, with these."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FIELDLINE_")}
    return kept | {k: str(v) for k, v in (extra or {}).items()}


def run_cli(*arguments: str, env: dict[str, str] | None = None, timeout: float = 20) -> subprocess.CompletedProcess:
    """Runs the binary to its end and returns what it said."""
    return subprocess.run(
        [BINARY, *arguments],
        env=environment(env),
        text=True,
        capture_output=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_parent,
    )


class Server:
    """One server process at a time, on one data directory, on ports that the system chooses."""

    def __init__(
        self, home: Path, *, demo: bool = True, env: dict[str, str] | None = None, data_dir: Path | None = None
    ):
        self.home = home
        self.home.mkdir(parents=True, exist_ok=True)
        self.data_dir = data_dir or home / "data"
        self.log_path = home / "server.log"
        self.demo = demo
        self.engines = engines_for(env or {})
        self.env = {
            "FIELDLINE_HTTP_LISTEN": "127.0.0.1:0",
            "FIELDLINE_MQTT_LISTEN": "127.0.0.1:0",
            "FIELDLINE_LOG": "info",
        }
        self.env |= (self.engines.settings() if self.engines else {}) | (env or {})
        self.stderr: int = subprocess.STDOUT
        """Where the log goes, if not into the file at `log_path`: a descriptor."""
        self.process: subprocess.Popen | None = None
        self.listening: dict[str, str] = {}

    # -- life --

    def spawn(self) -> None:
        """Starts the process and returns at once."""
        assert self.process is None, "the server is running already"
        assert BINARY.exists(), f"{BINARY} does not exist: build it first (make build)"
        # What a killed process left behind must not be taken for the address of the new one.
        (self.data_dir / "listening.json").unlink(missing_ok=True)
        command = [BINARY, "serve", "--data-dir", self.data_dir] + (["--demo"] if self.demo else [])
        with self.log_path.open("ab") as log:
            log.write(f"--- {time.strftime('%H:%M:%S')} {' '.join(map(str, command))}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                command,
                env=environment(self.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=self.stderr,
                preexec_fn=_die_with_parent,
            )

    def start(self, within: float = START_WITHIN_S) -> Server:
        """Starts the process and waits until it is ready."""
        self.spawn()
        return self.becomes_ready(within)

    def becomes_ready(self, within: float = START_WITHIN_S) -> Server:
        """Waits until the process is ready."""
        deadline = time.monotonic() + within
        while not self.is_ready():
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise StartFailed(f"the server ended with code {code} instead of starting:\n{self.log()[-3000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise StartFailed(f"the server was not ready within {within} s:\n{self.log()[-3000:]}")
            time.sleep(0.01)
        return self

    def is_listening(self) -> bool:
        """Whether the ports of the server are open; it may not be ready yet."""
        try:
            self.listening = json.loads((self.data_dir / "listening.json").read_text())
        except (OSError, ValueError):
            return False
        return True

    def is_ready(self) -> bool:
        """Whether the server says that it is ready."""
        try:
            return self.is_listening() and requests.get(f"{self.http}/readyz", timeout=5).status_code == 200
        except (OSError, ValueError, KeyError):
            return False

    def kill(self) -> None:
        """Ends the process as a power cut would: no chance to write anything."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self, within: float = STOP_WITHIN_S) -> float:
        """Asks the process to end, insists that it does in time and says so, and returns how long it took."""
        process, self.process = self.process, None
        assert process is not None and process.poll() is None, f"the server is not running:\n{self.log()[-3000:]}"
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end within {within} s of SIGTERM") from None
        took = time.monotonic() - started
        assert process.returncode == 0, f"the server ended with code {process.returncode} after SIGTERM"
        return took

    def leave(self) -> None:
        """Ends the process in any state, and deletes what it has elsewhere than in its directory."""
        self.kill()
        if self.engines is not None:
            self.engines.drop()
            self.engines = None

    @contextlib.contextmanager
    def lent(self) -> Iterator[Server]:
        """Runs for tests that share it; its clean end is checked if they passed."""
        try:
            yield self.start()
            self.close()
        finally:
            self.leave()

    def close(self) -> None:
        """Stops what still runs; a test that only used the server checks its clean end this way."""
        if self.process is not None:
            self.stop()

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self.process is not None and self.process.poll() is None

    # -- addresses --

    @property
    def http(self) -> str:
        """Base address of HTTP."""
        return f"http://{self.listening['http']}"

    @property
    def http_address(self) -> tuple[str, int]:
        """Host and port of HTTP."""
        return split_address(self.listening["http"])

    @property
    def mqtt_address(self) -> tuple[str, int]:
        """Host and port of MQTT over TCP."""
        return split_address(self.listening["mqtt"])

    @property
    def mqtts_address(self) -> tuple[str, int]:
        """Host and port of MQTT over TLS."""
        return split_address(self.listening["mqtts"])

    @property
    def coap_address(self) -> tuple[str, int]:
        """Host and port of CoAP over UDP."""
        return split_address(self.listening["coap"])

    @property
    def coaps_address(self) -> tuple[str, int]:
        """Host and port of CoAP over DTLS."""
        return split_address(self.listening["coaps"])

    @property
    def broker_address(self) -> tuple[str, int]:
        """Host and port of the publish/subscribe broker over TCP."""
        return split_address(self.listening["broker"])

    @property
    def broker_tls_address(self) -> tuple[str, int]:
        """Host and port of the publish/subscribe broker over TLS."""
        return split_address(self.listening["broker_tls"])

    # -- looking in --

    def rest(self, username: str = TENANT[0], password: str = TENANT[1]) -> Rest:
        """The REST API as a user, by default the demo tenant's administrator."""
        return Rest(self.http, username, password)

    def log(self) -> str:
        """Everything the process has printed, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def metrics(self) -> dict[str, float]:
        """The samples of /metrics, by their full name with labels."""
        text = requests.get(f"{self.http}/metrics", timeout=10).text
        samples = re.findall(r"^([a-zA-Z_:][^\s{]*(?:\{[^}]*\})?)\s+(\S+)", text, re.M)
        return {name: float(value) for name, value in samples}

    def lag(self) -> float:
        """How many records of the log are not stored yet."""
        lags = [value for name, value in self.metrics().items() if name.startswith("fieldline_ingest_lag_records")]
        assert lags
        return sum(lags)

    def limit_address_space(self) -> None:
        """Gives the process twice the memory that its configuration allows it, as addresses, and no more from now on."""
        twice = 2 * int(self.metrics()["fieldline_memory_budget_bytes"])
        limit = f"--as={twice}:{twice}"
        subprocess.run(["prlimit", "--pid", str(self.process.pid), limit], check=True, timeout=10)

    def memory_kib(self) -> int:
        """Resident memory of the process."""
        return self._status("VmRSS")

    def cpu_seconds(self) -> float:
        """Processor time that the process has taken so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def open_files(self) -> int:
        """Open file descriptors of the process."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def mqtt_connections(self) -> int:
        """Open file descriptors of the process that are sockets of its MQTT port, in whatever state."""
        return self.sockets_at(self.mqtt_address[1])

    def sockets_at(self, port: int) -> int:
        """Open file descriptors of the process that are sockets of such a port, in whatever state."""
        folder = Path(f"/proc/{self.process.pid}")
        lines = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
        sockets = {f"socket:[{fields[9]}]" for fields in lines if fields[1].endswith(f":{port:04X}")}
        held = 0
        for descriptor in (folder / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                held += os.readlink(descriptor) in sockets
        return held

    def _status(self, field: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise KeyError(field)


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def eventually(check, within: float = 30.0, every: float = 0.02):
    """Calls `check` until it returns something true, and returns that; its last exception or value is the failure."""
    for outcome in _attempts(check, within, every):
        if not isinstance(outcome, Exception) and outcome:
            return outcome
    if isinstance(outcome, Exception):
        raise outcome
    raise AssertionError(f"not so within {within} s; the last look found {outcome!r}")


def _attempts(check, within: float, every: float) -> Iterator:
    deadline = time.monotonic() + within
    while True:
        last_one = time.monotonic() > deadline
        try:
            outcome = check()
        except (AssertionError, OSError, KeyError, IndexError) as error:
            outcome = error
        yield outcome
        if last_one:
            return
        time.sleep(every)
