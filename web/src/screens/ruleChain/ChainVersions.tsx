// The versions of a rule chain: what differs from the one that is saved now, and the way back.

import { Modal } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import { number, object, text, type Json } from "@/dashboard/json";
import { VersionsDialog } from "@/editing/VersionsDialog";
import { t } from "@/i18n";
import { ruleChainDiff } from "@/ruleChain/diff";
import type { ChainMetadata } from "@/ruleChain/model";
import { notify, Problem } from "@/ui/feedback";

interface ChainVersion {
  metadata: ChainMetadata;
}

const idOf = (node: Json): string | undefined => text(object(node["id"])["id"]);

/** Returns a former version as it can be saved now: nodes that are gone meanwhile are made anew. */
export function asNew(former: ChainMetadata, current: ChainMetadata): ChainMetadata {
  const known = new Set(current.nodes.map(idOf));
  const nodes = former.nodes.map((node) => (known.has(idOf(node)) ? node : { ...node, id: null }));
  return { ...former, nodes, ruleChainId: current["ruleChainId"], version: current["version"] };
}

/** `onRestored` is called when the chain on the server is another one. */
export default function ChainVersions({ id, onClose, onRestored }: { id: string; onClose: () => void; onRestored: () => Promise<void> }): ReactElement | null {
  const current = useQuery({ queryKey: ["saved chain", id], gcTime: 0, queryFn: () => api.get<ChainMetadata>(`/api/ruleChain/${id}/metadata`) });
  if (current.isError) {
    return (
      <Modal opened onClose={onClose} title={t("Versions")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Problem error={current.error} />
      </Modal>
    );
  }
  if (current.data === undefined) {
    return null;
  }
  const now = current.data;
  return (
    <VersionsDialog<ChainVersion>
      path={`/api/ruleChain/${id}/versions`}
      opened
      onClose={onClose}
      current={{ metadata: now }}
      currentVersion={number(now["version"]) ?? 0}
      diff={(before, after) => ruleChainDiff(before.metadata, after.metadata)}
      restore={async (former) => {
        await api.post("/api/ruleChain/metadata", asNew(former.metadata, now), { updateRelated: true });
        await onRestored();
        notify.ok(t("Restored"));
      }}
    />
  );
}
