// Divides what the pages load at once into few files, for a browser loads no more than six at the same time: what both entries share, and
// the rest of each. Parts that come later follow by what they are of.

/** Returns a plugin that learns what each entry imports at once, and the groups of files that follow from it. */
export function entryParts(entries) {
  const closures = entries.map(() => new Set());
  const plugin = {
    name: "entry-parts",
    buildEnd() {
      entries.forEach((entry, n) => {
        const waiting = [entry];
        for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
          if (!closures[n].has(id)) {
            closures[n].add(id);
            waiting.push(...(this.getModuleInfo(id)?.importedIds ?? []));
          }
        }
      });
    },
  };
  const isShared = (id) => closures.every((closure) => closure.has(id));
  const isFirst = (id) => closures.some((closure) => closure.has(id));
  const own = closures.map((closure, n) => ({ name: `app${n}`, tags: ["$initial"], test: (id) => closure.has(id), priority: 8 - n }));
  return { plugin, groups: [{ name: "app", tags: ["$initial"], test: isShared, priority: 9 }, ...own], isFirst };
}
