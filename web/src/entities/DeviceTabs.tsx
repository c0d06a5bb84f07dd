// How a device connects, with its first values live beside it, and commands to it.

import { Button, Code, CopyButton, Group, SegmentedControl, Stack, Switch, Text, TextInput, Textarea, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { t } from "@/i18n";
import { saveBlob } from "@/ui/csv";
import { messageOf, notify, Problem, Waiting } from "@/ui/feedback";
import { isGateway } from "./columns";
import { typedValue } from "./ValueTable";
import { TelemetryTab } from "./ValueTabs";

interface Credentials {
  credentialsType: string;
  credentialsId: string;
}

type Commands = string | string[] | { [name: string]: Commands };

/** Returns the commands that send one value as the device, each under the name of its protocol. */
export function commandsOf(commands: Commands, path: readonly string[] = []): { label: string; command: string }[] {
  return typeof commands === "object" && !Array.isArray(commands)
    ? Object.entries(commands).flatMap(([name, inner]) => commandsOf(inner, [...path, name]))
    : [{ label: `${(path.at(-1) ?? "").toUpperCase()}${path.includes("docker") ? " (Docker)" : ""}`, command: [commands].flat().join("\n") }];
}

/** The host that this page came from is reached at the port of this page, which the server's settings may not know. */
export function reachable(command: string, site: { origin: string; hostname: string; protocol: string }): string {
  return site.protocol === "http:" ? command.replace(new RegExp(`http://${site.hostname.replaceAll(/[.[\]]/g, "\\$&")}(:\\d+)?/`), `${site.origin}/`) : command;
}

const COMPOSE_FILE = "docker-compose.yml";

/** A gateway starts by a file that has its address and credentials. */
function GatewayFile({ id }: { id: EntityId }): ReactElement {
  const save = async (): Promise<void> => saveBlob(await api.blob(`/api/device-connectivity/gateway-launch/${id.id}/docker-compose/download`), COMPOSE_FILE);
  return (
    <div>
      <Text mb={4}>{t("The gateway starts with this file, which holds its credentials, in a folder of its own:")}</Text>
      <Group gap="sm">
        <Button size="xs" onClick={() => void save().catch(notify.error)}>
          {t("Download {file}", { file: COMPOSE_FILE })}
        </Button>
        <Code>docker compose up</Code>
      </Group>
    </div>
  );
}

export function ConnectTab({ entity }: { entity: Entity }): ReactElement {
  const credentials = useQuery({
    queryKey: ["credentials", entity.id.id],
    queryFn: () => api.get<Credentials>(`/api/device/${entity.id.id}/credentials`),
  });
  const known = useQuery({
    queryKey: ["connectivity", entity.id.id, credentials.data],
    queryFn: async () => commandsOf(await api.get<Commands>(`/api/device-connectivity/${entity.id.id}`)).map(({ label, command }) => ({ label, command: reachable(command, location) })),
  });
  const [wanted, setWanted] = useState("");
  const shown = known.data?.find(({ label }) => label === wanted) ?? known.data?.[0];
  if (credentials.isPending) {
    return <Waiting />;
  }
  if (credentials.isError) {
    return <Problem error={credentials.error} />;
  }
  const { credentialsType, credentialsId } = credentials.data;
  return (
    <Stack>
      <Text>
        {t(credentialsType === "ACCESS_TOKEN" ? "Access token" : "Credentials")}: <Code>{credentialsId}</Code>
      </Text>
      {isGateway(entity) && <GatewayFile id={entity.id} />}
      {known.isError && <Problem error={known.error} />}
      {shown !== undefined && (
        <div>
          <Group gap="sm" mb={4}>
            <SegmentedControl size="xs" aria-label={t("Protocol")} value={shown.label} onChange={setWanted} data={(known.data ?? []).map(({ label }) => label)} />
            <CopyButton value={shown.command}>
              {({ copied, copy }) => (
                <Button size="compact-xs" variant="default" onClick={copy}>
                  {t(copied ? "Copied" : "Copy")}
                </Button>
              )}
            </CopyButton>
          </Group>
          <Code block tabIndex={0}>{shown.command}</Code>
        </div>
      )}
      <Title order={2} size="h4">
        {t("What arrives")}
      </Title>
      <TelemetryTab entity={entity} />
    </Stack>
  );
}

export function CommandsTab({ id }: { id: EntityId }): ReactElement {
  const [method, setMethod] = useState("");
  const [params, setParams] = useState("{}");
  const [twoWay, setTwoWay] = useState(true);
  const [answer, setAnswer] = useState<string>();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    setAnswer(undefined);
    try {
      const path = `/api/rpc/${twoWay ? "twoway" : "oneway"}/${id.id}`;
      const result = await api.post<unknown>(path, { method, params: typedValue(params), timeout: 10_000 });
      setAnswer(result === undefined ? t("Delivered") : JSON.stringify(result, null, 2));
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void send(event)}>
      <Stack maw={560}>
        <TextInput label={t("Method")} required value={method} onChange={(event) => setMethod(event.currentTarget.value)} />
        <Textarea label={t("Parameters (JSON)")} autosize minRows={3} value={params} onChange={(event) => setParams(event.currentTarget.value)} />
        <Switch label={t("Wait for the device's answer")} checked={twoWay} onChange={(event) => setTwoWay(event.currentTarget.checked)} />
        <Group>
          <Button type="submit" loading={busy}>
            {t("Send")}
          </Button>
        </Group>
        {problem !== "" && <Text role="alert" c="var(--mantine-color-error)">{t("The device did not answer: {problem}", { problem })}</Text>}
        {answer !== undefined && <Code block role="status">{answer}</Code>}
      </Stack>
    </form>
  );
}
