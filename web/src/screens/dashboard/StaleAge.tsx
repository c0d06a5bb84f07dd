// How old the values of a widget are, while nothing comes that could renew them.

import type { ReactElement } from "react";
import { newestOf } from "@/dashboard/age";
import type { EntityValues } from "@/dashboard/source";
import { t } from "@/i18n";
import { live } from "@/live/socket";
import { Ago } from "@/ui/feedback";
import classes from "./dashboard.module.css";

/** What widgets show whose entities aren't known here was so when the connection was lost. */
export function StaleAge({ entities }: { entities: readonly EntityValues[] | undefined }): ReactElement | null {
  const ts = entities === undefined ? live.lostAt : newestOf(entities);
  return ts === undefined ? null : (
    <p className={classes["age"]} data-age>
      {entities === undefined ? t("Last update") : t("Last value")} <Ago ts={ts} />
    </p>
  );
}
