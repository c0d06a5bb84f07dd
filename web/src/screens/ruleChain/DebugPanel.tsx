// Messages and errors of the nodes that keep them, live; one message can be followed on its way.

import { Button, Group, Select, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { useSession } from "@/app/session";
import { eventFilter, NODE_FILTERS } from "@/entities/eventFilters";
import { t } from "@/i18n";
import { EmptyState, messageOf, notify } from "@/ui/feedback";
import type { GridSort } from "@/ui/grid/sorting";
import { FilterForm } from "@/ui/list/FilterForm";
import { useListState } from "@/ui/list/state";
import { DebugEvents } from "./DebugEvents";
import { NO_MARKS, useEditor } from "./editor";
import { follow, lookAgain, newWatch, type DebugEvent } from "./events";

const EVERY_MS = 2_000;
const NEWEST: GridSort = { key: "createdTime", order: "DESC" };
const FILTERS: readonly string[] = ["only", ...NODE_FILTERS.map(({ name }) => name)];

/** The filters, which the address keeps. */
function useDebugFilters(): { filters: Readonly<Record<string, string>>; change: (texts: Record<string, string>) => void } {
  const control = useListState(NEWEST, FILTERS, true);
  const { filters } = control.state;
  return { filters, change: (texts) => control.change({ filters: { ...filters, ...texts } }) };
}

export default function DebugPanel(): ReactElement {
  const { chain, selected, select, setMarks } = useEditor();
  const { user } = useSession();
  const tenant = String((user as unknown as { tenantId?: { id?: string } }).tenantId?.id ?? "");
  const [opened] = useState(Date.now);
  const [watch, setWatch] = useState(newWatch);
  const [problem, setProblem] = useState("");
  const { filters, change } = useDebugFilters();
  const only = filters["only"] || "all";
  const filter = eventFilter("DEBUG_RULE_NODE", NODE_FILTERS, filters);
  const narrowing = JSON.stringify(filter);
  const [way, setWay] = useState<DebugEvent[]>();
  const [step, setStep] = useState(0);
  const current = useRef({ chain, watch, filter });
  current.current = { chain, watch, filter };
  // What is counted is what matches the filter, from when this was opened.
  const counted = useRef(narrowing);
  useEffect(() => {
    let ended = false;
    if (counted.current !== narrowing) {
      counted.current = narrowing;
      current.current.watch = newWatch();
      setWatch(current.current.watch);
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      try {
        const next = await lookAgain(current.current.watch, current.current.chain, tenant, opened, current.current.filter);
        if (!ended) {
          setWatch(next);
          setProblem("");
        }
      } catch (error) {
        setProblem(messageOf(error));
      }
      if (!ended) {
        timer = setTimeout(() => void look(), EVERY_MS);
      }
    };
    void look();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [tenant, opened, narrowing]);
  useEffect(() => {
    const lit = way === undefined ? undefined : new Set(way.slice(0, step + 1).map(({ node }) => node));
    setMarks({ ...watch.marks, lit });
    return () => setMarks(NO_MARKS);
  }, [watch, way, step, setMarks]);

  const name = (key: string): string => chain.nodes.find((node) => node.key === key)?.stored.name ?? "";
  const start = (msgId: string): void =>
    void follow(chain, tenant, msgId)
      .then((found) => {
        setWay(found);
        setStep(0);
      })
      .catch(notify.error);
  const go = (to: number): void => {
    setStep(to);
    const key = way?.[to]?.node;
    if (key !== undefined) {
      select(new Set([key]));
    }
  };
  const shown = watch.events.filter(({ node, body }) => (selected.size === 0 || selected.has(node) || way !== undefined) && (only === "all" || (only === "errors" ? Boolean(body.error) : body.type === only)));
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Select size="xs" w={130} aria-label={t("Which events")} allowDeselect={false} value={only} onChange={(next) => change({ only: next === "all" ? "" : (next ?? "") })} data={[{ value: "all", label: t("all") }, { value: "IN", label: t("in") }, { value: "OUT", label: t("out") }, { value: "errors", label: t("errors") }]} />
        <Text size="xs" c="var(--soft-text)">
          {selected.size === 0 ? t("of all nodes with debug") : t("of the selected nodes")}
        </Text>
        <FilterForm fields={NODE_FILTERS} texts={filters} change={change} />
      </Group>
      {problem !== "" && <Text size="xs" c="var(--mantine-color-error)" role="alert">{problem}</Text>}
      {way !== undefined && (
        <Group gap={4} role="group" aria-label={t("The way of the message")}>
          <Button size="compact-xs" variant="default" disabled={step === 0} onClick={() => go(step - 1)}>
            {t("Back")}
          </Button>
          <Button size="compact-xs" variant="default" disabled={step >= way.length - 1} onClick={() => go(step + 1)}>
            {t("Next")}
          </Button>
          <Text size="xs" role="status">
            {t("{n} of {all}", { n: Math.min(step + 1, way.length), all: way.length })} {name(way[step]?.node ?? "")} {way[step]?.body.type} {way[step]?.body.relationType}
          </Text>
          <Button size="compact-xs" variant="subtle" onClick={() => setWay(undefined)}>
            {t("Stop following")}
          </Button>
        </Group>
      )}
      {shown.length === 0 && <EmptyState>{Object.keys(filter).length > 1 ? t("Nothing that matches the filter has come since this view was opened.") : t("Nothing has come since this view was opened. Switch debug on at a node, and save.")}</EmptyState>}
      <DebugEvents events={way ?? shown} {...(way === undefined ? { onFollow: start } : {})} />
    </Stack>
  );
}
