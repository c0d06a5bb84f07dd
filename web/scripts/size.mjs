// Holds what is loaded at once to its budget, in bytes after gzip: by the pages, by what comes later for what people often look at, and what
// the program has to pack.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const KB = 1000;
/** The log-in page, and the shell with its first screen (which both lists and home are drawn with). */
const PAGES = [
  { page: "login.html", lazy: [], js: 90 * KB, css: 20 * KB },
  { page: "index.html", lazy: ["Home"], js: 180 * KB, css: 45 * KB },
];
/** What is shown first of a dashboard with a chart, a card, a table and a gauge. */
const BOARD = ["board", "later", "TimeChart", "table", "value", "shown"];
/** What comes later, by the beginnings of its files' names: scripts beside those of the shell and of what `beside` names. */
const PARTS = [
  // 120 are missed: what forms say holds where nothing is stored is known to what draws as well.
  { part: "dashboard", files: BOARD, js: 125 * KB },
  { part: "map", files: ["MapWidget"], beside: [...BOARD, "widgets", "ui"], js: 60 * KB },
  { part: "rule chain", files: ["RuleChain"], beside: [...BOARD, "widgets", "ui"], js: 90 * KB },
  { part: "code editor", files: ["CodeEditor", "jsonText"], js: 140 * KB },
  // 140 are missed by the grammar of scripts.
  { part: "code editor with a script", files: ["CodeEditor", "script"], js: 165 * KB },
];
/** All files in the forms in which the program packs them. */
const PACKED = 3_000 * KB;

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
function hold(what, bytes, budget) {
  console.log(`${what}: ${bytes} of ${budget} bytes`);
  failed ||= bytes > budget;
}

/** Names the scripts whose names begin so. What isn't found would weigh nothing. */
function scriptsOf(beginnings, whose) {
  return beginnings.flatMap((begin) => {
    const found = assets.filter((name) => new RegExp(`^${begin}-[\\w-]{8}\\.js$`).test(name));
    if (found.length === 0) {
      console.log(`${whose}: there is no file of ${begin}`);
      failed = true;
    }
    return found;
  });
}

const shell = new Set();
for (const { page, lazy, js, css } of PAGES) {
  const html = readFileSync(join("dist", page), "utf8");
  const named = [...html.matchAll(/assets\/([\w.-]+\.(?:js|css))/g)].map(([, name]) => name);
  const files = new Set([...named, ...assets.filter((name) => lazy.some((part) => name.startsWith(`${part}-`) && name.endsWith(".css")))]);
  const scripts = new Set();
  [...named.filter((name) => name.endsWith(".js")), ...scriptsOf(lazy, page)].forEach((name) => closure(name, scripts));
  const sum = (names) => names.reduce((total, name) => total + gzipped(name), 0);
  hold(`${page} .js`, sum([...scripts]), js);
  hold(`${page} .css`, sum([...files].filter((name) => name.endsWith(".css"))), css);
  if (page === "index.html") {
    scripts.forEach((name) => shell.add(name));
  }
}
for (const { part, files, beside = [], js } of PARTS) {
  const there = new Set(shell);
  scriptsOf(beside, part).forEach((name) => closure(name, there));
  const needed = new Set();
  scriptsOf(files, part).forEach((name) => closure(name, needed));
  hold(part, [...needed].filter((name) => !there.has(name)).reduce((total, name) => total + gzipped(name), 0), js);
}
const all = readdirSync("dist", { recursive: true, withFileTypes: true }).filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
const plain = (path) => all.includes(`${path}.gz`);
hold("packed", all.filter((path) => !plain(path)).reduce((total, path) => total + statSync(path).size, 0), PACKED);
process.exit(failed ? 1 : 0);
