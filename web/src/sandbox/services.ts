// What code of dashboards may ask the server for, as a list: what is not on it can't be called, whoever looks at the dashboard.

import type { EntityId } from "@/api/types";
import { list, number, object, text, type Json } from "@/dashboard/json";
import { checkKinds, ENTITIES, openAlarm, openBody, openRelations, refusedKind, WrongCall } from "./openBody";

/** What a call does with the viewer's rights: it reads, or it changes something. */
export type Right = "read" | "change";

export interface ServerCall {
  right: Right;
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

function uuid(value: unknown): string {
  const id = text(value) ?? text(object(value)["id"]) ?? text(object(object(value)["id"])["id"]);
  if (id === undefined || !UUID.test(id)) {
    throw new WrongCall("An id is missing.");
  }
  return id;
}

function entity(value: unknown): EntityId {
  const entityType = text(object(value)["entityType"]) ?? "";
  if (!Object.hasOwn(ENTITIES, entityType)) {
    throw refusedKind();
  }
  return { entityType, id: uuid(value) };
}

const SCOPES = ["SERVER_SCOPE", "SHARED_SCOPE", "CLIENT_SCOPE"];

function scope(value: unknown): string {
  const name = text(value) ?? "SERVER_SCOPE";
  if (!SCOPES.includes(name)) {
    throw new WrongCall("This scope of attributes is unknown.");
  }
  return name;
}

/** Keys as a list of texts, or of objects that have a key. */
function keys(value: unknown): string | undefined {
  const names = (Array.isArray(value) ? value : [value]).flatMap((one) => text(one) ?? text(object(one)["key"]) ?? []);
  return names.length === 0 ? undefined : names.join(",");
}

/** Values as a list of `{key, value}`. */
function values(value: unknown): Json {
  return Object.fromEntries(list(value).flatMap((one): [string, unknown][] => {
    const key = text(object(one)["key"]);
    return key === undefined ? [] : [[key, object(one)["value"]]];
  }));
}

function pageOf(value: unknown): Record<string, string | number> {
  const link = object(value);
  const sort = object(link["sortOrder"]);
  return {
    pageSize: Math.min(1_000, number(link["pageSize"]) ?? 100),
    page: number(link["page"]) ?? 0,
    ...(text(link["textSearch"]) === undefined ? {} : { textSearch: String(link["textSearch"]) }),
    ...(text(sort["property"]) === undefined ? {} : { sortProperty: String(sort["property"]), sortOrder: sort["direction"] === "DESC" ? "DESC" : "ASC" }),
  };
}

type Make = (...args: unknown[]) => Omit<ServerCall, "right">;

const read = (make: Make) => ({ right: "read" as const, make });
const change = (make: Make) => ({ right: "change" as const, make });
const get = (path: string, query?: ServerCall["query"]): Omit<ServerCall, "right"> => ({ method: "GET", path, ...(query === undefined ? {} : { query }) });
const post = (path: string, body?: unknown, query?: ServerCall["query"]): Omit<ServerCall, "right"> => ({ method: "POST", path, body, ...(query === undefined ? {} : { query }) });
const drop = (path: string, query?: ServerCall["query"]): Omit<ServerCall, "right"> => ({ method: "DELETE", path, ...(query === undefined ? {} : { query }) });
const at = (id: EntityId): string => `/api/plugins/telemetry/${id.entityType}/${id.id}`;

/** The services of one kind of entities, whose paths begin with its name. */
function things(name: string): Record<string, ReturnType<typeof read> | ReturnType<typeof change>> {
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return {
    [`get${title}`]: read((id) => get(`/api/${name}/${uuid(id)}`)),
    [`get${title}Info`]: read((id) => get(`/api/${name}/info/${uuid(id)}`)),
    [`save${title}`]: change((one) => post(`/api/${name}`, object(one))),
    [`delete${title}`]: change((id) => drop(`/api/${name}/${uuid(id)}`)),
    [`getTenant${title}Infos`]: read((link, type) => get(`/api/tenant/${name}Infos`, { ...pageOf(link), type: text(type) })),
    [`getCustomer${title}Infos`]: read((customer, link, type) => get(`/api/customer/${uuid(customer)}/${name}Infos`, { ...pageOf(link), type: text(type) })),
    findByName: read((wanted) => get(`/api/tenant/${name}s`, { [`${name}Name`]: text(wanted) ?? "" })),
  };
}

const CALLS: Record<string, Record<string, ReturnType<typeof read> | ReturnType<typeof change>>> = {
  attributeService: {
    getEntityAttributes: read((id, where, names) => get(`${at(entity(id))}/values/attributes/${scope(where)}`, { keys: keys(names) })),
    saveEntityAttributes: change((id, where, attributes) => post(`${at(entity(id))}/${scope(where)}`, values(attributes))),
    deleteEntityAttributes: change((id, where, attributes) => drop(`${at(entity(id))}/${scope(where)}`, { keys: keys(attributes) ?? "" })),
    saveEntityTimeseries: change((id, _where, points) => post(`${at(entity(id))}/timeseries/ANY`, values(points))),
    getEntityTimeseriesLatest: read((id, names) => get(`${at(entity(id))}/values/timeseries`, { keys: keys(names) })),
    getEntityTimeseries: read((id, names, startTs, endTs, limit, agg, interval) =>
      get(`${at(entity(id))}/values/timeseries`, { keys: keys(names), startTs: number(startTs), endTs: number(endTs), limit: number(limit) ?? 100, agg: text(agg), interval: number(interval) }),
    ),
  },
  deviceService: {
    ...things("device"),
    sendOneWayRpcCommand: change((id, body) => post(`/api/rpc/oneway/${uuid(id)}`, object(body))),
    sendTwoWayRpcCommand: change((id, body) => post(`/api/rpc/twoway/${uuid(id)}`, object(body))),
  },
  assetService: things("asset"),
  entityViewService: things("entityView"),
  customerService: {
    getCustomer: read((id) => get(`/api/customer/${uuid(id)}`)),
    getCustomers: read((link) => get("/api/customers", pageOf(link))),
  },
  entityRelationService: {
    saveRelation: change((relation) => (entity(object(relation)["from"]), entity(object(relation)["to"]), post("/api/relation", openBody(relation)))),
    deleteRelation: change((from, type, to) => drop("/api/relation", { fromId: entity(from).id, fromType: entity(from).entityType, relationType: text(type) ?? "", toId: entity(to).id, toType: entity(to).entityType })),
    getRelation: read((from, type, to) => get("/api/relation", { fromId: entity(from).id, fromType: entity(from).entityType, relationType: text(type) ?? "", toId: entity(to).id, toType: entity(to).entityType })),
    findByFrom: read((from) => get("/api/relations", { fromId: entity(from).id, fromType: entity(from).entityType })),
    findInfoByFrom: read((from) => get("/api/relations/info", { fromId: entity(from).id, fromType: entity(from).entityType })),
    findByTo: read((to) => get("/api/relations", { toId: entity(to).id, toType: entity(to).entityType })),
    findInfoByTo: read((to) => get("/api/relations/info", { toId: entity(to).id, toType: entity(to).entityType })),
    findByQuery: read((query) => post("/api/relations", openRelations(query))),
    findInfoByQuery: read((query) => post("/api/relations/info", openRelations(query))),
  },
  alarmService: {
    getAlarm: read((id) => get(`/api/alarm/${uuid(id)}`)),
    getAlarmInfo: read((id) => get(`/api/alarm/info/${uuid(id)}`)),
    saveAlarm: change((alarm) => (entity(object(alarm)["originator"]), post("/api/alarm", openAlarm(alarm)))),
    ackAlarm: change((id) => post(`/api/alarm/${uuid(id)}/ack`)),
    clearAlarm: change((id) => post(`/api/alarm/${uuid(id)}/clear`)),
    deleteAlarm: change((id) => drop(`/api/alarm/${uuid(id)}`)),
    assignAlarm: change((id, user) => post(`/api/alarm/${uuid(id)}/assign/${uuid(user)}`)),
    unassignAlarm: change((id) => drop(`/api/alarm/${uuid(id)}/assign`)),
  },
  entityService: {
    getEntity: read((type, id) => get(`/api/${ENTITIES[entity({ entityType: type, id: uuid(id) }).entityType] ?? ""}/${uuid(id)}`)),
    getEntitiesByNameFilter: read((type, name, size) =>
      post("/api/entitiesQuery/find", {
        entityFilter: { type: "entityName", entityType: entity({ entityType: type, id: "00000000-0000-0000-0000-000000000000" }).entityType, entityNameFilter: text(name) ?? "" },
        entityFields: [{ type: "ENTITY_FIELD", key: "name" }],
        pageLink: { page: 0, pageSize: Math.min(1_000, number(size) ?? 100) },
      }),
    ),
    findEntityDataByQuery: read((query) => post("/api/entitiesQuery/find", openBody(query))),
    findEntityInfosByFilterAndName: read((filter, name) => post("/api/entitiesQuery/find", openBody({ entityFilter: filter ?? {}, entityFields: [{ type: "ENTITY_FIELD", key: "name" }], pageLink: { page: 0, pageSize: 100, textSearch: text(name) ?? null } }))),
  },
};

/** Paths that `http` may ask for, with the methods that change nothing although they are no GET. What holds secrets is not among them. */
const ID = "[\\da-fA-F-]{36}";
const KINDS = "(device|asset|entityView|customer)";
const TYPES = `(${Object.keys(ENTITIES).join("|")})`;
const OPEN: { pattern: RegExp; methods: string; reads?: boolean; body?: (body: unknown) => Json }[] = [
  { pattern: new RegExp(`^/api/plugins/telemetry/${TYPES}/${ID}(/[\\w/.:-]+)?$`), methods: "GET POST DELETE" },
  { pattern: new RegExp(`^/api/${KINDS}(/info)?/${ID}$`), methods: "GET DELETE" },
  { pattern: /^\/api\/(device|asset|entityView|customer)$/, methods: "POST" },
  { pattern: /^\/api\/tenant\/(devices|assets|entityViews|deviceInfos|assetInfos|entityViewInfos)$/, methods: "GET" },
  { pattern: new RegExp(`^/api/customer/${ID}/(devices|assets|entityViews|deviceInfos|assetInfos|entityViewInfos)$`), methods: "GET" },
  { pattern: new RegExp(`^/api/customer/${ID}/(device|asset|entityView)/${ID}$`), methods: "POST" },
  { pattern: new RegExp(`^/api/customer/(device|asset|entityView)/${ID}$`), methods: "DELETE" },
  { pattern: /^\/api\/(customers|devices|assets|entityViews)$/, methods: "GET" },
  { pattern: /^\/api\/relations?(\/info)?$/, methods: "GET" },
  { pattern: /^\/api\/relations(\/info)?$/, methods: "POST", reads: true, body: openRelations },
  { pattern: /^\/api\/relation$/, methods: "POST DELETE", body: openBody },
  { pattern: /^\/api\/(entitiesQuery|alarmsQuery)\/(find|count)$/, methods: "POST", reads: true, body: openBody },
  { pattern: new RegExp(`^/api/(v2/)?alarm(s|/info/${ID}|/${TYPES}/${ID}|/${ID})$`), methods: "GET" },
  { pattern: new RegExp(`^/api/alarm(/${ID}(/(ack|clear|assign/${ID}))?)?$`), methods: "POST", body: openAlarm },
  { pattern: new RegExp(`^/api/alarm/${ID}(/assign)?$`), methods: "DELETE" },
  { pattern: new RegExp(`^/api/(plugins/)?rpc/(oneway|twoway)/${ID}$`), methods: "POST" },
  { pattern: new RegExp(`^/api/rpc/persistent(/device)?/${ID}$`), methods: "GET DELETE" },
];

/** Parameters that name kinds of entities. */
const KINDS_ASKED = ["fromType", "toType"];
/** Parameters that would set or tell secrets. */
const SECRETS = ["accessToken", "token", "publicId"];

/** Reads an address as a path of this server that code may ask for. */
export function openPath(method: string, address: unknown): { path: string; right: Right; body?: (body: unknown) => Json } {
  const written = text(address) ?? "";
  const refused = new WrongCall("The code of dashboards may not ask for this address.");
  // Nothing that browsers and servers could read differently.
  if (!/^\/?api\//.test(written) || /[\\\s#]|%2e|%2f|%5c|%00|\.\.|\/\//i.test(written.split("?")[0] ?? "")) {
    throw refused;
  }
  const url = new URL(written.startsWith("/") ? written : `/${written}`, "https://fieldline.invalid");
  const found = OPEN.find(({ pattern, methods }) => pattern.test(url.pathname) && methods.split(" ").includes(method));
  if (url.host !== "fieldline.invalid" || found === undefined) {
    throw refused;
  }
  if (SECRETS.some((name) => url.searchParams.has(name))) {
    throw refused;
  }
  [...url.searchParams].forEach(([name, value]) => KINDS_ASKED.includes(name) && checkKinds(value));
  return { path: url.pathname + url.search, right: method === "GET" || found.reads === true ? "read" : "change", ...(found.body === undefined ? {} : { body: found.body }) };
}

const METHODS = { get: "GET", post: "POST", put: "PUT", delete: "DELETE" } as const;

/** Returns the request that a call of a service stands for. Throws if the code of dashboards may not make it. */
export function serverCall(service: string, method: string, args: unknown[]): ServerCall {
  if (service === "http") {
    const name = Object.entries(METHODS).find(([own]) => own === method)?.[1];
    if (name === undefined) {
      throw new WrongCall(`http.${method} is not available here.`);
    }
    const { path, right, body } = openPath(name, args[0]);
    const hasBody = name === "POST" || name === "PUT";
    const query = Object.fromEntries(Object.entries(object(object(args[hasBody ? 2 : 1])["params"])).filter(([own]) => !SECRETS.includes(own))) as ServerCall["query"];
    KINDS_ASKED.forEach((one) => checkKinds(query?.[one]));
    return { right, method: name, path, ...(query === undefined ? {} : { query }), ...(hasBody ? { body: body === undefined ? args[1] : body(args[1]) } : {}) };
  }
  const call = Object.hasOwn(CALLS, service) && Object.hasOwn(CALLS[service] ?? {}, method) ? CALLS[service]?.[method] : undefined;
  if (call === undefined) {
    throw new WrongCall(`${service}.${method} is not available here.`);
  }
  return { right: call.right, ...call.make(...args) };
}
