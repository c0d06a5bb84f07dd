// The labels of the wires between two nodes: those that the node uses, and own ones where it takes them.

import { Button, Group, Modal, MultiSelect, TagsInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { t } from "@/i18n";
import { definitionOf } from "@/ruleChain/components";
import { connect } from "@/ruleChain/edits";
import { INPUT_NODE, isRecord } from "@/ruleChain/model";
import { useEditor } from "./editor";

/** Returns the labels that a node offers: those of its class; of a nested chain the names of its outputs. */
export function useLabels(key: string): { labels: string[]; custom: boolean } {
  const { chain, classes } = useEditor();
  const stored = chain.nodes.find((node) => node.key === key)?.stored;
  const definition = definitionOf(classes.get(stored?.type ?? ""));
  const configuration = stored?.configuration;
  const nested = stored?.type === INPUT_NODE && isRecord(configuration) && typeof configuration["ruleChainId"] === "string" ? configuration["ruleChainId"] : "";
  const outputs = useQuery({ queryKey: ["output labels", nested], enabled: nested !== "", queryFn: () => api.get<string[]>(`/api/ruleChain/${nested}/output/labels`) });
  return { labels: [...new Set([...(outputs.data ?? []), ...(definition?.relationTypes ?? ["Success", "Failure"])])], custom: definition?.customRelations ?? true };
}

export function WireDialog({ from, to, onClose }: { from: string; to: string; onClose: () => void }): ReactElement {
  const { chain, edit } = useEditor();
  const { labels, custom } = useLabels(from);
  const used = chain.wires.filter((wire) => wire.from === from && wire.to === to).map(({ label }) => label);
  const [chosen, setChosen] = useState(used);
  const name = (key: string): string => chain.nodes.find((node) => node.key === key)?.stored.name ?? "";
  const common = { label: t("Labels"), "data-autofocus": true, value: chosen, onChange: setChosen, comboboxProps: { withinPortal: true } };
  return (
    <Modal opened onClose={onClose} title={`${name(from)} → ${name(to)}`} closeButtonProps={{ "aria-label": t("Close") }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          edit((now) => connect(now, from, to, chosen));
          onClose();
        }}
      >
        {custom ? (
          <TagsInput {...common} data={labels} splitChars={[","]} />
        ) : (
          <MultiSelect {...common} data={[...new Set([...labels, ...used])]} searchable hidePickedOptions />
        )}
        <Group mt="md">
          <Button type="submit" disabled={chosen.length === 0 && used.length === 0}>
            {t(chosen.length === 0 && used.length > 0 ? "Remove the wire" : "Connect")}
          </Button>
          <Button variant="default" onClick={onClose}>
            {t("Cancel")}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
