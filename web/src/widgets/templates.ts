// What cards of ThingsBoard's home pages need of Angular, done without running anything: conditions of two plain values, switches
// between parts, links to screens, and other states within the card.

import { keyWords } from "@/dashboard/words";

type Operand = string | number | boolean;

function operandOf(written: string): Operand | undefined {
  const text = written.trim();
  const quoted = /^'([^']*)'$/.exec(text) ?? /^"([^"]*)"$/.exec(text);
  if (quoted !== null) {
    return quoted[1] ?? "";
  }
  return text === "true" || text === "false" ? text === "true" : text !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined;
}

/** Returns whether a condition of two plain values holds; nothing for any other. */
export function conditionOf(written: string): boolean | undefined {
  const [, before = "", sign = "", after = ""] = /^([^<>=!]*)(===?|!==?|<=?|>=?)([^<>=!]*)$/.exec(written) ?? [];
  const [a, b] = [operandOf(before), operandOf(after)];
  if (a === undefined || b === undefined) {
    return operandOf(written) === undefined || sign !== "" ? undefined : Boolean(operandOf(written));
  }
  const results: Record<string, boolean> = { "=": a === b, "!": a !== b, "<": a < b, ">": a > b };
  return sign.length > 1 && /^[<>]/.test(sign) ? results[sign.charAt(0)] === true || a === b : results[sign.charAt(0)];
}

/** Parameters of ThingsBoard's screens that have another name here. */
const PARAMETERS: Record<string, string> = { severityList: "severity", typeList: "type", statusList: "status" };

/** Returns parameters such as `{active: false, severityList: ['MAJOR']}` as an address has them. */
export function queryOf(written: string): string {
  const found = [...written.matchAll(/(\w+)\s*:\s*(\[[^\]]*\]|'[^']*'|true|false|-?\d+)/g)];
  const query = found.flatMap(([, name = "", value = ""]) => (value.startsWith("[") ? value.slice(1, -1).split(",") : [value]).map((one) => [PARAMETERS[name] ?? name, one.trim().replaceAll("'", "")]));
  const text = new URLSearchParams(query).toString();
  return text === "" ? "" : `?${text}`;
}

/** Parts of home pages by the elements that stand for them. */
const PARTS = {
  "tb-getting-started-widget": "steps",
  "tb-usage-info-widget": "usage",
  "tb-cluster-info-table": "servers",
  "tb-configured-features": "features",
  "tb-version-info": "version",
} as const;
export type HomePartName = (typeof PARTS)[keyof typeof PARTS];

/** Another state, or a part of a home page, in a place of its own within a card. */
export type Placed = { slot: string } & ({ state: string } | { part: HomePartName });

export interface Resolved {
  html: string;
  placed: Placed[];
}

export const TEMPLATE = /\*ng|\[ng|\brouterLink|\stranslate[\s>]|<tb-/i;
/** Classes by which what is made here is known again after cleaning. */
export const MADE = { place: "made-place", toggle: "made-toggle", link: "made-link" } as const;

interface Around {
  /** What somebody has chosen of each switch, by its name. */
  chosen: ReadonlyMap<string, string>;
  /** The address of a screen here; nothing if the reader may not use it. */
  screen: (path: string) => string | undefined;
  /** Whether the page is so narrow that cards have their form for phones. */
  isNarrow: boolean;
}

/** Takes the branch of each condition that holds. What a name only refers to is drawn nowhere else. */
function resolveConditions(root: DocumentFragment, isNarrow: boolean): void {
  const named = new Map([...root.querySelectorAll("ng-template")].flatMap((one) => one.getAttributeNames().filter((name) => name.startsWith("#")).map((name) => [name.slice(1), one] as const)));
  const inBranches = new Set(root.querySelectorAll("ng-template *"));
  const others = [...root.querySelectorAll("*")].filter((one) => !inBranches.has(one));
  // A branch that is taken may stand before or behind what takes it, and must be resolved itself by then.
  for (const element of [...[...inBranches].reverse(), ...others.reverse()]) {
    const [condition = "", ...branches] = (element.getAttribute("*ngif") ?? "").split(";");
    const written = condition.replace(/^\s*(!?)\s*ctx\.isMobile\s*$/, (_, not: string) => String(isNarrow !== (not === "!")));
    if (conditionOf(written) === false) {
      const other = named.get(/^\s*else\s+(\w+)/.exec(branches.join(";"))?.[1]?.toLowerCase() ?? "");
      element.replaceWith(...(other === undefined ? [] : [...other.childNodes].map((node) => node.cloneNode(true))));
    }
  }
  named.forEach((one) => one.remove());
}

/** Resolves what can be in markup whose values are filled in. It is read apart from the page, so that nothing in it runs or loads. */
export function resolveTemplate(html: string, { chosen, screen, isNarrow }: Around): Resolved {
  const page = document.createElement("template");
  page.innerHTML = html;
  const root = page.content;
  const all = (selector: string): Element[] => [...root.querySelectorAll(selector)];
  resolveConditions(root, isNarrow);
  const values = new Map<string, string>();
  for (const head of all("tb-toggle-header")) {
    const name = head.getAttributeNames().find((attribute) => attribute.startsWith("#"))?.slice(1) ?? "";
    const now = chosen.get(name) ?? head.getAttribute("value") ?? "";
    values.set(name, now);
    const group = document.createElement("span");
    for (const option of head.querySelectorAll("tb-toggle-option")) {
      const button = document.createElement("button");
      const value = option.getAttribute("value") ?? "";
      button.className = MADE.toggle;
      button.id = `${name}:${value}`;
      button.setAttribute("aria-pressed", String(value === now));
      button.append(...option.childNodes);
      group.append(button);
    }
    head.replaceWith(group);
  }
  for (const part of all("[\\[ngswitch\\]]")) {
    const value = values.get((part.getAttribute("[ngswitch]") ?? "").trim().replace(/\.value$/, "").toLowerCase());
    for (const one of value === undefined ? [] : [...part.children]) {
      const wanted = one.getAttribute("[ngswitchcase]") ?? one.getAttribute("*ngswitchcase");
      if (wanted !== null && operandOf(wanted) !== value) {
        one.remove();
      }
    }
  }
  for (const element of all("[translate]")) {
    const key = element.textContent.trim();
    if (element.childElementCount === 0 && /^[\w-]+(\.[\w-]+)+$/.test(key)) {
      element.textContent = keyWords(key);
    }
  }
  for (const link of all("[routerlink]")) {
    const path = link.getAttribute("routerlink") ?? "";
    const here = /^\/(?!\/)/.test(path) ? screen(path) : undefined;
    if (here !== undefined) {
      link.setAttribute("href", here + queryOf(link.getAttribute("[queryparams]") ?? ""));
      link.classList.add(MADE.link);
    }
  }
  const placed = all(["tb-dashboard-state", ...Object.keys(PARTS)].join(", ")).map((element, n): Placed => {
    const place = document.createElement("span");
    place.className = `${element.className} ${MADE.place}`;
    place.id = `place${n}`;
    place.setAttribute("style", element.getAttribute("style") ?? "");
    element.replaceWith(place);
    const part = Object.entries(PARTS).find(([name]) => name === element.localName)?.[1];
    return { slot: place.id, ...(part === undefined ? { state: element.getAttribute("stateid") ?? "" } : { part }) };
  });
  return { html: page.innerHTML, placed };
}

/** What ThingsBoard's pages have for all cards, as far as its own use it. */
export const TEMPLATE_RULES = `
a { color: inherit; text-decoration: none; } a[href]:hover { text-decoration: underline; }
.flex { display: flex; } .flex-row { flex-direction: row; } .flex-col { flex-direction: column; } .flex-1 { flex: 1; }
.items-start { align-items: flex-start; } .items-center { align-items: center; } .justify-between { justify-content: space-between; } .justify-center { justify-content: center; }
.gap-1 { gap: 4px; } .gap-2 { gap: 8px; } .gap-3 { gap: 12px; } .gap-4 { gap: 16px; }
@media (min-width: 960px) and (max-width: 1279px) { .md\\:\\!hidden { display: none !important; } }
@media (max-width: 959px) { .lt-md\\:flex-col { flex-direction: column; } .lt-md\\:gap-3 { gap: 12px; } }
.tb-home-widget-title { font-weight: 500; font-size: 16px; line-height: 24px; }
.${MADE.place} { display: block; flex: 1; min-height: 0; width: 100%; height: 100%; }
.${MADE.toggle} { font: inherit; font-size: 13px; color: inherit; background: none; border: 1px solid currentColor; border-radius: 4px; padding: 2px 8px; margin-inline-start: 4px; cursor: pointer; opacity: 0.75; }
.${MADE.toggle}[aria-pressed="true"] { font-weight: 600; opacity: 1; }
`;
