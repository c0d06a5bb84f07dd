// What the tenant has and uses, beside what it may.

import type { ReactElement } from "react";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { UsageTable } from "@/screens/usage/Usage";
import { EmptyState } from "@/ui/feedback";
import classes from "../widgets.module.css";

export default function UsageInfo(): ReactElement {
  const { authority } = useSession();
  return authority === "TENANT_ADMIN" ? (
    <div className={classes["scroll"]}>
      <UsageTable compact />
    </div>
  ) : (
    <EmptyState>{t("Administrators of a tenant see its use here.")}</EmptyState>
  );
}
