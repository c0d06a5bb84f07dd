// The labels of the wires between two nodes: those that the node uses, and own ones where it takes them.

import { Button, Checkbox, Group, Modal, SimpleGrid, TagsInput } from "@mantine/core";
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
  return (
    <Modal opened onClose={onClose} title={`${name(from)} → ${name(to)}`} closeButtonProps={{ "aria-label": t("Close") }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          edit((now) => connect(now, from, to, chosen));
          onClose();
        }}
      >
        <Checkbox.Group label={t("Labels")} value={chosen} onChange={setChosen}>
          <SimpleGrid cols={2} spacing={4} my={6} mah="50vh" style={{ overflow: "auto" }}>
            {[...new Set([...labels, ...used])].map((label) => (
              <Checkbox key={label} size="xs" value={label} label={label} />
            ))}
          </SimpleGrid>
        </Checkbox.Group>
        {custom && <TagsInput label={t("Own labels")} splitChars={[","]} value={chosen.filter((label) => !labels.includes(label))} onChange={(own) => setChosen([...chosen.filter((label) => labels.includes(label)), ...own])} />}
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
