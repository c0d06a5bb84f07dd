// The list of rule chains; a file of ThingsBoard becomes a chain of its own.

import { Button, FileButton } from "@mantine/core";
import type { ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity } from "@/api/types";
import EntityList from "@/entities/EntityList";
import { KINDS } from "@/entities/kinds";
import { t } from "@/i18n";
import { readFile } from "@/ruleChain/file";
import { notify } from "@/ui/feedback";

const KIND = KINDS.find(({ type }) => type === "RULE_CHAIN");

export default function RuleChains(): ReactElement | null {
  const [, go] = useLocation();
  const bringIn = async (file: File | null): Promise<void> => {
    try {
      if (file !== null) {
        const { ruleChain, metadata } = readFile(await file.text());
        const { id } = await api.post<Entity>("/api/ruleChain", ruleChain);
        try {
          await api.post("/api/ruleChain/metadata", { ...metadata, ruleChainId: id });
        } catch (error) {
          await api.delete(`/api/ruleChain/${id.id}`);
          throw error;
        }
        go(`/ruleChains/${id.id}`);
      }
    } catch (error) {
      notify.error(error instanceof SyntaxError ? new Error("This file is no JSON.") : error);
    }
  };
  return KIND === undefined ? null : (
    <EntityList
      kind={KIND}
      tools={
        <FileButton accept="application/json" onChange={(file) => void bringIn(file)}>
          {(props) => (
            <Button variant="default" {...props}>
              {t("Import")}
            </Button>
          )}
        </FileButton>
      }
    />
  );
}
