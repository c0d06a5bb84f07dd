// What a state of a dashboard is called.

import type { Dashboard } from "@/dashboard/model";
import type { OpenState } from "@/dashboard/state";

/** Returns the name of a state, with that of the entity that it was opened for. */
export function stateName(model: Dashboard, open: OpenState): string {
  const name = model.states.find((one) => one.id === open.id)?.name ?? open.id;
  return name.replace(/\$\{(entityName|entityLabel)\}/g, (_, key: string) => (typeof open.params[key] === "string" ? open.params[key] : ""));
}
