// Documents: what the program itself serves, and the addresses that a person has added.

import { ActionIcon, Anchor, Button, Group, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { number, object, text } from "@/dashboard/model";
import { safeUrl } from "@/dashboard/actions";
import { t } from "@/i18n";
import type { WidgetProps } from "../registry";
import { useLinks } from "./useLinks";
import classes from "./home.module.css";

/** Documents that every installation has. */
const OWN = [
  { label: "REST API", address: "/swagger-ui/" },
  { label: "Licences", address: "/licenses.txt" },
];

export default function DocumentationLinks({ widget }: WidgetProps): ReactElement {
  const { links, keep } = useLinks("DOC_LINKS");
  const [draft, setDraft] = useState<{ name: string; link: string }>();
  const added = (links ?? []).map(object);
  const shown = added.flatMap((one) => {
    const address = safeUrl(text(one["link"]));
    return address === undefined ? [] : [{ stored: one, address, name: text(one["name"]) ?? address }];
  });
  return (
    <div className={classes["links"]} style={{ gridTemplateColumns: `repeat(${Math.min(4, number(widget.settings["columns"]) ?? 2)}, minmax(0, 1fr))` }}>
      {OWN.map(({ label, address }) => (
        <div key={address} className={classes["row"]}>
          <Anchor href={address} target="_blank" rel="noopener">
            {t(label)}
          </Anchor>
        </div>
      ))}
      {shown.map(({ stored, address, name }) => (
        <div key={`${name} ${address}`} className={classes["row"]}>
          <Anchor href={address} target="_blank" rel="noopener noreferrer">
            {name}
          </Anchor>
          <ActionIcon size="sm" variant="subtle" color="gray" aria-label={t("Remove the link to {name}", { name })} onClick={() => keep(added.filter((one) => one !== stored))}>
            ✕
          </ActionIcon>
        </div>
      ))}
      {draft === undefined ? (
        <ActionIcon variant="default" aria-label={t("Add a link")} onClick={() => setDraft({ name: "", link: "https://" })}>
          +
        </ActionIcon>
      ) : (
        <form
          style={{ gridColumn: "1 / -1" }}
          onSubmit={(event) => {
            event.preventDefault();
            keep([...added, { icon: "notifications", ...draft }]);
            setDraft(undefined);
          }}
        >
          <Group gap={6} align="end">
            <TextInput size="xs" required label={t("Name")} value={draft.name} onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })} />
            <TextInput size="xs" required type="url" label={t("Address")} value={draft.link} onChange={(event) => setDraft({ ...draft, link: event.currentTarget.value })} />
            <Button size="xs" type="submit" disabled={safeUrl(draft.link) === undefined}>
              {t("Add")}
            </Button>
          </Group>
        </form>
      )}
    </div>
  );
}
