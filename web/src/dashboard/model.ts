// A dashboard as ThingsBoard stores it, read without trust: what is missing or of another type becomes its default.

export type Json = Record<string, unknown>;

export interface DataKey {
  name: string;
  type: "timeseries" | "attribute" | "entityField" | "other";
  label: string;
  color: string;
  units: string | undefined;
  decimals: number | undefined;
  settings: Json;
  hidden: boolean;
  /** The key as it is stored, for what only few widgets read. */
  raw: Json;
}

export interface Datasource {
  type: "entity" | "device" | "entityCount" | "alarmCount" | "function";
  aliasId: string | undefined;
  deviceId: string | undefined;
  filterId: string | undefined;
  dataKeys: DataKey[];
  /** Keys of which a widget of points wants the latest value beside them. */
  latestKeys: DataKey[];
  /** Which alarms a source that counts them means. */
  alarmFilter: Json;
}

export interface Widget {
  id: string;
  /** Name of the widget type, such as `system.cards.value_card`. */
  fqn: string;
  title: string;
  showTitle: boolean;
  /** The widget's own time window, if it doesn't use that of the dashboard. */
  timeWindow: unknown;
  datasources: Datasource[];
  alarmSource: Datasource | undefined;
  config: Json;
  settings: Json;
  size: { sizeX: number; sizeY: number; row: number | undefined; col: number | undefined };
}

export interface WidgetPlace {
  id: string;
  col: number | undefined;
  row: number | undefined;
  sizeX: number;
  sizeY: number;
  mobileOrder: number | undefined;
  mobileHeight: number | undefined;
  mobileHide: boolean;
  desktopHide: boolean;
}

export interface Grid {
  columns: number;
  margin: number;
  outerMargin: boolean;
  autoFillHeight: boolean;
  mobileRowHeight: number;
  backgroundColor: string;
}

export interface Layout {
  places: WidgetPlace[];
  grid: Grid;
}

export interface DashboardState {
  id: string;
  name: string;
  root: boolean;
  main: Layout;
  right: Layout | undefined;
}

export interface Alias {
  id: string;
  alias: string;
  filter: Json;
}

export interface Dashboard {
  widgets: Map<string, Widget>;
  states: DashboardState[];
  aliases: Map<string, Alias>;
  keyFilters: Map<string, unknown[]>;
  timeWindow: unknown;
}

export function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function number(value: unknown): number | undefined {
  const read = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
}

const KEY_TYPES = ["timeseries", "attribute", "entityField"] as const;
const SOURCE_TYPES = ["entity", "device", "entityCount", "alarmCount", "function"] as const;

/** Reads a data key; units and decimals that it lacks are those of its widget. */
export function readKey(value: unknown, config: Json = {}): DataKey {
  const key = object(value);
  const name = text(key["name"]) ?? "";
  const units = key["units"] === undefined || key["units"] === null || key["units"] === "" ? config["units"] : key["units"];
  return {
    name,
    type: KEY_TYPES.find((type) => type === key["type"]) ?? "other",
    label: text(key["label"]) ?? name,
    color: text(key["color"]) ?? "#2196f3",
    units: text(units) ?? text(object(units)["from"]),
    decimals: number(key["decimals"]) ?? number(config["decimals"]),
    settings: object(key["settings"]),
    hidden: key["hidden"] === true,
    raw: key,
  };
}

export function readSource(value: unknown, config: Json = {}): Datasource {
  const source = object(value);
  return {
    type: SOURCE_TYPES.find((type) => type === source["type"]) ?? "entity",
    aliasId: text(source["entityAliasId"]) ?? text(source["deviceAliasId"]),
    deviceId: text(source["deviceId"]),
    filterId: text(source["filterId"]),
    dataKeys: list(source["dataKeys"]).map((key) => readKey(key, config)),
    latestKeys: list(source["latestDataKeys"]).map((key) => readKey(key, config)),
    alarmFilter: object(source["alarmFilterConfig"]),
  };
}

/** Returns the full name of a widget's type; old files name its bundle and its alias. */
export function fqnOf(widget: Json): string {
  const full = text(widget["typeFullFqn"]);
  if (full !== undefined) {
    return full;
  }
  const scope = widget["isSystemType"] === true ? "system" : "tenant";
  const name = `${scope}.${text(widget["bundleAlias"]) ?? ""}.${text(widget["typeAlias"]) ?? ""}`;
  return name === "system.charts.timeseries" ? "system.charts.basic_timeseries" : name;
}

function readWidget(id: string, value: unknown): Widget {
  const widget = object(value);
  const config = object(widget["config"]);
  return {
    id,
    fqn: fqnOf(widget),
    title: text(config["title"]) ?? "",
    showTitle: config["showTitle"] !== false,
    timeWindow: config["useDashboardTimewindow"] === false ? config["timewindow"] : undefined,
    datasources: list(config["datasources"]).map((source) => readSource(source, config)),
    alarmSource: config["alarmSource"] === undefined || config["alarmSource"] === null ? undefined : readSource(config["alarmSource"]),
    config,
    settings: object(config["settings"]),
    size: { sizeX: number(widget["sizeX"]) ?? 8, sizeY: number(widget["sizeY"]) ?? 6, row: number(widget["row"]), col: number(widget["col"]) },
  };
}

const floor = (value: number | undefined): number | undefined => (value === undefined ? undefined : Math.floor(value));

function readPlace(id: string, value: unknown, widget: Widget | undefined): WidgetPlace {
  const place = object(value);
  return {
    id,
    col: floor(number(place["col"])),
    row: floor(number(place["row"])),
    sizeX: Math.max(1, Math.floor(number(place["sizeX"]) ?? widget?.size.sizeX ?? 8)),
    sizeY: Math.max(1, Math.floor(number(place["sizeY"]) ?? widget?.size.sizeY ?? 6)),
    mobileOrder: number(place["mobileOrder"]),
    mobileHeight: number(place["mobileHeight"]),
    mobileHide: place["mobileHide"] === true,
    desktopHide: place["desktopHide"] === true,
  };
}

function readGrid(value: unknown): Grid {
  const grid = object(value);
  const scada = grid["layoutType"] === "scada";
  const margins = list(grid["margins"]);
  return {
    columns: Math.min(3_000, Math.max(1, Math.floor(number(grid["minColumns"]) ?? number(grid["columns"]) ?? 24))),
    margin: scada ? 0 : (number(grid["margin"]) ?? number(margins[0]) ?? 10),
    outerMargin: !scada && grid["outerMargin"] !== false,
    autoFillHeight: !scada && grid["autoFillHeight"] === true,
    mobileRowHeight: number(grid["mobileRowHeight"]) ?? 70,
    backgroundColor: text(grid["backgroundColor"]) ?? "#eeeeee",
  };
}

function readLayout(value: unknown, widgets: Map<string, Widget>): Layout {
  const layout = object(value);
  const places = Object.entries(object(layout["widgets"])).filter(([id]) => widgets.has(id));
  return { places: places.map(([id, place]) => readPlace(id, place, widgets.get(id))), grid: readGrid(layout["gridSettings"]) };
}

function readStates(configuration: Json, widgets: Map<string, Widget>): DashboardState[] {
  const states = Object.entries(object(configuration["states"])).map(([id, value]): DashboardState => {
    const state = object(value);
    const layouts = object(state["layouts"]);
    const right = layouts["right"];
    return {
      id,
      name: text(state["name"]) ?? id,
      root: state["root"] === true,
      main: readLayout(layouts["main"], widgets),
      right: right === undefined || right === null ? undefined : readLayout(right, widgets),
    };
  });
  if (states.length === 0) {
    const places = [...widgets.values()].map((widget) => readPlace(widget.id, widget.size, widget));
    return [{ id: "default", name: "Default", root: true, main: { places, grid: readGrid(configuration["gridSettings"]) }, right: undefined }];
  }
  const root = states.find((state) => state.root) ?? states[0];
  return states.map((state) => ({ ...state, root: state === root }));
}

/** Old files list devices instead of filters. */
function oldAliasFilter(alias: Json): Json {
  const filter = object(alias["deviceFilter"]);
  const single = text(alias["deviceId"]);
  if (single !== undefined) {
    return { type: "singleEntity", singleEntity: { entityType: "DEVICE", id: single } };
  }
  return filter["useFilter"] === true
    ? { type: "entityName", entityType: "DEVICE", entityNameFilter: text(filter["deviceNameFilter"]) ?? "", resolveMultiple: true }
    : { type: "entityList", entityType: "DEVICE", entityList: list(filter["deviceList"]), resolveMultiple: true };
}

/** Reads the `configuration` of a dashboard. */
export function readDashboard(value: unknown): Dashboard {
  const configuration = object(value);
  const stored = configuration["widgets"];
  const entries = Array.isArray(stored) ? stored.map((widget, n): [string, unknown] => [text(object(widget)["id"]) ?? `widget ${n}`, widget]) : Object.entries(object(stored));
  const widgets = new Map(entries.map(([id, widget]) => [id, readWidget(id, widget)]));
  const aliases = { ...object(configuration["deviceAliases"]), ...object(configuration["entityAliases"]) };
  return {
    widgets,
    states: readStates(configuration, widgets),
    aliases: new Map(
      Object.entries(aliases).map(([id, value]) => {
        const alias = object(value);
        const filter = alias["filter"] === undefined ? oldAliasFilter(alias) : object(alias["filter"]);
        return [id, { id, alias: text(alias["alias"]) ?? id, filter }];
      }),
    ),
    keyFilters: new Map(Object.entries(object(configuration["filters"])).map(([id, filter]) => [id, list(object(filter)["keyFilters"])])),
    timeWindow: configuration["timewindow"],
  };
}
