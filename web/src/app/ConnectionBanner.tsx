// One quiet line while the connection is lost, with how old values are at least.

import { Text } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { live, useConnection } from "@/live/socket";
import { Ago } from "@/ui/feedback";

export function ConnectionBanner(): ReactElement | null {
  return useConnection() === "reconnecting" ? (
    <Text role="status" ta="center" py={4} bg="var(--mantine-color-yellow-light)">
      {t("The connection is lost. Values may be old until it is back.")} {t("It was lost:")} <Ago ts={live.lostAt} />
    </Text>
  ) : null;
}
