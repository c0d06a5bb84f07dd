// Two people change the same document: a quiet line that somebody else has saved, and the question what is kept.

import { Alert, Button, Group, Modal, Stack, Text, Title } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { useSession } from "@/app/session";
import { plural, t } from "@/i18n";
import type { SectionChange } from "./diff";
import { DiffView } from "./DiffView";
import type { Newer } from "./newer";

interface NoticeProps {
  newer: Newer | undefined;
  /** Whether something is not saved here. */
  dirty: boolean;
  onLook: () => void;
  onTake: () => void;
}

export function NewerNotice({ newer, dirty, onLook, onTake }: NoticeProps): ReactElement | null {
  const { user } = useSession();
  if (newer === undefined) {
    return null;
  }
  const { version, by, dismiss } = newer;
  const told = by === undefined ? t("Version {n} was saved meanwhile.", { n: version }) : by === user.email ? t("You have saved version {n} elsewhere.", { n: version }) : t("{who} has saved version {n} meanwhile.", { who: by, n: version });
  return (
    <Alert color="yellow" p="xs" my={6} role="status">
      <Group gap="xs">
        <Text size="sm">{told}</Text>
        <Button size="compact-xs" variant="default" onClick={onLook}>
          {t("See what has changed")}
        </Button>
        {!dirty && (
          <Button size="compact-xs" variant="default" onClick={onTake}>
            {t("Take theirs")}
          </Button>
        )}
        <Button size="compact-xs" variant="subtle" onClick={dismiss}>
          {t("Not now")}
        </Button>
      </Group>
    </Alert>
  );
}

interface ConflictProps {
  opened: boolean;
  onClose: () => void;
  /** What both have changed in different ways. */
  conflicts: readonly string[];
  /** What the other has changed since both began. */
  changes: readonly SectionChange[];
  dirty: boolean;
  /** Nothing else can be chosen while what was chosen is saved. */
  saving: boolean;
  onBoth: () => void;
  onMine: () => void;
  onTheirs: () => void;
  children?: ReactNode;
}

export function ConflictDialog({ opened, onClose, conflicts, changes, dirty, saving, onBoth, onMine, onTheirs, children }: ConflictProps): ReactElement {
  const told =
    conflicts.length === 0
      ? t("You have changed different parts, so both can be kept.")
      : plural(conflicts.length, "Both of you have changed the same in {n} place. Of these, yours would be kept.", "Both of you have changed the same in {n} places. Of these, yours would be kept.");
  return (
    <Modal opened={opened} onClose={onClose} size="xl" title={t("Somebody else has changed this meanwhile")} closeButtonProps={{ "aria-label": t("Close") }}>
      {dirty && <Text mb="md">{told}</Text>}
      <Stack mb="md" mah="45vh" style={{ overflow: "auto" }} tabIndex={0} role="region" aria-label={t("What they have changed")}>
        <Title order={2} size="h5">
          {t("What they have changed")}
        </Title>
        {opened && <DiffView changes={[...changes]} />}
      </Stack>
      <Group>
        {dirty && (
          <>
            <Button loading={saving} onClick={onBoth}>
              {t("Keep both")}
            </Button>
            <Button variant="default" disabled={saving} onClick={onMine}>
              {t("Keep mine alone")}
            </Button>
          </>
        )}
        <Button variant="default" disabled={saving} onClick={onTheirs}>
          {t("Take theirs")}
        </Button>
        {children}
      </Group>
    </Modal>
  );
}
