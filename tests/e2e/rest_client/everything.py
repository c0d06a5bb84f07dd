"""One pass over what tb-rest-client offers: a day of a system administrator, a tenant and a customer.

Every answer is parsed by the client's own models; a value of another type than they announce ends the program, and so does
whatever the client raises. At the end it tells which endpoints were called.
"""

import inspect
import json
import re
import sys
import threading
import time

import requests
from tb_rest_client import rest_client_base
from tb_rest_client.api_client import ApiClient
from tb_rest_client.models.models_ce import (
    Alarm,
    AlarmComment,
    Asset,
    AssetProfile,
    Customer,
    Dashboard,
    Device,
    DeviceProfile,
    DeviceProfileData,
    EntityRelation,
    EntityView,
    RuleChain,
    Tenant,
    TenantProfile,
    User,
)
from tb_rest_client.rest import ApiException
from tb_rest_client.rest_client_ce import RestClientCE

NULL_ID = "13814000-1dd2-11b2-8080-808080808080"
PLAIN = {"int": int, "float": (int, float), "str": str, "bool": bool}
ADDRESS = sys.argv[1]
# A model wants these, where ThingsBoard answers with null just as well.
NOT_FROM_THINGSBOARD = "`rule_chain_connections`, must not be `None`"
called = set()


def shape(path: str) -> str:
    """A path whose parameters have no names."""
    return re.sub(r"{[^}]*}", "{}", path.partition("{?")[0].partition("?")[0])


DESCRIPTION = requests.get(f"{ADDRESS}/v3/api-docs/thingsboard", timeout=30).json()
SERVED = {f"{method.upper()} {shape(path)}" for path, item in DESCRIPTION["paths"].items() for method in item}


class NotServed(Exception):
    """The server does not have this endpoint."""


def check(value, type_name: str, where: str) -> None:
    """Holds what was parsed against the type that the client's models announce."""
    if value is None or type_name in ("object", "JsonNode", "ObjectNode"):
        return
    # What a model refuses is not raised, but given back. (Other errors are of models that are not complete.)
    assert not isinstance(value, ValueError) or NOT_FROM_THINGSBOARD in str(value), f"{where}: {value}"
    if listed := re.fullmatch(r"list\[(.*)]", type_name):
        assert isinstance(value, list), f"{where} is {value!r}, no list"
        for index, item in enumerate(value):
            check(item, listed[1], f"{where}[{index}]")
    elif mapped := re.fullmatch(r"dict\(([^,]*), (.*)\)", type_name):
        assert isinstance(value, dict), f"{where} is {value!r}, no object"
        for key, item in value.items():
            check(item, mapped[2], f"{where}.{key}")
    elif type_name in PLAIN:
        wrong = isinstance(value, bool) and type_name != "bool"
        assert isinstance(value, PLAIN[type_name]) and not wrong, f"{where} is {value!r}, not {type_name}"
    else:
        for attribute, inner in getattr(value, "swagger_types", {}).items():
            check(getattr(value, attribute), inner, f"{where}.{attribute}")


class CheckedClient(ApiClient):
    """The client's own, which notes what is called and checks what was parsed."""

    def call_api(self, resource_path, method, *args, **options):
        endpoint = f"{method} {shape(resource_path)}"
        # Devices have an API of their own, which is not described with that of people.
        if endpoint not in SERVED and "/api/v1/" not in endpoint:
            raise NotServed(endpoint)
        called.add(endpoint)
        return super().call_api(resource_path, method, *args, **options)

    def deserialize(self, response, response_type):
        value = super().deserialize(response, response_type)
        check(value, response_type, f"{response.urllib3_response.geturl()}: {response_type}")
        return value


rest_client_base.ApiClient = CheckedClient


def log_in(username: str, password: str) -> RestClientCE:
    client = RestClientCE(ADDRESS)
    client.login(username, password)
    return client


def plain(client: RestClientCE, path: str) -> dict:
    """An answer for which the client has no whole model."""
    return requests.get(ADDRESS + path, headers={"X-Authorization": f"Bearer {client.get_token()}"}, timeout=30).json()


def missing(call, *args) -> bool:
    """Whether the server says that there is no such thing."""
    try:
        call(*args)
    except ApiException as error:
        assert error.status == 404, error
        return True
    return False


def activation_token(client: RestClientCE, user: User) -> str:
    return re.search(r"activateToken=(\w+)", client.get_activation_link(user.id))[1]


def eventually(look):
    deadline = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
    return found


# Parameters that mean something else in a controller.
OTHERWISE = {"ota_package_controller": {"type": "FIRMWARE"}}


def read_everything(client: RestClientCE, known: dict) -> None:
    """Every reading method of every controller whose parameters are known."""
    for name, controller in sorted(vars(client).items()):
        if not name.endswith("_controller"):
            continue
        for method_name, method in inspect.getmembers(controller, inspect.ismethod):
            if "_using_get" not in method_name or method_name.endswith("_with_http_info"):
                continue
            required = [
                p.name for p in inspect.signature(method).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            if not all(parameter in known for parameter in required):
                continue
            given = known | OTHERWISE.get(name, {})
            try:
                method(*[given[parameter] for parameter in required])
            except NotServed:
                continue
            except AttributeError as error:
                # The client lacks a model that it names.
                assert "models_pe' has no attribute" in str(error), error
            except ApiException as error:
                # It is another role's, or about a link that has been followed, or not yet, or mail that is not set up, or a
                # gateway's file of another device.
                known_reasons = "already activated|is not active|No Administration mail settings|must be a gateway"
                if error.status != 403 and not re.search(known_reasons, str(error.body)):
                    raise AssertionError(f"{name}.{method_name}: {error}") from error


def as_system_administrator(client: RestClientCE) -> Tenant:
    assert client.get_user().authority == "SYS_ADMIN"
    default = client.get_default_tenant_profile_info()
    assert default.name == "Default"
    configuration = {"type": "DEFAULT", "maxDevices": 100}
    profile = client.save_tenant_profile(
        TenantProfile(name="Small", profile_data={"configuration": configuration, "queueConfiguration": None})
    )
    assert profile.profile_data.configuration["maxDevices"] == 100
    profile.description = "A hundred devices"
    assert client.save_tenant_profile(profile).description == profile.description
    tenant = client.save_tenant(Tenant(title="Works", tenant_profile_id=profile.id, country="AT"))
    assert client.get_tenant_by_id(tenant.id).title == "Works"
    assert client.get_tenant_info_by_id(tenant.id).tenant_profile_name == "Small"
    assert "Works" in [found.title for found in client.get_tenants(100, 0, text_search="wor").data]
    user = User(
        email="boss@example.com", authority="TENANT_ADMIN", tenant_id=tenant.id, first_name="B", last_name="Oss"
    )
    user = client.save_user(user, send_activation_mail=False)
    body = {"activateToken": activation_token(client, user), "password": "a long password"}
    assert client.activate_user(body, False).token
    assert client.get_tenant_admins(tenant.id, 10, 0).data[0].email == "boss@example.com"
    read_everything(
        client,
        {
            "tenant_id": tenant.id.id,
            "tenant_profile_id": profile.id.id,
            "user_id": user.id.id,
            "key": "general",
            "page_size": 10,
            "page": 0,
            "service_type": "TB_RULE_ENGINE",
            "component_type": "FILTER",
            "component_types": "FILTER,ACTION",
            "component_descriptor_clazz": "org.thingsboard.rule.engine.filter.TbJsFilterNode",
        },
    )
    return tenant


def devices(client: RestClientCE, customer: Customer) -> Device:
    profile = DeviceProfile(
        name="meters",
        type="DEFAULT",
        transport_type="DEFAULT",
        profile_data=DeviceProfileData(
            configuration={"type": "DEFAULT"},
            transport_configuration={"type": "DEFAULT"},
            provision_configuration={"type": "DISABLED"},
        ),
    )
    profile = client.save_device_profile(profile)
    assert "meters" in [found.name for found in client.get_device_profile_infos(10, 0).data]
    device = client.save_device(
        Device(name="meter 1", device_profile_id=profile.id, label="cellar"), access_token="METER1"
    )
    assert (device.type, device.customer_id.id) == ("meters", NULL_ID)
    credentials = client.get_device_credentials_by_device_id(device.id)
    assert credentials.credentials_id == "METER1"
    credentials.credentials_id = "METER2"
    assert client.update_device_credentials(credentials).credentials_id == "METER2"
    device.label = "roof"
    device = client.save_device(device)
    assert client.get_device_by_id(device.id).label == "roof"
    assert client.get_tenant_device("meter 1").id.id == device.id.id
    assert client.get_tenant_devices(10, 0, text_search="METER").total_elements == 1
    assert client.get_tenant_device_infos(10, 0).data[0].device_profile_name == "meters"
    assert [found.name for found in client.get_devices_by_ids([device.id.id])] == ["meter 1"]
    assert client.assign_device_to_customer(customer.id, device.id).customer_id.id == customer.id.id
    assert client.get_customer_device_infos(customer.id, 10, 0).data[0].customer_title == customer.title
    assert client.get_customer_devices(customer.id, 10, 0).total_elements == 1
    client.unassign_device_from_customer(device.id)
    assert client.assign_device_to_public_customer(device.id).customer_id.id not in (NULL_ID, customer.id.id)
    client.assign_device_to_customer(customer.id, device.id)
    both = {"device": {"name": "meter 2", "type": "meters"}, "credentials": {"credentialsType": "ACCESS_TOKEN"}}
    both["credentials"]["credentialsId"] = "METER3"
    second = client.save_device_with_credentials(both)
    assert "meters" in [subtype.type for subtype in client.get_device_types()]
    rows = {"file": "name,type\nmeter 2,meters\nmeter 3,meters\n", "mapping": {"delimiter": ",", "header": True}}
    rows["mapping"] |= {"update": True, "columns": [{"type": "NAME"}, {"type": "TYPE"}]}
    # (The client's model of the answer has no numbers.)
    assert client.process_devices_bulk_import(rows).errors_list == []
    assert client.get_tenant_device("meter 3").type == "meters"
    client.delete_device(second.id)
    assert missing(client.get_device_by_id, second.id)
    return device


def assets(client: RestClientCE, customer: Customer, device: Device) -> Asset:
    profile = client.save_asset_profile(AssetProfile(name="house"))
    asset = client.save_asset(Asset(name="house 1", asset_profile_id=profile.id))
    assert asset.type == "house"
    assert client.get_tenant_asset("house 1").id.id == asset.id.id
    assert client.get_tenant_asset_infos(10, 0).data[0].asset_profile_name == "house"
    assert client.assign_asset_to_customer(customer.id, asset.id).customer_id.id == customer.id.id
    assert client.get_customer_assets(customer.id, 10, 0).total_elements == 1
    assert client.get_customer_asset_infos(customer.id, 10, 0).data[0].customer_title == customer.title
    client.save_relation(EntityRelation(_from=asset.id, to=device.id, type="Contains", type_group="COMMON"))
    assert client.get_relation(asset.id, "Contains", device.id).to.id == device.id.id
    assert client.find_info_by_from(asset.id)[0].to_name == "meter 1"
    assert client.find_by_from(asset.id, "Contains")[0].type == "Contains"
    assert client.find_by_to(device.id, "Contains")[0]._from.id == asset.id.id
    parameters = {"rootId": asset.id.id, "rootType": "ASSET", "direction": "FROM", "maxLevel": 2}
    parameters |= {"relationTypeGroup": "COMMON", "fetchLastLevelOnly": False}
    related = {"parameters": parameters, "filters": [{"relationType": "Contains", "entityTypes": ["DEVICE"]}]}
    assert client.find_by_query_v3(related)[0].to.id == device.id.id
    assert client.find_info_by_query(related)[0].to_name == "meter 1"
    search = {"parameters": parameters, "relationType": "Contains", "deviceTypes": ["meters"]}
    assert [found.name for found in client.find_by_query_v1(search)] == ["meter 1"]
    return asset


def telemetry(client: RestClientCE, device: Device) -> None:
    client.save_entity_telemetry(
        device.id, "ANY", {"ts": 1_700_000_000_000, "values": {"temperature": 20.5, "on": True}}
    )
    client.save_entity_telemetry_with_ttl(device.id, "ANY", 1_000_000_000, {"temperature": 21})
    assert sorted(client.get_timeseries_keys_v1(device.id)) == ["on", "temperature"]
    latest = client.get_latest_timeseries(device.id, keys="temperature", use_strict_data_types=True)
    assert latest["temperature"][0]["value"] == 21
    now = time.time_ns() // 1_000_000
    points = client.get_timeseries(device.id, "temperature", 0, now + 60_000, limit=10, order_by="ASC")
    assert [point["value"] for point in points["temperature"]] == ["20.5", "21"]
    mean = client.get_timeseries(
        device.id, "temperature", 1_699_999_999_000, 1_700_000_001_000, interval=2000, agg="AVG"
    )
    assert mean["temperature"][0]["value"] == "20.5"
    client.save_device_attributes(device.id, "SHARED_SCOPE", {"interval": 30})
    client.save_entity_attributes_v1(device.id, "SERVER_SCOPE", {"floor": 2})
    client.save_entity_attributes_v2(device.id, "SERVER_SCOPE", {"room": "a"})
    assert {"floor", "room"} <= set(client.get_attribute_keys_by_scope(device.id, "SERVER_SCOPE"))
    assert client.get_attributes_by_scope(device.id, "SHARED_SCOPE", keys="interval")[0]["value"] == 30
    assert {"interval", "floor"} <= {found["key"] for found in client.get_attributes(device.id)}
    client.delete_entity_attributes(device.id, "SERVER_SCOPE", "room")
    client.delete_device_attributes(device.id, "SERVER_SCOPE", "floor")
    assert not {"room", "floor"} & set(client.get_attribute_keys(device.id))
    client.delete_entity_timeseries(device.id, "on", delete_all_data_for_keys=True)
    assert client.get_timeseries_keys_v1(device.id) == ["temperature"]


def as_the_device(client: RestClientCE, device: Device) -> str:
    """The client speaks for devices, too; over HTTP, with a call in both directions. Returns the id of a kept call."""
    client.post_telemetry("METER2", {"humidity": 40})
    eventually(lambda: "humidity" in client.get_timeseries_keys_v1(device.id))
    client.post_device_attributes("METER2", {"serial": "x"})
    eventually(lambda: "serial" in client.get_attribute_keys_by_scope(device.id, "CLIENT_SCOPE"))

    def answer() -> None:
        asked = requests.get(f"{ADDRESS}/api/v1/METER2/rpc", params={"timeout": 20000}, timeout=30).json()
        client.reply_to_command("METER2", str(asked["id"]), {"echo": asked["params"]})

    waiting = threading.Thread(target=answer)
    waiting.start()
    call = {"method": "echo", "params": {"pin": 7}, "timeout": 20000, "retries": 3}
    # A device that polls is there only while it does.
    answered = eventually(lambda: reached(client, device, call))
    waiting.join()
    assert answered == {"echo": {"pin": 7}}, answered
    kept = client.handle_one_way_device_rpc_request(device.id, call | {"persistent": True})
    return kept["rpcId"]


def reached(client: RestClientCE, device: Device, call: dict):
    try:
        return client.handle_two_way_device_rpc_request(device.id, call)
    except ApiException as error:
        assert error.status in (408, 409, 504), error
        return None


def queries(client: RestClientCE, device: Device) -> None:
    page = {
        "pageSize": 10,
        "page": 0,
        "sortOrder": {"key": {"type": "ENTITY_FIELD", "key": "name"}, "direction": "ASC"},
    }
    warm = {"key": {"type": "TIME_SERIES", "key": "temperature"}, "valueType": "NUMERIC"}
    warm["predicate"] = {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 20}}
    query = {"entityFilter": {"type": "deviceType", "deviceTypes": ["meters"]}, "keyFilters": [warm]}
    assert client.count_entities_by_query(query) == 1
    query |= {"entityFields": [{"type": "ENTITY_FIELD", "key": "name"}], "pageLink": page}
    query |= {"latestValues": [{"type": "TIME_SERIES", "key": "temperature"}]}
    found = client.find_entity_data_by_query(query).data[0]
    assert found.entity_id.id == device.id.id
    assert found.latest["TIME_SERIES"]["temperature"].value == "21"
    keys = client.find_entity_timeseries_and_attributes_keys_by_query(True, True, query)
    keys = keys if isinstance(keys, dict) else keys.to_dict()
    assert "temperature" in json.dumps(keys)


def alarms(client: RestClientCE, device: Device, user: User) -> Alarm:
    alarm = client.save_alarm(
        Alarm(
            name="hot",
            type="hot",
            originator=device.id,
            severity="CRITICAL",
            status="ACTIVE_UNACK",
            acknowledged=False,
            cleared=False,
            details={"t": 99},
        )
    )
    assert alarm.status == "ACTIVE_UNACK"
    assert client.get_alarm_info_by_id(alarm.id).originator_name == "meter 1"
    assert client.get_highest_alarm_severity(device.id) == "CRITICAL"
    client.assign_alarm(alarm.id, user.id.id)
    assert client.get_alarm_by_id(alarm.id).assignee_id.id == user.id.id
    client.unassign_alarm(alarm.id)
    comment = client.save_alarm_comment(alarm.id, AlarmComment(comment={"text": "I go there"}))
    assert "I go there" in json.dumps([found.comment for found in client.get_alarm_comments(alarm.id, 10, 0).data])
    client.delete_alarm_comment(alarm.id, comment.id)
    assert client.ack_alarm(alarm.id).status == "ACTIVE_ACK"
    client.clear_alarm(alarm.id)
    assert client.get_alarms(device.id, 10, 0, search_status="CLEARED").data[0].status == "CLEARED_ACK"
    assert client.get_all_alarms(10, 0).total_elements == 1
    filtered = {"entityFilter": {"type": "singleEntity", "singleEntity": device.id}, "alarmFields": []}
    filtered["pageLink"] = {"pageSize": 10, "page": 0, "typeList": ["hot"], "searchPropagatedAlarms": False}
    assert client.find_alarm_data_by_query(filtered).data[0].id.id == alarm.id.id
    return alarm


def dashboards(client: RestClientCE, customer: Customer) -> Dashboard:
    dashboard = client.save_dashboard(Dashboard(title="Overview", configuration={"widgets": {}}))
    assert client.get_dashboard_by_id(dashboard.id).configuration == {"widgets": {}}
    assert client.assign_dashboard_to_customer(customer.id, dashboard.id).assigned_customers[0].title == customer.title
    assert client.get_customer_dashboards(customer.id, 10, 0).total_elements == 1
    client.assign_dashboard_to_public_customer(dashboard.id)
    client.unassign_dashboard_from_public_customer(dashboard.id)
    assert client.get_tenant_dashboards(10, 0).data[0].title == "Overview"
    client.set_tenant_home_dashboard_info({"dashboardId": dashboard.id, "hideDashboardToolbar": False})
    assert client.get_home_dashboard().title == "Overview"
    assert client.get_server_time() > 1_700_000_000_000
    return dashboard


def rule_chains(client: RestClientCE) -> tuple[RuleChain, str]:
    root = next(chain for chain in client.get_rule_chains(10, 0).data if chain.root)
    chain = client.save_rule_chain_v1(RuleChain(name="Second", tenant_id=root.tenant_id, type="CORE", debug_mode=False))
    node = {"type": "org.thingsboard.rule.engine.filter.TbMsgTypeSwitchNode", "name": "ways", "configuration": {}}
    save = {"type": "org.thingsboard.rule.engine.telemetry.TbMsgTimeseriesNode", "name": "save", "configuration": {}}
    nodes = {"ruleChainId": chain.id, "firstNodeIndex": 0, "nodes": [node, save], "ruleChainConnections": []}
    nodes["connections"] = [{"fromIndex": 0, "toIndex": 1, "type": "Post telemetry"}]
    client.save_rule_chain_meta_data(nodes)
    saved = plain(client, f"/api/ruleChain/{chain.id.id}/metadata")["nodes"]
    assert [node["name"] for node in saved] == ["ways", "save"]
    client.set_root_rule_chain(chain.id)
    assert client.get_rule_chain_by_id(chain.id).root
    client.set_root_rule_chain(root.id)
    exported = client.export_rule_chains(10)
    assert {found.name for found in exported.rule_chains} == {root.name, "Second"}
    assert client.is_tbel_enabled() is True
    script = {"script": "return msg.a > 1;", "scriptType": "filter", "argNames": ["msg", "metadata", "msgType"]}
    tried = client.test_script(script | {"msg": '{"a":2}', "metadata": {}, "msgType": "X"})
    assert "true" in json.dumps(tried), tried
    return chain, saved[0]["id"]["id"]


def entity_view(client: RestClientCE, customer: Customer, device: Device) -> EntityView:
    keys = {"timeseries": ["temperature"], "attributes": {"cs": [], "ss": [], "sh": ["interval"]}}
    view = client.save_entity_view(EntityView(name="view", type="public", entity_id=device.id, keys=keys))
    assert client.get_tenant_entity_view("view").id.id == view.id.id
    assert client.assign_entity_view_to_customer(customer.id, view.id).customer_id.id == customer.id.id
    assert client.get_customer_entity_views(customer.id, 10, 0).total_elements == 1
    assert client.get_latest_timeseries(view.id)["temperature"][0]["value"] == "21"
    return view


def as_tenant(client: RestClientCE) -> str:
    me = client.get_user()
    assert me.authority == "TENANT_ADMIN"
    customer = client.save_customer(Customer(title="Family"))
    assert client.get_tenant_customer("Family").id.id == customer.id.id
    assert "Family" in json.dumps(client.get_customer_title_by_id(customer.id))
    person = User(email="aunt@example.com", authority="CUSTOMER_USER", customer_id=customer.id)
    person = client.save_user(person, send_activation_mail=False)
    assert client.get_customer_users(customer.id, 10, 0).data[0].email == "aunt@example.com"
    device = devices(client, customer)
    asset = assets(client, customer, device)
    telemetry(client, device)
    rpc = as_the_device(client, device)
    assert client.get_persisted_rpc(rpc).status in ("QUEUED", "SENT")
    assert client.get_persisted_rpc_by_device(device.id, 10, 0)
    queries(client, device)
    alarm = alarms(client, device, me)
    dashboard = dashboards(client, customer)
    chain, node = rule_chains(client)
    view = entity_view(client, customer, device)
    client.save_user_settings({"theme": "dark"})
    assert client.get_user_settings() == {"theme": "dark"}
    assert client.get_tenant_usage_info().max_devices == 100
    queue = plain(client, "/api/queues/name/Main")
    read_everything(
        client,
        {
            "device_id": device.id.id,
            "device_profile_id": device.device_profile_id.id,
            "device_name": "meter 1",
            "asset_id": asset.id.id,
            "asset_profile_id": asset.asset_profile_id.id,
            "asset_name": "house 1",
            "customer_id": customer.id.id,
            "customer_title": "Family",
            "user_id": person.id.id,
            "tenant_id": me.tenant_id.id,
            "alarm_id": alarm.id.id,
            "dashboard_id": dashboard.id.id,
            "action": "visit",
            "rule_chain_id": chain.id.id,
            "rule_node_id": node,
            "entity_view_id": view.id.id,
            "entity_view_name": "view",
            "queue_id": queue["id"]["id"],
            "queue_name": "Main",
            "rpc_id": rpc,
            "entity_type": "DEVICE",
            "entity_id": device.id.id,
            "event_type": "LC_EVENT",
            "scope": "SERVER_SCOPE",
            "keys": "temperature",
            "start_ts": 0,
            "end_ts": 2_000_000_000_000,
            "from_id": asset.id.id,
            "from_type": "ASSET",
            "to_id": device.id.id,
            "to_type": "DEVICE",
            "relation_type": "Contains",
            "device_ids": device.id.id,
            "asset_ids": asset.id.id,
            "customer_ids": customer.id.id,
            "user_ids": person.id.id,
            "entity_view_ids": view.id.id,
            "device_profile_ids": device.device_profile_id.id,
            "asset_profile_ids": asset.asset_profile_id.id,
            "rule_chain_ids": chain.id.id,
            "dashboard_ids": dashboard.id.id,
            "tenant_ids": me.tenant_id.id,
            "service_type": "TB_RULE_ENGINE",
            "component_type": "FILTER",
            "component_types": "FILTER,ACTION",
            "component_descriptor_clazz": "org.thingsboard.rule.engine.filter.TbJsFilterNode",
            "limit": 10,
            "type": "general",
            "page_size": 10,
            "page": 0,
        },
    )
    actions = {entry.action_type for entry in client.get_audit_logs(100, 0).data}
    assert {"ADDED", "UPDATED", "ASSIGNED_TO_CUSTOMER", "CREDENTIALS_UPDATED"} <= actions, actions
    assert client.get_audit_logs_by_entity_id(device.id, 10, 0).data[0].entity_name == "meter 1"
    client.delete_rpc(rpc)
    client.delete_relation(asset.id, "Contains", device.id)
    assert client.delete_alarm(alarm.id) is True
    client.delete_entity_view(view.id)
    client.delete_dashboard(dashboard.id)
    client.delete_rule_chain(chain.id)
    client.delete_asset(asset.id)
    assert missing(client.get_asset_by_id, asset.id)
    return activation_token(client, person)


def as_customer(client: RestClientCE) -> None:
    me = client.get_user()
    assert me.authority == "CUSTOMER_USER"
    assert [device.name for device in client.get_customer_devices(me.customer_id, 10, 0).data] == ["meter 1"]
    try:
        client.get_tenant_devices(10, 0)
        raise AssertionError("that is for administrators")
    except ApiException as error:
        assert error.status == 403 and json.loads(error.body)["errorCode"] == 20
    changed = client.change_password({"currentPassword": "a long password", "newPassword": "another password"})
    assert changed


sysadmin = log_in("sysadmin@thingsboard.org", "sysadmin")
tenant = as_system_administrator(sysadmin)
boss = log_in("boss@example.com", "a long password")
before = boss.token_info["refreshToken"]
boss.refresh()
assert boss.token_info["refreshToken"] != before
# The client refreshes by itself in a thread of its own, while it is used.
with boss:
    token = as_tenant(boss)
sysadmin.activate_user({"activateToken": token, "password": "a long password"}, False)
aunt = log_in("aunt@example.com", "a long password")
as_customer(aunt)
aunt = log_in("aunt@example.com", "another password")
aunt.logout()
try:
    aunt.get_user()
    raise AssertionError("the session is over")
except ApiException as error:
    assert error.status == 401
sysadmin.delete_tenant(tenant.id)
assert missing(sysadmin.get_tenant_by_id, tenant.id)
print(json.dumps(sorted(called)))
