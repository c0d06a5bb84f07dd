// One quiet line while the connection is lost, with how old values are at least; where a limit ended it, which one and what to do.

import { Anchor, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import type { Limit } from "@/live/limits";
import { live, useConnection, useLimit } from "@/live/socket";
import { Ago } from "@/ui/feedback";

export function ConnectionBanner(): ReactElement | null {
  const connection = useConnection();
  const limit = useLimit();
  if (limit === undefined && connection !== "reconnecting") {
    return null;
  }
  return (
    <Text role="status" ta="center" py={4} px="xs" bg="var(--mantine-color-yellow-light)">
      {limit === undefined ? t("The connection is lost. Values may be old until it is back.") : <LimitText limit={limit} />} {t("It was lost:")} <Ago ts={live.lostAt} />
    </Text>
  );
}

function LimitText({ limit: { title, hint, setting, reason = "" } }: { limit: Limit }): ReactElement {
  return (
    <>
      <b>{t(title, { reason })}</b> {t(hint, { setting: setting === undefined ? "" : t(setting) })} {t("Values may be old. The page tries again each minute.")}{" "}
      <Anchor component="button" type="button" inherit onClick={() => live.hurry()}>
        {t("Try again")}
      </Anchor>{" "}
    </>
  );
}
