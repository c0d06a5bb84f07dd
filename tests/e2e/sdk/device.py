"""A device on ThingsBoard's SDK, as its users write one: tells on standard output what reaches it, one line of JSON each.

Arguments: host, port, access token. Commands come on standard input, one line of JSON each.
"""

import json
import sys

from program import connect, tell
from tb_device_mqtt import TBDeviceMqttClient


def main() -> None:
    host, port, token = sys.argv[1:]
    client = TBDeviceMqttClient(host, int(port), username=token)
    connect(client)

    def on_call(number, call):
        tell("call", call)
        client.send_rpc_reply(number, {"echo": call["params"]})

    client.set_server_side_rpc_request_handler(on_call)
    client.subscribe_to_all_attributes(lambda changes, *_: tell("all", changes))
    client.subscribe_to_attribute("interval", lambda changes, *_: tell("interval", changes))
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        if command == "telemetry":
            tell("sent", client.send_telemetry(arguments[0]).get())
        elif command == "attributes":
            tell("sent", client.send_attributes(arguments[0]).get())
        elif command == "request":
            client.request_attributes(*arguments, callback=lambda found, *_: tell("found", found))
        elif command == "call":
            client.send_rpc_call(*arguments, lambda _number, answer, _error: tell("answer", answer))
        elif command == "claim":
            tell("sent", client.claim(*arguments).get())
    client.disconnect()


main()
