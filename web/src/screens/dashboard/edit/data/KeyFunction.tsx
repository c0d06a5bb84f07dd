// A function of a key, with a trial of it.

import { Button, Group, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { bodyOf } from "@/dashboard/actions";
import { callInSandbox } from "@/sandbox/calls";
import { t } from "@/i18n";
import { messageOf, Waiting } from "@/ui/feedback";
import { codeText, isObject, withCode } from "@/ui/form/values";

const CodeEditor = lazy(() => import("@/ui/CodeEditor"));

/** What a function is tried with, and how that is written. */
export interface Trial {
  args: unknown[];
  given: string;
}

interface Props {
  label: string;
  help: string;
  names: readonly string[];
  value: unknown;
  change: (value: unknown) => void;
  /** Returns what it is tried with; nothing if there is no value. */
  trial: () => Promise<Trial | undefined>;
}

const shown = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

export default function KeyFunction({ label, help, names, value, change, trial }: Props): ReactElement {
  const [said, setSaid] = useState<{ text: string; failed: boolean }>();
  const [busy, setBusy] = useState(false);
  const modules = isObject(value) && isObject(value["modules"]) ? Object.keys(value["modules"]) : [];
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      const tried = await trial();
      const body = bodyOf(value);
      if (tried === undefined || body === undefined) {
        setSaid({ text: t(body === undefined ? "There is no function yet." : "There is no value yet to try it with."), failed: true });
        return;
      }
      const [result] = await callInSandbox({ body, names: [...names], calls: [tried.args] });
      const error = result === undefined ? t("it took too long") : result.error;
      setSaid(error === undefined ? { text: `${tried.given} → ${shown(result?.value)}`, failed: false } : { text: error, failed: true });
    } catch (error) {
      setSaid({ text: messageOf(error), failed: true });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Stack gap={4}>
      <Text size="sm" fw={500}>
        {label}
      </Text>
      <Text size="xs" c="var(--soft-text)">
        {[help, ...(modules.length === 0 ? [] : [t("Modules: {names}", { names: modules.join(", ") })])].join(" · ")}
      </Text>
      <Suspense fallback={<Waiting />}>
        <CodeEditor label={label} language="JS" value={codeText(value)} onChange={(body) => body !== codeText(value) && change(withCode(value, body))} words={names.map((name) => ({ label: name, type: "variable" }))} height="140px" />
      </Suspense>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" loading={busy} onClick={() => void run()}>
          {t("Try it")}
        </Button>
        <Text size="sm" role="status" c={said?.failed === true ? "var(--mantine-color-error)" : "var(--mantine-color-text)"} style={{ overflowWrap: "anywhere" }}>
          {said?.text ?? ""}
        </Text>
      </Group>
    </Stack>
  );
}
