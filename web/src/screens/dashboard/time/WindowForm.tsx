// Fields for a window of time: live or past, which stretch, how values are grouped, and whose clocks count.

import { Group, NumberInput, SegmentedControl, Select, Stack, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { serverNow } from "@/dashboard/time/clock";
import { groupingBounds, intervalFor, type Grouping } from "@/dashboard/time/grouping";
import type { ModeRules, WindowRules } from "@/dashboard/time/rules";
import { groupingText, lengthText } from "@/dashboard/time/words";
import { fieldMoment, fieldText } from "@/dashboard/time/zone";
import { aggregationOf, boundsOf, MOST_POINTS, type TimeWindow } from "@/dashboard/timeWindow";
import { t } from "@/i18n";

type Kind = "last" | "fixed" | "quick" | "all";

interface PartProps {
  window: TimeWindow;
  onChange: (window: TimeWindow) => void;
}

const kindOf = (window: TimeWindow): Kind => (window.all ? "all" : window.quick !== undefined ? "quick" : window.end !== undefined ? "fixed" : "last");

const UNITS: readonly [number, string][] = [
  [86_400_000, "Days"],
  [3_600_000, "Hours"],
  [60_000, "Minutes"],
  [1_000, "Seconds"],
];

/** A length of time in days, hours, minutes and seconds. */
function LengthFields({ value, onChange }: { value: number; onChange: (length: number) => void }): ReactElement {
  let rest = value;
  return (
    <Group gap={6} grow wrap="nowrap">
      {UNITS.map(([unit, name]) => {
        const n = Math.floor(rest / unit);
        rest -= n * unit;
        return <NumberInput key={name} label={t(name)} size="xs" min={0} max={99_999} hideControls value={n} onChange={(next) => onChange(Math.max(1_000, value + ((Number(next) || 0) - n) * unit))} />;
      })}
    </Group>
  );
}

function withLength(window: TimeWindow, length: number): TimeWindow {
  return { ...window, end: undefined, quick: undefined, all: false, length, interval: intervalFor(length) };
}

function Stretch({ window, rules, onChange }: PartProps & { rules: ModeRules }): ReactElement {
  const kind = kindOf(window);
  const now = serverNow();
  const [from, to] = boundsOf(window, now);
  const change = (next: Kind): void => {
    const [quick] = rules.quickIntervals.find(([name]) => name === "CURRENT_DAY") ?? rules.quickIntervals[0] ?? ["CURRENT_DAY"];
    const length = window.all ? 3_600_000 : Math.max(1_000, Math.round(to - from));
    onChange(
      next === "quick"
        ? { ...withLength(window, 86_400_000), quick }
        : next === "all"
          ? { ...withLength(window, length), all: true }
          : next === "fixed"
            ? { ...withLength(window, length), end: window.all ? now : to }
            : withLength(window, length),
    );
  };
  const offered: [Kind, string, boolean][] = [
    ["last", t("Last"), rules.last],
    ["fixed", t("From … to"), !window.realtime && rules.fixed],
    ["quick", t("Calendar"), rules.quick],
    ["all", t("For all time"), !window.realtime && rules.fixed],
  ];
  const chosen = rules.lengths.some(([length]) => length === window.length);
  return (
    <>
      <SegmentedControl size="xs" aria-label={t("Which stretch")} value={kind} onChange={(value) => change(offered.find(([name]) => name === value)?.[0] ?? "last")} data={offered.filter(([name, , may]) => may || name === kind).map(([value, label]) => ({ value, label }))} />
      {kind === "last" && (
        <>
          <Select
            label={t("Time")}
            allowDeselect={false}
            data={[...rules.lengths.map(([length, label]) => ({ value: String(length), label: t(label) })), ...(chosen ? [] : [{ value: String(window.length), label: t("last {length}", { length: lengthText(window.length) }) }])]}
            value={String(window.length)}
            onChange={(value) => onChange(withLength(window, Number(value)))}
            comboboxProps={{ withinPortal: false }}
          />
          {rules.customLength && <LengthFields value={window.length} onChange={(length) => onChange(withLength(window, length))} />}
        </>
      )}
      {kind === "quick" && (
        <Select
          label={t("Time")}
          searchable
          allowDeselect={false}
          data={rules.quickIntervals.map(([value, label]) => ({ value, label: t(label) }))}
          value={window.quick ?? null}
          onChange={(value) => {
            const [start, end] = boundsOf({ ...window, quick: value ?? window.quick }, now);
            onChange({ ...window, quick: value ?? window.quick, length: end - start, interval: intervalFor(end - start) });
          }}
          comboboxProps={{ withinPortal: false }}
        />
      )}
      {kind === "fixed" && (
        <Group grow wrap="nowrap">
          {[t("From"), t("To")].map((label, n) => (
            <TextInput
              key={label}
              label={label}
              type="datetime-local"
              step={1}
              value={fieldText(n === 0 ? from : to, window.zone)}
              onChange={(event) => {
                const moment = fieldMoment(event.currentTarget.value, window.zone);
                const [start, end] = n === 0 ? [moment ?? from, to] : [from, moment ?? to];
                // A window always has its ends in order: the other end moves along.
                const length = end > start ? end - start : window.length;
                onChange({ ...window, end: n === 0 ? start + length : end, length, interval: intervalFor(length) });
              }}
            />
          ))}
        </Group>
      )}
    </>
  );
}

/** The value of the entry that lets people type a length. */
const OWN = "own";

function GroupingFields({ window, rules, onChange }: PartProps & { rules: ModeRules }): ReactElement {
  const [least, most] = groupingBounds(window.length);
  const possible = rules.groupings(window);
  const known = possible.some((one) => one === window.interval);
  const all: Grouping[] = known ? possible : [window.interval, ...possible];
  return (
    <Group align="end" grow wrap="nowrap">
      <Select
        label={t("Grouped by")}
        allowDeselect={false}
        data={[...all.map((one) => ({ value: String(one), label: groupingText(one) })), ...(rules.customGrouping ? [{ value: OWN, label: t("Own length") }] : [])]}
        value={String(window.interval)}
        onChange={(value) => {
          const found = all.find((one) => String(one) === value);
          onChange({ ...window, interval: found ?? Math.round((typeof window.interval === "number" ? window.interval : least) / 1_000) * 1_000 + 1_000 });
        }}
        comboboxProps={{ withinPortal: false }}
      />
      {rules.customGrouping && !known && typeof window.interval === "number" && (
        <NumberInput label={t("Seconds")} min={least / 1_000} max={most / 1_000} value={window.interval / 1_000} onChange={(value) => onChange({ ...window, interval: Math.max(1, Number(value) || 1) * 1_000 })} />
      )}
    </Group>
  );
}

const NAMES: Record<string, string> = { NONE: "None: each value", AVG: "Average", MIN: "Least", MAX: "Greatest", SUM: "Sum", COUNT: "Count" };

function zones(): string[] {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return [...new Set([own, "UTC", ...Intl.supportedValuesOf("timeZone")])];
}

/** The fields of a window; those that its rules hide are not there. */
export function WindowForm({ window, rules, onChange }: PartProps & { rules: WindowRules }): ReactElement {
  const mode = window.realtime ? rules.realtime : rules.history;
  return (
    <Stack gap="xs">
      {rules.realtime.offered && rules.history.offered && (
        <SegmentedControl
          aria-label={t("Live or past")}
          value={window.realtime ? "live" : "past"}
          data={[
            { value: "live", label: t("Live") },
            { value: "past", label: t("Past") },
          ]}
          onChange={(value) => {
            const live = value === "live";
            const plain = withLength(window, window.all ? 3_600_000 : window.length);
            onChange({ ...(live || window.quick === undefined ? plain : window), realtime: live });
          }}
        />
      )}
      {mode.offered && <Stretch window={window} rules={mode} onChange={onChange} />}
      {rules.aggregation && !window.all && (
        <Select
          label={t("Aggregation")}
          allowDeselect={false}
          data={rules.aggregations.map((value) => ({ value, label: t(NAMES[value] ?? value) }))}
          value={window.aggregation}
          onChange={(value) => onChange({ ...window, aggregation: aggregationOf(value) ?? window.aggregation })}
          comboboxProps={{ withinPortal: false }}
        />
      )}
      {rules.grouping && !window.all && window.aggregation !== "NONE" && <GroupingFields window={window} rules={mode} onChange={onChange} />}
      {rules.aggregation && window.aggregation === "NONE" && !window.all && (
        <NumberInput label={t("At most so many values")} min={1} max={MOST_POINTS} value={window.limit} onChange={(value) => onChange({ ...window, limit: Math.min(MOST_POINTS, Math.max(1, Number(value) || 1)) })} />
      )}
      {rules.zone && (
        <Select label={t("Time zone")} searchable clearable placeholder={t("That of the browser")} limit={50} data={zones()} value={window.zone ?? null} onChange={(zone) => onChange({ ...window, zone: zone ?? undefined })} comboboxProps={{ withinPortal: false }} />
      )}
    </Stack>
  );
}
