// The time that a dashboard shows first, and what its readers may choose of it.

import { Fieldset, Stack, Switch } from "@mantine/core";
import type { ReactElement } from "react";
import { setTimeWindow } from "@/dashboard/edit/document";
import { object, type Json } from "@/dashboard/json";
import { EVERYTHING } from "@/dashboard/time/rules";
import { readTimeWindow, writeTimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { WindowForm } from "../time/WindowForm";
import type { DashboardEditor } from "./editor";

/** Flags of a stored window that hide something from readers, with where they stand. */
const HIDDEN: readonly [string | undefined, string, string][] = [
  ["realtime", "hideInterval", "live windows"],
  ["history", "hideInterval", "windows of the past"],
  [undefined, "hideAggregation", "the aggregation"],
  [undefined, "hideAggInterval", "what values are grouped by"],
  [undefined, "hideTimezone", "the time zone"],
];

export function TimeTab({ editor }: { editor: DashboardEditor }): ReactElement {
  const { model, edit } = editor;
  const stored = object(model.timeWindow);
  const put = (next: Json): void => edit((before) => setTimeWindow(before, next));
  return (
    <Stack maw={420}>
      <Fieldset legend={t("Time that is shown first")}>
        <WindowForm window={readTimeWindow(stored)} rules={EVERYTHING} onChange={(window) => put(writeTimeWindow(window, stored))} />
      </Fieldset>
      <Fieldset legend={t("Readers may choose")}>
        <Stack gap={6}>
          {HIDDEN.map(([part, name, label]) => {
            const holder = part === undefined ? stored : object(stored[part]);
            return (
              <Switch
                key={`${part ?? ""} ${name}`}
                label={t(label)}
                checked={holder[name] !== true}
                onChange={(event) => {
                  const flag = { [name]: !event.currentTarget.checked };
                  put(part === undefined ? { ...stored, ...flag } : { ...stored, [part]: { ...holder, ...flag } });
                }}
              />
            );
          })}
        </Stack>
      </Fieldset>
    </Stack>
  );
}
