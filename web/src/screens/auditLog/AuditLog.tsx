import { Title } from "@mantine/core";
import type { ReactElement } from "react";
import { AuditTab } from "@/entities/RecordTabs";
import { t } from "@/i18n";

export default function AuditLog(): ReactElement {
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("Audit log")}
      </Title>
      <AuditTab />
    </>
  );
}
