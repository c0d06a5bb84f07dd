// What is on a map as a list, for those who search, and those who see no map.

import { CloseButton, Group, TextInput } from "@mantine/core";
import { useMemo, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { isPlaced, type MapItem } from "./items";
import classes from "./map.module.css";

/** More entries than these are found by searching. */
const MOST = 100;

interface Props {
  items: readonly MapItem[];
  onChoose: (item: MapItem) => void;
  onClose: () => void;
}

export default function MapList({ items, onChoose, onClose }: Props): ReactElement {
  const [search, setSearch] = useState("");
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return items.filter((item) => item.entity.name.toLowerCase().includes(wanted)).sort((a, b) => a.entity.name.localeCompare(b.entity.name));
  }, [items, search]);
  return (
    <div className={classes["side"]} role="region" aria-label={t("What is on the map")}>
      <Group gap={4} wrap="nowrap">
        <TextInput size="xs" flex={1} aria-label={t("Search on the map")} placeholder={t("Search on the map")} value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
        <CloseButton aria-label={t("Close")} onClick={onClose} />
      </Group>
      <ul>
        {found.slice(0, MOST).map((item) => (
          <li key={item.id}>
            <button type="button" disabled={!isPlaced(item)} onClick={() => onChoose(item)}>
              {item.entity.name}
              {!isPlaced(item) && ` · ${t("no place yet")}`}
            </button>
          </li>
        ))}
        {found.length > MOST && <li>{t("{n} more. Search to find them.", { n: found.length - MOST })}</li>}
        {found.length === 0 && <li>{t("Nothing found.")}</li>}
      </ul>
    </div>
  );
}
