"""`fieldline bench`, and how a run of it has ended."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .server import BINARY, _die_with_parent, environment, run_cli

# Exit code of a run whose server has lost what it had acknowledged.
WRONG = 3


@dataclass
class Run:
    """How a run of `bench` has ended."""

    code: int
    output: str
    errors: str
    report: dict | None

    @property
    def outcome(self) -> dict:
        return self.report["outcome"]

    @property
    def verification(self) -> dict:
        return self.report["verification"]


class Bench:
    """Runs `fieldline bench` with a temporary directory of its own, in which nothing may be left."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)
        self.report = folder / "report.json"

    def __call__(self, *arguments, env: dict | None = None) -> Run:
        done = run_cli("bench", *self._all(arguments), env=self._env(env), timeout=100)
        return self._ended(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments) -> subprocess.Popen:
        return subprocess.Popen(
            [BINARY, "bench", *self._all(arguments)],
            env=environment(self._env(None)),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_die_with_parent,
        )

    def wait(self, process: subprocess.Popen) -> Run:
        output, errors = process.communicate(timeout=100)
        return self._ended(process.returncode, output, errors)

    def _all(self, arguments) -> list[str]:
        return [*map(str, arguments), "--json", str(self.report)]

    def _env(self, env: dict | None) -> dict:
        return {"TMPDIR": self.temporary} | (env or {})

    def _ended(self, code: int, output: str, errors: str) -> Run:
        assert not any(self.temporary.iterdir()), f"left behind: {list(self.temporary.iterdir())}"
        report = json.loads(self.report.read_text()) if self.report.exists() else None
        self.report.unlink(missing_ok=True)
        print(output, errors)
        return Run(code, output, errors, report)
