"""Tenant walls and roles: every endpoint that the running server documents, for every role, against the table."""

import re

import pytest
import requests

from access import ROLES, TABLE, Row, World
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
            assert_shows_own(world, role, row, answer)
    if row.public:
        answer = send(Rest(shared.http), row, row.call(world, True))
        expected = {row.status} if row.expected["tenant"] == "+" else REFUSED[row.expected["tenant"]]
        assert answer.status_code in expected, f"nobody: {answer.status_code} {answer.text[:300]}"


def assert_shows_own(world: World, role: str, row: Row, answer: requests.Response) -> None:
    """What is served is one's own, and all of it."""
    expects_own = row.expected[role] == "+"
    if not expects_own:
        assert_shows_nothing(world, role, answer)
    if role not in ("sysadmin", "other"):
        assert_shows_nothing(world, role, answer, world.foreign())
    if expects_own and is_list(answer):
        assert row.shows is not None, f"say what {row.endpoint} has to show: {answer.text[:500]}"
    if not row.shows:
        return
    treasure = getattr(world, row.shows, row.shows)
    if expects_own:
        assert treasure in answer.text, f"{role} is not shown {row.shows} {treasure}: {answer.text[:500]}"
        return
    # What was asked for by name is the tenant's; in a list of all there is, the other tenant's administrator finds theirs.
    asks_for_treasure = "{" in row.path or any(s in asked(answer) for s in (treasure, *world.secrets()))
    if role == "other" and hasattr(world, row.shows) and not asks_for_treasure:
        own = getattr(world, f"other_{row.shows}")
        assert own in answer.text, f"{role} is not shown their own {row.shows} {own}: {answer.text[:500]}"


def is_list(answer: requests.Response) -> bool:
    """Whether it is a list, or a page of one."""
    try:
        body = answer.json()
    except ValueError:
        return False
    return isinstance(body, list) or (isinstance(body, dict) and "data" in body and "totalElements" in body)


def asked(answer: requests.Response) -> str:
    return answer.request.url + str(answer.request.body or "")


def assert_shows_nothing(world: World, role: str, answer: requests.Response, secrets: list[str] | None = None) -> None:
    # An answer may repeat the id that was asked for, but nothing that belongs to it.
    hidden = world.secrets() if secrets is None else secrets
    seen = [secret for secret in hidden if secret in answer.text and secret not in asked(answer)]
    assert not seen, f"{role} is shown {seen}: {answer.text[:500]}"


def forged(shared, world: World) -> Rest:
    """Somebody with the tenant administrator's token, signed by somebody else."""
    caller = Rest(shared.http)
    head, claims, signature = world.tenant.token.split(".")
    swapped = signature[40:80] + signature[:40] + signature[80:]
    caller.session.headers["X-Authorization"] = f"Bearer {head}.{claims}.{swapped}"
    return caller
