// What the chain, as it is edited, would have done with stored telemetry. Nothing is stored and nothing leaves the platform.

import { useEffect, type ReactElement } from "react";
import type { ReplayReport } from "@/api/schema.gen";
import { t } from "@/i18n";
import { Replay } from "@/replay/Replay";
import type { FormValues } from "@/ui/form/values";
import { NO_MARKS, useEditor, type Marks } from "./editor";

const ALL_DEVICES: FormValues = {};

export default function ReplayPanel(): ReactElement {
  const { id, chain, metadata, setMarks } = useEditor();
  useEffect(() => () => setMarks(NO_MARKS), [setMarks]);
  const mark = (report: ReplayReport): void => {
    const [counts, wires]: [Map<string, { in: number; out: number; errors: number }>, Map<string, number>] = [new Map(), new Map()];
    for (const done of report.nodes) {
      const key = chain.nodes.find(({ stored }) => (stored.id?.id === undefined ? stored.name === done.name : stored.id.id === done.id.id))?.key;
      if (key !== undefined) {
        counts.set(key, { in: done.input, out: Object.values(done.output).reduce((sum, n) => sum + n, 0), errors: done.failures });
        Object.entries(done.output).forEach(([label, n]) => wires.set(`${key}>${label.toLowerCase()}`, n));
      }
    }
    setMarks({ counts, wires, lit: undefined } satisfies Marks);
  };
  return (
    <Replay
      about={t("Runs stored telemetry through the chain as it is edited here. Nothing is stored, and nothing leaves the platform.")}
      chain={id}
      known={ALL_DEVICES}
      tried={() => ({ metadata: metadata() })}
      narrow
      onReport={mark}
    />
  );
}
