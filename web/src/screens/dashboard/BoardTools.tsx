// The tools of a dashboard: its logo, the way back through its states, what its reader chooses, and the time.

import { Breadcrumbs, Button, Group } from "@mantine/core";
import { lazy, Suspense, useMemo, type ReactElement, type ReactNode } from "react";
import { isChoice, type Choices } from "@/dashboard/aliases";
import { userValues } from "@/dashboard/filters";
import type { Dashboard } from "@/dashboard/model";
import type { OpenState } from "@/dashboard/state";
import { rulesOf } from "@/dashboard/time/rules";
import type { FilterValues as Values } from "@/dashboard/viewer";
import { t } from "@/i18n";
import { stateName } from "./actions/stateName";
import type { Shown } from "./shown";
import { WindowPicker } from "./time/WindowPicker";
import type { Fill } from "./useFill";
import classes from "./dashboard.module.css";

// Few dashboards leave something to choose.
const EntityChoice = lazy(() => import("./EntityChoice"));
const FilterValues = lazy(() => import("./FilterValues"));

/** The states that lead to the open one; nothing at the first. */
export function StatePath({ model, path, go }: { model: Dashboard; path: OpenState[]; go: (path: OpenState[]) => void }): ReactElement | null {
  return path.length < 2 ? null : (
    <Breadcrumbs>
      {path.map((open, n) => (
        <Button key={`${open.id} ${n}`} size="compact-sm" variant="subtle" onClick={() => go(path.slice(0, n + 1))}>
          {stateName(model, open)}
        </Button>
      ))}
    </Breadcrumbs>
  );
}

interface ToolsProps {
  shown: Shown;
  path: OpenState[];
  go: (path: OpenState[]) => void;
  fill: Fill;
  onChoices: (choices: Choices) => void;
  onValues: (values: Values) => void;
  /** What comes before the path, such as the title. */
  head?: ReactNode;
  /** What comes after the usual tools. */
  children?: ReactNode;
}

export function BoardTools({ shown, path, go, fill, onChoices, onValues, head, children }: ToolsProps): ReactElement {
  const { stored, model, choices, values, time } = shown;
  const { settings } = stored;
  const rules = useMemo(() => rulesOf(model.timeWindow), [model]);
  const leavesEntities = settings.showEntitiesSelect && [...stored.aliases.values()].some(isChoice);
  const leavesValues = settings.showFilters && [...stored.filters.values()].some((filter) => userValues(filter).length > 0);
  return (
    <Group mb="sm" gap="sm">
      {head}
      <StatePath model={model} path={path} go={go} />
      <Group ms="auto" gap="xs" className={classes["tools"] ?? ""}>
        <Suspense>
          {leavesEntities && <EntityChoice model={stored} params={path.at(-1)?.params ?? {}} choices={choices} onChange={onChoices} />}
          {leavesValues && <FilterValues model={stored} values={values} onChange={onValues} />}
        </Suspense>
        {settings.showTimeWindow && <WindowPicker control={time} rules={rules} />}
        <Button variant="default" aria-pressed={fill.filled} onClick={fill.toggle}>
          {t(fill.filled ? "Leave full screen" : "Full screen")}
        </Button>
        {children}
      </Group>
    </Group>
  );
}
