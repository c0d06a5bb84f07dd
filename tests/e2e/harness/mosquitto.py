"""A Mosquitto broker for tests, which can be killed."""

from __future__ import annotations

import contextlib
import getpass
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

from .server import _die_with_parent

START_WITHIN_S = 20
ATTEMPTS = 10


class Mosquitto:
    """One broker, for anybody, on a port that was free."""

    def __init__(self, folder: Path, **settings: object):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.settings = folder, settings
        self.port = 0
        self.process: subprocess.Popen | None = None

    def start(self) -> Mosquitto:
        """Starts it; a port that another program takes meanwhile is given up for another one."""
        for _ in range(ATTEMPTS):
            self.port = random.randint(20_000, 30_000)
            if self._starts():
                return self
        raise AssertionError((self.folder / "mosquitto.log").read_text())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _starts(self) -> bool:
        # Started by root it would become another user, who may not read certificates of tests.
        lines = [f"user {getpass.getuser()}", f"listener {self.port} 127.0.0.1", "allow_anonymous true"]
        lines += [f"{name} {value}" for name, value in self.settings.items()]
        (self.folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        with (self.folder / "mosquitto.log").open("wb") as log:
            self.process = subprocess.Popen(
                [program, "-c", self.folder / "mosquitto.conf"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                # Whoever else has the port would have kept the broker from it.
                if "running" in (self.folder / "mosquitto.log").read_text():
                    return True
            time.sleep(0.02)
        self.kill()
        return False
