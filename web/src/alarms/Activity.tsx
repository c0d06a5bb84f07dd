// Comments under an alarm: they are added, changed and deleted here, between what the platform notes by itself.

import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { useSession } from "@/app/session";
import { formatTime, t } from "@/i18n";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";
import type { Alarm } from "./alarm";
import { authorOf, isEdited, textOf, useComments, type AlarmComment } from "./comments";

interface WriteProps {
  label: string;
  action: string;
  initial: string;
  save: (text: string) => Promise<void>;
  onCancel?: () => void;
}

function Write({ label, action, initial, save, onCancel }: WriteProps): ReactElement {
  const [text, setText] = useState(initial);
  const [busy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    try {
      await save(text.trim());
      setText("");
    } catch (error) {
      notify.error(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Stack gap={6}>
      <Textarea label={label} autosize minRows={2} value={text} onChange={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void send()} />
      <Group gap="xs">
        <Button size="compact-sm" loading={busy} disabled={text.trim() === ""} onClick={() => void send()}>
          {action}
        </Button>
        {onCancel !== undefined && (
          <Button size="compact-sm" variant="default" onClick={onCancel}>
            {t("Cancel")}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

export function Activity({ alarm, mayWrite }: { alarm: Alarm; mayWrite: boolean }): ReactElement {
  const { user, authority } = useSession();
  const comments = useComments(alarm);
  const [changing, setChanging] = useState<string>();
  const path = `/api/alarm/${alarm.id.id}/comment`;
  const refresh = async (): Promise<void> => {
    setChanging(undefined);
    await comments.refetch();
  };
  if (comments.isPending) {
    return <Waiting />;
  }
  if (comments.isError) {
    return <Problem error={comments.error} />;
  }
  const remove = async (comment: AlarmComment): Promise<void> => {
    try {
      await api.delete(`${path}/${comment.id.id}`);
      await refresh();
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <Stack>
      {comments.data.length === 0 && <EmptyState>{t("Nothing has been said or done yet.")}</EmptyState>}
      <ol style={{ listStyle: "none", margin: 0, padding: 0 }} aria-label={t("Activity")}>
        {comments.data.map((comment) => {
          const isOwn = comment.userId?.id === user.id.id && comment.type === "OTHER";
          return (
            <li key={comment.id.id} style={{ padding: "8px 0", borderBottom: "1px solid var(--mantine-color-default-border)" }}>
              <Text size="xs" c="var(--soft-text)">
                {formatTime(comment.createdTime)}
                {comment.type === "OTHER" && ` · ${authorOf(comment)}`}
                {isEdited(comment) && ` · ${t("changed")}`}
              </Text>
              {changing === comment.id.id ? (
                <Write label={t("Change the comment")} action={t("Save")} initial={textOf(comment)} onCancel={() => setChanging(undefined)} save={async (text) => (await api.post(path, { ...comment, comment: { ...comment.comment, text } }), refresh())} />
              ) : (
                <Text size="sm" fs={comment.type === "SYSTEM" ? "italic" : "normal"} style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
                  {textOf(comment)}
                </Text>
              )}
              {mayWrite && comment.type === "OTHER" && changing !== comment.id.id && (isOwn || authority === "TENANT_ADMIN") && (
                <Group gap="xs">
                  {isOwn && (
                    <Button size="compact-xs" variant="subtle" onClick={() => setChanging(comment.id.id)}>
                      {t("Edit")}
                    </Button>
                  )}
                  <Button size="compact-xs" variant="subtle" color="red" onClick={() => void remove(comment)}>
                    {t("Delete")}
                  </Button>
                </Group>
              )}
            </li>
          );
        })}
      </ol>
      {mayWrite && <Write label={t("Comment")} action={t("Send")} initial="" save={async (text) => (await api.post(path, { comment: { text } }), refresh())} />}
    </Stack>
  );
}
