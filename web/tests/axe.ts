// What axe finds on a page, by the rules of WCAG 2.2 AA.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    // A page that has just changed its colours is looked at when it has done so: what inherits a colour begins to change when that
    // has, so that there are rounds of it.
    for (let [frame, calm] = [0, 0]; frame < 300 && calm < 5; frame += 1) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      calm = document.getAnimations().some(({ effect }) => effect?.getComputedTiming().endTime !== Infinity) ? 0 : calm + 1;
    }
    const runner = (window as unknown as { axe: { run: (options: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
    const { violations } = await runner.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  });
}
