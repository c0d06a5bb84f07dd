// The states of a dashboard that is edited, and how those with two parts share the width.

import { Button, Group, NumberInput, SegmentedControl, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { addState, changeGrid, changeState, removeState } from "@/dashboard/edit/document";
import { duplicateState, setSplit } from "@/dashboard/edit/layouts";
import type { DashboardState } from "@/dashboard/grid";
import { t } from "@/i18n";
import type { DashboardEditor } from "../editor";

function SplitFields({ state, editor }: { state: DashboardState; editor: DashboardEditor }): ReactElement {
  const { split, rightFirst } = state;
  const { edit } = editor;
  const right = { state: state.id, layout: "right", breakpoint: undefined } as const;
  return (
    <Group gap="xs" align="end">
      <SegmentedControl
        size="xs"
        aria-label={t("Width of the parts")}
        value={split.kind}
        data={[{ value: "percent", label: t("Shares") }, { value: "fixed", label: t("One of fixed width") }]}
        onChange={(kind) => edit((before) => setSplit(before, state.id, kind === "fixed" ? { type: "fixed", fixedWidth: 400, fixedLayout: "right" } : { type: "percentage", leftWidthPercentage: 50 }))}
      />
      {split.kind === "percent" ? (
        <NumberInput label={t("Left part, %")} size="xs" w={120} min={10} max={90} value={split.left} onChange={(left) => edit((before) => setSplit(before, state.id, { type: "percentage", leftWidthPercentage: Number(left) || 50 }))} />
      ) : (
        <>
          <Select
            label={t("Which part")}
            size="xs"
            w={120}
            allowDeselect={false}
            data={[{ value: "main", label: t("Left part") }, { value: "right", label: t("Right part") }]}
            value={split.layout}
            onChange={(fixedLayout) => edit((before) => setSplit(before, state.id, { type: "fixed", fixedWidth: split.width, fixedLayout }))}
          />
          <NumberInput label={t("Width, pixels")} size="xs" w={120} min={150} max={4000} value={split.width} onChange={(width) => edit((before) => setSplit(before, state.id, { type: "fixed", fixedWidth: Number(width) || 400, fixedLayout: split.layout }))} />
        </>
      )}
      <SegmentedControl
        size="xs"
        aria-label={t("Shown first on phones")}
        value={rightFirst ? "right" : "main"}
        data={[{ value: "main", label: t("Phones: left first") }, { value: "right", label: t("Phones: right first") }]}
        onChange={(first) => edit((before) => changeGrid(before, right, { mobileDisplayLayoutFirst: first === "right" }))}
      />
    </Group>
  );
}

export function States({ editor }: { editor: DashboardEditor }): ReactElement {
  const { model, edit, document, showState } = editor;
  const [name, setName] = useState("");
  return (
    <Stack>
      <Table aria-label={t("States")}>
        <Table.Tbody>
          {model.states.map((state) => (
            <Table.Tr key={state.id}>
              <Table.Td>
                <TextInput
                  aria-label={t("Name of the state {id}", { id: state.id })}
                  description={state.id}
                  value={state.name}
                  onChange={(event) => {
                    const next = event.currentTarget.value;
                    edit((before) => changeState(before, state.id, { name: next }));
                  }}
                />
                {state.right !== undefined && <SplitFields state={state} editor={editor} />}
              </Table.Td>
              <Table.Td>
                <Group gap={6}>
                  {state.root ? (
                    <Text size="sm">{t("shown first")}</Text>
                  ) : (
                    <Button size="compact-sm" variant="default" onClick={() => edit((before) => changeState(before, state.id, { root: true }))}>
                      {t("Show first")}
                    </Button>
                  )}
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={t("Duplicate the state {name}", { name: state.name })}
                    onClick={() => {
                      const made = duplicateState(document, state.id);
                      edit(() => made.document);
                      showState(made.state);
                    }}
                  >
                    {t("Duplicate")}
                  </Button>
                  {!state.root && (
                    <Button size="compact-sm" variant="default" color="red" onClick={() => edit((before) => removeState(before, state.id))}>
                      {t("Remove")}
                    </Button>
                  )}
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Group align="end">
        <TextInput label={t("New state")} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Button
          disabled={name.trim() === ""}
          onClick={() => {
            const { document: next, state } = addState(document, name.trim());
            edit(() => next);
            showState(state);
            setName("");
          }}
        >
          {t("Add")}
        </Button>
      </Group>
    </Stack>
  );
}
