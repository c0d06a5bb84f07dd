// Commands to a gateway: those that every gateway knows, and any other by its name.

import { Autocomplete, Button, Code, Group, Stack, Text, Textarea } from "@mantine/core";
import { useState, type FormEvent, type ReactElement } from "react";
import { t } from "@/i18n";
import type { WidgetProps } from "../registry";
import { parsed } from "./convert";
import { reasonOf } from "./rpc";
import { rpcOf, type Setter } from "./settings";
import { useControl } from "./useControl";
import classes from "../widgets.module.css";

const KNOWN = ["gateway_ping", "gateway_stats", "gateway_devices", "gateway_version", "gateway_update", "gateway_restart", "gateway_reboot"];
const ASKS = { action: "EXECUTE_RPC" } as Setter;
const WAIT_MS = 20_000;

export default function ServiceRpc({ widget, entities }: WidgetProps): ReactElement {
  const control = useControl(entities, ASKS);
  const [method, setMethod] = useState(widget.settings["isConnector"] === true ? "" : (KNOWN[0] ?? ""));
  const [params, setParams] = useState("{}");
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<{ text: string; failed: boolean }>();
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setResult(undefined);
    try {
      const answer = await control.call({ ...rpcOf({}, ""), timeoutMs: WAIT_MS, method, params: parsed(params), twoWay: true });
      setResult({ text: answer === undefined ? t("An empty answer") : JSON.stringify(answer, null, 2), failed: false });
    } catch (error) {
      setResult({ text: reasonOf(error, control.target?.name ?? "", WAIT_MS), failed: true });
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className={classes["scroll"]} onSubmit={(event) => void send(event)}>
      <Stack gap="xs">
        <Autocomplete label={t("Method")} required data={KNOWN} value={method} onChange={setMethod} />
        <Textarea label={t("Parameters (JSON)")} autosize minRows={2} value={params} onChange={(event) => setParams(event.currentTarget.value)} />
        {control.locked === undefined ? (
          <Group>
            <Button type="submit" loading={busy}>
              {t("Send")}
            </Button>
          </Group>
        ) : (
          <Text size="sm">{control.locked}</Text>
        )}
        {result?.failed === true && <Text role="alert" size="sm" c="var(--mantine-color-error)">{result.text}</Text>}
        {result?.failed === false && <Code block role="status">{result.text}</Code>}
      </Stack>
    </form>
  );
}
