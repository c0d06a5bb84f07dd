// Measures the pages in a browser against a program with its demo tenant: node bench/measure.mjs [seconds of live values].
// Figures are medians of five runs unless they say otherwise.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "@playwright/test";

const LIVE_SECONDS = Number(process.argv[2] ?? 60);
const RUNS = 5;
const POINTS = 10_000;
const ROWS = 10_000;
const VALUES_PER_SECOND = 1_000;
/** A new window of the browser loads parts of the browser itself, which take as long as a page: it is left alone for this long first, ms. */
const SETTLE_MS = 1_500;
const TOKEN = "A1_TEST_TOKEN";
const DEVICE = "Test Device A1";

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const quantile = (numbers, share) => numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) * share)];
const report = (what, figure, unit) => console.log(`${what.padEnd(64)} ${figure.toFixed(figure < 10 ? 2 : 0).padStart(8)} ${unit}`);

const folder = mkdtempSync(join(tmpdir(), "fieldline-measure-"));
const program = spawn(process.env.FIELDLINE_BIN ?? "../target/release/fieldline", ["serve", "--demo", "--data-dir", folder], {
  env: { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== "FIELDLINE_BIN")), FIELDLINE_HTTP_LISTEN: "127.0.0.1:0", FIELDLINE_MQTT_LISTEN: "127.0.0.1:0", FIELDLINE_COAP_LISTEN: "127.0.0.1:0" },
  stdio: ["ignore", "pipe", "ignore"],
});
const url = await new Promise((resolve) => {
  let text = "";
  program.stdout.on("data", (bytes) => {
    text += bytes;
    const found = /HTTP\s+(http:\/\/\S+)/.exec(text)?.[1];
    if (found !== undefined) {
      resolve(found);
    }
  });
});

const json = { "Content-Type": "application/json" };
const pair = await (await fetch(`${url}/api/auth/login`, { method: "POST", headers: json, body: JSON.stringify({ username: "tenant@thingsboard.org", password: "tenant" }) })).json();
const call = async (method, path, body) => {
  const answer = await fetch(url + path, { method, headers: { ...json, "X-Authorization": `Bearer ${pair.token}` }, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) {
    throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  }
  return answer.json();
};
const send = (body) => fetch(`${url}/api/v1/${TOKEN}/telemetry`, { method: "POST", headers: json, body: JSON.stringify(body) });

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
/** A browser without cache; logged in unless it says otherwise. */
async function open(path, loggedIn = true) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  if (loggedIn) {
    await context.addInitScript(([token, refresh]) => {
      localStorage.setItem("jwt_token", token);
      localStorage.setItem("refresh_token", refresh);
    }, [pair.token, pair.refreshToken]);
  }
  const page = await context.newPage();
  await page.waitForTimeout(SETTLE_MS);
  const begun = performance.now();
  await page.goto(url + path, { waitUntil: "commit" });
  return { page, since: () => performance.now() - begun, close: () => context.close() };
}
async function until(what, path, ready, loggedIn = true) {
  const times = [];
  for (let run = 0; run < RUNS; run++) {
    const { page, since, close } = await open(path, loggedIn);
    await ready(page);
    times.push(since());
    await close();
  }
  report(what, median(times), "ms");
}
/** Share of one core that the page's main thread has used, percent. */
async function busy(page, action) {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  const read = async () => {
    // What is garbage at one moment and not at the other would look like growth.
    await client.send("HeapProfiler.collectGarbage");
    return Object.fromEntries((await client.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  };
  const before = await read();
  await action();
  const after = await read();
  return { busy: (100 * (after.TaskDuration - before.TaskDuration)) / (after.Timestamp - before.Timestamp), heap: (after.JSHeapUsedSize - before.JSHeapUsedSize) / 1e6 };
}
/**
 * Times between frames while something is done, and how long the page's main thread worked for each, milliseconds. Frames come no faster than
 * the screen has them, so that only the second says what is left of a frame.
 */
async function frames(page, action) {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  const read = async () => Object.fromEntries((await client.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  await page.evaluate(() => {
    window.times = [];
    window.spent = [];
    const channel = new MessageChannel();
    // What a frame costs is from its first callback until the page is free again after layout and painting.
    let begun = 0;
    channel.port1.onmessage = () => window.spent.push(performance.now() - begun);
    const next = (at) => {
      begun = performance.now();
      window.times.push(at);
      window.going = requestAnimationFrame(next);
      channel.port2.postMessage(0);
    };
    window.going = requestAnimationFrame(next);
  });
  const before = await read();
  await action();
  const after = await read();
  const { times, spent } = await page.evaluate(() => (cancelAnimationFrame(window.going), { times: window.times, spent: window.spent }));
  await client.detach();
  return { between: times.slice(1).map((at, n) => at - times[n]), spent, script: (1_000 * (after.ScriptDuration - before.ScriptDuration)) / times.length };
}
/** Reports frames: the time between them, what one costs the main thread, and how much of that is script. */
function reportFrames(what, { between, spent, script }) {
  report(`${what}, p95`, quantile(between, 0.95), "ms");
  report("  of which the main thread works, p95", quantile(spent, 0.95), "ms");
  report("  script a frame, mean", script, "ms");
}

try {
  await until("log-in page until it takes input", "/login", (page) => page.getByLabel("Password").waitFor(), false);
  await until("home, cold, until it shows figures", "/home", async (page) => {
    // The demo has four of them; each is a number when its answer is there.
    for (const name of ["Devices", "Devices online", "Active alarms", "Critical alarms"]) {
      await page.locator(`[data-figure="${name}"]`).getByText(/^\d/).waitFor();
    }
  });

  const now = Date.now();
  for (let at = 0; at < POINTS; at += 500) {
    await send(Array.from({ length: 500 }, (_, n) => ({ ts: now - (POINTS - at - n) * 300, values: { temperature: 20 + Math.sin((at + n) / 200) } })));
  }
  const key = { name: "temperature", type: "timeseries", label: "temperature", color: "#2196f3", settings: {} };
  const widget = (fqn, type, title) => ({ typeFullFqn: `system.${fqn}`, type, config: { title, showTitle: true, settings: {}, datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [key] }] } });
  const board = await call("POST", "/api/dashboard", {
    title: "measured",
    configuration: {
      widgets: { c: widget("time_series_chart", "timeseries", "Chart"), v: widget("cards.value_card", "latest", "Value"), t: widget("cards.entities_table", "latest", "Table"), g: widget("digital_gauges.gauge_justgage", "latest", "Gauge") },
      states: { default: { name: "d", root: true, layouts: { main: { widgets: { c: { col: 0, row: 0, sizeX: 16, sizeY: 8 }, v: { col: 16, row: 0, sizeX: 8, sizeY: 4 }, t: { col: 16, row: 4, sizeX: 8, sizeY: 4 }, g: { col: 0, row: 8, sizeX: 8, sizeY: 4 } }, gridSettings: { columns: 24 } } } } },
      entityAliases: { a: { id: "a", alias: "a", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: DEVICE, resolveMultiple: true } } },
      timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 3_600_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 50_000 } },
    },
  });
  const shown = async (page) => {
    await page.getByRole("region", { name: "Chart" }).locator('[data-points]:not([data-points="0"]) canvas').waitFor();
    const number = /\d\d/;
    await page.getByRole("region", { name: "Value" }).getByText(number).first().waitFor();
    await page.getByRole("region", { name: "Table" }).getByRole("row", { name: DEVICE }).getByText(number).first().waitFor();
    await page.getByRole("region", { name: "Gauge" }).locator("[data-value]").filter({ hasText: number }).waitFor();
  };
  await until(`dashboard of four widgets, one a chart of ${POINTS} points, all with data`, `/dashboards/${board.id.id}`, shown);

  const chart = await open(`/dashboards/${board.id.id}`);
  await shown(chart.page);
  const box = await chart.page.getByRole("region", { name: "Chart" }).locator("canvas").boundingBox();
  const hover = await frames(chart.page, async () => {
    for (let x = 10; x < box.width - 10; x += 8) {
      await chart.page.mouse.move(box.x + x, box.y + box.height / 2);
    }
  });
  reportFrames(`chart of ${POINTS} points, frames under a moving cursor`, hover);
  const panned = await frames(chart.page, async () => {
    await chart.page.keyboard.down("Shift");
    await chart.page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2);
    await chart.page.mouse.down();
    for (let n = 0; n < 120; n++) {
      await chart.page.mouse.move(box.x + box.width * 0.8 - n * 3, box.y + box.height / 2);
    }
  });
  reportFrames("  frames while it is panned", panned);
  // Back to where it began, so that it goes on with live values.
  await chart.page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2);
  await chart.page.mouse.up();
  await chart.page.keyboard.up("Shift");
  await chart.page.getByRole("button", { name: "Reset zoom" }).click();

  let going = true;
  const flood = (async () => {
    while (going) {
      const begun = performance.now();
      await send(Object.fromEntries(Array.from({ length: VALUES_PER_SECOND / 10 }, (_, n) => [n === 0 ? "temperature" : `k${n}`, Math.random() * 100])));
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 100 - (performance.now() - begun))));
    }
  })();
  const device = (await call("GET", `/api/tenant/devices?deviceName=${encodeURIComponent(DEVICE)}`)).id.id;
  const live = await open(`/entities/devices/${device}`);
  await live.page.getByRole("tab", { name: "Latest telemetry" }).click();
  await live.page.getByText("k42", { exact: true }).waitFor();
  const table = await busy(live.page, () => live.page.waitForTimeout(LIVE_SECONDS * 1_000));
  report(`${VALUES_PER_SECOND} values/s in a live table of 100 keys, main thread`, table.busy, "%");
  report("  and growth of its heap", table.heap, "MB");
  await live.close();
  const drawn = await busy(chart.page, () => chart.page.waitForTimeout(LIVE_SECONDS * 1_000));
  report(`${VALUES_PER_SECOND} values/s, dashboard with 10 of them a second, main thread`, drawn.busy, "%");
  report("  and growth of its heap", drawn.heap, "MB");
  going = false;
  await flood;
  await chart.close();

  const mapping = { columns: [{ type: "NAME" }, { type: "TYPE" }, { type: "SERVER_ATTRIBUTE", key: "latitude" }, { type: "SERVER_ATTRIBUTE", key: "longitude" }], delimiter: ",", header: false, update: false };
  for (let at = 0; at < ROWS; at += 1_000) {
    await call("POST", "/api/device/bulk_import", { file: Array.from({ length: 1_000 }, (_, n) => `Measured ${at + n},default,${(45 + ((at + n) % 100) * 0.1).toFixed(2)},${(5 + Math.floor((at + n) / 100) * 0.1).toFixed(2)}`).join("\n"), mapping });
  }
  const list = await open("/entities/devices");
  await list.page.getByText("Measured", { exact: false }).first().waitFor();
  const grid = list.page.getByRole("table").locator("xpath=ancestor-or-self::*[contains(@style,'overflow') or @tabindex][1]");
  const target = (await grid.count()) > 0 ? grid.first() : list.page.getByRole("table").first();
  await target.hover();
  const scrolled = await frames(list.page, async () => {
    for (let n = 0; n < 100; n++) {
      await list.page.mouse.wheel(0, 300);
      await list.page.waitForTimeout(16);
    }
  });
  reportFrames(`list of ${ROWS} devices, frames while scrolling`, scrolled);
  report("  rows in the document", await list.page.getByRole("row").count(), "");
  await list.close();

  const place = (name) => ({ name, type: "attribute", label: name, settings: {} });
  const map = await call("POST", "/api/dashboard", {
    title: "map",
    configuration: {
      widgets: {
        m: {
          typeFullFqn: "system.map",
          config: {
            title: "Map",
            showTitle: true,
            settings: { mapType: "geoMap", layers: [{ provider: "custom", tileUrl: "http://127.0.0.1:9/{z}/{x}/{y}.png" }], markers: [{ dsType: "entity", dsEntityAliasId: "a", xKey: place("latitude"), yKey: place("longitude") }] },
          },
        },
      },
      states: { default: { name: "d", root: true, layouts: { main: { widgets: { m: { col: 0, row: 0, sizeX: 24, sizeY: 14 } }, gridSettings: { columns: 24 } } } } },
      entityAliases: { a: { id: "a", alias: "a", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Measured", resolveMultiple: true } } },
    },
  });
  const drawn10k = (page) => page.locator(`[data-placed="${ROWS}"] .leaflet-marker-icon`).first().waitFor();
  await until(`map of ${ROWS} devices, cold, until all are on it`, `/dashboards/${map.id.id}`, drawn10k);
  const mapPage = await open(`/dashboards/${map.id.id}`);
  await drawn10k(mapPage.page);
  const pane = await mapPage.page.locator("[data-placed]").boundingBox();
  const panning = await frames(mapPage.page, async () => {
    await mapPage.page.mouse.move(pane.x + pane.width / 2, pane.y + pane.height / 2);
    await mapPage.page.mouse.down();
    for (let n = 0; n < 100; n++) {
      await mapPage.page.mouse.move(pane.x + pane.width / 2 + 200 * Math.sin(n / 10), pane.y + pane.height / 2 + 100 * Math.cos(n / 10));
      await mapPage.page.waitForTimeout(16);
    }
    await mapPage.page.mouse.up();
  });
  reportFrames("  frames while it is dragged", panning);
  report("  markers in the document", await mapPage.page.locator(".leaflet-marker-icon").count(), "");
  await mapPage.close();
} finally {
  await browser.close();
  program.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
