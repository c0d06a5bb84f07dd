// A public link: whoever has it sees the dashboard without an account.

import { Button, CopyButton, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import type { ReactElement } from "react";
import { api } from "@/api/client";
import type { EntityId } from "@/api/types";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import type { StoredDashboard } from "./edit/draft";

interface Assigned {
  customerId: EntityId;
  public: boolean;
}

interface ShareProps {
  dashboard: StoredDashboard;
  onChange: (changed: Partial<StoredDashboard>) => void;
  onClose: () => void;
}

export default function ShareDialog({ dashboard, onChange, onClose }: ShareProps): ReactElement {
  const assigned = (dashboard["assignedCustomers"] ?? []) as Assigned[];
  const open = assigned.find((one) => one.public);
  const link = open === undefined ? "" : `${location.origin}/dashboard/${dashboard.id.id}?publicId=${open.customerId.id}`;
  const change = async (publish: boolean): Promise<void> => {
    const path = `/api/customer/public/dashboard/${dashboard.id.id}`;
    try {
      const { configuration: _configuration, ...changed } = await (publish ? api.post<StoredDashboard>(path) : api.delete<StoredDashboard>(path));
      onChange(changed);
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <Modal opened onClose={onClose} title={t("Public link")} closeButtonProps={{ "aria-label": t("Close") }}>
      {open === undefined ? (
        <Stack>
          <Text>{t("Whoever has the link sees this dashboard and the public devices and assets on it, without an account.")}</Text>
          <Button onClick={() => void change(true)}>{t("Make it public")}</Button>
        </Stack>
      ) : (
        <Stack>
          <TextInput label={t("Link")} readOnly value={link} />
          <Group>
            <CopyButton value={link}>{({ copied, copy }) => <Button onClick={copy}>{copied ? t("Copied") : t("Copy")}</Button>}</CopyButton>
            <Button variant="default" color="red" onClick={() => void change(false)}>
              {t("Make it private")}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
