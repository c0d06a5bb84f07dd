// The window of time that is shown, as a button that opens its fields.

import { Button, FocusTrap, Group, Popover } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement } from "react";
import type { TimeControl } from "@/dashboard/time/control";
import { mayChoose, type WindowRules } from "@/dashboard/time/rules";
import { windowText } from "@/dashboard/time/words";
import type { TimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { Waiting } from "@/ui/feedback";

const WindowForm = lazy(() => import("./WindowForm").then((part) => ({ default: part.WindowForm })));

interface PickerProps {
  control: TimeControl;
  rules: WindowRules;
  /** The smaller one of a widget. */
  small?: boolean;
  /** Whose window it is, where it isn't that of the whole dashboard. */
  name?: string;
}

export function WindowPicker({ control, rules, small = false, name }: PickerProps): ReactElement {
  const { window, choose, reset } = control;
  const [draft, setDraft] = useState<TimeWindow>();
  const shown = windowText(window);
  const label = name === undefined ? t("Time: {window}", { window: shown }) : t("Time of {name}: {window}", { name, window: shown });
  const size = small ? "compact-xs" : "sm";
  return (
    <Group gap={6} wrap="nowrap">
      {reset !== undefined && (
        <Button size={size} variant="light" onClick={reset}>
          {t("Reset zoom")}
        </Button>
      )}
      <Popover opened={draft !== undefined} onChange={(opened) => !opened && setDraft(undefined)} width={340} position="bottom-end" shadow="md" withinPortal>
        <Popover.Target>
          <Button size={size} variant={small ? "subtle" : "default"} aria-label={label} disabled={!mayChoose(rules)} onClick={() => setDraft(draft === undefined ? window : undefined)}>
            {shown}
          </Button>
        </Popover.Target>
        <Popover.Dropdown role="dialog" aria-label={label}>
          {draft !== undefined && (
            <FocusTrap>
              <Suspense fallback={<Waiting />}>
                <WindowForm window={draft} rules={rules} onChange={setDraft} />
                <Group mt="sm" justify="flex-end" gap="xs">
                  <Button size="xs" variant="default" onClick={() => setDraft(undefined)}>
                    {t("Cancel")}
                  </Button>
                  <Button
                    size="xs"
                    onClick={() => {
                      choose(draft);
                      setDraft(undefined);
                    }}
                  >
                    {t("Show")}
                  </Button>
                </Group>
              </Suspense>
            </FocusTrap>
          )}
        </Popover.Dropdown>
      </Popover>
    </Group>
  );
}
