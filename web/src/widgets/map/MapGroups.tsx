// Which groups of layers a map shows.

import { Button, Checkbox, Popover, Stack } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";

interface Props {
  groups: string[];
  hidden: ReadonlySet<string>;
  onChange: (hidden: ReadonlySet<string>) => void;
}

export default function MapGroups({ groups, hidden, onChange }: Props): ReactElement {
  return (
    <Popover position="bottom-end" trapFocus>
      <Popover.Target>
        <Button size="compact-sm" variant="default">
          {t("Groups")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t("Groups")}>
        <Stack gap="xs">
          {groups.map((group) => (
            <Checkbox
              key={group}
              label={group}
              checked={!hidden.has(group)}
              onChange={() => onChange(new Set(hidden.has(group) ? [...hidden].filter((one) => one !== group) : [...hidden, group]))}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
