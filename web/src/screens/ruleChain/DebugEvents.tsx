// Debug events as a list, and what can be done with the message of each: follow it, try the script with it, replay it.

import { Badge, Button, Code, Group, Text } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import { t } from "@/i18n";
import { scriptField } from "@/ruleChain/components";
import type { ChainNode } from "@/ruleChain/model";
import { Ago, Waiting } from "@/ui/feedback";
import { useEditor } from "./editor";
import { telemetryOf, type DebugEvent, type EventBody } from "./events";
import { writeWish } from "./replayWish";
import classes from "./ruleChain.module.css";

const ScriptPanel = lazy(() => import("./ScriptPanel"));

/** What came to a node, or failed in it, is what its script was given; what left it may be another message. */
const cameIn = ({ type, error }: EventBody): boolean => type === "IN" || (error !== undefined && error !== "");

interface DebugEventsProps {
  events: readonly DebugEvent[];
  /** Left out where one message is followed already. */
  onFollow?: (msgId: string) => void;
}

export function DebugEvents({ events, onFollow }: DebugEventsProps): ReactElement {
  const { chain, select } = useEditor();
  const [, setSearch] = useSearchParams();
  const [tried, setTried] = useState<{ key: string; message: EventBody }>();
  const nodes = new Map(chain.nodes.map((node): [string, ChainNode] => [node.key, node]));
  const trying = nodes.get(tried?.key ?? "");
  const script = scriptField(trying?.stored.configuration);
  return (
    <>
      <ul className={classes["events"]} aria-label={t("Events")}>
        {events.map(({ id, node, createdTime, body }) => {
          const sent = telemetryOf(body);
          return (
            <li key={id.id}>
              <Group gap={6}>
                <Badge size="xs" variant="outline" color={body.error ? "red" : "gray"} c="inherit">
                  {body.type}
                </Badge>
                <b>{nodes.get(node)?.stored.name}</b> {body.relationType} <Ago ts={createdTime} />
                {onFollow !== undefined && body.msgId !== undefined && (
                  <Button size="compact-xs" variant="subtle" onClick={() => onFollow(body.msgId ?? "")}>
                    {t("Follow")}
                  </Button>
                )}
                {cameIn(body) && scriptField(nodes.get(node)?.stored.configuration) !== undefined && (
                  <Button
                    size="compact-xs"
                    variant="subtle"
                    onClick={() => {
                      select(new Set([node]));
                      setTried({ key: node, message: body });
                    }}
                  >
                    {t("Test the script")}
                  </Button>
                )}
                {sent !== undefined && (
                  <Button size="compact-xs" variant="subtle" onClick={() => setSearch((before) => writeWish(before, { ...sent, node: nodes.get(node)?.stored.id?.id ?? "" }))}>
                    {t("Replay")}
                  </Button>
                )}
              </Group>
              <div>
                {body.msgType} <Code>{body.data}</Code>
              </div>
              {body.error !== undefined && body.error !== "" && (
                <Text size="xs" c="var(--mantine-color-error)">
                  {body.error}
                </Text>
              )}
            </li>
          );
        })}
      </ul>
      {tried !== undefined && trying !== undefined && script !== undefined && (
        <Suspense fallback={<Waiting />}>
          <ScriptPanel node={trying} {...script} message={tried.message} onClose={() => setTried(undefined)} />
        </Suspense>
      )}
    </>
  );
}
