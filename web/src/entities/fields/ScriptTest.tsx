// Tries an expression or script of a calculated field or alarm rule with arguments, before it is saved.

import { Alert, Button, Code, Grid, Group, Modal, Text } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { t } from "@/i18n";
import CodeEditor from "@/ui/CodeEditor";
import { messageOf, notify } from "@/ui/feedback";
import { valueAt, type FormValues } from "@/ui/form/values";
import { evaluate } from "./expression";
import { argumentsOf, withLast, type FormScript } from "./scripts";

interface Props {
  /** The path of the endpoints: those of calculated fields, or of alarm rules. */
  endpoint: string;
  script: FormScript;
  values: FormValues;
  /** Puts the text into the form. */
  onUse: (text: string) => void;
  onClose: () => void;
}

interface Answer {
  output: string;
  error: string;
}

/** Evaluates an expression with what can be read as a number: flags are 1 and 0. */
function calculated(text: string, given: Record<string, FormValues>): Answer {
  const numbers = Object.entries(given).map(([name, { value }]): [string, number] => [name, Number(value)]);
  const bad = numbers.find(([, value]) => Number.isNaN(value));
  try {
    if (bad !== undefined) {
      throw new Error(t("The argument {name} is no number.", { name: bad[0] }));
    }
    return { output: String(evaluate(text, Object.fromEntries(numbers))), error: "" };
  } catch (error) {
    return { output: "", error: messageOf(error) };
  }
}

export default function ScriptTest({ endpoint, script, values, onUse, onClose }: Props): ReactElement {
  const [text, setText] = useState(() => String(valueAt(values, script.path) ?? ""));
  const [given, setGiven] = useState(() => JSON.stringify(argumentsOf(values, Date.now()), null, 2));
  const [answer, setAnswer] = useState<Answer>();
  const [busy, setBusy] = useState(false);
  const id = (values["id"] as { id?: string } | undefined)?.id;
  const names = Object.keys(argumentsOf(values, 0));
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      const read = JSON.parse(given) as Record<string, FormValues>;
      setAnswer(script.language === "MATH" ? calculated(text, read) : await api.post<Answer>(`${endpoint}/testScript`, { expression: text, arguments: read }));
    } catch (error) {
      notify.error(error instanceof SyntaxError ? new Error("The arguments are no JSON.") : error);
    } finally {
      setBusy(false);
    }
  };
  const takeLast = async (): Promise<void> => {
    const last = await api.get<{ arguments?: unknown } | undefined>(`${endpoint}/${id ?? ""}/debug`);
    const found = typeof last?.arguments === "string" ? (JSON.parse(last.arguments) as FormValues) : last?.arguments;
    if (typeof found !== "object" || found === null) {
      throw new Error("Nothing has been evaluated while debugging was on. Switch it on, save, and wait for a value.");
    }
    setGiven(JSON.stringify(withLast(argumentsOf(values, Date.now()), found as FormValues), null, 2));
  };
  return (
    <Modal opened onClose={onClose} size="80rem" title={t("Test: {name}", { name: t(script.label) })} closeButtonProps={{ "aria-label": t("Close") }}>
      <Grid>
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Text size="xs" fw={500}>{t(script.language === "MATH" ? "Expression" : "Script (TBEL)")}</Text>
          <CodeEditor
            label={t(script.language === "MATH" ? "Expression" : "Script (TBEL)")}
            language="TBEL"
            value={text}
            onChange={setText}
            words={[...names, ...names.map((name) => `ctx.args.${name}`), "ctx.latestTs"].map((label) => ({ label, type: "variable" }))}
            error={answer === undefined || answer.error === "" ? undefined : answer.error}
            height="360px"
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Text size="xs" fw={500}>{t("Arguments")}</Text>
          <CodeEditor label={t("Arguments")} language="JSON" value={given} onChange={setGiven} height="260px" />
          <Group mt="xs" gap="xs">
            <Button size="xs" loading={busy} onClick={() => void run()}>
              {t("Run")}
            </Button>
            {id !== undefined && (
              <Button size="xs" variant="default" onClick={() => void takeLast().catch(notify.error)}>
                {t("Take the last evaluation")}
              </Button>
            )}
            <Button
              size="xs"
              variant="default"
              onClick={() => {
                onUse(text);
                onClose();
              }}
            >
              {t("Use it in the form")}
            </Button>
          </Group>
          {answer !== undefined && (
            <div role="status" aria-label={t("Result")}>
              {answer.error === "" ? (
                <Code block mt="xs">
                  {answer.output}
                </Code>
              ) : (
                <Alert color="red" mt="xs">
                  {answer.error}
                </Alert>
              )}
            </div>
          )}
        </Grid.Col>
      </Grid>
    </Modal>
  );
}
