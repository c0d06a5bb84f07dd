// Walks the time window of the dashboard day by day, or by other steps.

import { Button, Group, Select, TextInput } from "@mantine/core";
import { useContext, type ReactElement } from "react";
import { text } from "@/dashboard/model";
import { TimeContext } from "@/dashboard/time/control";
import { moved, startOf } from "@/dashboard/time/calendar";
import { fieldMoment, fieldText } from "@/dashboard/time/zone";
import { boundsOf, fixedWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "../registry";

const HOUR = 3_600_000;
const LENGTHS: readonly { value: string; label: string; days: number }[] = [
  { value: "hour", label: "hour", days: 0 },
  { value: "day", label: "day", days: 1 },
  { value: "week", label: "week", days: 7 },
  { value: "twoWeeks", label: "two weeks", days: 14 },
  { value: "month", label: "30 days", days: 30 },
  { value: "threeMonths", label: "90 days", days: 90 },
  { value: "sixMonths", label: "180 days", days: 180 },
];

export default function DateNavigator({ widget, bounds }: WidgetProps): ReactElement {
  const time = useContext(TimeContext);
  if (time === undefined) {
    return <EmptyState>{t("It walks the time of the dashboard once this is saved.")}</EmptyState>;
  }
  const { settings } = widget;
  const [from, to] = boundsOf(time.window, bounds[1]);
  const { zone } = time.window;
  const dayOf = (ts: number): string => fieldText(ts, zone).slice(0, 10);
  // Days are those of the calendar: some have 23 or 25 hours.
  const shifted = (ts: number, days: number, sign: number): number => (days === 0 ? ts + sign * HOUR : moved(ts, zone, 0, sign * days));
  const step = LENGTHS.find(({ value }) => value === text(settings["stepSize"]))?.days ?? 1;
  const length = LENGTHS.find((one) => Math.abs(shifted(to, one.days, -1) - from) < 1_000);
  const show = (start: number, end: number): void => time.choose(fixedWindow(time.window, start, end));
  return (
    <Group gap="xs" align="end" style={{ maxHeight: "100%", overflow: "auto" }}>
      <Button variant="default" aria-label={t("Earlier")} onClick={() => show(shifted(from, step, -1), shifted(to, step, -1))}>
        ‹
      </Button>
      {settings["hidePicker"] !== true && (
        <>
          <TextInput type="date" label={t("From")} value={dayOf(from)} max={dayOf(to)} onChange={(event) => {
            const start = fieldMoment(`${event.currentTarget.value}T00:00`, zone);
            if (start !== undefined && start < to) {
              show(start, to);
            }
          }} />
          <TextInput type="date" label={t("To")} value={dayOf(to - 1)} min={dayOf(from)} onChange={(event) => {
            const day = fieldMoment(`${event.currentTarget.value}T00:00`, zone);
            const end = day === undefined ? from : startOf("DAY", day, zone, 1);
            if (end > from) {
              show(from, end);
            }
          }} />
        </>
      )}
      {settings["hideInterval"] !== true && (
        <Select
          label={t("Length")}
          w={130}
          allowDeselect={false}
          placeholder={t("another")}
          data={LENGTHS.map(({ value, label }) => ({ value, label: t(label) }))}
          value={length?.value ?? null}
          onChange={(value) => {
            const chosen = LENGTHS.find((one) => one.value === value);
            if (chosen !== undefined) {
              show(shifted(to, chosen.days, -1), to);
            }
          }}
        />
      )}
      <Button variant="default" aria-label={t("Later")} onClick={() => show(shifted(from, step, 1), shifted(to, step, 1))}>
        ›
      </Button>
    </Group>
  );
}
