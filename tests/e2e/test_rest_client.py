"""ThingsBoard's REST client for Python, unchanged, through all that it offers for what the product has."""

import json
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent / "rest_client"


def test_a_day_of_everybody_on_the_rest_client(make_server):
    server = make_server().start()
    said = subprocess.run(
        [FOLDER / ".venv/bin/python", FOLDER / "everything.py", server.http],
        text=True,
        capture_output=True,
        timeout=100,
    )
    assert said.returncode == 0, said.stdout[-2000:] + said.stderr[-8000:]
    called = json.loads(said.stdout.splitlines()[-1])
    assert len(called) >= 180, called
