// A widget type as it would look, with invented values: its code runs in the sandbox, as on a dashboard.

import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useMemo, useState, type ReactElement } from "react";
import { readDashboard, type Json } from "@/dashboard/model";
import type { EntityValues, SourceValues } from "@/dashboard/source";
import { Waiting } from "@/ui/feedback";

const CustomWidget = lazy(() => import("@/widgets/CustomWidget"));

const KEYS = ["temperature", "humidity"];
const COLORS = ["#2196f3", "#f44336"];
/** How often a new value comes, milliseconds. */
const EVERY_MS = 2_000;
const POINTS = 30;

/** Invents a course of values that looks alive. */
export function invented(now: number, key: number): { ts: number; value: string }[] {
  return Array.from({ length: POINTS }, (_, n) => {
    const ts = now - (POINTS - 1 - n) * EVERY_MS;
    return { ts, value: (20 + 10 * key + 5 * Math.sin(ts / 9_000 + key)).toFixed(1) };
  });
}

function entityAt(now: number): EntityValues {
  const points = new Map(KEYS.map((key, n) => [key, invented(now, n)]));
  const latest = new Map([...points].flatMap(([key, course]) => course.slice(-1).map((point): [string, (typeof course)[number]] => [`TIME_SERIES/${key}`, point])));
  return { id: { entityType: "DEVICE", id: "00000000-0000-0000-0000-000000000001" }, name: "Device", latest, points };
}

function defaultsOf(descriptor: Json): Json {
  try {
    const read: unknown = JSON.parse(String(descriptor["defaultConfig"] ?? "{}"));
    return typeof read === "object" && read !== null ? (read as Json) : {};
  } catch {
    return {};
  }
}

export function Preview({ descriptor, round }: { descriptor: Json; round: number }): ReactElement {
  const cache = useQueryClient();
  const fqn = `tenant.preview_${round}`;
  const [now, setNow] = useState(Date.now);
  const [ready, setReady] = useState(0);
  // The renderer asks for the type by its name; this one is told before it asks.
  useEffect(() => {
    cache.setQueryDefaults(["widget type", fqn], { staleTime: Infinity });
    cache.setQueryData(["widget type", fqn], { descriptor });
    setReady(round);
  }, [cache, fqn, descriptor, round]);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const widget = useMemo(() => {
    const dataKeys = KEYS.map((name, n) => ({ name, label: name, type: "timeseries", color: COLORS[n], settings: {} }));
    const config = { title: "Preview", ...defaultsOf(descriptor), datasources: [{ type: "entity", dataKeys }] };
    return [...readDashboard({ widgets: { preview: { typeFullFqn: fqn, type: descriptor["type"], sizeX: 8, sizeY: 6, config } } }).widgets.values()][0];
  }, [descriptor, fqn]);
  if (widget === undefined || ready !== round) {
    return <Waiting />;
  }
  const entities = [entityAt(now)];
  const sources = widget.datasources.map((source): SourceValues => ({ source, entities, problem: undefined, total: 1 }));
  return (
    <Suspense fallback={<Waiting />}>
      <CustomWidget key={fqn} widget={widget} entities={entities} sources={sources} bounds={[now - POINTS * EVERY_MS, now]} requests={[]} act={() => undefined} />
    </Suspense>
  );
}
