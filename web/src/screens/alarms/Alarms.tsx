import { Title } from "@mantine/core";
import type { ReactElement } from "react";
import { AlarmCentre } from "@/alarms/AlarmCentre";
import { t } from "@/i18n";

export default function Alarms(): ReactElement {
  return (
    <>
      <Title order={1} size="h2" mb="xs">
        {t("Alarms")}
      </Title>
      <AlarmCentre />
    </>
  );
}
