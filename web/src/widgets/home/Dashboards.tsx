// The dashboards that a person has visited lately, or marked.

import { ActionIcon, SegmentedControl } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { api } from "@/api/client";
import { t } from "@/i18n";
import { Ago, EmptyState, notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import classes from "./home.module.css";

interface Visited {
  id: string;
  title: string;
  starred?: boolean;
  lastVisited?: number;
}

interface Answer {
  last: Visited[];
  starred: Visited[];
}

const KEY = ["dashboards of user"];

export default function Dashboards(): ReactElement {
  const cache = useQueryClient();
  const [kind, setKind] = useState<"last" | "starred">("last");
  const stored = useQuery({ queryKey: KEY, queryFn: () => api.get<Answer>("/api/user/dashboards") });
  if (stored.isPending) {
    return <Waiting />;
  }
  if (stored.isError) {
    return <Problem error={stored.error} />;
  }
  const rows = stored.data[kind];
  const mark = (one: Visited): void => {
    api.get<Answer>(`/api/user/dashboards/${one.id}/${one.starred === true ? "unstar" : "star"}`).then((answer) => cache.setQueryData(KEY, answer), notify.error);
  };
  const marked = new Set(stored.data.starred.map(({ id }) => id));
  return (
    <div className={classes["links"]}>
      <SegmentedControl size="xs" aria-label={t("Which dashboards")} value={kind} onChange={(value) => setKind(value === "starred" ? "starred" : "last")} data={[{ value: "last", label: t("Visited lately") }, { value: "starred", label: t("Marked") }]} />
      {rows.length === 0 && <EmptyState>{kind === "last" ? t("Dashboards that you open are listed here.") : t("Mark a dashboard with the star beside it.")}</EmptyState>}
      {rows.map((one) => (
        <div key={one.id} className={classes["row"]}>
          <TextLink to={`/dashboards/${one.id}`}>{one.title}</TextLink>
          {one.lastVisited !== undefined && one.lastVisited > 0 && (
            <small>
              <Ago ts={one.lastVisited} />
            </small>
          )}
          <ActionIcon size="sm" variant="subtle" aria-pressed={marked.has(one.id)} aria-label={t("Mark {name}", { name: one.title })} onClick={() => mark({ ...one, starred: marked.has(one.id) })}>
            {marked.has(one.id) ? "★" : "☆"}
          </ActionIcon>
        </div>
      ))}
    </div>
  );
}
