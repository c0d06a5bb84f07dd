// The script of a node with a message to try it with: the last one that came to the node, or a typed one.

import type { Completion } from "@codemirror/autocomplete";
import { Alert, Button, Code, Grid, Group, Modal, Text, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { t } from "@/i18n";
import { scriptTypeOf } from "@/ruleChain/components";
import { changeNode } from "@/ruleChain/edits";
import { isRecord, type ChainNode } from "@/ruleChain/model";
import CodeEditor from "@/ui/CodeEditor";
import { notify } from "@/ui/feedback";
import { useEditor } from "./editor";
import type { EventBody } from "./events";

interface Props {
  node: ChainNode;
  field: string;
  language: "JS" | "TBEL";
  /** What the script is tried with first. */
  message?: EventBody;
  onClose: () => void;
}

/** Completion of the arguments of a script, with the keys of the message that it is tried with. */
function wordsOf(msg: string, metadata: string): Completion[] {
  const keys = (text: string, of: string): Completion[] => {
    try {
      return Object.keys(JSON.parse(text) as object).map((key) => ({ label: /^\w+$/.test(key) ? `${of}.${key}` : `${of}["${key}"]`, type: "property" }));
    } catch {
      return [];
    }
  };
  return [...["msg", "metadata", "msgType", "return"].map((label) => ({ label, type: "variable" })), ...keys(msg, "msg"), ...keys(metadata, "metadata")];
}

/** JSON over several lines, as people read it; other text as it is. */
function spread(text = "{}"): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export default function ScriptPanel({ node, field, language, message, onClose }: Props): ReactElement {
  const { edit } = useEditor();
  const { stored } = node;
  const configuration = isRecord(stored.configuration) ? stored.configuration : {};
  const script = String(configuration[field] ?? "");
  const [msg, setMsg] = useState(() => (message === undefined ? '{\n  "temperature": 22.4\n}' : spread(message.data)));
  const [metadata, setMetadata] = useState(() => (message === undefined ? '{\n  "deviceName": "Sensor"\n}' : spread(message.metadata)));
  const [msgType, setMsgType] = useState(message?.msgType ?? "POST_TELEMETRY_REQUEST");
  const [answer, setAnswer] = useState<{ output: string; error: string }>();
  const id = stored.id?.id;
  const write = (text: string): void => edit((chain) => changeNode(chain, node.key, (now) => ({ ...now, configuration: { ...(isRecord(now.configuration) ? now.configuration : {}), [field]: text } })));
  const takeLast = async (): Promise<void> => {
    const last = await api.get<EventBody | undefined>(`/api/ruleNode/${id}/debugIn`);
    if (last === undefined || typeof last !== "object") {
      notify.error(new Error("No message has come while the node kept its messages. Switch debug on, and save."));
      return;
    }
    setMsg(spread(last.data));
    setMetadata(spread(last.metadata));
    setMsgType(last.msgType ?? "");
  };
  const run = async (): Promise<void> => {
    const body = { script, scriptType: scriptTypeOf(stored.type), argNames: ["msg", "metadata", "msgType"], msg, metadata: JSON.parse(metadata) as unknown, msgType };
    setAnswer(await api.post<{ output: string; error: string }>("/api/ruleChain/testScript", body, { scriptLang: language }));
  };
  return (
    <Modal opened onClose={onClose} size="80rem" title={`${stored.name}: ${language}`} closeButtonProps={{ "aria-label": t("Close") }}>
      <Grid>
        <Grid.Col span={{ base: 12, md: 7 }}>
          <CodeEditor label={t("Script")} language={language} value={script} onChange={write} words={wordsOf(msg, metadata)} error={answer?.error === "" ? undefined : answer?.error} height="420px" />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <TextInput size="xs" label={t("Message type")} value={msgType} onChange={(event) => setMsgType(event.currentTarget.value)} />
          <Text size="xs" fw={500} mt="xs">
            {t("Message")}
          </Text>
          <CodeEditor label={t("Message")} language="JSON" value={msg} onChange={setMsg} height="120px" />
          <Text size="xs" fw={500} mt="xs">
            {t("Metadata")}
          </Text>
          <CodeEditor label={t("Metadata")} language="JSON" value={metadata} onChange={setMetadata} height="90px" />
          <Group mt="xs" gap="xs">
            <Button size="xs" onClick={() => void run().catch(notify.error)}>
              {t("Run")}
            </Button>
            {id !== undefined && (
              <Button size="xs" variant="default" onClick={() => void takeLast().catch(notify.error)}>
                {t("Take the last real message")}
              </Button>
            )}
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
