// The own sessions, each of which a log-in has opened, and the ends of those that should not go on.

import { Badge, Button, Group, Modal, Table, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import type { UserSession } from "@/api/schema.gen";
import { ask } from "@/api/typed";
import { formatTime, t } from "@/i18n";
import { notify, Problem, Waiting } from "@/ui/feedback";
import { Flow } from "@/ui/Flow";

export const OWN_SESSIONS = ["own sessions"] as const;

/** Most sessions that are shown at first: programs that log in for each run leave hundreds. */
const FIRST = 20;
/** What the server calls programs and systems that it does not know. */
const UNNAMED: readonly unknown[] = ["Other", "Unknown"];

/** Returns what a session was opened with, in the words that are known of it. */
function programOf({ browser, os }: Pick<UserSession, "browser" | "os">): string {
  return [browser, os].filter((name) => name != null && !UNNAMED.includes(name)).join(", ") || t("Unknown program");
}

function SessionRow({ session, act }: { session: UserSession; act: (work: Promise<unknown>) => void }): ReactElement {
  const program = programOf(session);
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs">
          {program}
          {session.current && <Badge variant="outline">{t("This session")}</Badge>}
        </Group>
      </Table.Td>
      <Table.Td data-label={t("IP address")}>{session.clientAddress ?? "–"}</Table.Td>
      <Table.Td data-label={t("Logged in")}>{session.createdTime == null ? "–" : formatTime(session.createdTime)}</Table.Td>
      <Table.Td data-label={t("Last used")}>{formatTime(session.lastUsedTime)}</Table.Td>
      <Table.Td data-empty={session.current || undefined}>
        {!session.current && (
          <Button
            size="compact-xs"
            variant="subtle"
            color="red"
            aria-label={t("End session: {name}", { name: program })}
            onClick={() => act(ask("DELETE /api/user/sessions/{sessionId}", { path: { sessionId: session.sessionId } }))}
          >
            {t("End session")}
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

export function Sessions(): ReactElement {
  const cache = useQueryClient();
  const [asked, setAsked] = useState(false);
  const [all, setAll] = useState(false);
  const sessions = useQuery({ queryKey: OWN_SESSIONS, queryFn: () => ask("GET /api/user/sessions"), staleTime: 0 });
  // One that is gone already is shown no more either.
  const act = (work: Promise<unknown>): void => void work.catch(notify.error).then(() => cache.invalidateQueries({ queryKey: OWN_SESSIONS }));
  if (sessions.isPending) {
    return <Waiting />;
  }
  if (sessions.isError) {
    return <Problem error={sessions.error} />;
  }
  const own = sessions.data.filter(({ current }) => current);
  const others = sessions.data.filter(({ current }) => !current);
  const shown = [...own, ...(all ? others : others.slice(0, FIRST))];
  return (
    <>
      <Flow>
        <Table aria-label={t("Sessions")}>
          <Table.Thead>
            <Table.Tr>
              {["Browser or program", "IP address", "Logged in", "Last used", "Actions"].map((label) => (
                <Table.Th key={label}>{t(label)}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map((session) => (
              <SessionRow key={session.sessionId} session={session} act={act} />
            ))}
          </Table.Tbody>
        </Table>
      </Flow>
      <Group>
        {shown.length < sessions.data.length && (
          <Button variant="default" onClick={() => setAll(true)}>
            {t("Show all {n}", { n: sessions.data.length })}
          </Button>
        )}
        <Button variant="default" disabled={others.length === 0} onClick={() => setAsked(true)}>
          {t("End all others")}
        </Button>
      </Group>
      <Modal opened={asked} onClose={() => setAsked(false)} title={t("End all others?")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{t("Whoever uses them has to log in again. API keys go on.")}</Text>
        <Button
          color="red"
          onClick={() => {
            setAsked(false);
            act(ask("DELETE /api/user/sessions"));
          }}
        >
          {t("End the other sessions")}
        </Button>
      </Modal>
    </>
  );
}
