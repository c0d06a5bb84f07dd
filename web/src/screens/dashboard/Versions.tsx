// The versions of a stored dashboard, what differs in each, and the way back to one.

import type { ReactElement } from "react";
import { api } from "@/api/client";
import { dashboardDiff } from "@/dashboard/edit/dashboardDiff";
import { VersionsDialog } from "@/editing/VersionsDialog";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import type { StoredDashboard } from "./edit/draft";

interface VersionsProps {
  dashboard: StoredDashboard;
  mayEdit: boolean;
  onSaved: (saved: StoredDashboard) => void;
  onClose: () => void;
}

export default function Versions({ dashboard, mayEdit, onSaved, onClose }: VersionsProps): ReactElement {
  const restore = async (former: StoredDashboard): Promise<void> => {
    onSaved(await api.post<StoredDashboard>("/api/dashboard", { ...dashboard, title: former.title ?? dashboard.title, configuration: former.configuration }));
    notify.ok(t("Restored"));
  };
  return (
    <VersionsDialog<StoredDashboard>
      path={`/api/dashboard/${dashboard.id.id}/versions`}
      opened
      onClose={onClose}
      current={dashboard}
      currentVersion={dashboard.version}
      diff={(before, after) => dashboardDiff(before.configuration, after.configuration)}
      restore={mayEdit ? restore : undefined}
    />
  );
}
