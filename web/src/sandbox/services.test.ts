import { expect, test } from "vitest";
import { openPath, serverCall } from "./services";
import { withContext } from "./functions";
import { actionProgram } from "./program";

const ID = "784f394c-42b6-435a-983c-b7beff2784f9";
const device = { entityType: "DEVICE", id: ID };

test("services become requests, and say whether they change something", () => {
  expect(serverCall("attributeService", "saveEntityAttributes", [device, "SHARED_SCOPE", [{ key: "a", value: 1 }]])).toEqual({ right: "change", method: "POST", path: `/api/plugins/telemetry/DEVICE/${ID}/SHARED_SCOPE`, body: { a: 1 } });
  expect(serverCall("attributeService", "getEntityAttributes", [device, "SERVER_SCOPE", ["a", "b"]])).toMatchObject({ right: "read", method: "GET", query: { keys: "a,b" } });
  expect(serverCall("deviceService", "getDevice", [ID])).toMatchObject({ right: "read", path: `/api/device/${ID}` });
  expect(serverCall("deviceService", "sendTwoWayRpcCommand", [ID, { method: "x" }])).toMatchObject({ right: "change", path: `/api/rpc/twoway/${ID}` });
  expect(serverCall("http", "post", ["/api/entitiesQuery/find", { entityFilter: { type: "deviceType", deviceTypes: ["a"] } }])).toMatchObject({ right: "read", method: "POST" });
  expect(serverCall("http", "get", [`/api/plugins/telemetry/DEVICE/${ID}/values/timeseries?keys=a`, { params: { limit: 5, accessToken: "x" } }])).toMatchObject({ right: "read", query: { limit: 5 } });
});

test("what is not on the list can't be asked for, however it is written", () => {
  const wrong: [string, string, unknown[]][] = [
    ["userService", "getUser", [ID]], ["deviceService", "getDeviceCredentials", [ID]], ["deviceService", "constructor", [ID]], ["__proto__", "x", []], ["constructor", "name", []],
    ["deviceService", "getDevice", ["../auth/user"]], ["attributeService", "getEntityAttributes", [{ entityType: "USER", id: ID }, "SERVER_SCOPE"]], ["attributeService", "getEntityAttributes", [{ entityType: "constructor", id: ID }]],
    ["attributeService", "getEntityAttributes", [device, "../../x"]], ["http", "patch", ["/api/device"]], ["http", "toString", []],
  ];
  wrong.forEach(([service, method, args]) => expect(() => serverCall(service, method, args), `${service}.${method}`).toThrow());
  const closed = [
    "/api/auth/user", "/api/auth/token", "/api/user/1/token", `/api/device/${ID}/credentials`, "/api/device/credentials", "/api/dashboard/1", "/api/tenant/dashboards", "/api/apiKey", "/api/admin/settings/mail", "/api/ws",
    "/api/device/../auth/user", "/api/device/%2e%2e/auth/user", "/api\\auth/user", "//example.org/api/device", "https://example.org/api/device", "/api/tenant/devices#x", `/api/plugins/telemetry/USER/${ID}/values/attributes`,
    `/api/plugins/telemetry/DEVICE/${ID}/..//x`, "/api/noauth/x", `/api/device/${ID}\n`, "", "/login", "/api/device?accessToken=x",
  ];
  closed.forEach((path) => ["GET", "POST", "DELETE"].forEach((method) => expect(() => openPath(method, path), `${method} ${path}`).toThrow()));
  expect(() => openPath("POST", `/api/device/${ID}`)).toThrow();
  expect(openPath("DELETE", `/api/device/${ID}`)).toEqual({ path: `/api/device/${ID}`, right: "change" });
});

test("programs of the sandbox are code that can be read", () => {
  for (const code of [withContext("return value;", ["value"], JSON.stringify({ a: "`${x}` \u2028 '" })), actionProgram("alert('`${1}`');", true), actionProgram("const a = `\\``;", false)]) {
    expect(() => new Function("value", "ctx", code)).not.toThrow();
  }
  expect(new Function("value", withContext("return ctx.a + ctx.utils.formatValue(value, 1, 'mm') + ctx.date.transform(0, \"yyyy 'Uhr'\");", ["value"], JSON.stringify({ a: "x" })))(2.25)).toMatch(/^x2\.[23] mm19(69|70) Uhr$/);
});

test("queries, relations and alarms are about open kinds of entities only, however they are written", () => {
  const user = { entityType: "USER", id: ID };
  const filters: unknown[] = [
    { type: "entityType", entityType: "USER" }, { type: "entityList", entityType: "DASHBOARD", entityList: [ID] }, { type: "entityName", entityType: "RULE_CHAIN", entityNameFilter: "" }, { type: "singleEntity", singleEntity: user },
    { type: "singleEntity", singleEntity: { entityType: "CURRENT_USER" } }, { type: "entityType", entityType: new String("USER") }, { type: "entityType", entityType: { USER: 1 } }, { type: "apiUsageState" }, {}, "entityType",
    { type: "relationsQuery", rootEntity: user }, { type: "relationsQuery", rootEntity: device, filters: [{ relationType: "Contains", entityTypes: ["DEVICE", "USER"] }] }, { type: "relationsQuery", rootEntity: device, negate: true },
    { type: "relationsQuery", multiRoot: true, multiRootEntitiesType: "USER", multiRootEntityIds: [ID] }, { type: "deviceSearchQuery", rootEntity: user },
  ];
  for (const entityFilter of filters) {
    const all: [string, string, unknown[]][] = [
      ["http", "post", ["/api/entitiesQuery/find", { entityFilter }]], ["http", "post", ["/api/alarmsQuery/find", { entityFilter }]], ["http", "post", ["/api/alarmsQuery/count", { entityFilter }]],
      ["entityService", "findEntityDataByQuery", [{ entityFilter }]], ["entityService", "findEntityInfosByFilterAndName", [entityFilter, ""]],
    ];
    all.forEach(([service, method, args]) => expect(() => serverCall(service, method, args), JSON.stringify([service, method, args])).toThrow());
  }
  const wrong: [string, string, unknown[]][] = [
    ["http", "post", ["/api/relation", { from: user, to: device, type: "x" }]], ["http", "post", ["/api/alarm", { originator: user, type: "x" }]], ["http", "post", ["/api/relations", { parameters: { rootId: ID, rootType: "USER" } }]],
    ["http", "post", ["/api/relations/info", { parameters: { rootId: ID, rootType: "DEVICE" }, filters: [{ entityTypes: ["DASHBOARD"] }] }]], ["http", "get", [`/api/relations/info?fromId=${ID}&fromType=USER`]],
    ["http", "get", ["/api/relations", { params: { toId: ID, toType: "DASHBOARD" } }]], ["http", "delete", ["/api/relation", { params: { fromType: "USER" } }]],
    ["entityRelationService", "findByQuery", [{ parameters: { rootId: ID, rootType: "USER" } }]], ["entityRelationService", "findInfoByQuery", [{ filters: [{ entityTypes: "USER" }] }]],
  ];
  wrong.forEach(([service, method, args]) => expect(() => serverCall(service, method, args), JSON.stringify([service, method, args])).toThrow());
  // Rules that name no kinds would lead to all of them.
  expect(JSON.stringify(serverCall("http", "post", ["/api/entitiesQuery/find", { entityFilter: { type: "relationsQuery", rootEntity: { entityType: "CURRENT_CUSTOMER" }, filters: [] } }]).body)).toContain("ENTITY_VIEW");
  expect(JSON.stringify(serverCall("entityRelationService", "findByQuery", [{ parameters: { rootId: ID, rootType: "DEVICE" } }]).body)).toContain("ENTITY_VIEW");
  // What is the server's own shape of things passes.
  const alarm = { id: { entityType: "ALARM", id: ID }, originator: device, assigneeId: user, details: { entityType: "x" } };
  expect(serverCall("alarmService", "saveAlarm", [alarm]).body).toEqual(alarm);
  expect(serverCall("http", "post", ["/api/alarm", alarm]).body).toEqual(alarm);
  const query = { entityFilter: { type: "singleEntity", singleEntity: device }, pageLink: { assigneeId: user, pageSize: 1 }, keyFilters: [{ key: { type: "ATTRIBUTE", key: "entityType" }, predicate: { value: { defaultValue: "USER" } } }] };
  expect(serverCall("http", "post", ["/api/alarmsQuery/find", query]).body).toEqual(query);
});
