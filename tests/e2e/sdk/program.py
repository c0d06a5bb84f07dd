"""What the programs on the SDK share: how they connect, and how they tell the test what happens to them."""

import json
from time import sleep


def tell(kind: str, *what) -> None:
    """One line of JSON on standard output."""
    print(json.dumps([kind, *what]), flush=True)


def connect(client) -> None:
    """Connects, and tells so once the SDK has subscribed to everything and knows the server's limits.

    Its own callback can't say that: it is set after the thread that calls it has begun, and is missed where that one is
    faster. The limits come by the thread that subscribes, after it has; without them the SDK keeps to its own, and waits
    for these where it also reads what arrives.
    """
    client.connect()
    while not client.rate_limits_received:
        sleep(0.01)
    tell("connected")
