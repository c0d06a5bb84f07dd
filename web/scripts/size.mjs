// Holds the script and style that an entry loads at once to its budget, in bytes after gzip. A lazy part has none but its own screen's.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const KB = 1000;
/** The log-in page, and the shell with its first screen (which both lists and home are drawn with). */
const BUDGETS = [
  { page: "login.html", lazy: [], js: 90 * KB, css: 20 * KB },
  { page: "index.html", lazy: ["Home"], js: 180 * KB, css: 45 * KB },
];

const assets = readdirSync("dist/assets").filter((name) => !/\.(gz|br)$/.test(name));
const gzipped = (name) => statSync(join("dist/assets", `${name}.gz`)).size;

/** Names the files that a file imports at once, itself among them. */
function closure(name, seen = new Set()) {
  if (!seen.has(name)) {
    seen.add(name);
    const text = readFileSync(join("dist/assets", name), "utf8");
    for (const [, found] of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+)"/g)) {
      closure(found, seen);
    }
  }
  return seen;
}

let failed = false;
for (const { page, lazy, js, css } of BUDGETS) {
  const html = readFileSync(join("dist", page), "utf8");
  const named = [...html.matchAll(/assets\/([\w.-]+\.(?:js|css))/g)].map(([, name]) => name);
  for (const part of lazy.filter((one) => !assets.some((name) => name.startsWith(`${one}-`) && name.endsWith(".js")))) {
    // What isn't found would weigh nothing.
    console.log(`${page}: there is no file of ${part}`);
    failed = true;
  }
  const files = new Set([...named, ...assets.filter((name) => lazy.some((part) => name.startsWith(`${part}-`) && name.endsWith(".js")))]);
  for (const name of [...files].filter((one) => one.endsWith(".js"))) {
    closure(name, files);
  }
  const total = (end) => [...files].filter((name) => name.endsWith(end)).reduce((sum, name) => sum + gzipped(name), 0);
  for (const [kind, budget] of Object.entries({ ".js": js, ".css": css })) {
    const bytes = total(kind);
    console.log(`${page} ${kind} ${bytes} of ${budget} bytes`);
    failed ||= bytes > budget;
  }
}
process.exit(failed ? 1 : 0);
