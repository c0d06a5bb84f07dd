// Divides what the pages load at once into few files, for a browser loads no more than six at the same time: what all entries share, and
// the rest of each. Parts that come later follow by what they are of. What runs before the application is in files that need nothing of it.

/**
 * Returns a plugin that learns what each entry imports at once, and the groups of files that follow from it. `early` runs before the first
 * entry, whose page is told of it, and imports `later` where that is needed. `parts` are modules that come later, those of a name in one file
 * with what they import at once and no file before it has.
 */
export function entryParts(entries, early, later, parts = {}) {
  const roots = [...entries.map((entry) => [entry]), ...Object.values(parts), [early], [later]];
  const closures = roots.map(() => new Set());
  const plugin = {
    name: "entry-parts",
    buildEnd() {
      roots.forEach((root, n) => {
        const waiting = [...root];
        for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
          if (!closures[n].has(id)) {
            closures[n].add(id);
            waiting.push(...(this.getModuleInfo(id)?.importedIds ?? []));
          }
        }
      });
    },
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle, filename }) {
        const file = Object.values(bundle ?? {}).find((one) => one.type === "chunk" && one.facadeModuleId === early)?.fileName;
        const attrs = { type: "module", crossorigin: true, src: `/${file}` };
        const isFirst = file !== undefined && filename === entries[0];
        // Before the application, so that it runs first.
        return isFirst ? { html, tags: [{ tag: "script", attrs, injectTo: "head-prepend" }] } : html;
      },
    },
  };
  const own = closures.slice(0, entries.length);
  const [first, earlyOnes, laterOnes] = [own[0], closures.at(-2), closures.at(-1)];
  const isBase = (id) => id !== early && (earlyOnes.has(id) || (laterOnes.has(id) && first.has(id)));
  const isShared = (id) => own.every((closure) => closure.has(id));
  const groups = [
    { name: "base", tags: ["$initial"], test: isBase, priority: 10 },
    { name: "app", tags: ["$initial"], test: isShared, priority: 9 },
    ...own.map((closure, n) => ({ name: `app${n}`, tags: ["$initial"], test: (id) => closure.has(id), priority: 8 - n })),
    { name: "later", test: (id) => laterOnes.has(id) && !first.has(id), priority: 5 },
    ...Object.keys(parts).map((name, n) => ({ name, test: (id) => closures[own.length + n].has(id) && !first.has(id), priority: 4.9 - n / 10 })),
  ];
  return { plugin, groups };
}
