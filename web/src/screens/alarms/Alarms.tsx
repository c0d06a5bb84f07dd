import { Title } from "@mantine/core";
import type { ReactElement } from "react";
import { AlarmsTab } from "@/entities/RecordTabs";
import { t } from "@/i18n";

export default function Alarms(): ReactElement {
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("Alarms")}
      </Title>
      <AlarmsTab />
    </>
  );
}
