// The parts of an automatic dashboard, in the form in which ThingsBoard stores them, and where they lie.

import { t } from "@/i18n";
import { switched } from "@/widgets/catalog";
import { PALETTE } from "@/widgets/color";
import type { Json } from "../model";
import { kindOf, lookOf, type Coordinates, type KnownKey } from "./keys";

const COLUMNS = 24;

/** A widget with its size, and its height in the list that phones show. */
export interface Part {
  widget: Json;
  sizeX: number;
  sizeY: number;
  phone: number;
  /** Whether it takes the whole row if it is alone in it. */
  stretches?: boolean;
}

/** The widgets of one state, laid out row by row. */
export class Sheet {
  readonly widgets: Json = {};
  private readonly places: Json = {};
  private row = 0;

  constructor(private readonly state: string) {}

  /** Adds parts that belong together, beginning with a new row. */
  add(parts: readonly Part[]): void {
    let line: Part[] = [];
    const end = (): void => {
      let col = 0;
      for (const part of line) {
        const sizeX = line.length === 1 && part.stretches === true ? COLUMNS : part.sizeX;
        const id = `${this.state} ${Object.keys(this.widgets).length + 1}`;
        this.widgets[id] = { ...part.widget, sizeX, sizeY: part.sizeY, row: 0, col: 0 };
        this.places[id] = { sizeX, sizeY: part.sizeY, row: this.row, col, mobileHeight: part.phone };
        col += sizeX;
      }
      this.row += Math.max(0, ...line.map(({ sizeY }) => sizeY));
      line = [];
    };
    for (const part of parts) {
      if (line.reduce((sum, { sizeX }) => sum + sizeX, part.sizeX) > COLUMNS) {
        end();
      }
      line.push(part);
    }
    end();
  }

  stored(name: string, root: boolean): Json {
    return { name, root, layouts: { main: { widgets: this.places, gridSettings: { columns: COLUMNS, margin: 10, backgroundColor: "#eeeeee" } } } };
  }
}

/** Returns a key as datasources have it. */
export function dataKey(key: KnownKey, n = 0): Json {
  const { units, decimals } = kindOf(key) === "number" ? lookOf(key) : {};
  return {
    name: key.name,
    type: key.scope === undefined ? "timeseries" : "attribute",
    label: key.name,
    color: PALETTE[n % PALETTE.length],
    settings: {},
    ...(units === undefined ? {} : { units }),
    ...(decimals === undefined ? {} : { decimals }),
  };
}

export function widget(fqn: string, type: string, title: string, config: Json): Json {
  return { typeFullFqn: `system.${fqn}`, type, config: { title, showTitle: true, useDashboardTimewindow: true, actions: {}, settings: {}, ...config } };
}

const entitySource = (alias: string, keys: readonly KnownKey[]): Json => ({ type: "entity", entityAliasId: alias, dataKeys: keys.map(dataKey) });
/** Values without an icon of their own would all have the one that types begin with. */
const iconOf = (icon: string | undefined): Json => (icon === undefined ? { showIcon: false } : { showIcon: true, icon, iconSize: 24, iconColor: { type: "constant", color: "#5469ff" } });

/** One value: a gauge where its unit has a scale, a lamp for what is on or off, else a card. */
export function valuePart(alias: string, key: KnownKey, n: number): Part {
  const kind = kindOf(key);
  const source = { datasources: [{ ...entitySource(alias, []), dataKeys: [dataKey(key, n)] }] };
  const look = lookOf(key);
  if (kind === "number" && look.scale !== undefined) {
    const [minValue, maxValue] = look.scale;
    const settings = { minValue, maxValue, gaugeType: "arc", showTitle: false, units: look.units, decimals: look.decimals };
    return { widget: widget("digital_gauges.gauge_justgage", "latest", key.name, { ...source, settings }), sizeX: 6, sizeY: 4, phone: 3 };
  }
  if (kind === "boolean") {
    return { widget: widget("status_widget", "latest", key.name, { ...source, padding: "8px" }), sizeX: 6, sizeY: 3, phone: 2 };
  }
  const settings = { showLabel: false, ...(kind === "number" ? iconOf(look.icon) : { showIcon: false }) };
  return { widget: widget("cards.value_card", "latest", key.name, { ...source, settings }), sizeX: 6, sizeY: kind === "number" ? 4 : 3, phone: 2 };
}

/** What is switched on and off by a shared attribute, which reaches a device also later. */
export function switchPart(alias: string, key: KnownKey): Part {
  const settings = { ...switched(key.name), showLabel: false, layout: "centered", showOnLabel: true, showOffLabel: true };
  return { widget: widget("single_switch", "rpc", key.name, { datasources: [], targetDevice: { type: "entity", entityAliasId: alias }, settings }), sizeX: 6, sizeY: 3, phone: 2 };
}

export function listPart(alias: string, title: string, keys: readonly KnownKey[]): Part {
  return { widget: widget("cards.attributes_card", "latest", title, { datasources: [entitySource(alias, keys)] }), sizeX: 12, sizeY: 6, phone: 4, stretches: true };
}

export function chartPart(alias: string, title: string, keys: readonly KnownKey[]): Part {
  return { widget: widget("time_series_chart", "timeseries", title, { datasources: [entitySource(alias, keys)], settings: { showAlarms: true, lineGaps: "usual" } }), sizeX: 12, sizeY: 6, phone: 4, stretches: true };
}

const opening = (stateId: string): Json => ({ name: t("Open"), icon: "more_horiz", type: "openDashboardState", targetDashboardStateId: stateId, setEntityId: true });

export function mapPart(alias: string, { x, y }: Coordinates, opens?: string): Part {
  const markers = {
    dsType: "entity",
    dsEntityAliasId: alias,
    xKey: dataKey(x),
    yKey: dataKey(y),
    label: { show: true, type: "pattern", pattern: "${entityName}" },
    tooltip: { show: true, trigger: "click", autoclose: true, type: "pattern", pattern: `<b>\${entityName}</b><br/>\${${x.name}:5}, \${${y.name}:5}` },
    markerType: "shape",
    markerShape: { shape: "markerShape1", size: 34, color: { type: "constant", color: "#307fe5" } },
    ...(opens === undefined ? {} : { click: opening(opens) }),
  };
  const settings = { mapType: "geoMap", layers: [{ provider: "openstreet", layerType: "OpenStreetMap.Mapnik" }], markers: [markers], fitMapBounds: true };
  return { widget: widget("map", "latest", t("Map"), { datasources: [], settings }), sizeX: 12, sizeY: 8, phone: 5, stretches: true };
}

export function alarmsPart(alias: string): Part {
  const dataKeys = ([["createdTime", t("Created")], ["originator", t("Entity")], ["type", t("Type")], ["severity", t("Severity")], ["status", t("Status")]] as const).map(([name, label], n) => ({
    name, type: "alarm", label, color: PALETTE[n], settings: {},
  }));
  return {
    widget: widget("alarm_widgets.alarms_table", "alarm", t("Alarms"), {
      datasources: [],
      alarmSource: { type: "entity", entityAliasId: alias, dataKeys },
      alarmFilterConfig: { statusList: ["ACTIVE"] },
      settings: { defaultPageSize: 10 },
    }),
    sizeX: 24, sizeY: 7, phone: 6,
  };
}

export function countPart(alias: string, kind: "entity" | "alarm", label: string, icon: string, filterId?: string): Part {
  const key = { name: "count", type: "count", label, color: PALETTE[0], settings: {} };
  const source = { type: `${kind}Count`, entityAliasId: alias, ...(filterId === undefined ? {} : { filterId }), dataKeys: [key], ...(kind === "alarm" ? { alarmFilterConfig: { statusList: ["ACTIVE"] } } : {}) };
  return { widget: widget(`${kind}_count`, "latest", label, { showTitle: false, datasources: [source], settings: { label, icon, layout: "column" } }), sizeX: 8, sizeY: 2, phone: 1 };
}

/** Entities with some of their keys, each of which opens a state of its own. */
export function tablePart(alias: string, title: string, keys: readonly KnownKey[], opens: string): Part {
  return {
    widget: widget("cards.entities_table", "latest", title, {
      datasources: [entitySource(alias, keys)],
      settings: { entityNameColumnTitle: t("Name"), displayEntityName: true, displayEntityType: false, defaultSortOrder: "entityName", defaultPageSize: 10 },
      actions: { rowClick: [opening(opens)] },
    }),
    sizeX: 12, sizeY: 8, phone: 6, stretches: true,
  };
}

/** Puts a dashboard together. */
export function dashboardOf(sheets: readonly { sheet: Sheet; id: string; name: string }[], aliases: Json, filters: Json = {}): Json {
  return {
    widgets: Object.assign({}, ...sheets.map(({ sheet }) => sheet.widgets)) as Json,
    states: Object.fromEntries(sheets.map(({ sheet, id, name }, n) => [id, sheet.stored(name, n === 0)])),
    entityAliases: aliases,
    filters,
    timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 3_600_000, interval: 18_000 }, aggregation: { type: "AVG", limit: 25_000 } },
  };
}
