// What a viewer has chosen on a dashboard, as it stands in the address: entities of aliases, values of filters.

import type { EntityId } from "@/api/types";
import { chosen, type Choices } from "./aliases";
import { queryFilters } from "./filters";
import type { Dashboard } from "./model";

/** Values by filter and by place in it. */
export type FilterValues = ReadonlyMap<string, ReadonlyMap<string, unknown>>;

const ENTITY = "entity";
const VALUE = "value";

/** Reads `entity=Boiler:DEVICE:<id>`, once for each alias that has a chosen entity. */
export function readChoices(search: URLSearchParams, dashboard: Dashboard): Choices {
  const byName = new Map([...dashboard.aliases.values()].map((alias) => [alias.alias, alias.id]));
  return new Map(
    search.getAll(ENTITY).flatMap((written): [string, EntityId][] => {
      const [, name = "", entityType = "", id = ""] = /^(.*):([A-Z_]+):([\da-f-]{36})$/.exec(written) ?? [];
      const alias = byName.get(name);
      return alias === undefined ? [] : [[alias, { entityType, id }]];
    }),
  );
}

/** Reads `value=Filter:0.0:20`, once for each changed value. */
export function readValues(search: URLSearchParams, dashboard: Dashboard): FilterValues {
  const byName = new Map([...dashboard.filters.values()].map((filter) => [filter.name, filter.id]));
  const values = new Map<string, Map<string, unknown>>();
  for (const written of search.getAll(VALUE)) {
    const [, name = "", path = "", value = ""] = /^(.*?):([\d.]+):(.*)$/s.exec(written) ?? [];
    const filter = byName.get(name);
    try {
      if (filter !== undefined) {
        values.set(filter, (values.get(filter) ?? new Map<string, unknown>()).set(path, JSON.parse(value)));
      }
    } catch {
      // A damaged link changes no value.
    }
  }
  return values;
}

function replaced(search: URLSearchParams, name: string, entries: string[]): URLSearchParams {
  const after = new URLSearchParams(search);
  after.delete(name);
  entries.forEach((entry) => after.append(name, entry));
  return after;
}

export function writeChoices(search: URLSearchParams, dashboard: Dashboard, choices: Choices): URLSearchParams {
  return replaced(search, ENTITY, [...choices].map(([alias, { entityType, id }]) => `${dashboard.aliases.get(alias)?.alias ?? alias}:${entityType}:${id}`));
}

export function writeValues(search: URLSearchParams, dashboard: Dashboard, values: FilterValues): URLSearchParams {
  return replaced(
    search,
    VALUE,
    [...values].flatMap(([filter, changed]) => [...changed].map(([path, value]) => `${dashboard.filters.get(filter)?.name ?? filter}:${path}:${JSON.stringify(value)}`)),
  );
}

/** Returns the dashboard as this viewer sees it: widgets read aliases and filters alone, and need not know of choices. */
export function asChosen(dashboard: Dashboard, choices: Choices, values: FilterValues): Dashboard {
  if (choices.size === 0 && values.size === 0) {
    return dashboard;
  }
  const keyFilters = new Map([...dashboard.filters].map(([id, filter]) => [id, queryFilters(filter, values.get(id))]));
  return { ...dashboard, aliases: chosen(dashboard.aliases, choices), keyFilters };
}
