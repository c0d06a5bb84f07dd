// All types of nodes by category, with a search: as the palette, and as the choice after a wire was let go.

import { Text, TextInput, UnstyledButton } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { CATEGORIES, type Component } from "@/ruleChain/components";
import { DRAGGED } from "./Canvas";
import { useEditor } from "./editor";
import classes from "./ruleChain.module.css";

const NAMES = { FILTER: "Filter", ENRICHMENT: "Enrichment", TRANSFORMATION: "Transformation", ACTION: "Action", EXTERNAL: "External", FLOW: "Flow" };

export function NodeTypes({ onPick, focus = false }: { onPick: (component: Component) => void; focus?: boolean }): ReactElement {
  const { components } = useEditor();
  const [search, setSearch] = useState("");
  const found = components.filter(({ name, configurationDescriptor: { nodeDefinition } }) => `${name} ${t(name)} ${nodeDefinition.description} ${t(nodeDefinition.description)}`.toLowerCase().includes(search.trim().toLowerCase()));
  const [first] = found.filter(({ name }) => `${name} ${t(name)}`.toLowerCase().includes(search.trim().toLowerCase()));
  return (
    <>
      <TextInput
        size="xs"
        mb="xs"
        {...(focus ? { "data-autofocus": true } : {})}
        aria-label={t("Search node types")}
        placeholder={t("Search node types")}
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && first !== undefined && search.trim() !== "" && onPick(first)}
      />
      {CATEGORIES.map((category) => {
        const some = found.filter(({ type }) => type === category).sort((a, b) => t(a.name).localeCompare(t(b.name)));
        return some.length === 0 ? null : (
          <div key={category} data-category={category}>
            <Text size="xs" fw={600} c="var(--soft-text)" mt={6}>
              {t(NAMES[category])}
            </Text>
            {some.map((component) => (
              <UnstyledButton
                key={component.clazz}
                className={classes["item"]}
                title={t(component.configurationDescriptor.nodeDefinition.description)}
                draggable
                onDragStart={(event) => event.dataTransfer.setData(DRAGGED, component.clazz)}
                onClick={() => onPick(component)}
              >
                {t(component.name)}
              </UnstyledButton>
            ))}
          </div>
        );
      })}
    </>
  );
}
