// The built program with its demo tenant on free ports, and what tests do with it besides the browser.

import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, expect, type Page } from "@playwright/test";
import { MqttDevice, type Answer } from "./mqtt";

export const USERS = {
  SYS_ADMIN: { email: "sysadmin@thingsboard.org", password: "sysadmin" },
  TENANT_ADMIN: { email: "tenant@thingsboard.org", password: "tenant" },
  CUSTOMER_USER: { email: "customer@thingsboard.org", password: "customer" },
} as const;

export type Role = keyof typeof USERS;

export class Program {
  private process: ChildProcess | undefined;
  private readonly folder = mkdtempSync(join(tmpdir(), "fieldline-web-"));
  /** Address of the pages; the same after a restart. */
  url = "http://127.0.0.1:0";
  /** Address of the publish/subscribe broker, if it has one. */
  broker = "";
  /** Address for devices, another one after a restart. */
  private mqtt = "";
  private devices: MqttDevice[] = [];

  /** `settings` are further variables of its environment. */
  constructor(private readonly settings: Readonly<Record<string, string>> = {}) {}

  async start(): Promise<void> {
    const listen = new URL(this.url).host || "127.0.0.1:0";
    const program = process.env["FIELDLINE_BIN"] ?? "../target/release/fieldline";
    const child = spawn(program, ["serve", "--demo", "--data-dir", this.folder], {
      env: {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("FIELDLINE_"))),
        FIELDLINE_HTTP_LISTEN: this.url.endsWith(":0") ? "127.0.0.1:0" : listen,
        FIELDLINE_MQTT_LISTEN: "127.0.0.1:0",
        FIELDLINE_COAP_LISTEN: "127.0.0.1:0",
        // Pages that were built after the program can be tried without building it again.
        ...(process.env["UI_DIR"] === undefined ? {} : { FIELDLINE_HTTP_UI_DIR: process.env["UI_DIR"] }),
        ...this.settings,
      },
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.process = child;
    let text = "";
    this.url = await new Promise((resolve, reject) => {
      child.on("exit", (code) => reject(new Error(`the program ended with ${code}: ${text}`)));
      child.stdout.on("data", (bytes: Buffer) => {
        text += bytes.toString();
        const [, url, mqtt] = /HTTP\s+(http:\/\/\S+)[^]*MQTT\s+(mqtt:\/\/\S+)\n/.exec(text) ?? [];
        this.broker = /Broker (mqtt:\/\/\S+) /.exec(text)?.[1] ?? "";
        if (url !== undefined && mqtt !== undefined && (this.broker !== "" || this.settings["FIELDLINE_BROKER_LISTEN"] === undefined)) {
          this.mqtt = mqtt;
          resolve(url);
        }
      });
    });
  }

  /** Ends the program without warning, as a crash would. */
  async kill(): Promise<void> {
    this.devices.forEach((device) => device.end());
    this.devices = [];
    const child = this.process;
    if (child !== undefined && child.exitCode === null) {
      child.removeAllListeners("exit");
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Connects a device over MQTT, which answers commands as it is told. */
  async device(token: string, answer?: Answer): Promise<MqttDevice> {
    const device = await MqttDevice.connect(this.mqtt, token, answer);
    this.devices.push(device);
    return device;
  }

  /** Sends telemetry as a device that connects for it alone. */
  async send(token: string, values: Record<string, unknown>): Promise<void> {
    const answer = await fetch(`${this.url}/api/v1/${token}/telemetry`, { method: "POST", body: JSON.stringify(values) });
    expect(answer.status).toBe(200);
  }

  async token(role: Role): Promise<string> {
    const { email, password } = USERS[role];
    const answer = await fetch(`${this.url}/api/auth/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username: email, password }),
    });
    return ((await answer.json()) as { token: string }).token;
  }

  async call<T>(role: Role, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.url + path, {
      headers: { "X-Authorization": `Bearer ${await this.token(role)}`, "Content-Type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    expect(answer.ok, `${path}: ${answer.status}`).toBe(true);
    return (await answer.json()) as T;
  }

  /** Posts what is answered with nothing, as an administrator of the tenant. */
  async save(path: string, body: unknown): Promise<void> {
    const answer = await fetch(this.url + path, {
      method: "POST",
      headers: { "X-Authorization": `Bearer ${await this.token("TENANT_ADMIN")}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.ok, `${path}: ${answer.status}`).toBe(true);
  }

  /** Puts a symbol into the gallery and returns its link. */
  async symbol(role: Role, title: string, drawing: string): Promise<string> {
    const form = new FormData();
    form.append("title", title);
    form.append("imageSubType", "SCADA_SYMBOL");
    form.append("file", new File([drawing], `${title}.svg`, { type: "image/svg+xml" }));
    const answer = await fetch(`${this.url}/api/image`, { method: "POST", headers: { "X-Authorization": `Bearer ${await this.token(role)}` }, body: form });
    expect(answer.ok, `the symbol ${title}: ${answer.status}`).toBe(true);
    return ((await answer.json()) as { link: string }).link;
  }
}

/** The program of the file whose tests run: what one file sets would be found by the next. */
class FileProgram {
  private file = "";
  private program: Program | undefined;

  async of(file: string): Promise<Program> {
    if (this.program === undefined || this.file !== file) {
      await this.remove();
      this.file = file;
      this.program = new Program();
      await this.program.start();
    }
    return this.program;
  }

  async remove(): Promise<void> {
    await this.program?.remove();
    this.program = undefined;
  }
}

/** Tests with one program for each file, whose page fails the test when a script of it fails. */
export const test = base.extend<{ page: Page; program: Program }, { files: FileProgram }>({
  files: [
    async ({}, use) => {
      const files = new FileProgram();
      await use(files);
      await files.remove();
    },
    { scope: "worker" },
  ],
  program: async ({ files }, use, { file }) => use(await files.of(file)),
  page: async ({ page }, use) => {
    const failures: string[] = [];
    page.on("pageerror", (error) => failures.push(error.message));
    await use(page);
    expect(failures).toEqual([]);
  },
});

export async function logIn(page: Page, program: Program, role: Role, path = "/"): Promise<void> {
  await page.goto(program.url + path);
  await page.getByLabel("E-mail").fill(USERS[role].email);
  await page.getByLabel("Password").fill(USERS[role].password);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("button", { name: USERS[role].email })).toBeVisible();
}

export { expect };
