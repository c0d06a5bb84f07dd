"""Tenant walls and roles: every endpoint that the running server documents, for every role, against the table."""

import re

import pytest
import requests

from access_table import ROLES, TABLE, Row, World
from harness.rest import Rest

# Refused: not allowed, or as if it was not there.
REFUSED = {"-": {403, 404}, "!": {400, 401, 403, 404, 409}}


@pytest.fixture(scope="module")
def world(sysadmin) -> World:
    return World(sysadmin)


def shape(endpoint: str) -> str:
    """Method and path, whatever the parameters are called."""
    return re.sub(r"\{[^}]*\}", "{}", endpoint)


def documented(shared) -> set[str]:
    paths = requests.get(f"{shared.http}/v3/api-docs/thingsboard", timeout=10).json()["paths"]
    methods = {"get", "post", "put", "delete", "patch"}
    return {f"{method.upper()} {path}" for path, item in paths.items() for method in item if method in methods}


def test_every_endpoint_has_its_row_and_every_row_its_endpoint(shared):
    in_table = {shape(row.endpoint) for row in TABLE}
    served = documented(shared)
    missing = sorted(endpoint for endpoint in served if shape(endpoint) not in in_table)
    assert not missing, "endpoints without a row: say who may call them\n" + "\n".join(missing)
    stale = sorted(in_table - {shape(endpoint) for endpoint in served})
    assert not stale, "rows of endpoints that are not served\n" + "\n".join(stale)


def send(caller: Rest, row: Row, call) -> requests.Response:
    method, path = row.endpoint.split(" ", 1)
    for name, value in (call.path or {}).items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"a parameter of {row.endpoint} has no value"
    return caller.call(method, path, params=call.query, json=call.body, expect=None, allow_redirects=False)


def ids() -> list[str]:
    return [f"{number}: {row.endpoint}" for number, row in enumerate(TABLE)]


@pytest.mark.parametrize("row", TABLE, ids=ids())
def test_each_role_is_served_or_refused_as_the_table_says(world, shared, row):
    before = world.snapshot()
    for role in ROLES:
        if row.expected[role] in REFUSED:
            answer = send(world.callers[role], row, row.call(world, False))
            assert answer.status_code in REFUSED[row.expected[role]], (
                f"{role}: {answer.status_code} {answer.text[:300]}"
            )
            if row.expected["tenant"] == "+" and not row.public:
                assert_shows_nothing(world, role, answer)
    if not row.public:
        for stranger in (Rest(shared.http), forged(shared, world)):
            answer = send(stranger, row, row.call(world, False))
            assert answer.status_code == 401, f"nobody: {answer.status_code} {answer.text[:300]}"
    assert world.snapshot() == before, "a refused call has changed something"

    for role in ROLES:
        if row.expected[role] not in REFUSED:
            caller = world.logged_in_anew(role) if row.ends_session else world.callers[role]
            answer = send(caller, row, row.call(world, True))
            assert answer.status_code == row.status, f"{role}: {answer.status_code} {answer.text[:300]}"
            if row.expected[role] == "o":
                assert_shows_nothing(world, role, answer)
    if row.public:
        answer = send(Rest(shared.http), row, row.call(world, True))
        expected = {row.status} if row.expected["tenant"] == "+" else REFUSED[row.expected["tenant"]]
        assert answer.status_code in expected, f"nobody: {answer.status_code} {answer.text[:300]}"


def assert_shows_nothing(world: World, role: str, answer: requests.Response) -> None:
    # An answer may repeat the id that was asked for, but nothing that belongs to it.
    asked = answer.request.url + str(answer.request.body or "")
    seen = [secret for secret in world.secrets() if secret in answer.text and secret not in asked]
    assert not seen, f"{role} is shown {seen}: {answer.text[:500]}"


def forged(shared, world: World) -> Rest:
    """Somebody with the tenant administrator's token, signed by somebody else."""
    caller = Rest(shared.http)
    head, claims, signature = world.tenant.token.split(".")
    swapped = signature[40:80] + signature[:40] + signature[80:]
    caller.session.headers["X-Authorization"] = f"Bearer {head}.{claims}.{swapped}"
    return caller
