// A dashboard that ThingsBoard exported is brought in, shows live values and their course, and runs none of its scripts.

import { writeFileSync } from "node:fs";
import { findings } from "./axe";
import { expect, logIn, test } from "./program";

const TOKEN = "A1_TEST_TOKEN";

function widget(fqn: string, title: string, keys: object[], settings: object = {}, entityAliasId = "a1", actions: object = {}): object {
  return {
    typeFullFqn: `system.${fqn}`,
    type: "latest",
    sizeX: 6,
    sizeY: 4,
    config: { title, showTitle: true, settings, actions, datasources: [{ type: "entity", entityAliasId, dataKeys: keys }] },
  };
}

const KEY = { name: "temperature", type: "timeseries", label: "Temperature", color: "#f44336", units: "°C", decimals: 1, settings: {} };

const EXPORTED = {
  title: "Boiler room",
  configuration: {
    widgets: {
      w1: widget("cards.value_card", "Now", [KEY]),
      w2: { ...widget("time_series_chart", "Course", [KEY]), type: "timeseries" },
      w3: widget("cards.entities_table", "Table", [KEY], {}, "a1", { rowClick: [{ name: "open", type: "openDashboardState", targetDashboardStateId: "room", setEntityId: true }] }),
      w4: widget("cards.html_value_card", "Markup", [KEY], { cardHtml: '<b>It is ${Temperature}</b><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>' }),
      w6: widget("cards.simple_card", "${entityName}", [KEY], {}, "chosen"),
      w5: widget("gateway_widgets.config", "Strange", [KEY]),
    },
    states: {
      default: {
        name: "Boiler room",
        root: true,
        layouts: {
          main: {
            widgets: {
              w1: { sizeX: 6, sizeY: 4, row: 0, col: 0 },
              w2: { sizeX: 12, sizeY: 6, row: 0, col: 6 },
              w3: { sizeX: 6, sizeY: 4, row: 4, col: 0 },
              w4: { sizeX: 6, sizeY: 4, row: 6, col: 6 },
              w5: { sizeX: 6, sizeY: 4, row: 6, col: 12 },
            },
            gridSettings: { columns: 24, margin: 10, backgroundColor: "#eeeeee" },
          },
        },
      },
      room: { name: "${entityName}", root: false, layouts: { main: { widgets: { w6: { sizeX: 8, sizeY: 4, row: 0, col: 0 } }, gridSettings: { columns: 24 } } } },
    },
    entityAliases: { chosen: { id: "chosen", alias: "Chosen", filter: { type: "stateEntity" } }, a1: { id: "a1", alias: "A1", filter: { type: "entityName", entityType: "DEVICE", entityNameFilter: "Test Device A1", resolveMultiple: true } } },
    timewindow: { selectedTab: 0, realtime: { realtimeType: 0, timewindowMs: 300_000, interval: 1_000 }, aggregation: { type: "NONE", limit: 1_000 } },
  },
};

test("an exported dashboard opens, lives, and harms nobody", async ({ page, program }) => {
  const file = test.info().outputPath("boiler room.json");
  writeFileSync(file, JSON.stringify(EXPORTED));
  const sensor = await program.device(TOKEN);
  await sensor.send({ temperature: 20.04 });
  await logIn(page, program, "TENANT_ADMIN", "/dashboards");
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Import" }).click();
  await (await choosing).setFiles(file);
  await expect(page.getByRole("heading", { level: 1, name: "Boiler room" })).toBeVisible();

  const value = page.getByRole("region", { name: "Now" }).locator("[data-value]");
  await expect(value).toHaveText("20 °C");
  await sensor.send({ temperature: 25.26 });
  await expect(value).toHaveText("25.3 °C");
  await expect(page.getByRole("region", { name: "Table" })).toContainText("25.3 °C");
  await expect(page.getByRole("region", { name: "Table" })).toContainText("Test Device A1");
  await expect.poll(async () => Number(await page.getByRole("region", { name: "Course" }).locator("[data-points]").getAttribute("data-points"))).toBeGreaterThan(1);
  await expect(page.getByRole("region", { name: "Markup" })).toContainText("It is 25.3");
  await expect(page.getByRole("region", { name: "Strange" })).toContainText("system.gateway_widgets.config");
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);

  const [first, second] = await Promise.all(["w1", "w2"].map((id) => page.locator(`[data-widget="${id}"]`).boundingBox()));
  const pitch = ((second?.x ?? 0) - (first?.x ?? 0)) / 6;
  expect(first?.width).toBeCloseTo(6 * pitch - 10, 0);
  expect(first?.height).toBeCloseTo(4 * pitch - 10, 0);

  await page.getByRole("region", { name: "Table" }).getByRole("button", { name: "Test Device A1" }).click();
  const chosen = page.getByRole("region", { name: "Test Device A1" });
  await expect(chosen.locator("[data-value]")).toHaveText("25.3 °C");
  await page.reload();
  await expect(chosen.locator("[data-value]")).toHaveText("25.3 °C");
  await page.goBack();
  await expect(page.getByRole("region", { name: "Table" })).toContainText("25.3 °C");

  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  expect((await saving).suggestedFilename()).toBe("Boiler room.json");
  await page.screenshot({ path: "test-results/screens/dashboard_light.png" });
  await page.setViewportSize({ width: 420, height: 900 });
  await expect(page.locator('[data-widget="w1"]')).toHaveCSS("left", "10px");
  await page.screenshot({ path: "test-results/screens/dashboard_phone.png" });
});

test("a device has a dashboard that nobody built, and it can be kept", async ({ page, program }) => {
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Pump 3" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=dashboard`);
  await expect(page.getByText("No values yet. They appear here as soon as they arrive.")).toBeVisible();
  const pump = await program.device(credentialsId);
  await pump.send({ pressure: 3, door: "open", latitude: 48.1, longitude: 11.5 });
  await program.save(`/api/plugins/telemetry/DEVICE/${device.id.id}/SHARED_SCOPE`, { light: false });
  const values = page.locator("[data-value]");
  await expect(values).toHaveText(["3", "open"], { timeout: 15_000 });
  await page.reload();
  await pump.send({ pressure: 4 });
  await expect(values.first()).toHaveText("4");
  await expect(page.getByRole("region", { name: "Map" }).locator("[data-widget], .leaflet-container").first()).toBeVisible();
  await page.getByRole("region", { name: "light" }).getByRole("switch").click();
  const shared = (): Promise<{ key: string; value: unknown }[]> => program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/attributes/SHARED_SCOPE`);
  await expect.poll(async () => (await shared()).find(({ key }) => key === "light")?.value).toBe(true);
  await page.getByRole("button", { name: "Save as dashboard" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Pump 3" })).toBeVisible();
  await expect(values).toHaveText(["4", "open"]);
  await expect(page.getByRole("region", { name: "light" }).getByRole("switch")).toBeChecked();
});

test("a profile has a dashboard of all that has it, whose rows open one, and it can be kept", async ({ page, program }) => {
  test.setTimeout(90_000);
  for (const n of [1, 2, 3]) {
    const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: `Chiller ${n}`, type: "Chillers" });
    const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
    await program.send(credentialsId, { flow: n * 10, latitude: 48 + n, longitude: 11, ...(n === 1 ? { only: 1 } : {}) });
  }
  // That a device is heard is written a few seconds later, and a count of entities is made anew only once a minute.
  const keyFilters = [{ key: { type: "ATTRIBUTE", key: "active" }, valueType: "BOOLEAN", predicate: { type: "BOOLEAN", operation: "EQUAL", value: { defaultValue: true } } }];
  const online = () => program.call<number>("TENANT_ADMIN", "/api/entitiesQuery/count", { entityFilter: { type: "deviceType", deviceTypes: ["Chillers"], deviceNameFilter: "" }, keyFilters });
  await expect.poll(online).toBe(3);
  const { data } = await program.call<{ data: { id: { id: string } }[] }>("TENANT_ADMIN", "/api/deviceProfileInfos?pageSize=5&page=0&textSearch=Chillers");
  await logIn(page, program, "TENANT_ADMIN", `/profiles/deviceProfiles/${data[0]?.id.id ?? ""}`);
  await page.getByRole("tab", { name: "Dashboard" }).click();
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  await expect(region("Devices").locator("[data-value]")).toHaveText("3");
  await expect(region("Online").locator("[data-value]")).toHaveText("3");
  await expect(region("Active alarms").locator("[data-value]")).toHaveText("0");
  // What most have comes first.
  await expect(region("Chillers").getByRole("columnheader")).toContainText(["Name", "Active", "flow", "only"], { ignoreCase: true });
  await expect(region("flow").getByRole("listitem").or(region("flow").getByRole("row")).or(region("flow").getByRole("button")).filter({ hasText: "Chiller" }).first()).toBeVisible();
  await expect(region("Map").locator(".leaflet-container")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/automatic_profile.png", fullPage: true });
  await region("Chillers").getByRole("button", { name: "Chiller 2" }).click();
  await expect(region("flow").locator("[data-value]").first()).toHaveText("20");
  await page.goBack();
  await page.getByRole("button", { name: "Save as dashboard" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Chillers" })).toBeVisible();
  await expect(region("Chillers").getByRole("button", { name: "Chiller 3" })).toBeVisible();
  await page.setViewportSize({ width: 420, height: 900 });
  await expect(region("Devices")).toBeVisible();
  // The page is laid out anew some frames after the window has another size.
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});

test("an asset shows the devices in it, and a customer those that it has", async ({ page, program }) => {
  const [customer, house, room, device] = await Promise.all([
    program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/customer", { title: "Tenants of the house" }),
    program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/asset", { name: "House", type: "houses" }),
    program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/asset", { name: "Room", type: "rooms" }),
    program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name: "Meter in the room", type: "meters" }),
  ]);
  for (const [from, to] of [[house, room], [room, device]]) {
    await program.save("/api/relation", { from: from?.id, to: to?.id, type: "Contains", typeGroup: "COMMON" });
  }
  await program.call("TENANT_ADMIN", `/api/customer/${customer.id.id}/device/${device.id.id}`, {});
  await logIn(page, program, "TENANT_ADMIN", `/entities/assets/${house.id.id}?tab=dashboard`);
  await expect(page.getByRole("region", { name: "House" }).getByRole("button", { name: "Meter in the room" })).toBeVisible();
  await page.goto(`${program.url}/customers/${customer.id.id}?tab=dashboard`);
  await expect(page.getByRole("region", { name: "Tenants of the house" }).getByRole("button", { name: "Meter in the room" })).toBeVisible();
});

test("values are asked for before the widgets are there, each once", async ({ page, program }) => {
  const yard = { time_series_chart: [KEY], "cards.value_card": [KEY], "cards.aggregated_value_card": [{ ...KEY, aggregationType: "AVG" }], "charts.state_chart": [KEY] };
  const own = { selectedTab: 0, realtime: { realtimeType: 1, quickInterval: "CURRENT_DAY", interval: 60_000 }, aggregation: { type: "AVG", limit: 500 } };
  const widgets = Object.fromEntries(
    Object.entries(yard).map(([fqn, keys]) => {
      const made = widget(fqn, fqn, keys) as { config: object };
      const config = { ...made.config, ...(fqn === "charts.state_chart" ? { useDashboardTimewindow: false, timewindow: own } : {}) };
      return [fqn, { ...made, type: fqn.includes("chart") ? "timeseries" : "latest", config }];
    }),
  );
  // What lies below the page is not asked for.
  const below = { ...(widget("cards.simple_card", "Below", [{ ...KEY, name: "below" }]) as object) };
  const places = Object.fromEntries([...Object.keys(widgets).map((id, n) => [id, { col: n * 6, row: 0, sizeX: 6, sizeY: 4 }]), ["below", { col: 0, row: 90, sizeX: 6, sizeY: 4 }]]);
  const configuration = { ...EXPORTED.configuration, widgets: { ...widgets, below }, states: { default: { name: "Asked", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } } };
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Asked", configuration });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}?time=2h`);
  await expect(page.getByRole("region", { name: "cards.value_card" })).toBeVisible();
  const sent: { type: string; keys: string }[] = [];
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => {
      const { cmds = [] } = JSON.parse(String(payload)) as { cmds?: { type: string; query?: object; tsCmd?: { timeWindow: number } }[] };
      sent.push(...cmds.map(({ type, query, tsCmd }) => ({ type, keys: JSON.stringify([query, tsCmd?.timeWindow]) })));
    });
  });
  await page.addInitScript(() => {
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (...message: [unknown]) {
      if (JSON.stringify(message).includes("ENTITY_DATA")) {
        document.documentElement.dataset["asked"] ??= document.querySelector("[data-widget]") === null ? "ahead" : "late";
      }
      post.apply(this, message);
    };
  });
  await page.reload();
  for (const fqn of ["time_series_chart", "charts.state_chart"]) {
    await expect(page.getByRole("region", { name: fqn }).locator("canvas").first()).toBeVisible();
  }
  for (const fqn of ["cards.value_card", "cards.aggregated_value_card"]) {
    await expect(page.getByRole("region", { name: fqn }).locator("[data-value]").first()).toBeVisible();
  }
  await expect(page.locator("html")).toHaveAttribute("data-asked", "ahead");
  expect(sent.map(({ type }) => type)).toEqual(Array.from({ length: 4 }, () => "ENTITY_DATA"));
  expect(sent.some(({ keys }) => keys.includes("below"))).toBe(false);
});
