// Parts that the screens of the broker share: questions before something is done, and facts as a list.

import { Box, Button, Group, Modal, Text, type ButtonProps } from "@mantine/core";
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useState, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { BulkProgress, isWhole, useBulkRun } from "@/ui/list/BulkProgress";
import { BROKER_DATA } from "./model";

/** Has what is shown of the broker asked for anew. */
export async function changed(cache: QueryClient): Promise<void> {
  await Promise.all(["list", BROKER_DATA].map((key) => cache.invalidateQueries({ queryKey: [key] })));
}

interface Question {
  /** What the button says, in the language of the person as all texts here. */
  text: string;
  heading: string;
  note: string;
}

interface AskFirstProps extends Question, ButtonProps {
  run: () => Promise<unknown>;
  /** What is said once it is done. */
  told: string;
  onDone?: () => void;
}

/** Does something after a question. */
export function AskFirst({ text, heading, note, run, told, onDone, ...look }: AskFirstProps): ReactElement {
  const cache = useQueryClient();
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const go = async (): Promise<void> => {
    setBusy(true);
    try {
      await run();
      notify.ok(told);
      setAsked(false);
      onDone?.();
    } catch (error) {
      notify.error(error);
    } finally {
      setBusy(false);
      await changed(cache);
    }
  };
  return (
    <>
      <Button size="xs" color="red" variant="light" {...look} onClick={() => setAsked(true)}>
        {text}
      </Button>
      <Modal opened={asked} onClose={() => setAsked(false)} title={heading} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{note}</Text>
        <Group>
          <Button color="red" loading={busy} onClick={() => void go()}>
            {text}
          </Button>
          <Button variant="default" disabled={busy} onClick={() => setAsked(false)}>
            {t("Cancel")}
          </Button>
        </Group>
      </Modal>
    </>
  );
}

interface ManyProps<T> extends Question {
  rows: readonly T[];
  nameOf: (row: T) => string;
  act: (row: T) => Promise<unknown>;
  told: string;
  done: () => void;
}

/** Does the same with each selected row of a list, after a question. */
export function AskForMany<T>({ text, heading, note, rows, nameOf, act, told, done }: ManyProps<T>): ReactElement | null {
  const cache = useQueryClient();
  const [asked, setAsked] = useState(false);
  const bulk = useBulkRun(nameOf);
  const busy = bulk.progress !== undefined;
  const leave = (): void => {
    if (!busy) {
      setAsked(false);
      if (bulk.outcome !== undefined) {
        done();
      }
    }
  };
  const go = async (): Promise<void> => {
    const outcome = await bulk.run(rows, act);
    await changed(cache);
    if (isWhole(outcome)) {
      setAsked(false);
      done();
      notify.ok(told);
    }
  };
  return rows.length === 0 ? null : (
    <>
      <Button size="xs" color="red" onClick={() => setAsked(true)}>
        {text}
      </Button>
      <Modal opened={asked} onClose={leave} title={heading} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md" style={{ overflowWrap: "anywhere" }}>
          {rows.slice(0, 5).map(nameOf).join(", ") + (rows.length > 5 ? " …" : "")}
        </Text>
        {bulk.outcome === undefined && (
          <>
            <Text mb="md">{note}</Text>
            <Group>
              <Button color="red" loading={busy} onClick={() => void go()}>
                {text}
              </Button>
              <Button variant="default" disabled={busy} onClick={leave}>
                {t("Cancel")}
              </Button>
            </Group>
          </>
        )}
        <BulkProgress {...bulk} />
      </Modal>
    </>
  );
}

/** What is known of one thing, by names. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }): ReactElement {
  return (
    <Box component="dl" m={0} style={{ display: "grid", gridTemplateColumns: "repeat(auto-fill, minmax(min(100%, 220px), 1fr))", gap: "var(--mantine-spacing-sm)" }}>
      {facts.map(([name, value], n) => (
        <div key={n}>
          <Text component="dt" size="sm" c="var(--soft-text)">
            {name}
          </Text>
          <dd style={{ margin: 0, overflowWrap: "anywhere" }}>{value === "" ? "–" : value}</dd>
        </div>
      ))}
    </Box>
  );
}
