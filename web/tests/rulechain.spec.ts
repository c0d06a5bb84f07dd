// Rule chains are built, tried, saved and brought in, by mouse and by keyboard.

import { readFileSync, writeFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { offeredBy, textsOf } from "../src/ui/schemaForm/schema";
import { expect, logIn, test } from "./program";
import { box, metadataOf, newChain, saveChain } from "./ruleChains";

const TOKEN = "A1_TEST_TOKEN";
const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

async function pickLabel(page: Page, label: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("checkbox", { name: label, exact: true }).check();
  await dialog.getByRole("button", { name: "Connect" }).click();
  await expect(dialog).toHaveCount(0);
}

test("a chain that raises an alarm is built from nothing, by mouse and keyboard", async ({ page, program }) => {
  test.setTimeout(90_000);
  page.setDefaultTimeout(8_000);
  // That a device becomes active is a message, too; it goes to the chain that is the root until then.
  const device = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/tenant/devices?deviceName=Test%20Device%20A1");
  await program.send(TOKEN, { temperature: 1 });
  await expect.poll(() => program.call<object[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/attributes/SERVER_SCOPE?keys=active`)).toMatchObject([{ value: true }]);
  const former = (await program.call<{ data: { id: { id: string }; root: boolean }[] }>("TENANT_ADMIN", "/api/ruleChains?pageSize=50&page=0")).data.find(({ root }) => root)?.id.id ?? "";
  const id = await newChain(program, "Hot");
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);
  await expect(page.getByRole("heading", { level: 1, name: "Hot" })).toBeVisible();

  // The palette by keyboard, then the next node from the palette by mouse.
  await page.keyboard.press("+");
  await page.keyboard.type("script");
  await page.keyboard.press("Enter");
  await expect(box(page, "script")).toBeVisible();
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByLabel("Name", { exact: true }).fill("Is it hot?");
  await panel.getByRole("combobox", { name: "Debug: keep messages" }).click();
  await page.getByRole("listbox", { name: "Debug: keep messages" }).getByRole("option", { name: "all for 5 minutes" }).click();
  const code = panel.locator(".cm-content");
  await code.fill("return msg.temperature > 50;");
  await page.getByLabel("Search node types").fill("create alarm");
  const target = await page.locator(".react-flow__pane").boundingBox();
  await page.getByRole("navigation", { name: "Node types" }).getByRole("button", { name: "create alarm" }).dragTo(page.locator(".react-flow__pane"), { targetPosition: { x: (target?.width ?? 600) * 0.7, y: 70 } });
  await expect(box(page, "create alarm")).toBeVisible();
  await panel.getByLabel("Alarm type").fill("Hot");
  await page.keyboard.press("Escape");

  // A wire by mouse, from handle to handle.
  await page.getByRole("button", { name: "Undo" }).focus();
  await page.keyboard.press("Control+1");
  await box(page, "Is it hot?").locator(".react-flow__handle-right").dragTo(box(page, "create alarm").locator(".react-flow__handle-left"));
  await pickLabel(page, "True");
  await expect(page.locator(".react-flow__edge-text", { hasText: "True" })).toBeVisible();
  await page.screenshot({ path: "test-results/screens/rulechain_light.png" });
  await saveChain(page);
  const stored = await metadataOf(program, id);
  expect(stored.connections).toEqual([{ fromIndex: 0, toIndex: 1, type: "True" }]);

  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("menuitem", { name: "Make it the root chain" }).click();
  await expect(page.getByText("This is the root chain now.")).toBeVisible();
  await program.send(TOKEN, { temperature: 60 });
  const alarms = () => program.call<{ data: { type: string }[] }>("TENANT_ADMIN", "/api/alarms?pageSize=10&page=0");
  await expect.poll(async () => (await alarms()).data.map(({ type }) => type)).toContain("Hot");

  // The script is tried with the message that came.
  await box(page, "Is it hot?").click();
  await panel.getByRole("button", { name: "Test the script" }).click();
  const dialog = page.getByRole("dialog");
  // The alarm itself became a message to the root chain, which the script lets not through.
  await expect(async () => {
    await dialog.getByRole("button", { name: "Take the last real message" }).click();
    await expect(dialog.getByLabel("Message type")).toHaveValue("ENTITY_CREATED", { timeout: 1_000 });
  }).toPass();
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("status", { name: "Result" })).not.toBeEmpty();
  await dialog.locator(".cm-content").first().fill("return msg.;");
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("alert")).toContainText("line 1");
  await page.screenshot({ path: "test-results/screens/rulechain_script.png" });
  await dialog.locator(".cm-content").first().fill("return msg.temperature > 50;");
  await dialog.getByRole("button", { name: "Close" }).click();

  // Nodes and wires count while one looks, without debug.
  await expect(box(page, "create alarm").locator("[data-live]")).toContainText("1");
  await expect(page.locator(".react-flow__edge-text", { hasText: "True (1" })).toBeVisible();

  // Debug: counters, and one message on its way.
  await page.getByRole("tab", { name: "Debug" }).click();
  await expect(panel.getByRole("list", { name: "Events" })).toHaveCount(1);
  await program.send(TOKEN, { temperature: 70 });
  await expect(box(page, "Is it hot?")).toContainText(/in \d+ · out \d+/);
  await panel.getByRole("listitem").filter({ hasText: '{"temperature":70}' }).first().getByRole("button", { name: "Follow" }).click();
  await expect(panel.getByRole("group", { name: "The way of the message" })).toContainText("1 of 2 Is it hot? IN");
  await panel.getByRole("button", { name: "Next" }).click();
  await expect(panel.getByRole("group", { name: "The way of the message" })).toContainText("2 of 2 Is it hot? OUT True");
  await page.screenshot({ path: "test-results/screens/rulechain_debug.png" });
  await panel.getByRole("button", { name: "Stop following" }).click();
  // What matches a filter is counted alone, and the address keeps it.
  await panel.getByRole("button", { name: "Filter", exact: true }).click();
  await panel.getByRole("group", { name: "Filter" }).getByRole("textbox", { name: "Data contain", exact: true }).fill("nothing like this");
  await expect(page).toHaveURL(/panel=debug.*dataSearch=nothing/);
  await expect(panel.getByText("Nothing that matches the filter")).toBeVisible();
  await panel.getByRole("button", { name: "Without filter" }).click();
  await expect(panel.getByRole("listitem").filter({ hasText: '{"temperature":70}' }).first()).toBeVisible();

  await program.call("TENANT_ADMIN", `/api/ruleChain/${former}/root`, {});
  await program.send(TOKEN, { temperature: 80 });
  await expect
    .poll(async () => JSON.stringify(await program.call("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/timeseries?keys=temperature`)))
    .toContain("80");

  // The replay says what the chain would do with what was stored since.
  await page.getByRole("tab", { name: "Replay" }).click();
  await panel.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(panel.getByRole("region", { name: "Result of the replay" })).toContainText("1 alarms raised");
  await expect(panel.getByRole("table", { name: "Nodes" })).toContainText("True 1");
  await page.screenshot({ path: "test-results/screens/rulechain_replay.png" });
});

test("undo and redo, a draft that survives, and fields nobody knows", async ({ page, program }) => {
  const node = { type: "org.thingsboard.rule.engine.action.TbLogNode", name: "Log", configuration: { scriptLang: "TBEL", tbelScript: "return 'x';", jsScript: "return 'x';", alien: { deep: [1] } }, additionalInfo: { layoutX: 300, layoutY: 100, alien: true } };
  const id = await newChain(program, "Kept", [node]);
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);
  await box(page, "Log").click();
  await page.getByRole("complementary", { name: "Details" }).getByLabel("Description").fill("Why");
  await box(page, "Log").click();
  await page.keyboard.press("Control+d");
  await expect(box(page, "Log")).toHaveCount(2);
  await page.keyboard.press("Delete");
  await expect(box(page, "Log")).toHaveCount(1);
  await page.keyboard.press("Control+z");
  await expect(box(page, "Log")).toHaveCount(2);
  await page.keyboard.press("Control+z");
  await expect(box(page, "Log")).toHaveCount(1);
  await page.keyboard.press("Control+Shift+z");
  await expect(box(page, "Log")).toHaveCount(2);

  await page.getByRole("link", { name: "Devices", exact: true }).click();
  await expect(page.getByRole("dialog")).toContainText("Leave without saving?");
  await page.getByRole("button", { name: "Stay" }).click();
  page.on("dialog", (dialog) => void dialog.accept());
  await page.reload();
  await expect(page.getByText("Changes that were not saved are back.")).toBeVisible();
  await expect(box(page, "Log")).toHaveCount(2);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("menuitem", { name: "Add a note" }).click();
  await page.getByRole("textbox", { name: "Note" }).fill("For people");
  await page.getByRole("heading", { level: 1 }).click();
  await saveChain(page);
  const stored = await metadataOf(program, id);
  expect(stored.nodes).toHaveLength(2);
  expect(stored.nodes[0]).toMatchObject({ configuration: { alien: { deep: [1] } }, additionalInfo: { alien: true, description: "Why" } });
  const chain = await program.call<{ additionalInfo: unknown }>("TENANT_ADMIN", `/api/ruleChain/${id}`);
  expect(JSON.stringify(chain.additionalInfo)).toContain("For people");
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Note" })).toHaveValue("For people");
});

test("two browsers change one chain, and the second one is asked", async ({ page, program }) => {
  const id = await newChain(program, "Shared");
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);
  await page.getByRole("navigation", { name: "Node types" }).getByRole("button", { name: "acknowledge" }).click();
  await expect(box(page, "acknowledge")).toBeVisible();
  await program.call("TENANT_ADMIN", "/api/ruleChain/metadata", { ...(await metadataOf(program, id)), nodes: [{ type: "org.thingsboard.rule.engine.flow.TbAckNode", name: "Theirs", configuration: {} }] });
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Somebody else has changed this meanwhile")).toBeVisible();
  await page.getByRole("button", { name: "Take theirs" }).click();
  await expect(box(page, "Theirs")).toBeVisible();
  await expect(box(page, "acknowledge")).toHaveCount(0);
});

test("a file of ThingsBoard becomes a chain, and axe finds nothing", async ({ page, program }) => {
  const file = test.info().outputPath("chain.json");
  const node = (name: string, x: number): object => ({ type: "org.thingsboard.rule.engine.flow.TbAckNode", name, debugSettings: null, singletonMode: false, queueName: null, configurationVersion: 0, configuration: { version: 0 }, additionalInfo: { description: "", layoutX: x, layoutY: 150 } });
  writeFileSync(file, JSON.stringify({ ruleChain: { additionalInfo: null, name: "Brought in", type: "CORE", firstRuleNodeId: null, root: false, debugMode: false, configuration: null }, metadata: { version: 4, firstNodeIndex: 0, nodes: [node("One", 320), node("Two", 640)], connections: [{ fromIndex: 0, toIndex: 1, type: "Success" }], ruleChainConnections: null } }));
  await logIn(page, program, "TENANT_ADMIN", "/ruleChains");
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Import" }).click();
  await (await choosing).setFiles(file);
  await expect(page.getByRole("heading", { level: 1, name: "Brought in" })).toBeVisible();
  await box(page, "One").click();
  await expect(page.getByLabel("Name", { exact: true })).toHaveValue("One");
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.evaluate(axe);
    const violations = await page.evaluate(async () => {
      const { axe: run } = window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } };
      return (await run.run()).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
    });
    expect(violations).toEqual([]);
  }
  await page.screenshot({ path: "test-results/screens/rulechain_dark.png" });
});

test("no node offers a value to choose that only its code explains", async ({ program }) => {
  interface Component { name: string; configurationDescriptor: { nodeDefinition: { configurationSchema: unknown } } }
  const components = await program.call<Component[]>("TENANT_ADMIN", "/api/components?componentTypes=FILTER,ENRICHMENT,TRANSFORMATION,ACTION,EXTERNAL,FLOW&ruleChainType=CORE");
  const offered = components.flatMap(({ name, configurationDescriptor: { nodeDefinition } }) => offeredBy(nodeDefinition.configurationSchema).map((choice) => ({ name, ...choice })));
  expect(offered.length).toBeGreaterThan(300);
  // What people know by the very name that is stored: methods of HTTP, acronyms, versions of protocols.
  const known = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|TBEL|ID|RPC|FIFO|JSON|SMPP|TLSv1(\.\d)?|3\.[34])$/;
  expect(offered.filter(({ value, label }) => (label === value ? !known.test(value) : !/^[A-Z][^_]+$/.test(label)))).toEqual([]);
});

test("whoever reads German has all that nodes say in German", async ({ page, program }) => {
  interface Component { name: string; configurationDescriptor: { nodeDefinition: { description: string; configurationSchema: unknown } } }
  const components = await program.call<Component[]>("TENANT_ADMIN", "/api/components?componentTypes=FILTER,ENRICHMENT,TRANSFORMATION,ACTION,EXTERNAL,FLOW&ruleChainType=CORE");
  const shown = new Set(components.flatMap(({ name, configurationDescriptor: { nodeDefinition } }) => [name, nodeDefinition.description, ...textsOf(nodeDefinition.configurationSchema)]));
  const german = Object.assign({}, ...["de.nodes.json", "de.json"].map((name) => JSON.parse(readFileSync(`src/i18n/${name}`, "utf8")) as object)) as Record<string, string>;
  expect(shown.size).toBeGreaterThan(400);
  expect([...shown].filter((text) => german[text] === undefined)).toEqual([]);
  // What no node says any more is not kept.
  const nodes = JSON.parse(readFileSync("src/i18n/de.nodes.json", "utf8")) as Record<string, string>;
  expect(Object.keys(nodes).filter((text) => !shown.has(text))).toEqual([]);
  const id = await newChain(program, "Deutsch", [{ type: "org.thingsboard.rule.engine.telemetry.TbMsgAttributesNode", name: "Attribute", configuration: {}, additionalInfo: { layoutX: 300, layoutY: 150 } }, { type: "org.thingsboard.rule.engine.rest.TbRestApiCallNode", name: "Anruf", configuration: { parseToPlainText: false }, additionalInfo: { layoutX: 300, layoutY: 300 } }]);
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);
  await page.evaluate(() => localStorage.setItem("fieldline_language", "de"));
  await page.reload();
  await box(page, "Attribute").click();
  await expect(page.getByText("Speichert Attribute mit einstellbarem Bereich")).toBeVisible();
  await expect(page.getByText("Nur geänderte Werte speichern")).toBeVisible();
  await expect(page.getByRole("button", { name: "Alarm anlegen", exact: true })).toBeVisible();
  await expect(page.getByRole("button", { name: "Näher", exact: true })).toBeVisible();
  // Choices are words, and what is stored is the constant.
  await page.getByRole("combobox", { name: "Bereich", exact: true }).click();
  await page.getByRole("option", { name: "Geteilte Attribute" }).click();
  await expect(page.getByRole("combobox", { name: "Bereich", exact: true })).toHaveValue("Geteilte Attribute");
  await page.keyboard.press("Control+s");
  await expect.poll(async () => (await metadataOf(program, id)).nodes.find(({ name }) => name === "Attribute")?.configuration["scope"]).toBe("SHARED_SCOPE");
  await box(page, "Anruf").click();
  await expect(page.getByText("Ob Anfragen ohne Inhalt gehen.")).toBeVisible();
});
