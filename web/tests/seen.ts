// What is seen of the widgets of a dashboard, all of them at once.

import { expect, type Page } from "@playwright/test";
import type { Program } from "./program";

const TILE = '<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256"/>';
/** Whole dashboards of unlike widgets have this time to be drawn. */
const SETTLED_MS = 25_000;

/** What is seen of a widget: text and parts are those of its body. */
export interface Seen {
  text: string;
  alerts: string[];
  waits: boolean;
  /** Values in the places that renderers mark, and names of drawings. */
  values: string[];
  names: string[];
  /** Whether each canvas that draws something has drawn. */
  painted: boolean[];
  points: number[];
  shares: number[];
  inputs: string[];
  checked: boolean[];
  marks: number;
  parts: number;
  size: [number, number];
}

/** What a widget says that shows nothing of what it should. */
export const FAILS = /has failed|failed:|The server refused|No entity is chosen|can't be (had|loaded|drawn)|No numbers yet|No values in this time|No value yet/;

export async function look(page: Page): Promise<Record<string, Seen>> {
  return page.evaluate(() => {
    const isPainted = (canvas: HTMLCanvasElement): boolean => {
      const { width, height } = canvas;
      return width > 0 && height > 0 && (canvas.getContext("2d")?.getImageData(0, 0, width, height).data.some((byte) => byte !== 0) ?? false);
    };
    return Object.fromEntries(
      [...document.querySelectorAll<HTMLElement>("[data-widget]")].map((element) => {
        const all = <T extends Element = HTMLElement>(selector: string): T[] => [...element.querySelectorAll<T>(selector)];
        const { width, height } = element.getBoundingClientRect();
        // Titles and menus are there whatever a widget draws.
        const body = element.querySelector<HTMLElement>("[data-body]");
        // Markup of tenants is in a tree of its own.
        const trees = [...(body?.querySelectorAll("*") ?? [])].flatMap(({ shadowRoot }) => shadowRoot ?? []);
        const written = trees.flatMap((tree) => [...tree.childNodes].filter(({ nodeName }) => nodeName !== "STYLE").map((node) => (node instanceof HTMLElement ? node.innerText : (node.textContent ?? ""))));
        const drawn = [body ?? [], ...trees].flat().flatMap((tree) => [...tree.querySelectorAll("svg *, img, canvas, button, input, iframe, a, [role=img]:not(svg)")]);
        return [
          element.dataset["widget"] ?? "",
          {
            text: [body?.innerText ?? "", ...written].join("\n").trim(),
            alerts: all("[role=alert]").map((one) => one.textContent ?? ""),
            waits: element.querySelector("[aria-busy=true]") !== null,
            values: all("[data-value]").flatMap((one) => [one.getAttribute("data-value") ?? "", one.textContent?.trim() ?? ""]).filter((one) => one !== "" && one !== "true"),
            names: all("[role=img][aria-label]").map((one) => one.getAttribute("aria-label") ?? ""),
            painted: all<HTMLCanvasElement>("[data-points] canvas").map(isPainted),
            points: all("[data-points]").map((one) => Number(one.dataset["points"])),
            shares: all("[data-share]").map((one) => Number(one.dataset["share"])),
            inputs: all<HTMLInputElement>("input").map((one) => one.value),
            checked: all("[role=switch]").map((one) => one.getAttribute("aria-checked") === "true" || (one as HTMLInputElement).checked),
            marks: all(".leaflet-marker-icon, path.leaflet-interactive").length,
            parts: drawn.filter((one) => one.getBoundingClientRect().width + one.getBoundingClientRect().height > 0).length,
            size: [width, height],
          },
        ];
      }),
    );
  });
}

/** Answers for the pictures of maps, which are elsewhere, and returns the errors that the page will have told of this program. */
export async function watch(page: Page, program: Program): Promise<string[]> {
  const said: string[] = [];
  page.on("console", (message) => {
    const { url } = message.location();
    if (message.type() === "error" && url.startsWith(program.url)) {
      said.push(`${message.text()} ${url.slice(program.url.length)}`);
    }
  });
  await page.route((url) => url.origin !== program.url && url.protocol.startsWith("http"), (route) => route.fulfill({ contentType: "image/svg+xml", body: TILE }));
  return said;
}

/** Waits until nothing is wrong any more, and returns what still is, with a picture of it. */
export async function settled(page: Page, find: () => Promise<string[]>, name: string): Promise<string[]> {
  let found: string[] = [];
  await expect.poll(async () => (found = await find()), { timeout: SETTLED_MS }).toEqual([]).catch(() => undefined);
  if (found.length > 0) {
    await page.screenshot({ path: `test-results/screens/${name.replaceAll(/\W+/g, "_")}.png` });
  }
  return found;
}
