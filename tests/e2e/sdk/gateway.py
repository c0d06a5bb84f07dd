"""A gateway on ThingsBoard's SDK, as its users write one: tells on standard output what reaches it, one line of JSON each.

Arguments: host, port, access token. Commands come on standard input, one line of JSON each.
"""

import json
import sys

from program import connect, tell
from tb_gateway_mqtt import TBGatewayMqttClient


def main() -> None:
    host, port, token = sys.argv[1:]
    client = TBGatewayMqttClient(host, int(port), username=token)
    connect(client)

    def on_call(_client, call):
        tell("call", call["device"], call["data"]["method"], call["data"]["params"])
        client.gw_send_rpc_reply(call["device"], call["data"]["id"], {"echo": call["data"]["params"]})

    client.gw_set_server_side_rpc_request_handler(on_call)
    client.gw_subscribe_to_all_attributes(lambda changes, *_: tell("changed", changes))
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        if command == "connect":
            client.gw_connect_device(*arguments).get()
            tell("done")
        elif command == "disconnect":
            client.gw_disconnect_device(*arguments)
            tell("done")
        elif command == "telemetry":
            tell("sent", client.gw_send_telemetry(*arguments).get())
        elif command == "attributes":
            tell("sent", client.gw_send_attributes(*arguments).get())
        elif command == "request":
            client.gw_request_shared_attributes(*arguments, lambda found, *_: tell("found", found["device"], found))
        elif command == "claim":
            client.gw_claim(*arguments).get()
            tell("done")
    client.disconnect()


main()
