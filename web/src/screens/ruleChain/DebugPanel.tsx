// Messages and errors of the nodes that keep them, live; one message can be followed on its way.

import { Badge, Button, Code, Group, Select, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { Ago, EmptyState, messageOf, notify } from "@/ui/feedback";
import { NO_MARKS, useEditor } from "./editor";
import { follow, lookAgain, newWatch, type DebugEvent } from "./events";
import classes from "./ruleChain.module.css";

const EVERY_MS = 2_000;

export default function DebugPanel(): ReactElement {
  const { chain, selected, select, setMarks } = useEditor();
  const { user } = useSession();
  const tenant = String((user as unknown as { tenantId?: { id?: string } }).tenantId?.id ?? "");
  const [opened] = useState(Date.now);
  const [watch, setWatch] = useState(newWatch);
  const [problem, setProblem] = useState("");
  const [only, setOnly] = useState("all");
  const [way, setWay] = useState<DebugEvent[]>();
  const [step, setStep] = useState(0);
  const current = useRef({ chain, watch });
  current.current = { chain, watch };
  useEffect(() => {
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      try {
        const next = await lookAgain(current.current.watch, current.current.chain, tenant, opened);
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
  }, [tenant, opened]);
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
        <Select size="xs" w={130} aria-label={t("Which events")} allowDeselect={false} value={only} onChange={(next) => setOnly(next ?? "all")} data={[{ value: "all", label: t("all") }, { value: "IN", label: t("in") }, { value: "OUT", label: t("out") }, { value: "errors", label: t("errors") }]} />
        <Text size="xs" c="var(--soft-text)">
          {selected.size === 0 ? t("of all nodes with debug") : t("of the selected nodes")}
        </Text>
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
      {shown.length === 0 && <EmptyState>{t("Nothing has come since this view was opened. Switch debug on at a node, and save.")}</EmptyState>}
      <ul className={classes["events"]} aria-label={t("Events")}>
        {(way === undefined ? shown : way).map((event) => (
          <li key={event.id.id}>
            <Group gap={6}>
              <Badge size="xs" variant="outline" color={event.body.error ? "red" : "gray"} c="inherit">
                {event.body.type}
              </Badge>
              <b>{name(event.node)}</b> {event.body.relationType} <Ago ts={event.createdTime} />
              {event.body.msgId !== undefined && way === undefined && (
                <Button size="compact-xs" variant="subtle" onClick={() => start(event.body.msgId ?? "")}>
                  {t("Follow")}
                </Button>
              )}
            </Group>
            <div>
              {event.body.msgType} <Code>{event.body.data}</Code>
            </div>
            {event.body.error !== undefined && event.body.error !== "" && <Text size="xs" c="var(--mantine-color-error)">{event.body.error}</Text>}
          </li>
        ))}
      </ul>
    </Stack>
  );
}
