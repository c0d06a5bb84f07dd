// Which of the layouts of a state is edited, and which of them there are.

import { Button, Group, Menu, SegmentedControl } from "@mantine/core";
import type { ReactElement } from "react";
import { BREAKPOINTS, type Breakpoint } from "@/dashboard/grid";
import { addBreakpoint, addRight, removeBreakpoint, removeRight } from "@/dashboard/edit/layouts";
import { t } from "@/i18n";
import type { DashboardEditor } from "./editor";

const labelOf = (id: Breakpoint): string => t(BREAKPOINTS.find((one) => one.id === id)?.label ?? id);

export function LayoutBar({ editor }: { editor: DashboardEditor }): ReactElement | null {
  const { state, at, asList, edit, showLayout } = editor;
  if (state === undefined) {
    return null;
  }
  const own = [...state.main.breakpoints.keys()];
  const shown = at.breakpoint ?? (asList ? "list" : at.layout);
  const show = (value: string): void => {
    const breakpoint = own.find((one) => one === value);
    showLayout({ layout: value === "right" || (value === "list" && at.layout === "right") ? "right" : "main", breakpoint }, value === "list");
  };
  const choices = [
    { value: "main", label: t(state.right === undefined ? "Grid" : "Left part") },
    ...(state.right === undefined ? [] : [{ value: "right", label: t("Right part") }]),
    ...own.map((id) => ({ value: id, label: labelOf(id) })),
    ...(own.includes("xs") && own.includes("sm") ? [] : [{ value: "list", label: t("List on phones") }]),
  ];
  return (
    <Group gap="xs" mb="xs">
      <SegmentedControl size="xs" aria-label={t("Layout that is edited")} value={shown} onChange={show} data={choices} />
      <Menu>
        <Menu.Target>
          <Button size="compact-sm" variant="default">
            {t("Layouts")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {state.right === undefined && (
            <>
              <Menu.Label>{t("Own layout for")}</Menu.Label>
              {BREAKPOINTS.filter(({ id }) => !own.includes(id)).map(({ id, upTo }) => (
                <Menu.Item
                  key={id}
                  onClick={() => {
                    edit((document) => addBreakpoint(document, state.id, id));
                    showLayout({ layout: "main", breakpoint: id }, false);
                  }}
                >
                  {id === "xl" ? labelOf(id) : t("{kind} up to {width} pixels", { kind: labelOf(id), width: upTo })}
                </Menu.Item>
              ))}
            </>
          )}
          {at.breakpoint !== undefined && (
            <Menu.Item
              onClick={() => {
                const { breakpoint } = at;
                showLayout({ layout: "main", breakpoint: undefined }, false);
                edit((document) => (breakpoint === undefined ? document : removeBreakpoint(document, state.id, breakpoint)));
              }}
            >
              {t("Remove this layout: {kind}", { kind: labelOf(at.breakpoint) })}
            </Menu.Item>
          )}
          <Menu.Divider />
          {state.right === undefined ? (
            <Menu.Item
              disabled={own.length > 0}
              onClick={() => {
                edit((document) => addRight(document, state.id));
                showLayout({ layout: "right", breakpoint: undefined }, false);
              }}
            >
              {own.length > 0 ? t("Two parts: not with layouts for widths") : t("Divide into two parts")}
            </Menu.Item>
          ) : (
            <Menu.Item
              onClick={() => {
                showLayout({ layout: "main", breakpoint: undefined }, false);
                edit((document) => removeRight(document, state.id));
              }}
            >
              {t("Remove the right part")}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}
