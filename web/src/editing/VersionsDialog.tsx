// The versions of something that the server keeps, what differs between each and the present one, and the way back.

import { Button, Group, Modal, NavLink, ScrollArea, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import type { PageData } from "@/api/types";
import type { SectionChange } from "./diff";
import { formatTime, t } from "@/i18n";
import { DiffView } from "./DiffView";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";

interface Version {
  version: number;
  createdTime: number;
  userId: unknown;
  userName?: string | null;
  title: string | null;
}

interface VersionsProps<T> {
  /** Where the versions are listed; one of them is under its number. */
  path: string;
  opened: boolean;
  onClose: () => void;
  current: T;
  currentVersion: number;
  diff: (before: T, after: T) => SectionChange[];
  /** Saves a former version as the newest one; left out for who may not. */
  restore: ((former: T) => Promise<void>) | undefined;
}

const PAGE = 50;

function Comparison<T>({ path, version, current, diff, restore, onClose }: VersionsProps<T> & { version: Version }): ReactElement {
  const [busy, setBusy] = useState(false);
  const former = useQuery({ queryKey: [path, version.version], staleTime: Infinity, queryFn: () => api.get<T>(`${path}/${version.version}`) });
  if (former.isPending) {
    return <Waiting />;
  }
  if (former.isError) {
    return <Problem error={former.error} />;
  }
  const goBack = async (): Promise<void> => {
    setBusy(true);
    try {
      await restore?.(former.data);
      onClose();
    } catch (error) {
      notify.error(error);
    } finally {
      setBusy(false);
    }
  };
  const changes = diff(former.data, current);
  return (
    <Stack>
      <Group justify="space-between">
        <Text>{t("What has changed since version {n}", { n: version.version })}</Text>
        {restore !== undefined && changes.length > 0 && (
          <Button loading={busy} onClick={() => void goBack()}>
            {t("Restore version {n}", { n: version.version })}
          </Button>
        )}
      </Group>
      <DiffView changes={changes} />
    </Stack>
  );
}

export function VersionsDialog<T>(props: VersionsProps<T>): ReactElement {
  const { path, opened, onClose, currentVersion } = props;
  const [chosen, setChosen] = useState<Version>();
  const [page, setPage] = useState(0);
  const versions = useQuery({ queryKey: [path, "list", currentVersion, page], enabled: opened, queryFn: () => api.get<PageData<Version>>(path, { pageSize: PAGE, page }) });
  return (
    <Modal opened={opened} onClose={onClose} size="80rem" title={t("Versions")} closeButtonProps={{ "aria-label": t("Close") }}>
      {versions.isPending && <Waiting />}
      {versions.isError && <Problem error={versions.error} />}
      {versions.data !== undefined && versions.data.data.length === 0 && <EmptyState>{t("There are no versions yet: each save makes one.")}</EmptyState>}
      {versions.data !== undefined && versions.data.data.length > 0 && (
        <Group align="start" gap="md">
          <nav aria-label={t("Versions")} style={{ flex: "0 1 240px" }}>
            <ScrollArea.Autosize mah="65vh">
              {versions.data.data.map((one) => (
                <NavLink
                  key={one.version}
                  component="button"
                  active={one.version === chosen?.version}
                  label={one.version === currentVersion ? t("Version {n}, the present one", { n: one.version }) : t("Version {n}", { n: one.version })}
                  description={`${formatTime(one.createdTime)}${typeof one.userName === "string" ? ` · ${one.userName}` : ""}`}
                  onClick={() => setChosen(one)}
                />
              ))}
            </ScrollArea.Autosize>
            <Group gap={6} mt="xs">
              {page > 0 && (
                <Button size="compact-sm" variant="default" onClick={() => setPage(page - 1)}>
                  {t("Newer")}
                </Button>
              )}
              {versions.data.hasNext && (
                <Button size="compact-sm" variant="default" onClick={() => setPage(page + 1)}>
                  {t("Older")}
                </Button>
              )}
            </Group>
          </nav>
          <div style={{ flex: "1 1 320px", minWidth: 0, maxHeight: "70vh", overflow: "auto" }} tabIndex={0} role="region" aria-label={t("Comparison")}>
            {chosen === undefined ? <EmptyState>{t("Choose a version to compare it with the present one.")}</EmptyState> : <Comparison key={chosen.version} {...props} version={chosen} />}
          </div>
        </Group>
      )}
    </Modal>
  );
}
