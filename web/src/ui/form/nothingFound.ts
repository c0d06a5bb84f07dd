// What a list of choices says where it has none.

import { t } from "@/i18n";
import { messageOf } from "../errors";

/** `found` is the query for the choices: an answer that is missing is no empty one. */
export function nothingFound(found: { isPending: boolean; error: unknown }): string {
  return found.error !== null && found.error !== undefined ? messageOf(found.error) : t(found.isPending ? "Loading" : "Nothing matches the search.");
}
