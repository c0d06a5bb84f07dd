"""A device on ThingsBoard's SDK that updates its firmware: tells on standard output when it has, with the version.

Arguments: host, port, access token. The path of the file that the image goes to comes on standard input, as JSON.
"""

import json
import sys
from pathlib import Path

from program import connect, tell
from tb_device_mqtt import TBDeviceMqttClient


def main() -> None:
    host, port, token = sys.argv[1:]
    client = TBDeviceMqttClient(host, int(port), username=token, chunk_size=50_000)
    connect(client)
    (path,) = json.loads(sys.stdin.readline())

    def on_received(_client, data, version):
        Path(path).write_bytes(data)
        tell("received", version)

    client.set_on_firmware_received_callback(on_received)
    client.get_firmware_update()
    # Answered after what it has just asked: were it told of the same package twice, it would begin twice, and the SDK cannot.
    client.request_attributes(shared_keys=["fw_title"], callback=lambda *_: tell("asked"))
    sys.stdin.read()


main()
