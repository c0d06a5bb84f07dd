// Alarms of all that somebody sees, or of one entity: narrowed, grouped, triaged by key, and told of when new ones come.

import { Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useMemo, useState, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import type { EntityId } from "@/api/types";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { rightsOf } from "./actions";
import { AlarmFilters } from "./AlarmFilters";
import { AlarmTable } from "./AlarmTable";
import { usualColumns } from "./columns";
import { conditionsOf, countOf, entitiesOf, NO_FILTER, readFilter, writeFilter, type AlarmFilter } from "./filter";
import { GROUPINGS, type Grouping } from "./grouping";
import { NoticeChoice } from "./NoticeChoice";

interface CentreProps {
  /** The entity whose alarms are meant, those that propagate to it among them. */
  id?: EntityId;
}

export function AlarmCentre({ id }: CentreProps): ReactElement {
  const session = useSession();
  const [search, setSearch] = useSearchParams();
  // The page of an entity has an address of its own.
  const [local, setLocal] = useState<AlarmFilter>(NO_FILTER);
  const [typed, setTyped] = useState("");
  const [wanted] = useDebouncedValue(typed, 200);
  const [group, setGroup] = useState<Grouping>();
  const filter = id === undefined ? readFilter(search) : local;
  const [more, { toggle }] = useDisclosure(countOf(filter) > 0);
  const columns = useMemo(() => usualColumns(), []);
  const change = (next: AlarmFilter): void => {
    if (id === undefined) {
      setSearch(new URLSearchParams(writeFilter(next)), { replace: true });
    } else {
      setLocal(next);
    }
  };
  const own = id === undefined ? filter : { ...filter, originator: id, propagated: true };
  const { remove, ...others } = rightsOf(session);
  return (
    <div style={{ height: id === undefined ? "calc(100vh - 9rem)" : "calc(100vh - 15rem)", minHeight: 320, display: "flex", flexDirection: "column" }}>
      {more && (
        <Group gap="xs" align="end" mb="xs">
          <AlarmFilters filter={filter} change={change} choosesOriginator={id === undefined} />
        </Group>
      )}
      <div style={{ flex: 1, minHeight: 0 }}>
        <AlarmTable
          label={t("Alarms")}
          query={{ filters: entitiesOf(own), conditions: conditionsOf(own), search: wanted }}
          columns={columns}
          sort={{ key: "createdTime", order: "DESC" }}
          rights={{ ...others, remove }}
          selects={others.acknowledge}
          showsDetails
          stored="alarms"
          group={group}
          help
          tools={
            <>
              <TextInput size="xs" w={170} aria-label={t("Search")} placeholder={t("Search")} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} />
              <Button size="compact-sm" variant={countOf(filter) > 0 ? "light" : "default"} aria-expanded={more} onClick={toggle}>
                {countOf(filter) > 0 ? t("Filters ({n})", { n: countOf(filter) }) : t("Filters")}
              </Button>
              {id === undefined && !more && (
                <Button size="compact-sm" variant={filter.states.length === 0 ? "light" : "default"} aria-pressed={filter.states.length === 0} onClick={() => change({ ...filter, states: filter.states.length === 0 ? ["ACTIVE"] : [] })}>
                  {t("Cleared ones too")}
                </Button>
              )}
              <Select size="xs" w={150} aria-label={t("Group by")} placeholder={t("Group by")} clearable clearButtonProps={{ "aria-label": t("Clear the choice") }} data={GROUPINGS.map(({ value, label }) => ({ value, label: t(label) }))} value={group ?? null} onChange={(value) => setGroup((value as Grouping | null) ?? undefined)} />
              {id === undefined && <NoticeChoice />}
            </>
          }
        />
      </div>
    </div>
  );
}
