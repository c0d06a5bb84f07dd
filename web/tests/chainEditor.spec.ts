// What the editor of rule chains does beside building them: frames, messages that are tried again, and two people at once.

import { expect, logIn, test } from "./program";
import { ackNode, box, metadataOf, newChain, saveChain } from "./ruleChains";

test("a frame takes the nodes within it along, and one step brings all of it back", async ({ page, program }) => {
  const id = await newChain(
    program,
    "Framed",
    [ackNode("In 1", 260, 120), ackNode("In 2", 260, 220), ackNode("Out", 700, 120)],
    [{ kind: "frame", text: "Together", x: 220, y: 60, width: 300, height: 260 }],
  );
  const before = (await metadataOf(program, id)).nodes.map(({ additionalInfo }) => additionalInfo);
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);
  const frame = page.locator(".react-flow__node-remark");
  const places = async (): Promise<{ x: number; y: number }[]> => Promise.all(["In 1", "In 2", "Out"].map(async (name) => (await box(page, name).boundingBox()) ?? { x: 0, y: 0 }));
  await expect(box(page, "Out")).toBeVisible();
  const start = await places();
  const { x, y, width, height } = (await frame.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(x + width / 2, y + height - 6);
  await page.mouse.down();
  await page.mouse.move(x + width / 2 + 30, y + height + 30, { steps: 4 });
  // They come along while it is dragged.
  await expect.poll(async () => (await places()).map((place, n) => Math.round(place.y - (start[n]?.y ?? 0)) > 20)).toEqual([true, true, false]);
  await page.mouse.up();
  // What is within a frame that was chosen last can be chosen.
  await box(page, "In 1").click();
  await expect(page.getByRole("complementary", { name: "Details" }).getByLabel("Name", { exact: true })).toHaveValue("In 1");
  await saveChain(page);
  const moved = (await metadataOf(program, id)).nodes.map(({ additionalInfo }) => additionalInfo);
  const by = (n: number): number[] => ["layoutX", "layoutY"].map((axis) => Number(moved[n]?.[axis]) - Number(before[n]?.[axis]));
  expect(by(0)[1]).toBeGreaterThan(20);
  expect(by(1)).toEqual(by(0));
  expect(by(2)).toEqual([0, 0]);

  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.getByText("Not saved")).toBeVisible();
  await expect(page.getByRole("button", { name: "Undo" })).toBeDisabled();
  await saveChain(page);
  expect((await metadataOf(program, id)).nodes.map(({ additionalInfo }) => additionalInfo)).toEqual(before);

  // By key, too.
  await frame.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowDown");
  await saveChain(page);
  const nudged = (await metadataOf(program, id)).nodes.map(({ additionalInfo }) => Number(additionalInfo["layoutY"]));
  expect(nudged.map((place, n) => place > Number(before[n]?.["layoutY"]))).toEqual([true, true, false]);
});

test("debug is switched on at the node, and what came is tried with the script and replayed", async ({ page, program }) => {
  const script = { scriptLang: "TBEL", tbelScript: "return msg.temperature > 50;", jsScript: "return true;" };
  const id = await newChain(program, "Debugged", [{ type: "org.thingsboard.rule.engine.telemetry.TbMsgTimeseriesNode", name: "Store", configuration: { defaultTTL: 0, processingSettings: { type: "ON_EVERY_MESSAGE" } }, additionalInfo: { layoutX: 260, layoutY: 120 } }, { type: "org.thingsboard.rule.engine.filter.TbJsFilterNode", name: "Warm?", configuration: script, additionalInfo: { layoutX: 560, layoutY: 120 } }]);
  const metadata = await metadataOf(program, id);
  await program.call("TENANT_ADMIN", "/api/ruleChain/metadata", { ...metadata, connections: [{ fromIndex: 0, toIndex: 1, type: "Success" }] });
  const chains = (await program.call<{ data: { id: { id: string }; root: boolean }[] }>("TENANT_ADMIN", "/api/ruleChains?pageSize=50&page=0")).data;
  const root = chains.find((chain) => chain.root)?.id.id ?? "";
  await program.call("TENANT_ADMIN", `/api/ruleChain/${id}/root`, {});
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);

  const debug = page.getByRole("combobox", { name: "Debug of Warm?" });
  await box(page, "Warm?").hover();
  await debug.selectOption("all for 15 minutes");
  await expect(debug.locator("option:checked")).toHaveText("● all, 15 min");
  await saveChain(page);
  await box(page, "Warm?").click();
  const panel = page.getByRole("complementary", { name: "Details" });
  await expect(panel.getByText("For 15 more minutes, from saving on.")).toBeVisible();

  await page.getByRole("tab", { name: "Debug" }).click();
  await expect(panel.getByRole("list", { name: "Events" })).toHaveCount(1);
  await program.send("A1_TEST_TOKEN", { temperature: 61 });
  const came = panel.getByRole("listitem").filter({ hasText: '{"temperature":61}' });
  await expect(came).toHaveCount(2);
  // What left the node is not what its script was given.
  await expect(came.getByRole("button", { name: "Test the script" })).toHaveCount(1);
  await came.getByRole("button", { name: "Test the script" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Message type")).toHaveValue("POST_TELEMETRY_REQUEST");
  await expect(dialog.locator(".cm-content").nth(1)).toContainText("61");
  await expect(dialog.locator(".cm-content").nth(2)).toContainText("Test Device A1");
  await dialog.getByRole("button", { name: "Run" }).click();
  await expect(dialog.getByRole("status", { name: "Result" })).toHaveText("true");
  await dialog.getByRole("button", { name: "Close" }).click();

  // The one message is replayed as it is stored, from the beginning of the chain or from this node.
  await came.last().getByRole("button", { name: "Replay" }).click();
  await expect(panel.getByText(/One message: what the device sent at/)).toBeVisible();
  await panel.getByRole("button", { name: "Replay", exact: true }).click();
  const nodes = panel.getByRole("table", { name: "Nodes" });
  await expect(nodes.getByRole("row", { name: /Store/ })).toContainText("Success 1");
  await expect(nodes.getByRole("row", { name: /Warm\?/ })).toContainText("True 1");
  await panel.getByRole("checkbox", { name: "Begin at Warm?" }).check();
  await panel.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(nodes.getByRole("row", { name: /Store/ })).not.toContainText("Success 1");
  await expect(nodes.getByRole("row", { name: /Warm\?/ })).toContainText("True 1");
  await program.call("TENANT_ADMIN", `/api/ruleChain/${root}/root`, {});
});

test("whoever edits is told that somebody else has saved, and nodes of both are kept", async ({ page, program }) => {
  const id = await newChain(program, "Told", [ackNode("Ours", 260, 120)]);
  const addTheirs = async (name: string): Promise<void> => {
    const before = await metadataOf(program, id);
    await program.call("TENANT_ADMIN", "/api/ruleChain/metadata", { ...before, nodes: [...before.nodes, ackNode(name, 560, 120)] });
    // Coming back to the page asks at once.
    await page.evaluate(() => window.dispatchEvent(new Event("visibilitychange")));
  };
  await logIn(page, program, "TENANT_ADMIN", `/ruleChains/${id}`);
  await expect(box(page, "Ours")).toBeVisible();
  const notice = page.getByRole("status").filter({ hasText: /You have saved version \d+ elsewhere/ });
  await addTheirs("Theirs 0");
  await notice.getByRole("button", { name: "Not now" }).click();
  await expect(notice).toHaveCount(0);
  await addTheirs("Theirs 1");
  await notice.getByRole("button", { name: "Take theirs" }).click();
  await expect(box(page, "Theirs 1")).toBeVisible();
  await expect(notice).toHaveCount(0);

  await box(page, "Ours").click();
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByLabel("Name", { exact: true }).fill("Ours, renamed");
  await page.getByRole("navigation", { name: "Node types" }).getByRole("button", { name: "log", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await addTheirs("Theirs 2");
  // What is not saved is not given up by the way.
  await expect(notice).toBeVisible();
  await expect(notice.getByRole("button", { name: "Take theirs" })).toHaveCount(0);
  await notice.getByRole("button", { name: "See what has changed" }).click();
  const dialog = page.getByRole("dialog", { name: "Somebody else has changed this meanwhile" });
  await expect(dialog.getByText("both can be kept")).toBeVisible();
  await expect(dialog.getByRole("region", { name: "What they have changed" })).toContainText("Theirs 2");
  // What is changed while both are saved stays a change, beside what the other has changed.
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/api/ruleChain/metadata?*", async (route) => {
    await held;
    await route.continue();
  });
  await dialog.getByRole("button", { name: "Keep both" }).click();
  await expect(dialog.getByRole("button", { name: "Take theirs" })).toBeDisabled();
  await dialog.getByRole("button", { name: "Close" }).click();
  await box(page, "Ours, renamed").click();
  await panel.getByLabel("Name", { exact: true }).fill("Ours, twice");
  release();
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await expect(box(page, "Ours, twice")).toBeVisible();
  await expect(page.getByText("Not saved")).toBeVisible();
  await page.unroute("**/api/ruleChain/metadata?*");
  await box(page, "log").click();
  await expect(box(page, "Theirs 2")).toBeVisible();
  await expect(notice).toHaveCount(0);
  expect((await metadataOf(program, id)).nodes.map(({ name }) => name).sort()).toEqual(["Ours, renamed", "Theirs 0", "Theirs 1", "Theirs 2", "log"]);
  // Saving goes on from there.
  await panel.getByLabel("Name", { exact: true }).fill("Log it");
  await page.getByRole("heading", { level: 1 }).click();
  await page.keyboard.press("Control+s");
  await expect.poll(async () => (await metadataOf(program, id)).nodes.map(({ name }) => name)).toContain("Log it");
});
