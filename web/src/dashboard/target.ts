// What a control is for: its target as a datasource, and the actions that its settings hold.

import { usageRows } from "@/widgets/home/usage";
import { list, object, text, type Json } from "./json";

/** Returns the source that stands for the target of a control; newer files name one target, older ones a list of aliases or devices. */
function targetOf(config: Json): Json | undefined {
  const target = object(config["targetDevice"]);
  const device = text(target["deviceId"]) ?? text(list(config["targetDeviceIds"])[0]);
  const alias = text(target["entityAliasId"]) ?? text(list(config["targetDeviceAliasIds"])[0]);
  if (device !== undefined && (target["type"] === "device" || alias === undefined)) {
    return { type: "device", deviceId: device, dataKeys: [] };
  }
  return alias === undefined ? undefined : { type: "entity", entityAliasId: alias, dataKeys: [] };
}

/** Returns the source of a table of API usage, whose settings name its keys, or leave them to be the usual ones. */
function usageSource(widget: Json, settings: Json): Json | undefined {
  const alias = text(settings["dsEntityAliasId"]);
  const isUsage = settings["apiUsageDataKeys"] !== undefined || /\bapi_usage$/.test(text(widget["typeFullFqn"]) ?? "");
  const dataKeys = usageRows(settings).flatMap((row) => ["status", "maxLimit", "current"].map((name) => object(row[name])));
  return alias === undefined || !isUsage ? undefined : { type: "entity", entityAliasId: alias, dataKeys };
}

/** Texts need no data, so that a source without anybody and any key is none of theirs. */
const TEXTS = /(^|\.)(markdown_card|html_card|html_value_card)$/;

/** Whether a source is kept without being one: what shows no data has a source of the kind `static`. */
function isIdle(source: Json, fqn: string): boolean {
  const names = ["entityAliasId", "deviceAliasId", "deviceId"].some((name) => text(source[name]) !== undefined);
  return source["type"] === "static" || (TEXTS.test(fqn) && source["type"] === "entity" && !names && list(source["dataKeys"]).length === 0);
}

/** Returns the datasources of a widget. Controls have a target instead, of which nothing is asked but what it is. */
export function sourcesOf(widget: Json, fqn: string, config: Json): unknown[] {
  const stored = list(config["datasources"]).filter((source) => !isIdle(object(source), fqn));
  const usage = usageSource(widget, object(config["settings"]));
  if (usage !== undefined && stored.every((source) => list(object(source)["dataKeys"]).length === 0)) {
    return [usage];
  }
  const target = widget["type"] === "rpc" || stored.length === 0 ? targetOf(config) : undefined;
  return target === undefined ? stored : [target];
}

/** Buttons of two halves keep what a click does among their settings; here it stands where the actions of all others do. */
export function withSettingsActions(config: Json): Json {
  const settings = object(config["settings"]);
  const clicks = ["leftButtonClick", "rightButtonClick"].filter((name) => text(object(settings[name])["type"]) !== undefined);
  if (clicks.length === 0) {
    return config;
  }
  const actions = Object.fromEntries(clicks.map((name) => [name, [{ name, ...object(settings[name]) }]]));
  return { ...config, actions: { ...object(config["actions"]), ...actions } };
}
