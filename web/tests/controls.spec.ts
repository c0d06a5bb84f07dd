// Controls steer a real device and show what it says; forms save; what fails or may not be done says why.

import { readFileSync } from "node:fs";
import { expect, logIn, test, type Program } from "./program";

const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

interface Device {
  id: string;
  token: string;
}

async function makeDevice(program: Program, name: string): Promise<Device> {
  const { id } = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/device", { name });
  const { credentialsId } = await program.call<{ credentialsId: string }>("TENANT_ADMIN", `/api/device/${id.id}/credentials`);
  return { id: id.id, token: credentialsId };
}

/** A device that asks for commands over HTTP, and answers as a pump would. */
class Pump {
  readonly heard: { method: string; params: unknown }[] = [];
  private readonly stopping = new AbortController();
  on = false;
  speed = 5;

  constructor(private readonly url: string, private readonly token: string) {
    void this.listen();
  }

  private answerTo(method: string, params: unknown): unknown {
    switch (method) {
      case "getState":
        return this.on;
      case "setState":
        this.on = params === true;
        return {};
      case "getSpeed":
        return this.speed;
      case "setSpeed":
        this.speed = Number(params);
        return {};
      case "getGpioStatus":
        return { 1: true, 2: false };
      case "setGpioStatus":
        return { [String((params as { pin: number }).pin)]: (params as { enabled: boolean }).enabled };
      default:
        return { heard: params };
    }
  }

  private async listen(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        const answer = await fetch(`${this.url}/api/v1/${this.token}/rpc?timeout=20000`, { signal });
        if (answer.status === 200) {
          const { id, method, params } = (await answer.json()) as { id: number; method: string; params: unknown };
          this.heard.push({ method, params });
          await fetch(`${this.url}/api/v1/${this.token}/rpc/${id}`, { method: "POST", body: JSON.stringify(this.answerTo(method, params)), signal });
        }
      } catch {
        // The test or the program has ended.
        return;
      }
    }
  }

  stop(): void {
    this.stopping.abort();
  }
}

const get = (method: string): object => ({ action: "EXECUTE_RPC", executeRpc: { method, requestTimeout: 5_000 }, dataToValue: { type: "NONE", compareToValue: true } });
const set = (method: string): object => ({ action: "EXECUTE_RPC", executeRpc: { method, requestTimeout: 5_000 }, valueToData: { type: "VALUE" } });
const key = (name: string, settings: object, type = "attribute"): object => ({ name, type, label: name, settings, color: "#2196f3" });

function board(pump: Device, away: Device): object {
  const control = (fqn: string, title: string, settings: object, device = pump, more: object = {}): object => ({
    typeFullFqn: `system.${fqn}`,
    type: "rpc",
    config: { title, showTitle: true, settings, targetDevice: { type: "device", deviceId: device.id }, ...more },
  });
  const form = (fqn: string, title: string, settings: object, dataKeys: object[]): object => ({
    typeFullFqn: `system.${fqn}`,
    type: "latest",
    config: { title, showTitle: true, settings, datasources: [{ type: "device", deviceId: pump.id, dataKeys }] },
  });
  const widgets: Record<string, object> = {
    switch: control("single_switch", "Pump", { initialState: get("getState"), label: "Runs", showOnLabel: true, showOffLabel: true }),
    slider: control("slider", "Target", {
      tickMax: 10,
      valueUnits: "bar",
      initialState: { action: "GET_ATTRIBUTE", getAttribute: { key: "target", scope: "SHARED_SCOPE" } },
      valueChange: { action: "SET_ATTRIBUTE", setAttribute: { key: "target", scope: "SHARED_SCOPE" }, valueToData: { type: "FUNCTION", valueToDataFunction: "return value * 10;" } },
    }),
    stepper: control("value_stepper", "Speed", { appearance: { valueStep: 0.5, minValueRange: 0, maxValueRange: 6, valueDecimals: 1 }, initialState: get("getSpeed"), leftButtonClick: set("setSpeed"), rightButtonClick: set("setSpeed") }),
    away: control("command_button", "Away", { appearance: { label: "Flush" } }, away),
    command: control("command_button", "Command", { appearance: { label: "Prime", type: "filled" }, onClickState: { action: "EXECUTE_RPC", executeRpc: { method: "prime" }, valueToData: { type: "CONSTANT", constantValue: 7 } } }),
    power: control("power_button", "Main power", { initialState: { action: "GET_ATTRIBUTE", getAttribute: { key: "power" } }, onUpdateState: { action: "SET_ATTRIBUTE", setAttribute: { key: "power", scope: "SERVER_SCOPE" } }, offUpdateState: { action: "SET_ATTRIBUTE", setAttribute: { key: "power", scope: "SERVER_SCOPE" } } }),
    toggle: control("toggle_button", "Lock", { initialState: { action: "GET_TIME_SERIES", getTimeSeries: { key: "locked" } }, checkedAppearance: { label: "Locked", type: "filled" }, uncheckedAppearance: { label: "Open" } }),
    round: control("control_widgets.round_switch", "Round", { title: "Old switch", retrieveValueMethod: "attribute", valueKey: "power", setValueMethod: "setOld", requestTimeout: 500 }),
    knob: control("control_widgets.knob_control", "Knob", { minValue: 0, maxValue: 50, getValueMethod: "getSpeed", setValueMethod: "setKnob" }),
    led: control("control_widgets.led_indicator", "Lamp", { title: "Powered", valueAttribute: "power", performCheckStatus: false, retrieveValueMethod: "attribute" }),
    terminal: control("control_widgets.rpc_debug_terminal", "Terminal", { requestTimeout: 5_000 }),
    gpio: control("gpio_widgets.basic_gpio_control", "Pins", { gpioList: [{ pin: 1, label: "GPIO 1", row: 0, col: 0 }, { pin: 2, label: "GPIO 2", row: 0, col: 1 }] }),
    stored: control("control_widgets.persistent_table", "Stored", { allowDelete: true }, away),
    alarm: control("action_button", "Alarm", { appearance: { label: "To the other state" }, activatedState: { action: "GET_ALARM_STATUS" } }, pump, { actions: { click: [{ name: "go", type: "openDashboardState", targetDashboardStateId: "other" }] } }),
    segments: form("two_segment_button", "View", { initialState: { action: "GET_DASHBOARD_STATE", dataToValue: { type: "NONE", compareToValue: "default" } }, leftButtonClick: { type: "updateDashboardState", targetDashboardStateId: "default" }, rightButtonClick: { type: "updateDashboardState", targetDashboardStateId: "other" } }, []),
    form: form("input_widgets.update_multiple_attributes", "Settings", { showGroupTitle: true }, [
      key("limit", { dataKeyValueType: "integer", minValue: 1, maxValue: 9, required: true, dataKeyType: "shared" }),
      key("quiet", { dataKeyValueType: "booleanSwitch" }),
      key("mode", { dataKeyValueType: "select", disabledOnDataKey: "quiet", selectOptions: [{ value: "eco", label: "Economic" }, { value: "boost", label: "Fast" }] }),
      key("note", { useSetValueFunction: true, setValueFunctionBody: "return value.toUpperCase();" }),
    ]),
    older: form("input_widgets.update_server_string_attribute", "Older", { labelValue: "Place" }, [key("place", {})]),
    code: form("cards.qr_code", "Code", { qrCodeTextPattern: "pump ${place}" }, [key("place", {})]),
  };
  const order = Object.keys(widgets);
  const places = Object.fromEntries(order.map((id, n) => [id, { col: (n % 4) * 6, row: Math.floor(n / 4) * 4, sizeX: 6, sizeY: 4 }]));
  return {
    widgets,
    states: {
      default: { name: "All", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } },
      other: { name: "Other", root: false, layouts: { main: { widgets: { segments: { col: 0, row: 0, sizeX: 6, sizeY: 4 } }, gridSettings: { columns: 24 } } } },
    },
  };
}

async function attribute(program: Program, device: Device, name: string): Promise<unknown> {
  const found = await program.call<{ key: string; value: unknown }[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id}/values/attributes?keys=${name}`);
  return found[0]?.value;
}

test("controls steer a device, forms save, and failures say why", async ({ page, program }) => {
  test.setTimeout(180_000);
  await page.setViewportSize({ width: 1500, height: 1700 });
  const device = await makeDevice(program, "Pump 7");
  const away = await makeDevice(program, "Far pump");
  await program.send(device.token, { locked: true });
  const pump = new Pump(program.url, device.token);
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Controls", configuration: board(device, away) });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${made.id.id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });

  const runs = region("Pump").getByRole("switch", { name: "Runs" });
  await expect(runs).not.toBeChecked();
  await runs.click();
  await expect(runs).toBeChecked();
  await expect.poll(() => pump.on).toBe(true);
  expect(pump.heard).toContainEqual({ method: "setState", params: true });

  const target = region("Target").getByRole("slider", { name: "Target" });
  await target.focus();
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => attribute(program, device, "target")).toBe(10);
  await expect(region("Target").locator("[data-value]")).toHaveText("10 bar");

  await expect(region("Speed").locator("[data-value]")).toHaveText("5");
  await region("Speed").getByRole("button", { name: "More" }).click();
  await expect(region("Speed").locator("[data-value]")).toHaveText("5.5");
  await expect.poll(() => pump.speed).toBe(5.5);

  await region("Command").getByRole("button", { name: "Prime" }).click();
  await expect.poll(() => pump.heard).toContainEqual({ method: "prime", params: 7 });
  await region("Away").getByRole("button", { name: "Flush" }).click();
  await expect(region("Away").getByRole("alert")).toHaveText(/^Not connected: Far pump/);

  await region("Main power").getByRole("switch").click();
  await expect.poll(() => attribute(program, device, "power")).toBe(true);
  await expect(region("Lamp").getByRole("img", { name: "Powered: On" })).toBeVisible();
  await expect(region("Round").getByRole("switch", { name: "Old switch" })).toHaveAttribute("aria-checked", "true");
  await expect(region("Lock").getByRole("button", { name: "Locked" })).toBeVisible();
  await program.send(device.token, { locked: false });
  await expect(region("Lock").getByRole("button", { name: "Open" })).toBeVisible();

  const knob = region("Knob").getByRole("slider");
  await expect(knob).toHaveAttribute("aria-valuenow", "5");
  await knob.focus();
  await page.keyboard.press("PageUp");
  await expect.poll(() => pump.heard).toContainEqual({ method: "setKnob", params: 10 });

  await expect(region("Pins").getByRole("switch", { name: "GPIO 1" })).toBeChecked();
  await region("Pins").getByRole("switch", { name: "GPIO 2" }).click();
  await expect(region("Pins").getByRole("switch", { name: "GPIO 2" })).toBeChecked();

  await region("Terminal").getByLabel("Command").fill('ask {"a": 1}');
  await page.keyboard.press("Enter");
  await expect(region("Terminal").getByRole("log")).toContainText('"heard"');

  await region("Stored").getByRole("button", { name: "Send a command" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Method").fill("later");
  await dialog.getByRole("button", { name: "Send" }).click();
  await expect(region("Stored")).toContainText("later");
  await expect(region("Stored")).toContainText("Queued");

  const form = region("Settings");
  await form.getByLabel("limit").fill("12");
  await expect(form).toContainText("At most 9");
  await expect(form.getByRole("button", { name: "Save", exact: true })).toBeDisabled();
  await form.getByLabel("limit").fill("8");
  await expect(form.getByLabel("mode")).toBeDisabled();
  await form.getByLabel("quiet").click();
  await form.getByLabel("mode").click();
  await page.getByRole("option", { name: "Fast" }).click();
  await form.getByLabel("note").fill("loud");
  await form.getByRole("button", { name: "Save", exact: true }).click();
  await expect(form.getByRole("status")).toHaveText("Saved");
  await expect.poll(() => Promise.all(["limit", "quiet", "mode", "note"].map((name) => attribute(program, device, name)))).toEqual([8, true, "boost", "LOUD"]);
  await expect(form.getByLabel("note")).toHaveValue("LOUD");
  await region("Older").getByLabel("Place").fill("cellar");
  await region("Older").getByRole("button", { name: "Save", exact: true }).click();
  await expect(region("Code").getByRole("img", { name: "QR code: pump cellar" })).toBeVisible();

  await expect(region("Alarm").getByRole("button", { name: "To the other state" })).not.toHaveAttribute("aria-pressed");
  await program.call("TENANT_ADMIN", "/api/alarm", { originator: { entityType: "DEVICE", id: device.id }, type: "Dry", severity: "MAJOR" });
  await expect(region("Alarm").getByRole("button", { name: "To the other state", pressed: true })).toBeVisible();

  await page.screenshot({ path: "test-results/screens/controls_light.png", fullPage: true });
  await page.evaluate(axe);
  const found = await page.evaluate(() => (window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { target: unknown; html: string }[] }[] }> } }).axe.run());
  expect(found.violations.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: "test-results/screens/controls_dark.png", fullPage: true });

  await region("View").getByRole("button", { name: "Right" }).click();
  await expect(page).toHaveURL(/state=/);
  await expect(region("View").getByRole("button", { name: "Right", pressed: true })).toBeVisible();
  await page.goBack();
  await region("Alarm").getByRole("button", { name: "To the other state" }).click();
  await expect(region("View").getByRole("button", { name: "Right", pressed: true })).toBeVisible();
  pump.stop();
});

test("a switch and a form are added in the editor, and steer a device", async ({ page, program }) => {
  test.setTimeout(120_000);
  const device = await makeDevice(program, "Valve 3");
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Made here", configuration: { states: { default: { name: "Default", root: true, layouts: { main: { widgets: {}, gridSettings: { columns: 24 } } } } } } });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${made.id.id}?edit=true`);
  const panel = page.getByRole("complementary", { name: "The chosen widget" });
  const choose = async (): Promise<void> => {
    await panel.getByRole("combobox", { name: "Choose an entity" }).fill("Valve 3");
    await page.getByRole("option", { name: "Valve 3" }).click();
    await expect(panel.getByRole("combobox", { name: "Data of" })).toHaveValue("Valve 3");
  };
  await page.getByRole("button", { name: "Add a widget" }).click();
  await page.getByRole("menuitem", { name: "Switch", exact: true }).click();
  await choose();
  const keys = panel.getByLabel("Key", { exact: true });
  for (let n = 0; n < (await keys.count()); n++) {
    await keys.nth(n).fill("open");
  }
  await page.evaluate(axe);
  const found = await page.evaluate(() => (window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run());
  expect(found.violations.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`)).toEqual([]);
  await page.screenshot({ path: "test-results/screens/controls_edit.png", fullPage: true });
  await page.getByRole("button", { name: "Add a widget" }).click();
  await page.getByRole("menuitem", { name: "Form for values" }).click();
  await choose();
  await panel.getByRole("button", { name: "Add a key" }).click();
  await panel.getByLabel("Key", { exact: true }).fill("flow");
  await panel.getByRole("combobox", { name: "Kind of value" }).click();
  await page.getByRole("option", { name: "Whole number" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).first().click();
  await expect(page.getByText("Nothing to save")).toBeVisible();
  await page.getByRole("button", { name: "Done" }).click();
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  await region("Switch").getByRole("switch").click();
  await expect.poll(() => attribute(program, device, "open")).toBe(true);
  await region("Form for values").getByLabel("flow").fill("12");
  await region("Form for values").getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(() => attribute(program, device, "flow")).toBe(12);
});

test("customers steer and claim their own devices, visitors change nothing, and stored commands are followed", async ({ page, program, browser }) => {
  test.setTimeout(120_000);
  const own = await makeDevice(program, "Own valve");
  const foreign = await makeDevice(program, "Public valve");
  const free = await makeDevice(program, "Free valve");
  const { customerId } = await program.call<{ customerId: { id: string } }>("CUSTOMER_USER", "/api/auth/user");
  const shared = (device: Device, title: string): object => ({
    typeFullFqn: "system.single_switch",
    type: "rpc",
    config: { title, settings: { initialState: { action: "GET_ATTRIBUTE", getAttribute: { key: "open" } }, onUpdateState: { action: "EXECUTE_RPC", executeRpc: { method: "setState", requestPersistent: true, requestTimeout: 60_000 } } }, targetDevice: { type: "device", deviceId: device.id } },
  });
  const widgets = {
    own: shared(own, "Own"),
    foreign: shared(foreign, "Foreign"),
    claim: { typeFullFqn: "system.input_widgets.device_claiming_widget", type: "static", config: { title: "Claim", settings: { deviceSecret: true } } },
    form: { typeFullFqn: "system.input_widgets.update_multiple_attributes", type: "latest", config: { title: "Form", settings: {}, datasources: [{ type: "device", deviceId: foreign.id, dataKeys: [key("note", {})] }] } },
  };
  const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: n * 6, row: 0, sizeX: 6, sizeY: 6 }]));
  const configuration = { widgets, states: { default: { name: "All", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } } };
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "For customers", configuration });
  await program.call("TENANT_ADMIN", `/api/customer/${customerId.id}/device/${own.id}`, {});
  await program.call("TENANT_ADMIN", `/api/customer/${customerId.id}/dashboard/${made.id.id}`, {});
  await program.call("TENANT_ADMIN", `/api/customer/public/device/${foreign.id}`, {});
  const open = await program.call<{ assignedCustomers: { public: boolean; customerId: { id: string } }[] }>("TENANT_ADMIN", `/api/customer/public/dashboard/${made.id.id}`, {});
  const publicId = open.assignedCustomers.find((one) => one.public)?.customerId.id ?? "";
  const claim = await fetch(`${program.url}/api/v1/${free.token}/claim`, { method: "POST", body: JSON.stringify({ secretKey: "s3cret", durationMs: 600_000 }) });
  expect(claim.status).toBe(200);

  await logIn(page, program, "CUSTOMER_USER", `/dashboards/${made.id.id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  await region("Own").getByRole("switch").click();
  await expect(region("Own").getByRole("status")).toHaveText("Stored until Own valve connects.");
  await expect(region("Own").getByRole("switch")).toBeChecked();
  const pump = new Pump(program.url, own.token);
  await expect.poll(() => pump.heard).toContainEqual({ method: "setState", params: true });
  await expect(region("Own").getByRole("status")).toHaveCount(0);
  pump.stop();
  await expect(region("Foreign").getByRole("status")).toHaveText("No entity is chosen for this.");
  await region("Claim").getByLabel("Name of the device").fill("Free valve");
  await region("Claim").getByLabel("Secret key").fill("wrong");
  await region("Claim").getByRole("button", { name: "Claim the device" }).click();
  await expect(region("Claim").getByRole("alert")).toContainText("can't be claimed");
  await region("Claim").getByLabel("Secret key").fill("s3cret");
  await region("Claim").getByRole("button", { name: "Claim the device" }).click();
  await expect(region("Claim").getByRole("status")).toHaveText("Free valve is yours now.");

  const visitor = await browser.newPage();
  await visitor.goto(`${program.url}/dashboard/${made.id.id}?publicId=${publicId}`);
  const seen = (name: string) => visitor.getByRole("region", { name, exact: true });
  await expect(seen("Foreign").getByRole("status")).toHaveText("Visitors of a public link see this and change nothing.");
  await expect(seen("Foreign").getByRole("switch")).toHaveAttribute("aria-disabled", "true");
  await expect(seen("Form").getByLabel("note")).toBeDisabled();
  await expect(seen("Form")).toContainText("Visitors of a public link see this and change nothing.");
  await visitor.close();
});

test("pictures come from files and the camera, and what was typed outlives scrolling", async ({ page, program }) => {
  test.setTimeout(120_000);
  const device = await makeDevice(program, "Meter 5");
  const form = (fqn: string, title: string, name: string, settings: object = {}): object => ({
    typeFullFqn: `system.input_widgets.${fqn}`,
    type: "latest",
    config: { title, settings, datasources: [{ type: "device", deviceId: device.id, dataKeys: [key(name, {})] }] },
  });
  const widgets = {
    file: form("update_server_image_attribute", "File", "plan"),
    camera: form("web_camera_input", "Camera", "photo", { imageFormat: "image/png" }),
    note: form("update_server_string_attribute", "Note", "note"),
    far: form("update_server_string_attribute", "Far", "far"),
  };
  const rows: Record<string, number> = { file: 0, camera: 0, note: 0, far: 120 };
  const places = Object.fromEntries(Object.keys(widgets).map((id, n) => [id, { col: n * 6, row: rows[id], sizeX: 6, sizeY: 6 }]));
  const made = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", { title: "Pictures", configuration: { widgets, states: { default: { name: "All", root: true, layouts: { main: { widgets: places, gridSettings: { columns: 24 } } } } } } });
  // A machine that runs tests has no camera; a canvas stands for what one sees.
  await page.addInitScript(() => {
    navigator.mediaDevices.getUserMedia = () => {
      const canvas = document.createElement("canvas");
      const context = canvas.getContext("2d");
      setInterval(() => context?.fillRect(Math.random() * 99, 0, 9, 9), 50);
      return Promise.resolve(canvas.captureStream(20));
    };
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${made.id.id}`);
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  await region("Note").getByRole("textbox").fill("half a sent");

  const choosing = page.waitForEvent("filechooser");
  await region("File").getByRole("button", { name: "Choose a picture" }).click();
  const dot = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
  await (await choosing).setFiles({ name: "dot.png", mimeType: "image/png", buffer: dot });
  await expect(region("File").getByRole("img", { name: "plan of Meter 5" })).toBeVisible();
  await region("File").getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(() => attribute(program, device, "plan")).toMatch(/^data:image\/png;base64,/);

  await region("Camera").getByRole("button", { name: "Open the camera" }).click();
  await expect.poll(() => region("Camera").locator("video").evaluate((video: HTMLVideoElement) => video.videoWidth)).toBeGreaterThan(0);
  await region("Camera").getByRole("button", { name: "Take a photo" }).click();
  await region("Camera").getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(() => attribute(program, device, "photo")).toMatch(/^data:image\/png;base64,/);
  await expect(region("Camera").getByRole("img", { name: "photo of Meter 5" })).toBeVisible();

  await region("Far").scrollIntoViewIfNeeded();
  await expect(region("Far").getByRole("textbox")).toBeVisible();
  await region("Note").scrollIntoViewIfNeeded();
  await expect(region("Note").getByRole("textbox")).toHaveValue("half a sent");
});
