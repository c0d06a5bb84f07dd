// What the chain, as it is edited, would have done with stored telemetry. Nothing is stored and nothing leaves the platform.

import { Button, Checkbox, Group, Text } from "@mantine/core";
import { useEffect, useState, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import type { ReplayReport } from "@/api/schema.gen";
import { formatTime, t } from "@/i18n";
import { Replay } from "@/replay/Replay";
import type { FormValues } from "@/ui/form/values";
import { NO_MARKS, useEditor, type Marks } from "./editor";
import { readWish, wishedValues, writeWish, type ReplayWish } from "./replayWish";

const ALL_DEVICES: FormValues = {};

/** The one message that is replayed, and where it begins. */
function Wished({ wish, name, isHere, onHere, onDrop }: { wish: ReplayWish; name: string | undefined; isHere: boolean; onHere: (here: boolean) => void; onDrop: () => void }): ReactElement {
  return (
    <>
      <Group gap="xs" mb="xs">
        <Text size="sm">{t("One message: what the device sent at {time}, as it is stored.", { time: formatTime(wish.ts) })}</Text>
        <Button size="compact-xs" variant="subtle" onClick={onDrop}>
          {t("Replay more")}
        </Button>
      </Group>
      {name !== undefined && (
        <Checkbox
          size="xs"
          mb="xs"
          label={t("Begin at {name}", { name })}
          description={t("Without what the nodes before it would change.")}
          checked={isHere}
          onChange={(event) => onHere(event.currentTarget.checked)}
        />
      )}
    </>
  );
}

export default function ReplayPanel(): ReactElement {
  const { id, chain, metadata, setMarks } = useEditor();
  const [search, setSearch] = useSearchParams();
  const wish = readWish(search);
  const [isHere, setHere] = useState(false);
  const at = chain.nodes.findIndex(({ key, stored }) => wish !== undefined && stored.id?.id === wish.node && key !== chain.first);
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
    <>
      {wish !== undefined && <Wished wish={wish} name={chain.nodes[at]?.stored.name} isHere={isHere} onHere={setHere} onDrop={() => setSearch((before) => writeWish(before, undefined), { replace: true })} />}
      <Replay
        key={wish === undefined ? "" : `${wish.device} ${wish.ts}`}
        about={t("Runs stored telemetry through the chain as it is edited here. Nothing is stored, and nothing leaves the platform.")}
        chain={id}
        known={wish === undefined ? ALL_DEVICES : wishedValues(wish)}
        tried={() => ({ metadata: { ...metadata(), ...(isHere && at >= 0 ? { firstNodeIndex: at } : {}) } })}
        narrow
        onReport={mark}
      />
    </>
  );
}
