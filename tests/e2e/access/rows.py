"""The table and what its rows are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from access.world import World
from harness.chains import Chain, script

ROLES = ("sysadmin", "tenant", "customer", "stranger", "other")


@dataclass
class Call:
    """One request of a row."""

    path: dict[str, str] = None
    query: dict[str, Any] = None
    body: Any = None


@dataclass
class Row:
    """Expectations for one use of an endpoint."""

    endpoint: str
    """Method and path."""
    expected: dict[str, str]
    """By role."""
    call: Callable[[World, bool], Call]
    """Makes the request; the flag asks for things of its own, because the call will be served and may destroy them."""
    public: bool = False
    ends_session: bool = False
    """Each role logs in anew for the call."""
    status: int = 200
    shows: str | None = None
    """What those who are served have to see, needed where that is a list: the name of a thing of the World, or a text; an
    empty one where there is nothing to see. The other tenant's administrator sees their own thing of that kind instead."""

    @property
    def path(self) -> str:
        """The path, with its parameters in braces."""
        return self.endpoint.split(" ", 1)[1]


TABLE: list[Row] = []


def row(endpoint: str, columns: str, call: Callable[[World, bool], Call] | None = None, **more) -> None:
    TABLE.append(
        Row(endpoint, dict(zip(ROLES, columns.split(), strict=True)), call or (lambda w, fresh: Call()), **more)
    )


PAGE = {"pageSize": 100, "page": 0}


def page(**query):
    return lambda w, fresh: Call(query=PAGE | query)


LIST = page()


def device_id(body=None, query=None, **path):
    """A call on a device."""

    def make(w: World, fresh: bool) -> Call:
        target = w.make_device() if fresh else w.device
        given = {"deviceId": target, "entityType": "DEVICE", "entityId": target} | path
        return Call(given, query, body(w, target) if callable(body) else body)

    return make


def on(
    name: str, fixed: Callable[[World], str], make: Callable[[World], str] | None = None, body=None, query=None, **path
):
    """A call on one thing, whose id goes into the path under this name."""

    def call(w: World, fresh: bool) -> Call:
        target = make(w) if fresh and make else fixed(w)
        return Call(
            {name: target} | path, query(w) if callable(query) else query, body(w, target) if callable(body) else body
        )

    return call


def with_id(kind: str, **fields):
    """A body that names an existing thing of the tenant, with changes."""

    def body(w: World, target: str) -> dict:
        return w.tenant.get(f"/api/{kind}/{target}").json() | fields

    return body


def call(body=None, query=None, **path):
    """A request whose parts are values, or made from the World and the flag."""

    def made(part, w, fresh):
        return part(w, fresh) if callable(part) else part

    return lambda w, fresh: Call(
        {name: made(part, w, fresh) for name, part in path.items()}, made(query, w, fresh), made(body, w, fresh)
    )


def thing(name: str, make: str | None = None):
    """The id of a thing of the World, or of a new one."""
    return lambda w, fresh: getattr(w, make)() if fresh and make else getattr(w, name)


def fetched(kind: str, name: str, make: str, **fields):
    """A body that names an existing thing of the tenant, with changes."""
    return lambda w, fresh: w.tenant.get(f"/api/{kind}/{thing(name, make)(w, fresh)}").json() | fields


def named(kind: str, name: str):
    """The name of a thing."""
    return lambda w: w.tenant.get(f"/api/{kind}/{getattr(w, name)}").json()["name"]


def customer(w, fresh: bool) -> str:
    return w.customer_id


def assignee(w, fresh: bool) -> str:
    return w.customer_user.user["id"]["id"]


def home_customer(w) -> dict:
    return {"entityType": "CUSTOMER", "id": w.customer_id}


def device_of(device: str) -> dict:
    return {"entityType": "DEVICE", "id": device}


def nodes(chain_of: Callable[[Any, bool], str], *steps: tuple[str, dict]):
    """Nodes for a chain."""

    def body(w, fresh: bool) -> dict:
        chain = Chain()
        for step in steps or (script("filter.TbJsFilterNode", "TBEL", "return true;"),):
            chain.node(step(w) if callable(step) else step)
        return {
            "ruleChainId": {"entityType": "RULE_CHAIN", "id": chain_of(w, fresh)},
            "firstNodeIndex": 0,
            "nodes": chain.nodes,
            "connections": [],
        }

    return body


AT_DEVICE = {"entityType": "DEVICE", "entityId": thing("device")}


def assignable(kind: str, name: str, make: str) -> None:
    """The rows of a kind that is assigned to customers and listed; `name` and `make` are what the World calls it."""
    new, of_customer = call(**{f"{kind}Id": thing(name, make)}), call(query=PAGE, customerId=customer)
    assigned = call(customerId=customer, **{f"{kind}Id": thing(name)})
    row(f"POST /api/customer/{{customerId}}/{kind}/{{{kind}Id}}", "- + - - -", assigned)
    row(f"POST /api/customer/public/{kind}/{{{kind}Id}}", "- + - - -", new)
    row(f"DELETE /api/customer/{kind}/{{{kind}Id}}", "- + - - -", new)
    by_name = call(query=lambda w, fresh: {f"{kind}Name": named(kind, name)(w)})
    row(f"GET /api/tenant/{kind}", "- + - - -", by_name)
    row(f"GET /api/tenant/{kind}s", "- + - - -", by_name, shows=name)
    for lists in (f"{kind}s", f"{kind}Infos"):
        row(f"GET /api/customer/{{customerId}}/{lists}", "- + + - -", of_customer, shows=name)
        row(f"GET /api/tenant/{lists}", "- + - - o", LIST, shows=name)
