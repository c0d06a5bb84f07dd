// Code of actions acts with the viewer's rights only after consent, only within its list, and can reach neither page nor network.

import { expect, logIn, test } from "./program";

type Id = { entityType: string; id: string };

/** Asks first, then writes an attribute with the operators that ThingsBoard's code uses, and shows another state. */
const SAVE = `
  widgetContext.dialogs.confirm("Really?", "Write <b>it</b> to " + entityName, "No", "Yes").subscribe((yes) => {
    if (!yes) { widgetContext.showErrorToast("left alone"); return; }
    widgetContext.attributeService.saveEntityAttributes(entityId, "SERVER_SCOPE", [{ key: "noted", value: "by code" }]).pipe(
      widgetContext.rxjs.switchMap(() => widgetContext.attributeService.getEntityAttributes(entityId, "SERVER_SCOPE", ["noted"])),
      widgetContext.rxjs.map((found) => found[0].value)
    ).subscribe((value) => {
      widgetContext.showSuccessToast("stored " + value);
      widgetContext.stateController.openState("two", { entityId, entityName });
    }, (problem) => widgetContext.showErrorToast("refused: " + problem.message));
  });`;

/** Tries all that must not work, and tells what did. */
const HOSTILE = `
  const reached = [];
  const attempts = [
    ["own", () => widgetContext.http.get("/api/auth/user").toPromise()],
    ["boards", () => widgetContext.http.get("/api/tenant/dashboards?pageSize=9&page=0").toPromise()],
    ["secret", () => widgetContext.http.get("/api/device/" + entityId.id + "/credentials").toPromise()],
    ["climb", () => widgetContext.http.get("/api/device/../auth/user").toPromise()],
    ["coded", () => widgetContext.http.get("/api/device/%2e%2e/auth/user").toPromise()],
    ["foreign", () => widgetContext.http.get("https://example.org/api/device").toPromise()],
    ["hidden", () => widgetContext.userService.getUser("x").toPromise()],
    ["proto", () => widgetContext.deviceService.constructor("x").toPromise()],
    ["fetch", () => fetch("https://example.org/")],
    ["page", async () => { top.hacked = 1; }],
    ["store", async () => localStorage.length],
    ["frame", async () => document.body.innerHTML],
  ];
  (async () => {
    for (const [name, attempt] of attempts) {
      try { await attempt(); reached.push(name); } catch (error) {}
    }
    widgetContext.showSuccessToast("reached: " + (reached.join(", ") || "nothing"));
  })();`;

const TEMPLATE = `<form (ngSubmit)="save()"><h3>Note for {{ name }}</h3><label>Text <input [(ngModel)]="note"></label><mat-icon>edit</mat-icon>
  <button type="submit" [disabled]="!note">Save</button><button type="button" (click)="cancel()">Back</button></form><script>top.hacked = 1</script>`;
const DIALOG = `
  widgetContext.customDialog.customDialog(htmlTemplate, function (instance) {
    const vm = instance;
    vm.name = entityName;
    vm.note = "";
    vm.save = () => widgetContext.attributeService.saveEntityAttributes(entityId, "SERVER_SCOPE", [{ key: "note", value: vm.note }]).subscribe(() => vm.dialogRef.close());
    vm.cancel = () => vm.dialogRef.close();
  }).subscribe();`;

test("code of actions asks before it acts, and can do no more than is allowed", async ({ page, program }) => {
  test.setTimeout(120_000);
  await page.setViewportSize({ width: 1300, height: 900 });
  const outside: string[] = [];
  page.on("request", (request) => request.url().startsWith("https://example.org") && outside.push(request.url()));
  const device = await program.call<{ id: Id }>("TENANT_ADMIN", "/api/device", { name: "Acted on", type: "acted" });
  const action = (name: string, customFunction: string, more: object = {}): object => ({ name, icon: "edit", type: "custom", customFunction, ...more });
  const widget = {
    typeFullFqn: "system.cards.entities_table",
    sizeX: 24,
    sizeY: 8,
    config: {
      title: "Table",
      settings: {},
      datasources: [{ type: "entity", entityAliasId: "a", dataKeys: [{ name: "noted", type: "attribute", label: "Noted", settings: {} }] }],
      actions: {
        actionCellButton: [
          action("Save", SAVE),
          action("Hostile", HOSTILE),
          action("Endless", "while (true) {}"),
          action("Dialog", DIALOG, { type: "customPretty", customHtml: TEMPLATE, customCss: "h3 { color: rgb(1, 2, 3); }" }),
          { name: "Bad link", icon: "launch", type: "openURL", url: "javascript:top.hacked=1" },
          { name: "Phone", icon: "send", type: "mobileAction", mobileAction: { type: "deviceProvision" } },
        ],
      },
    },
  };
  const place = { w: { col: 0, row: 0, sizeX: 24, sizeY: 8 } };
  const configuration = {
    widgets: { w: widget },
    states: {
      default: { name: "One", root: true, layouts: { main: { widgets: place, gridSettings: {} } } },
      two: { name: "Two of ${entityName}", root: false, layouts: { main: { widgets: place, gridSettings: {} } } },
    },
    entityAliases: { a: { id: "a", alias: "A", filter: { type: "deviceType", deviceTypes: ["acted"], resolveMultiple: true } } },
  };
  const board = await program.call<{ id: Id; configuration: { widgets: { w: { config: { title: string } } } } }>("TENANT_ADMIN", "/api/dashboard", { title: "Acting <b>board</b>", configuration });
  const stored = async (key: string): Promise<unknown> =>
    (await program.call<{ key: string; value: unknown }[]>("TENANT_ADMIN", `/api/plugins/telemetry/DEVICE/${device.id.id}/values/attributes/SERVER_SCOPE`)).find((one) => one.key === key)?.value;
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const row = page.getByRole("region", { name: "Table" }).locator("tbody tr[data-row]");
  await expect(row).toContainText("Acted on");
  const press = async (name: string): Promise<void> => row.getByRole("button", { name, exact: true }).click();
  const consent = page.getByRole("dialog", { name: "May this dashboard act with your rights?" });

  // Nothing happens without consent.
  await press("Save");
  await expect(page.getByRole("dialog", { name: "Really?" })).toContainText("Write it to Acted on");
  await page.getByRole("button", { name: "Yes" }).click();
  await expect(consent).toContainText("Acting <b>board</b>");
  await expect(consent).toContainText("read and change");
  await page.screenshot({ path: "test-results/screens/consent.png" });
  await consent.getByRole("button", { name: "Don't allow" }).click();
  await expect(page.getByText("refused: This was not allowed to the code of the dashboard.")).toBeVisible();
  expect(await stored("noted")).toBeUndefined();

  // With it, the action does its work.
  await press("Save");
  await page.getByRole("button", { name: "Yes" }).click();
  await consent.getByRole("button", { name: "Allow for this dashboard" }).click();
  await expect(page.getByText("stored by code")).toBeVisible();
  await expect(page.getByRole("button", { name: "Two of Acted on" })).toBeVisible();
  await expect(row).toContainText("by code");

  // Allowed or not, it reaches nothing else.
  await press("Hostile");
  await expect(page.getByText("reached: nothing")).toBeVisible();
  await press("Endless");
  await expect(page.getByText("The code of “Endless” failed: took too long")).toBeVisible();
  await press("Bad link");
  await expect(page.getByText("The address of this action is none that may be opened.")).toBeVisible();
  await press("Phone");
  await expect(page.getByText("“Phone” needs what this browser can't do here.")).toBeVisible();

  // A template becomes a dialog in a frame, which was allowed with the rest.
  await press("Dialog");
  const dialog = page.getByRole("dialog", { name: "Dialog" });
  await expect(dialog).toContainText("These parts don't work here: mat-icon");
  const frame = dialog.frameLocator("iframe");
  await expect(frame.getByRole("heading", { name: "Note for Acted on" })).toHaveCSS("color", "rgb(1, 2, 3)");
  await expect(frame.getByRole("button", { name: "Save" })).toBeDisabled();
  await frame.getByLabel("Text").fill("from a dialog");
  await page.screenshot({ path: "test-results/screens/custom_dialog.png" });
  await frame.getByRole("button", { name: "Save" }).click();
  await expect(dialog).toHaveCount(0);
  expect(await stored("note")).toBe("from a dialog");

  // It can be taken back.
  await page.getByRole("button", { name: "Withdraw" }).click();
  await expect(page.getByRole("button", { name: "Withdraw" })).toHaveCount(0);
  await press("Save");
  await page.getByRole("button", { name: "Yes" }).click();
  await consent.getByRole("button", { name: "Allow for this dashboard" }).click();
  await expect(page.getByText("stored by code")).toBeVisible();

  // Consent is to this code: once the dashboard is another one, it is asked for again.
  board.configuration.widgets.w.config.title = "Table";
  Object.assign(board.configuration.widgets.w.config, { changed: true });
  await program.call("TENANT_ADMIN", "/api/dashboard", board);
  await page.goto(`${program.url}/dashboards/${board.id.id}`);
  await press("Save");
  await page.getByRole("button", { name: "Yes" }).click();
  await expect(consent).toBeVisible();
  expect(await page.evaluate(() => "hacked" in window)).toBe(false);
  expect(outside).toEqual([]);
});

test("a state opens beside what was clicked, and in its right part on phones", async ({ page, program }) => {
  const peek = { name: "Peek", icon: "visibility", type: "openDashboardState", targetDashboardStateId: "more", openInPopover: true, popoverPreferredPlacement: "bottomLeft", popoverWidth: "400px", popoverHeight: "300px", setEntityId: false };
  const deep = { name: "Deeper", type: "openDashboardState", targetDashboardStateId: "deep", openInSeparateDialog: true, setEntityId: false };
  const run = { name: "Run", type: "custom", customFunction: 'widgetContext.dialogs.confirm("Sure?", "Really?").subscribe();' };
  const aside = { name: "Aside", type: "openDashboardState", targetDashboardStateId: "split", openRightLayout: true, setEntityId: false };
  const card = (title: string, html: string, actions: object): object => ({
    typeFullFqn: "system.cards.markdown_card",
    config: { title, showTitle: true, settings: { markdownTextPattern: html, useMarkdownTextFunction: false }, datasources: [], actions },
  });
  const state = (name: string, widget: string, root: boolean): object => ({ name, root, layouts: { main: { widgets: { [widget]: { col: 0, row: 0, sizeX: 10, sizeY: 6 } }, gridSettings: { columns: 24 } } } });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Beside",
    configuration: { widgets: { first: card("First", "Look closer <mat-icon class=\"eye\">visibility</mat-icon>", { headerButton: [peek, aside] }), second: card("Second", "The details", { headerButton: [deep, run] }), bottom: card("Bottom", "At the bottom", {}), third: card("Third", "Left", {}), fourth: card("Fourth", "Right", {}) }, states: { default: state("Start", "first", true), more: state("More", "second", false), deep: state("Deep", "bottom", false), split: { name: "Split", root: false, layouts: { main: { widgets: { third: { col: 0, row: 0, sizeX: 10, sizeY: 6 } }, gridSettings: { columns: 24 } }, right: { widgets: { fourth: { col: 0, row: 0, sizeX: 10, sizeY: 6 } }, gridSettings: { columns: 24 } } } } } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  await expect(page.getByRole("region", { name: "First" }).locator("i.eye svg path")).toBeVisible();
  const button = page.getByRole("button", { name: "Peek" });
  await button.click();
  const popover = page.getByRole("dialog", { name: "More" });
  await expect(popover).toContainText("The details");
  await page.screenshot({ path: "test-results/screens/popover.png" });
  const [under, over] = [await popover.boundingBox(), await button.boundingBox()];
  expect(under?.width).toBe(400);
  expect(under?.y ?? 0).toBeGreaterThanOrEqual((over?.y ?? 0) + (over?.height ?? 0));
  expect((under?.y ?? 0) - (over?.y ?? 0)).toBeLessThan(80);
  await page.keyboard.press("Escape");
  await expect(popover).toHaveCount(0);
  await expect(page).toHaveURL(new RegExp(`/dashboards/${board.id.id}$`));
  // What opens from it belongs to it: clicks there leave it open, and so does the answer to a question.
  await button.click();
  await popover.getByRole("button", { name: "Deeper" }).click();
  const deeper = page.getByRole("dialog", { name: "Deep" });
  await deeper.getByText("At the bottom").click();
  await deeper.getByRole("button", { name: "Close" }).click();
  await expect(deeper).toHaveCount(0);
  await expect(popover).toBeVisible();
  await popover.getByRole("button", { name: "Run" }).click();
  const asked = page.getByRole("dialog", { name: "Sure?" });
  await asked.getByRole("button", { name: "No" }).click();
  await expect(asked).toHaveCount(0);
  await expect(popover).toBeVisible();
  await page.getByText("Look closer").click();
  await expect(popover).toHaveCount(0);

  await page.setViewportSize({ width: 420, height: 800 });
  await page.getByRole("button", { name: "Aside" }).click();
  await expect(page.getByRole("region", { name: "Fourth" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Third" })).toHaveCount(0);
});

test("a state over a dashboard has the toolbar that its action leaves it, with a time of its own", async ({ page, program }) => {
  const open = (name: string, how: object): object => ({ name, type: "openDashboardState", targetDashboardStateId: "more", setEntityId: false, ...how });
  const actions = [
    open("Beside", { openInPopover: true, popoverWidth: "600px", popoverHeight: "300px", popoverHideDashboardToolbar: false }),
    open("Over", { openInSeparateDialog: true, dialogHideDashboardToolbar: false }),
    open("Bare", { openInSeparateDialog: true }),
  ];
  const card = (title: string, of: object): object => ({ typeFullFqn: "system.cards.markdown_card", config: { title, showTitle: true, settings: { markdownTextPattern: title, useMarkdownTextFunction: false }, datasources: [], actions: of } });
  const state = (name: string, widget: string, root: boolean): object => ({ name, root, layouts: { main: { widgets: { [widget]: { col: 0, row: 0, sizeX: 10, sizeY: 6 } }, gridSettings: { columns: 24 } } } });
  const board = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/dashboard", {
    title: "Toolbars",
    configuration: { widgets: { first: card("First", { headerButton: actions }), second: card("Second", {}) }, states: { default: state("Start", "first", true), more: state("More", "second", false) }, timewindow: { realtime: { timewindowMs: 3_600_000 } } },
  });
  await logIn(page, program, "TENANT_ADMIN", `/dashboards/${board.id.id}`);
  const over = page.getByRole("dialog", { name: "More" });
  for (const name of ["Beside", "Over"]) {
    await page.getByRole("button", { name }).click();
    await expect(over.getByRole("region", { name: "Second" })).toBeVisible();
    await over.getByRole("button", { name: "Time: last hour" }).click();
    const form = page.getByRole("dialog", { name: "Time: last hour" });
    await form.getByRole("combobox", { name: "Time", exact: true }).click();
    await page.getByRole("option", { name: "last day", exact: true }).click();
    await form.getByRole("button", { name: "Show" }).click();
    await expect(over.getByRole("button", { name: "Time: last day" })).toBeVisible();
    await over.getByRole("button", { name: "Full screen" }).click();
    expect((await over.boundingBox())?.width).toBeGreaterThan(1_200);
    await over.getByRole("button", { name: "Leave full screen" }).click();
    await (name === "Beside" ? page.getByText("Overview").first().click() : over.getByRole("button", { name: "Close" }).click());
    await expect(over).toHaveCount(0);
    await expect(page.getByRole("button", { name: "Time: last hour" })).toBeVisible();
  }
  await page.getByRole("button", { name: "Bare" }).click();
  await expect(over.getByRole("region", { name: "Second" })).toBeVisible();
  await expect(over.getByRole("button", { name: /^Time:/ })).toHaveCount(0);
});
