// Where one entity is read, whatever its kind.

import type { EntityId } from "@/api/types";

/** Kinds of which their names alone are read, since the rest of them is long. */
const WITH_INFO = ["otaPackage", "dashboard"];

/** Returns the path of the one entity that an id names, for the endpoints that begin with its type. */
export function onePath(id: EntityId): string {
  const name = id.entityType.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return `/api/${WITH_INFO.includes(name) ? `${name}/info` : name}/${id.id}`;
}
