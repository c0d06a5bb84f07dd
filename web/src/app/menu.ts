// What the menu offers, by role.

import type { Authority } from "@/api/types";
import { SECTIONS, type Section } from "@/entities/kinds";
import { BROKER, SCREENS, type ScreenRow } from "./screens";

/** Returns the screens that a role may use, by section, in the order of the menu; that of the broker only where one runs. */
export function menuFor(authority: Authority, hasBroker = false): { section: Section; items: ScreenRow[] }[] {
  const items = SCREENS.filter((row) => row.roles.includes(authority) && (hasBroker || row.path !== BROKER));
  return SECTIONS.map((section) => ({ section, items: items.filter((item) => item.section === section) })).filter(({ items: some }) => some.length > 0);
}
