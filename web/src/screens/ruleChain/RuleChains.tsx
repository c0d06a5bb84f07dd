// The list of rule chains; a file of ThingsBoard becomes a chain of its own.

import type { ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import EntityList from "@/entities/EntityList";
import { KINDS } from "@/entities/kinds";
import { readFile } from "@/ruleChain/file";
import { ImportButton } from "@/ui/ImportButton";

const KIND = KINDS.find(({ type }) => type === "RULE_CHAIN");

export default function RuleChains(): ReactElement | null {
  const [, go] = useLocation();
  const bringIn = async (text: string): Promise<void> => {
    const { ruleChain, metadata } = readFile(text);
    const { id } = await api.post<Entity>("/api/ruleChain", ruleChain);
    try {
      await api.post("/api/ruleChain/metadata", { ...metadata, ruleChainId: id });
    } catch (error) {
      await api.delete(`/api/ruleChain/${id.id}`);
      throw error;
    }
    go(`/ruleChains/${id.id}`);
  };
  return KIND === undefined ? null : <EntityList kind={KIND} tools={<ImportButton take={bringIn} />} />;
}
