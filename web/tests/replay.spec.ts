// Alarm rules and calculated fields, tried on stored telemetry before they go live.

import { findings } from "./axe";
import { expect, logIn, test, type Program } from "./program";

test.beforeEach(({ page }) => page.emulateMedia({ reducedMotion: "reduce" }));

interface Made {
  id: { id: string; entityType: string };
}

const MINUTE = 60_000;

const rule = (operation: string, value: number): object => ({
  condition: { type: "SIMPLE", expression: { type: "SIMPLE", operation: "AND", filters: [{ argument: "t", valueType: "NUMERIC", operation: "AND", predicates: [{ type: "NUMERIC", operation, value: { staticValue: value } }] }] } },
});

/** Makes a device that an alarm rule watches, and sends what raises two alarms. */
async function hotDevice(program: Program, name: string): Promise<{ device: Made; field: Made }> {
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name });
  const field = await program.call<Made>("TENANT_ADMIN", "/api/alarm/rule", {
    name: `${name} is hot`, entityId: device.id,
    configuration: { type: "ALARM", arguments: { t: { refEntityKey: { key: "temperature", type: "TS_LATEST" } } }, createRules: { MAJOR: rule("GREATER", 50) }, clearRule: rule("LESS", 30) },
  });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  const begin = Date.now();
  for (const [minutes, temperature] of [[30, 60], [20, 20], [10, 80]] as const) {
    await program.send(credentialsId, { ts: begin - minutes * MINUTE, values: { temperature } });
  }
  const alarms = () => program.call<{ data: { cleared: boolean }[] }>("TENANT_ADMIN", `/api/alarm/DEVICE/${device.id.id}?pageSize=10&page=0`);
  await expect.poll(async () => (await alarms()).data.map(({ cleared }) => cleared).sort()).toEqual([false, true]);
  return { device, field };
}

test("an alarm rule with unsaved changes is tried next to what really was, and nothing is stored", async ({ page, program }) => {
  const { device, field } = await hotDevice(program, "Kiln");
  await logIn(page, program, "TENANT_ADMIN", `/alarms/alarm-rules/${field.id.id}`);
  // The form of the page isn't saved: the replay takes what it holds.
  await page.getByRole("textbox", { name: "Value", exact: true }).first().fill("70");
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Replay: Kiln is hot" });
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  const result = dialog.getByRole("region", { name: "Result of the replay" });
  await expect(result).toContainText("3 messages of 1 devices: 1 alarms raised");
  const compared = result.getByRole("group", { name: "Compared with what really was" });
  await expect(compared.getByRole("button", { name: "only stored 1" })).toBeVisible();
  await expect(compared.getByRole("button", { name: "the same 1" })).toBeVisible();
  await expect(result.getByRole("img", { name: "Kiln, Kiln is hot: 2 alarms were there, 1 in the replay" })).toBeVisible();
  await expect(result.getByRole("table", { name: "Points by key" }).getByRole("row", { name: /^temperature/ })).toContainText("3");
  await compared.getByRole("button", { name: "only stored" }).click();
  await expect(result.getByRole("table", { name: "Alarms" }).locator("[data-verdict]")).toHaveCount(1);
  await page.screenshot({ path: "test-results/screens/replay_rule.png" });
  expect(await findings(page)).toEqual([]);
  const stored = await program.call<{ data: unknown[] }>("TENANT_ADMIN", `/api/alarm/DEVICE/${device.id.id}?pageSize=10&page=0`);
  expect(stored.data).toHaveLength(2);
  const saved = await program.call<{ configuration: object }>("TENANT_ADMIN", `/api/alarm/rule/${field.id.id}`);
  expect(JSON.stringify(saved.configuration)).toContain('"staticValue":50');
});

test("an alarm rule of a device profile is changed and tried, though the chain lacks its node", async ({ page, program }) => {
  const condition = (operation: string, value: number): object => ({ condition: { condition: [{ key: { type: "TIME_SERIES", key: "temperature" }, valueType: "NUMERIC", predicate: { type: "NUMERIC", operation, value: { defaultValue: value, userValue: null, dynamicValue: null } } }], spec: { type: "SIMPLE" } }, schedule: null, alarmDetails: null, dashboardId: null });
  const alarms = [{ id: "one", alarmType: "Boiler is hot", createRules: { MAJOR: condition("GREATER", 90) }, clearRule: condition("LESS", 30), propagate: false }];
  const profile = await program.call<Made>("TENANT_ADMIN", "/api/deviceProfile", { name: "Boilers", type: "DEFAULT", transportType: "DEFAULT", profileData: { configuration: { type: "DEFAULT" }, transportConfiguration: { type: "DEFAULT" }, alarms } });
  const device = await program.call<Made>("TENANT_ADMIN", "/api/device", { name: "Boiler", deviceProfileId: profile.id });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${device.id.id}/credentials`);
  const begin = Date.now();
  for (const [minutes, temperature] of [[30, 60], [20, 20], [10, 80]] as const) {
    await program.send(credentialsId, { ts: begin - minutes * MINUTE, values: { temperature } });
  }
  await logIn(page, program, "TENANT_ADMIN", `/profiles/deviceProfiles/${profile.id.id}`);
  await page.getByRole("button", { name: /Boiler is hot/ }).click();
  const limit = page.getByRole("textbox", { name: "Value", exact: true }).first();
  await expect(limit).toHaveValue("90");
  await limit.fill("50");
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Replay: Boilers" });
  await expect(dialog.getByRole("combobox", { name: "Devices of the profile" })).toHaveValue("Boilers");
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  const result = dialog.getByRole("region", { name: "Result of the replay" });
  await expect(result).toContainText("3 messages of 1 devices: 2 alarms raised");
  await expect(result.getByRole("group", { name: "Compared with what really was" }).getByRole("button", { name: "only replayed 2" })).toBeVisible();
  await expect(dialog.getByText(/The rule chain has no node “device profile”/)).toBeVisible();
  await page.screenshot({ path: "test-results/screens/replay_profile.png" });
  await dialog.getByRole("button", { name: "Close" }).click();
  const stored = async (): Promise<object> => await program.call<{ profileData: { alarms: object } }>("TENANT_ADMIN", `/api/deviceProfile/${profile.id.id}`).then((one) => one.profileData.alarms);
  expect(await stored(), "nothing is saved yet").toEqual(alarms);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  expect(await stored()).toEqual([{ ...alarms[0], createRules: { MAJOR: condition("GREATER", 50) } }]);
});

test("a calculated field is tried before it exists, from the page of its device", async ({ page, program }) => {
  const { device } = await hotDevice(program, "Furnace");
  await logIn(page, program, "TENANT_ADMIN", `/entities/devices/${device.id.id}?tab=calculatedFields`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog", { name: "Add: Calculated field" });
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("Fahrenheit");
  await form.getByRole("button", { name: "Add to: Arguments" }).click();
  await form.getByRole("textbox", { name: "Argument name" }).fill("c");
  await form.getByRole("combobox", { name: "Key", exact: true }).fill("temperature");
  await form.getByRole("textbox", { name: "Expression", exact: true }).fill("c * 1.8 + 32");
  await form.getByRole("textbox", { name: "Key", exact: true }).last().fill("fahrenheit");
  await form.getByRole("button", { name: "Replay", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Replay: Fahrenheit" });
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(dialog.getByRole("table", { name: "Points by key" }).getByRole("row", { name: /^fahrenheit/ })).toHaveText(/fahrenheit\s*3\s*3\s*0\s*0\s*0/);
  await expect(dialog.getByRole("table", { name: "Some points that differ" })).toContainText("140");
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect(form.getByRole("textbox", { name: "Name", exact: true })).toHaveValue("Fahrenheit");
  const fields = await program.call<{ data: unknown[] }>("TENANT_ADMIN", `/api/DEVICE/${device.id.id}/calculatedFields?pageSize=10&page=0`);
  expect(JSON.stringify(fields.data)).not.toContain("Fahrenheit");
});

test("a replay is cancelled, and says what to do when two run already", async ({ page, program }) => {
  const { field } = await hotDevice(program, "Oven");
  await logIn(page, program, "TENANT_ADMIN", `/alarms/alarm-rules/${field.id.id}`);
  let answer = (): void => undefined;
  const asked = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/replay", () => answer());
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Replay: Oven is hot" });
  const closed = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/replay"));
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  await asked;
  await expect(dialog.getByRole("progressbar", { name: "Part of the longest time" })).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog.getByText("The replay was cancelled.")).toBeVisible();
  // The connection is closed, which ends it on the server.
  await closed;
  await page.unroute("**/replay");
  await page.route("**/replay", (route) => route.fulfill({ status: 429, json: { status: 429, message: "2 replays are running already, try again when one has ended!" } }));
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(dialog.getByRole("alert")).toContainText("Try again when one of them has ended");
});
