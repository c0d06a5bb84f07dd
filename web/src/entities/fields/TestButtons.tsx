// Buttons below a form that try its scripts, and all of it on stored telemetry.

import { Button } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { withValue, type FormValues } from "@/ui/form/values";
import type { EntityKind } from "../kinds";
import { isReplayed } from "./replayed";
import { scriptsOf } from "./scripts";

const FieldReplay = lazy(() => import("./FieldReplay"));
const ScriptTest = lazy(() => import("./ScriptTest"));

interface Props {
  kind: EntityKind;
  values: FormValues;
  change: (update: (before: FormValues) => FormValues) => void;
}

export function TestButtons({ kind, values, change }: Props): ReactElement {
  const [path, setPath] = useState<string>();
  const [replaying, setReplaying] = useState(false);
  const scripts = scriptsOf(kind.type, values);
  const tested = scripts.find((script) => script.path === path);
  return (
    <>
      {scripts.map((script) => (
        <Button key={script.path} variant="default" onClick={() => setPath(script.path)}>
          {t("Test: {name}", { name: t(script.label) })}
        </Button>
      ))}
      {isReplayed(kind.type, values) && (
        <Button variant="default" onClick={() => setReplaying(true)}>
          {t("Replay")}
        </Button>
      )}
      {replaying && (
        <Suspense>
          <FieldReplay kind={kind} values={values} onClose={() => setReplaying(false)} />
        </Suspense>
      )}
      {tested !== undefined && (
        <Suspense>
          <ScriptTest
            endpoint={kind.one}
            script={tested}
            values={values}
            onUse={(text) => change((before) => withValue(before, tested.path, text))}
            onClose={() => setPath(undefined)}
          />
        </Suspense>
      )}
    </>
  );
}
