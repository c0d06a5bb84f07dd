// The screens that a person has chosen for quick access, on a card or on the home screen.

import { ActionIcon, Select } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { TextLink } from "@/ui/feedback";
import { offeredTo, screenFor } from "./destinations";
import { useLinks } from "./useLinks";
import classes from "./home.module.css";

/** What is offered before anybody has chosen. */
const USUAL = ["/entities/devices", "/alarms/alarms", "/dashboards", "/ruleChains", "/customers", "/tenants", "/tenantProfiles"];

export default function LinkList({ columns }: { columns: number }): ReactElement {
  const { authority } = useSession();
  const { links, keep } = useLinks("QUICK_LINKS");
  const [adding, setAdding] = useState(false);
  const named = (links ?? USUAL).map(String);
  const screens = named.flatMap((name) => screenFor(name, authority) ?? []);
  const paths = screens.map(({ path }) => path);
  const others = offeredTo(authority).filter(({ path }) => !paths.includes(path));
  return (
    <div className={classes["links"]} style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
      {screens.map(({ path, label }) => (
        <div key={path} className={classes["row"]}>
          <TextLink to={path}>{t(label)}</TextLink>
          <ActionIcon size="sm" variant="subtle" color="gray" aria-label={t("Remove the link to {name}", { name: t(label) })} onClick={() => keep(paths.filter((one) => one !== path))}>
            ✕
          </ActionIcon>
        </div>
      ))}
      {adding ? (
        <Select
          aria-label={t("Screen")}
          size="xs"
          searchable
          data={others.map(({ path, label }) => ({ value: path, label: t(label) }))}
          value={null}
          onChange={(path) => {
            setAdding(false);
            if (path !== null) {
              keep([...paths, path]);
            }
          }}
        />
      ) : (
        <ActionIcon variant="default" aria-label={t("Add a link")} onClick={() => setAdding(true)}>
          +
        </ActionIcon>
      )}
    </div>
  );
}
