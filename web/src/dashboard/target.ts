// What a control is for: its target as a datasource, and the actions that its settings hold.

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

/** Returns the source of a table of API usage, whose settings name its keys. */
function usageSource(settings: Json): Json | undefined {
  const alias = text(settings["dsEntityAliasId"]);
  const dataKeys = list(settings["apiUsageDataKeys"]).flatMap((row) => ["status", "maxLimit", "current"].map((name) => object(object(row)[name])));
  return alias === undefined || dataKeys.length === 0 ? undefined : { type: "entity", entityAliasId: alias, dataKeys };
}

/** Returns the datasources of a widget. Controls have a target instead, of which nothing is asked but what it is. */
export function sourcesOf(widget: Json, config: Json): unknown[] {
  const stored = list(config["datasources"]);
  const usage = usageSource(object(config["settings"]));
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
