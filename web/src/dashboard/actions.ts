// What a click in a widget does, as far as it is declared. Code of actions is not run.

import { list, object, text, type Json } from "./model";
import type { OpenState } from "./state";
import type { EntityValues } from "./source";

export interface Action {
  name: string;
  type: "openDashboardState" | "updateDashboardState" | "openDashboard" | "openURL";
  stateId: string | undefined;
  dashboardId: string | undefined;
  url: string | undefined;
  setEntity: boolean;
  paramName: string | undefined;
}

const TYPES = ["openDashboardState", "updateDashboardState", "openDashboard", "openURL"] as const;

/** Reads the actions of one source, such as `rowClick`; those of other types are left out. */
export function actionsOf(config: Json, source: string): Action[] {
  return list(object(config["actions"])[source]).flatMap((value) => {
    const action = object(value);
    const type = TYPES.find((one) => one === action["type"]);
    return type === undefined
      ? []
      : [
          {
            name: text(action["name"]) ?? type,
            type,
            stateId: text(action["targetDashboardStateId"]),
            dashboardId: text(action["targetDashboardId"]),
            url: text(action["url"]),
            setEntity: action["setEntityId"] !== false,
            paramName: text(action["stateEntityParamName"]),
          },
        ];
  });
}

function paramsFor(action: Action, entity: EntityValues | undefined, before: Json): Json {
  if (!action.setEntity || entity === undefined) {
    return before;
  }
  const named = { entityId: entity.id, entityName: entity.name };
  return action.paramName === undefined ? { ...before, ...named } : { ...before, [action.paramName]: named, targetEntityParamName: action.paramName };
}

/** Returns the path of states after an action: opening goes one deeper, updating stays as deep. */
export function pathAfter(action: Action, path: OpenState[], entity: EntityValues | undefined): OpenState[] {
  const current = path.at(-1) ?? { id: action.stateId ?? "default", params: {} };
  const next = { id: action.stateId ?? current.id, params: paramsFor(action, entity, current.params) };
  return action.type === "openDashboardState" ? [...path, next] : [...path.slice(0, -1), next];
}

/** Returns an address that an action may open: pages of the web, nothing that runs. */
export function safeUrl(url: string | undefined): string | undefined {
  try {
    const parsed = new URL(url ?? "", "https://fieldline.invalid/");
    return url !== undefined && ["http:", "https:"].includes(parsed.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}
