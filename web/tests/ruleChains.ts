// What tests of rule chains do again and again.

import type { Locator, Page } from "@playwright/test";
import { expect, type Program } from "./program";

export interface Metadata {
  version: number;
  ruleChainId: { id: string };
  nodes: { id: { id: string }; name: string; configuration: Record<string, unknown>; additionalInfo: Record<string, unknown> }[];
  connections: { fromIndex: number; toIndex: number; type: string }[] | null;
}

export const metadataOf = (program: Program, id: string): Promise<Metadata> => program.call("TENANT_ADMIN", `/api/ruleChain/${id}/metadata`);

/** The box of a node. */
export const box = (page: Page, name: string): Locator => page.locator(`[data-node-name="${name}"]`);

/** Makes a chain with remarks, and with nodes that messages enter at the first one. */
export async function newChain(program: Program, name: string, nodes: object[] = [], remarks: object[] = []): Promise<string> {
  const chain = await program.call<{ id: { id: string } }>("TENANT_ADMIN", "/api/ruleChain", { name, ...(remarks.length === 0 ? {} : { additionalInfo: { fieldlineRemarks: remarks } }) });
  if (nodes.length > 0) {
    await program.call("TENANT_ADMIN", "/api/ruleChain/metadata", { ruleChainId: chain.id, firstNodeIndex: 0, nodes, connections: [] });
  }
  return chain.id.id;
}

/** A node that acknowledges, at a place. */
export const ackNode = (name: string, layoutX: number, layoutY: number): object => ({ type: "org.thingsboard.rule.engine.flow.TbAckNode", name, configuration: { version: 0 }, additionalInfo: { layoutX, layoutY } });

/** Saves by key, and waits for it. */
export async function saveChain(page: Page): Promise<void> {
  await page.keyboard.press("Control+s");
  await expect(page.getByText("Saved", { exact: true })).toBeVisible();
  await expect(page.getByText("Not saved")).toHaveCount(0);
}
