"""siege, as in ThingsBoard's stress report of 2021: 500 users posting telemetry over HTTP."""

import json
import subprocess

import pytest

from harness.server import eventually

USERS = 500
START_TS = 1_700_000_000_000


def besiege(tmp_path, urls: list[str], connection: str, posts_each: int) -> dict:
    """Lets each user post its share of the list, one post after the other; returns what siege says."""
    # A user begins at its share of the file: with as many lines as there are posts, each line is sent once.
    assert len(urls) == USERS * posts_each
    (tmp_path / "urls.txt").write_text("\n".join(urls) + "\n")
    settings = {"limit": USERS, "json_output": "true", "quiet": "true", "logging": "false", "connection": connection}
    (tmp_path / "siegerc").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    command = ["siege", "-R", tmp_path / "siegerc", "-f", tmp_path / "urls.txt", "--content-type", "application/json"]
    command += ["--benchmark", f"--concurrent={USERS}", f"--reps={posts_each}"]
    said = subprocess.run(
        command, text=True, capture_output=True, timeout=100, env={"HOME": tmp_path, "PATH": "/usr/bin"}
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout[said.stdout.index("{") :])


@pytest.mark.parametrize(("connection", "posts_each"), [("close", 20), ("keep-alive", 30)])
def test_five_hundred_users_are_all_served_and_what_they_post_is_stored(tmp_path, make_server, connection, posts_each):
    server = make_server().start()
    rest = server.rest()
    devices = [rest.create_device() for _ in range(10)]
    posts = USERS * posts_each
    urls = [
        f'{server.http}/api/v1/{devices[n % 10].token}/telemetry POST {{"ts":{START_TS + n},"values":{{"n":{n}}}}}'
        for n in range(posts)
    ]
    outcome = besiege(tmp_path, urls, connection, posts_each)
    # What is not 2xx or 3xx counts as failed, and so does a connection that is refused or broken.
    assert (outcome["availability"], outcome["failed_transactions"]) == (100.0, 0)
    assert outcome["transactions"] == outcome["successful_transactions"] == posts
    for first, device in enumerate(devices):
        wanted = list(range(first, posts, 10))
        assert eventually(lambda: rest.values(device.id, "n") == wanted)
