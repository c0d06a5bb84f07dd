// What is set on the selected node: name, debug, queue, wires, and its configuration by the schema of its class.

import { Button, Checkbox, Group, Select, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { definitionOf, scriptField } from "@/ruleChain/components";
import { changeNode, reach, setFirst } from "@/ruleChain/edits";
import { INPUT_NODE, isRecord, type ChainNode, type Json } from "@/ruleChain/model";
import { Waiting } from "@/ui/feedback";
import { derive, type Schema } from "@/ui/schemaForm/schema";
import { SchemaForm } from "@/ui/schemaForm/SchemaForm";
import { debugChoices, debugOf, debugSettings, minutesLeft } from "./debug";
import { useEditor } from "./editor";
import { nodeField, Picker } from "./nodeFields";

const ScriptPanel = lazy(() => import("./ScriptPanel"));

function Debug({ node, change }: { node: ChainNode; change: (patch: Json) => void }): ReactElement {
  const settings = node.stored["debugSettings"];
  const mode = debugOf(settings);
  const left = minutesLeft(settings);
  return (
    <Group gap="xs" align="end">
      <Select
        size="xs"
        label={t("Debug: keep messages")}
        allowDeselect={false}
        value={mode}
        data={debugChoices(mode, t("all at present"))}
        onChange={(next) => {
          const chosen = next === null ? undefined : debugSettings(next);
          if (chosen !== undefined) {
            change({ debugSettings: chosen });
          }
        }}
      />
      <Text size="xs" c="var(--soft-text)">
        {left === undefined ? t("From saving on.") : t("For {n} more minutes, from saving on.", { n: left })}
      </Text>
    </Group>
  );
}

function Wires({ node, onWire }: { node: ChainNode; onWire: (from: string, to: string) => void }): ReactElement {
  const { chain, edit, select } = useEditor();
  const name = (key: string): string => chain.nodes.find((one) => one.key === key)?.stored.name ?? "";
  // A wire back would close a circle, which the server refuses.
  const before = reach(chain, node.key, "upstream").add(node.key);
  const targets = [...new Set(chain.wires.filter(({ from }) => from === node.key).map(({ to }) => to))];
  return (
    <Stack gap={4}>
      <Text size="xs" fw={600}>
        {t("Wires")}
      </Text>
      {targets.map((to) => (
        <Group key={to} gap={4}>
          <Button size="compact-xs" variant="default" onClick={() => onWire(node.key, to)}>
            {chain.wires.filter((wire) => wire.from === node.key && wire.to === to).map(({ label }) => label).join(" / ")}
          </Button>
          <Button size="compact-xs" variant="subtle" onClick={() => select(new Set([to]))}>
            → {name(to)}
          </Button>
        </Group>
      ))}
      <Select
        size="xs"
        aria-label={t("Connect to")}
        placeholder={t("Connect to")}
        searchable
        value={null}
        data={chain.nodes.filter(({ key }) => !before.has(key) && !targets.includes(key)).map(({ key, stored }) => ({ value: key, label: stored.name }))}
        onChange={(to) => to !== null && onWire(node.key, to)}
      />
      <Checkbox size="xs" label={t("Messages enter here")} checked={chain.first === node.key} onChange={(event) => { const on = event.currentTarget.checked; edit((now) => setFirst(now, on ? node.key : undefined)); }} />
    </Stack>
  );
}

export function NodePanel({ node, onWire }: { node: ChainNode; onWire: (from: string, to: string) => void }): ReactElement {
  const { edit, classes, findings } = useEditor();
  const [testing, setTesting] = useState(false);
  const { stored } = node;
  const component = classes.get(stored.type);
  const definition = definitionOf(component);
  const change = (patch: Json): void => edit((chain) => changeNode(chain, node.key, (now) => ({ ...now, ...patch })));
  const schema: Schema = (definition?.configurationSchema as Schema | undefined) ?? derive(isRecord(definition?.defaultConfiguration) ? { ...definition.defaultConfiguration, ...(isRecord(stored.configuration) ? stored.configuration : {}) } : stored.configuration);
  const script = scriptField(stored.configuration);
  const description = stored.additionalInfo?.["description"];
  return (
    <Stack gap="sm">
      <div>
        <Title order={2} size="h5">
          {component === undefined ? t("unknown type") : t(component.name)}
        </Title>
        <Text size="xs" c="var(--soft-text)">
          {definition === undefined ? stored.type : t(definition.description)}
        </Text>
      </div>
      {findings.filter((one) => one.node === node.key).map(({ text }) => (
        <Text key={text} size="xs" c="var(--mantine-color-error)">
          {t(text)}
        </Text>
      ))}
      <TextInput size="xs" label={t("Name")} value={stored.name} onChange={(event) => change({ name: event.currentTarget.value })} />
      <Textarea
        size="xs"
        label={t("Description")}
        autosize
        minRows={1}
        value={typeof description === "string" ? description : ""}
        onChange={(event) => change({ additionalInfo: { ...stored.additionalInfo, description: event.currentTarget.value } })}
      />
      <Debug node={node} change={change} />
      {component?.hasQueueName === true && (
        <Picker
          field={{ name: "queueName", label: t("Queue"), schema: {}, root: {}, value: stored["queueName"], onChange: (queueName) => change({ queueName }), siblings: {}, custom: undefined }}
          path="/api/queues"
          by="name"
        />
      )}
      {component?.clusteringMode === "USER_PREFERENCE" && (
        <Checkbox size="xs" label={t("Run on one server only")} checked={stored["singletonMode"] === true} onChange={(event) => change({ singletonMode: event.currentTarget.checked })} />
      )}
      {definition?.outEnabled !== false && stored.type !== "" && <Wires node={node} onWire={onWire} />}
      {script !== undefined && (
        <>
          <Button size="xs" variant="light" onClick={() => setTesting(true)}>
            {t("Test the script")}
          </Button>
          {testing && (
            <Suspense fallback={<Waiting />}>
              <ScriptPanel node={node} {...script} onClose={() => setTesting(false)} />
            </Suspense>
          )}
        </>
      )}
      <SchemaForm key={`${node.key} ${stored.type === INPUT_NODE}`} schema={schema} value={stored.configuration} custom={nodeField} onChange={(configuration) => change({ configuration })} />
    </Stack>
  );
}
