// Calculated fields and alarm rules, as people write, try and bring them in.

import { findings } from "./axe";
import { expect, logIn, test } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

interface Made {
  id: { id: string; entityType: string };
}

test("an expression is tried with values before it is saved, and history is reprocessed", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Computed" });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  await program.send(credentialsId, { celsius: 20 });
  const field = await program.call<Made>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Fahrenheit", type: "SIMPLE", entityId: device.id,
    configuration: { type: "SIMPLE", arguments: { c: { refEntityKey: { key: "celsius", type: "TS_LATEST" }, defaultValue: "10" } }, expression: "c * 1.8 + 32", output: { type: "TIME_SERIES", name: "fahrenheit" } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/calculatedFields/${field.id.id}`);
  await page.getByRole("button", { name: "Test: Expression" }).click();
  const dialog = page.getByRole("dialog", { name: "Test: Expression" });
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("status", { name: "Result" })).toHaveText("50");
  await dialog.getByRole("textbox", { name: "Expression" }).fill("c * 2 +");
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("status", { name: "Result" })).toContainText("ends too early");
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("tab", { name: "Reprocess" }).click();
  await page.getByRole("button", { name: "Reprocess", exact: true }).click();
  await expect(page.getByText("It is done")).toBeVisible();
  await expect(page.getByRole("row", { name: "Stored results 1" })).toBeVisible();
  expect(await findings(page)).toEqual([]);
});

test("an argument is a value of another entity, of the owner, or of the tenant; zones are found by relations", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Indoors" });
  const outdoor = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Outdoors" });
  const { tenantId } = await program.call<{ tenantId: { id: string } }>("TENANT_ADMIN", "/api/auth/user");
  const field = await program.call<Made>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Difference", type: "SCRIPT", entityId: device.id,
    configuration: { type: "SCRIPT", arguments: { t: { refEntityKey: { key: "t", type: "TS_LATEST" } } }, expression: "return { d: t };", output: { type: "TIME_SERIES" } },
  });
  const stored = async (): Promise<unknown> =>
    (await program.call<{ configuration: { arguments: { t: unknown } } }>("TENANT_ADMIN", `/api/calculatedField/${field.id.id}`)).configuration.arguments.t;
  await logIn(page, program, "TENANT_ADMIN", `/calculatedFields/${field.id.id}`);
  const choose = async (field: string, option: string): Promise<void> => {
    await page.getByRole("combobox", { name: field, exact: true }).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };
  const save = async (): Promise<void> => {
    const answer = page.waitForResponse((one) => one.url().endsWith("/api/calculatedField") && one.request().method() === "POST");
    await page.getByRole("button", { name: "Save" }).click();
    expect((await answer).status()).toBe(200);
    // The page has taken it in, and opens with it again.
    await expect(page.getByText("Saved", { exact: true }).first()).toBeVisible();
  };
  await choose("Whose value", "A device");
  await choose("Device", "Outdoors");
  await save();
  await expect.poll(stored).toMatchObject({ refEntityId: outdoor.id });
  await page.reload();
  await expect(page.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Outdoors");
  await choose("Whose value", "The tenant");
  await choose("Kind of value", "Window of values");
  await page.getByRole("textbox", { name: "Window, ms" }).fill("60000");
  await save();
  await expect.poll(stored).toMatchObject({ refEntityId: { entityType: "TENANT", id: tenantId.id }, refEntityKey: { type: "TS_ROLLING" }, timeWindow: 60_000 });
  await page.reload();
  await choose("Whose value", "Its owner");
  await save();
  await expect.poll(stored).toMatchObject({ refDynamicSourceConfiguration: { type: "CURRENT_OWNER" } });
  expect(await stored()).not.toHaveProperty("refEntityId");
  // Zones of geofencing at the end of relations.
  const fence = await program.call<Made>("TENANT_ADMIN", "/api/calculatedField", {
    name: "Fence", type: "GEOFENCING", entityId: device.id,
    configuration: {
      type: "GEOFENCING", entityCoordinates: { latitudeKeyName: "latitude", longitudeKeyName: "longitude" }, output: { type: "TIME_SERIES" },
      zoneGroups: { allowed: { refDynamicSourceConfiguration: { type: "CURRENT_OWNER" }, perimeterKeyName: "zone", reportStrategy: "REPORT_PRESENCE_STATUS_ONLY", createRelationsWithMatchedZones: false } },
    },
  });
  await page.goto(`${program.url}/calculatedFields/${fence.id.id}`);
  await expect(page.getByRole("combobox", { name: "Zone", exact: true })).toHaveValue("Its owner");
  await choose("Zone", "Entities at the end of relations");
  await page.getByRole("textbox", { name: "Relation type" }).first().fill("AllowedZone");
  await save();
  const saved = await program.call<{ configuration: unknown }>("TENANT_ADMIN", `/api/calculatedField/${fence.id.id}`);
  expect(saved.configuration).toMatchObject({ zoneGroups: { allowed: { refDynamicSourceConfiguration: { type: "RELATION_PATH_QUERY", levels: [{ direction: "FROM", relationType: "AllowedZone" }] } } } });
  expect(await findings(page)).toEqual([]);
});

const COMPARED = { condition: { type: "SIMPLE", expression: { type: "SIMPLE", operation: "AND", filters: [{ argument: "t", valueType: "NUMERIC", operation: "AND", predicates: [{ type: "NUMERIC", operation: "GREATER", value: { staticValue: 50 } }] }] } } };

test("the list of alarm rules tells for whom they are and how bad; a new one is for whom one chooses", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Ruled" });
  await program.call("TENANT_ADMIN", "/api/asset", { name: "Ruled hall" });
  const rule = await program.call<Made>("TENANT_ADMIN", "/api/alarm/rule", {
    name: "Ruled is hot", entityId: device.id,
    configuration: { type: "ALARM", arguments: { t: { refEntityKey: { key: "t", type: "TS_LATEST" } } }, createRules: { MINOR: COMPARED, CRITICAL: COMPARED }, clearRule: null },
  });
  await logIn(page, program, "TENANT_ADMIN", "/alarms/alarm-rules?search=Ruled");
  const row = page.getByRole("row", { name: /Ruled is hot/ });
  await expect(row.getByRole("link", { name: "Ruled", exact: true })).toHaveAttribute("href", `/entities/devices/${device.id.id}`);
  await expect(row).toContainText("Device");
  await expect(row.locator("[data-severity]")).toHaveText(["CRITICAL", "MINOR"]);
  await page.getByRole("combobox", { name: "Kind of target" }).click();
  await page.getByRole("option", { name: "Asset", exact: true }).click();
  await expect(row).toHaveCount(0);
  await page.goto(`${program.url}/alarms/alarm-rules/${rule.id.id}`);
  await expect(page.getByRole("link", { name: "Ruled", exact: true })).toBeVisible();
  await expect(page.locator("[data-severity]").first()).toHaveText("CRITICAL");
  expect(await findings(page)).toEqual([]);
  // The tab of the device doesn't tell whose rules they are: they are all its own.
  await page.goto(`${program.url}/entities/devices/${device.id.id}?tab=alarmRules`);
  await expect(page.getByRole("row", { name: /Ruled is hot/ }).locator("[data-severity]")).toHaveCount(2);
  await expect(page.getByRole("columnheader", { name: /Target/ })).toHaveCount(0);
  await page.goto(`${program.url}/calculatedFields?add=true`);
  const form = page.getByRole("dialog", { name: "Add: Calculated field" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Ruled by choice");
  await form.getByRole("combobox", { name: "Kind of target" }).click();
  await page.getByRole("option", { name: "Device", exact: true }).click();
  await form.getByRole("combobox", { name: "Device", exact: true }).click();
  await page.getByRole("option", { name: "Ruled", exact: true }).click();
  // Another kind leaves nothing of what was chosen before.
  await form.getByRole("combobox", { name: "Kind of target" }).click();
  await page.getByRole("option", { name: "Asset", exact: true }).click();
  await expect(form.getByRole("combobox", { name: "Asset", exact: true })).toHaveValue("");
  await form.getByRole("combobox", { name: "Asset", exact: true }).click();
  await page.getByRole("option", { name: "Ruled hall", exact: true }).click();
  await form.getByRole("button", { name: "Add to: Arguments" }).click();
  await form.getByRole("textbox", { name: "Argument name" }).fill("t");
  await form.getByRole("combobox", { name: "Key", exact: true }).fill("t");
  await form.getByRole("textbox", { name: "Expression", exact: true }).fill("t * 2");
  await form.getByRole("textbox", { name: "Key", exact: true }).last().fill("twice");
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Ruled by choice" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Ruled hall", exact: true })).toBeVisible();
});

test("a calculated field of another installation is brought in for an entity of this one, with others in the place of what it names", async ({ page, program }) => {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Taking in" });
  const other = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Stand-in" });
  const here = await program.call<Made>("TENANT_ADMIN", "/api/asset", { name: "Known hall" });
  const foreign = (entityType: string, n: number): object => ({ entityType, id: `7e9f5d50-0000-11f0-8000-00000000000${n}` });
  const key = { key: "t", type: "TS_LATEST" };
  const file = {
    name: "Brought in", type: "SIMPLE", tenantId: foreign("TENANT", 1), entityId: foreign("DEVICE", 2),
    configuration: { type: "SIMPLE", arguments: { own: { refEntityKey: key }, far: { refEntityKey: key, refEntityId: foreign("DEVICE", 3) }, hall: { refEntityKey: key, refEntityId: here.id }, all: { refEntityKey: key, refEntityId: foreign("TENANT", 1) } }, expression: "own - far", output: { type: "TIME_SERIES", name: "difference" } },
  };
  const choose = async (path: string, content: object): Promise<void> => {
    await page.goto(`${program.url}${path}`);
    const choosing = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await (await choosing).setFiles({ name: "field.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(content)) });
  };
  await logIn(page, program, "TENANT_ADMIN", "/home");
  await choose("/alarms/alarm-rules", file);
  await expect(page.getByText("This file holds a calculated field: import it among the calculated fields.")).toBeVisible();
  await choose("/calculatedFields", file);
  const dialog = page.getByRole("dialog", { name: "Import: Calculated field" });
  await expect(dialog.getByRole("alert")).toContainText("1 entity of this file isn't here");
  await expect(dialog.getByRole("alert")).toContainText("Device for far");
  await expect(dialog).toContainText("Found here: Asset Known hall");
  await expect(dialog.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("");
  expect(await findings(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  // From the page of an entity it is for that one.
  await choose(`/entities/devices/${device.id.id}?tab=calculatedFields`, file);
  await expect(dialog.getByRole("combobox", { name: "Device", exact: true })).toHaveValue("Taking in");
  await dialog.getByRole("combobox", { name: "Device for far" }).click();
  await page.getByRole("option", { name: "Stand-in", exact: true }).click();
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Brought in" })).toBeVisible();
  const { tenantId } = await program.call<{ tenantId: object }>("TENANT_ADMIN", "/api/auth/user");
  const saved = await program.call<object>("TENANT_ADMIN", `/api/calculatedField/${page.url().split("/").at(-1) ?? ""}`);
  expect(saved).toMatchObject({ entityId: device.id, configuration: { arguments: { own: {}, far: { refEntityId: other.id }, hall: { refEntityId: here.id }, all: { refEntityId: tenantId } } } });
});
