// What the palette can do besides opening screens and entities, as far as the role may.

import type { Authority } from "@/api/types";
import { KINDS } from "@/entities/kinds";
import { LANGUAGES, setLanguage, t, type Language } from "@/i18n";
import { setContrast, setDensity, setDirection, type Contrast, type Density, type Direction } from "@/ui/appearance";
import { CONTRASTS, DENSITIES, DIRECTIONS, entries, logOut, SCHEMES, toggleFullScreen } from "./looks";

/** What holds now, and is not offered again. */
export interface Looks {
  scheme: keyof typeof SCHEMES;
  contrast: Contrast;
  density: Density;
  direction: Direction;
  language: Language;
}

export interface PaletteAction {
  id: string;
  label: string;
  /** Other words that find it. */
  words: string;
  /** Where it leads, or what it does. */
  path?: string;
  run?: () => void;
}

function choices<K extends string>(what: string, all: Record<K, string>, chosen: K, run: (choice: K) => void): PaletteAction[] {
  return entries(all).flatMap(([choice, label]) => (choice === chosen ? [] : [{ id: `${what} ${choice}`, label: `${t(what)}: ${t(label)}`, words: "theme", run: () => run(choice) }]));
}

export function actionsFor(authority: Authority, now: Looks, setScheme: (scheme: Looks["scheme"]) => void): PaletteAction[] {
  const added = KINDS.filter((kind) => kind.list[authority] !== undefined && kind.writers.includes(authority));
  return [
    ...added.map((kind): PaletteAction => ({ id: `add ${kind.type}`, label: t(`Add: ${kind.singular}`), words: `new create ${t("Add")}`, path: `${kind.path}?add=true` })),
    ...choices("Appearance", SCHEMES, now.scheme, setScheme),
    ...choices("Appearance", CONTRASTS, now.contrast, setContrast),
    ...choices("Appearance", DENSITIES, now.density, setDensity),
    ...choices("Appearance", DIRECTIONS, now.direction, setDirection),
    ...choices("Language", LANGUAGES, now.language, (language) => void setLanguage(language)),
    { id: "full screen", label: t("Full screen"), words: "fullscreen", run: toggleFullScreen },
    { id: "log out", label: t("Log out"), words: "logout exit", run: () => void logOut() },
  ];
}

/** Whether each word of a search is in a text. */
export function matches(search: string, text: string): boolean {
  const lower = text.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
