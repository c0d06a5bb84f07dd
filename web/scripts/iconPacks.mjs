// The icons that dashboards name, cut from whole sets into parts of some kilobytes each, of which a page loads those that it needs.
//
// A part is a JSON object of names and the paths that draw them in a square of 24. Names are those of dashboards: `device_thermostat`
// for Google's Material Icons, `mdi:gauge` for Material Design Icons. A path that begins with `E` is filled by the even-odd rule.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const MODULE = "virtual:icon-packs";
/** Names that dashboards use, and Google's set has under others. */
const OTHER_NAMES = { info_outline: "outline-info", lightbulb_outline: "outline-lightbulb" };
/** Characters of a part. */
const PART_SIZE = 24_000;

const require = createRequire(import.meta.url);
const iconsOf = (set) => Object.entries(JSON.parse(readFileSync(require.resolve(`@iconify-json/${set}/icons.json`), "utf8")).icons);

const attribute = (tag, name) => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1];

/** A path of its own that begins where a relative one would. */
function absolute(path) {
  const [, pair, rest] = /^m\s*(-?[\d.]+[ ,]*-?[\d.]+)([\s\S]*)$/.exec(path) ?? [];
  return pair === undefined ? path : `M${pair}${/^[ ,]*[-\d.]/.test(rest) ? "l" : ""}${rest}`;
}

function ellipse(tag) {
  const [x, y] = ["cx", "cy"].map((name) => Number(attribute(tag, name) ?? 0));
  const [a, b] = ["rx", "ry"].map((name) => Number(attribute(tag, name) ?? attribute(tag, "r")));
  return `M${x - a} ${y}a${a} ${b} 0 1 0 ${2 * a} 0a${a} ${b} 0 1 0 ${-2 * a} 0z`;
}

/** Returns what draws an icon, without its translucent ground; nothing for one that isn't made of plain shapes. */
export function pathOf(body) {
  const tags = [...body.matchAll(/<(\w+)[^>]*>/g)].filter(([tag]) => !tag.includes("opacity="));
  if (tags.some(([tag, name]) => !["path", "circle", "ellipse"].includes(name) || tag.includes("transform="))) {
    return undefined;
  }
  const paths = tags.map(([tag, name]) => (name === "path" ? absolute(attribute(tag, "d") ?? "") : ellipse(tag)));
  return (body.includes('fill-rule="evenodd"') ? "E" : "") + paths.join("");
}

/** Returns all icons by the names that dashboards have for them, in the order of the names. */
export function namedIcons() {
  const others = new Map(Object.entries(OTHER_NAMES).map(([name, theirs]) => [theirs, name]));
  const google = iconsOf("ic").flatMap(([theirs, { body }]) => {
    const name = others.get(theirs) ?? /^baseline-(.*)$/.exec(theirs)?.[1]?.replaceAll("-", "_");
    return name === undefined ? [] : [[name, pathOf(body)]];
  });
  const community = iconsOf("mdi").map(([name, { body }]) => [`mdi:${name}`, pathOf(body)]);
  return [...google, ...community].filter(([, path]) => path !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Cuts icons into parts, each with its first name and its text. */
function partsOf(icons) {
  const parts = [];
  let size = PART_SIZE;
  for (const [name, path] of icons) {
    if (size >= PART_SIZE) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1).push([name, path]);
    size += name.length + path.length;
  }
  const texts = parts.map((part) => JSON.stringify(Object.fromEntries(part)));
  // One hash for all of them, since each page has to know their names.
  const hash = createHash("sha256").update(texts.join()).digest("base64url").slice(0, 8);
  return parts.map((part, n) => ({ first: part[0][0], text: texts[n], fileName: `assets/icons-${hash}-${n}.json` }));
}

/** The plugin that emits the parts, and tells pages where they are. */
export function iconPacks() {
  const parts = partsOf(namedIcons());
  let emits = false;
  return {
    name: "icon-packs",
    configResolved: ({ command }) => void (emits = command === "build"),
    resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
    load(id) {
      if (id !== `\0${MODULE}`) {
        return undefined;
      }
      if (emits) {
        parts.forEach(({ fileName, text }) => this.emitFile({ type: "asset", fileName, source: text }));
      }
      const [begin] = parts[0].fileName.split(/\d+\.json$/);
      return `export const PARTS = ${JSON.stringify(parts.map(({ first }) => first))}.map((first, n) => [first, "/${begin}" + n + ".json"]);`;
    },
    configureServer({ middlewares }) {
      middlewares.use((request, response, next) => {
        const part = parts.find(({ fileName }) => request.url === `/${fileName}`);
        part === undefined ? next() : response.setHeader("Content-Type", "application/json").end(part.text);
      });
    },
  };
}
