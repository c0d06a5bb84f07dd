// Short messages of what was done or failed, and small things that screens share.

import { Alert, Anchor, Button, Center, Loader, Portal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import type { ReactElement, ReactNode } from "react";
import { useSyncExternalStore } from "react";
import { Link } from "wouter";
import { create } from "zustand";
import { formatTime, t } from "@/i18n";
import { adviceOn, mayPass, messageOf } from "./errors";

export { messageOf } from "./errors";

interface Notice {
  id: number;
  kind: "ok" | "error";
  text: string;
  /** What to do about it. */
  advice: string | undefined;
}

const SHOWN_MS = { ok: 4_000, error: 12_000 };
/** More notices than these would hide the page; the oldest go. */
const MOST = 3;

let nextId = 1;
const useNotices = create<{ notices: Notice[] }>(() => ({ notices: [] }));

function add(kind: Notice["kind"], text: string, advice?: string): void {
  const id = nextId++;
  useNotices.setState(({ notices }) => ({
    notices: [...notices.filter((notice) => notice.text !== text), { id, kind, text, advice }].slice(-MOST),
  }));
  setTimeout(() => close(id), SHOWN_MS[kind]);
}

function close(id: number): void {
  useNotices.setState(({ notices }) => ({ notices: notices.filter((notice) => notice.id !== id) }));
}

export const notify = {
  ok: (text: string): void => add("ok", text),
  error: (error: unknown): void => add("error", messageOf(error), adviceOn(error)),
};

export function Notices(): ReactElement {
  const notices = useNotices((state) => state.notices);
  return (
    <Portal>
      <Stack gap="xs" pos="fixed" bottom={16} w="min(26rem, calc(100vw - 32px))" style={{ zIndex: 1000, insetInlineEnd: 16 }} aria-live="polite">
        {notices.map((notice) => (
          <Alert
            key={notice.id}
            color={notice.kind === "ok" ? "teal" : "red"}
            withCloseButton
            closeButtonLabel={t("Close")}
            onClose={() => close(notice.id)}
            bg="var(--mantine-color-body)"
          >
            <div style={{ whiteSpace: "pre-line", overflowWrap: "anywhere" }}>{notice.text}</div>
            {notice.advice !== undefined && <Text size="sm">{notice.advice}</Text>}
          </Alert>
        ))}
      </Stack>
    </Portal>
  );
}

export function Waiting(): ReactElement {
  return (
    <Center p="xl" role="status" aria-label={t("Loading")}>
      <Loader />
    </Center>
  );
}

/** What could not be loaded: why, what to do, and where it may help a way to try again. */
export function Problem({ error }: { error: unknown }): ReactElement {
  const cache = useQueryClient();
  const advice = adviceOn(error);
  return (
    <Alert color="red" title={t("This could not be loaded")} role="alert">
      <Stack gap="xs" align="start">
        <span style={{ whiteSpace: "pre-line", overflowWrap: "anywhere" }}>{messageOf(error)}</span>
        {advice !== undefined && <span>{advice}</span>}
        {mayPass(error) && (
          <Button size="compact-sm" variant="default" onClick={() => void cache.refetchQueries({ type: "active", predicate: ({ state }) => state.status === "error" })}>
            {t("Try again")}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

export function EmptyState({ children }: { children: ReactNode }): ReactElement {
  return (
    <Text c="var(--soft-text)" p="md">
      {children}
    </Text>
  );
}

/** Returns how long ago a time was, in the largest unit that fits. */
export function agoText(ts: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - ts) / 1000));
  const [limit, unit] = ([[60, "s"], [3_600, "min"], [86_400, "h"]] as const).find(([most]) => seconds < most) ?? [0, "d"];
  const divisor = { s: 1, min: 60, h: 3_600, d: 86_400 }[unit];
  return limit === 60 && seconds < 2 ? t("now") : t(`{n} ${unit} ago`, { n: Math.floor(seconds / divisor) });
}

/** The one clock of all ages that are shown, which stands while none is. */
const clock = { now: Date.now(), timer: undefined as ReturnType<typeof setInterval> | undefined, listeners: new Set<() => void>() };

function watchClock(listener: () => void): () => void {
  clock.listeners.add(listener);
  if (clock.timer === undefined) {
    // It has stood since the last age was shown.
    clock.now = Date.now();
    clock.timer = setInterval(() => {
      clock.now = Date.now();
      clock.listeners.forEach((one) => one());
    }, 1_000);
  }
  return () => {
    clock.listeners.delete(listener);
    if (clock.listeners.size === 0) {
      clearInterval(clock.timer);
      clock.timer = undefined;
    }
  };
}

/** A moment as its distance from now, with the exact time on demand. It is drawn anew only when its words are others. */
export function Ago({ ts }: { ts: number }): ReactElement {
  const text = useSyncExternalStore(watchClock, () => agoText(ts, clock.timer === undefined ? Date.now() : clock.now));
  return (
    <time dateTime={new Date(ts).toISOString()} title={formatTime(ts)}>
      {text}
    </time>
  );
}

export function TextLink({ to, children }: { to: string; children: ReactNode }): ReactElement {
  return (
    <Anchor component={Link} href={to}>
      {children}
    </Anchor>
  );
}
