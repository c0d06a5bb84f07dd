// The buttons in the rows of a table, with those that a function of the dashboard hides.

import { ActionIcon, Button, Menu } from "@mantine/core";
import type { ReactElement } from "react";
import type { Action } from "@/dashboard/actions";
import { t } from "@/i18n";
import type { Ask } from "@/sandbox/functions";
import { Icon } from "@/icons/Icon";
import { useDrawings } from "@/icons/drawings";

/** Returns the width that the buttons of a row need, pixels: an icon that can be drawn needs less than a name. */
export function useActionsWidth(actions: readonly Action[]): number {
  const drawingOf = useDrawings();
  return actions.reduce((width, { icon, name }) => width + (drawingOf(icon ?? "") === undefined ? Math.min(200, 20 + 7 * name.length) : 26), 0);
}

interface RowActionsProps {
  actions: readonly Action[];
  ask: Ask;
  /** The row as functions see it. */
  row: unknown;
  inMenu: boolean;
  run: (action: Action) => void;
}

export function RowActions({ actions, ask, row, inMenu, run }: RowActionsProps): ReactElement | null {
  const drawingOf = useDrawings();
  // One that is not known yet to be shown is not shown.
  const shown = actions.filter((action) => action.showBody === undefined || ask(action.showBody, ["data"], [row])?.value === true);
  if (shown.length === 0) {
    return null;
  }
  if (inMenu && shown.length > 1) {
    return (
      <Menu withinPortal position="bottom-end">
        <Menu.Target>
          <ActionIcon size="sm" variant="subtle" aria-label={t("Actions")}>
            ⋮
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {shown.map((action) => (
            <Menu.Item key={action.name} onClick={() => run(action)}>
              {action.name}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
    );
  }
  return (
    <>
      {shown.map((action) =>
        drawingOf(action.icon ?? "") === undefined ? (
          <Button key={action.name} size="compact-xs" variant="subtle" maw={200} title={action.name} onClick={() => run(action)}>
            {action.name}
          </Button>
        ) : (
          <ActionIcon key={action.name} size="sm" variant="subtle" aria-label={action.name} title={action.name} onClick={() => run(action)}>
            <Icon name={action.icon ?? ""} />
          </ActionIcon>
        ),
      )}
    </>
  );
}
