"""Ready commands of the user interface: each is run as it is shown, and what it publishes arrives."""

import json
import shlex
import subprocess

import pytest

from harness.people import create_tenancy
from harness.rest import unique
from harness.server import eventually


@pytest.fixture(scope="module")
def tenancy(sysadmin):
    return create_tenancy(sysadmin)


def run(command: str) -> None:
    # Debian's name of the tool says what it was built with.
    command = command.replace("coap-client", "coap-client-notls")
    subprocess.run(["sh", "-c", command], check=True, timeout=20, capture_output=True)


def test_each_command_publishes_what_it_says(tenancy):
    for protocol, tool in (("http", "curl"), ("mqtt", "mosquitto_pub"), ("coap", "coap-client")):
        device = tenancy.admin.create_device()
        command = tenancy.admin.get(f"/api/device-connectivity/{device.id}").json()[protocol][protocol]
        assert shlex.split(command)[0] == tool
        run(command)
        eventually(lambda device=device: tenancy.admin.values(device.id, "temperature") == [25])


def test_a_login_by_name_and_password_is_in_the_command(tenancy):
    device = tenancy.admin.create_device()
    value = json.dumps({"clientId": unique("client"), "userName": "name", "password": 'pa"$ss'})
    tenancy.admin.set_credentials(device.id, "MQTT_BASIC", None, value)
    shown = tenancy.admin.get(f"/api/device-connectivity/{device.id}").json()
    assert shown["http"]["http"] == "Check documentation"
    run(shown["mqtt"]["mqtt"])
    eventually(lambda: tenancy.admin.values(device.id, "temperature") == [25])


def test_credentials_are_shown_to_those_who_may_read_them(sysadmin, tenancy):
    device = tenancy.admin.create_device()
    path = f"/api/device-connectivity/{device.id}"
    create_tenancy(sysadmin).admin.get(path, expect=404)
    tenancy.customer_user.get(path, expect=403)
    sysadmin.get(path, expect=403)
    tenancy.admin.post(f"/api/customer/{tenancy.customer['id']['id']}/device/{device.id}")
    assert tenancy.customer_user.get(path).json() == tenancy.admin.get(path).json()


def test_a_gateway_is_started_from_a_file(tenancy):
    plain = tenancy.admin.create_device()
    gateway = tenancy.admin.create_device(additionalInfo={"gateway": True})
    path = "/api/device-connectivity/gateway-launch/{}/docker-compose/download"
    tenancy.admin.get(path.format(plain.id), expect=400)
    answer = tenancy.admin.get(path.format(gateway.id))
    assert answer.headers["x-filename"] == "docker-compose.yml"
    assert f'"accessToken={gateway.token}"' in answer.text
