// The keys of a source in their order.

import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { addKey, changeKey, keysIn, moveKey, removeKey, type KeyList as Where } from "@/dashboard/edit/sources";
import { text, type Json } from "@/dashboard/model";
import { plural, t } from "@/i18n";
import type { FormField } from "@/ui/form/values";
import type { KeyUse } from "@/widgets/form/keys";
import type { Trial } from "./KeyFunction";
import { KeyRow } from "./KeyRow";
import { MoveHandle } from "./MoveHandle";
import { useOrder } from "./useOrder";

interface Props {
  source: Json;
  where: Where;
  /** What the list is called; a list alone needs no name. */
  title: string | undefined;
  use: KeyUse;
  kinds: readonly string[];
  most: number;
  fields: readonly FormField[];
  known: (kind: string) => readonly string[];
  turn: number;
  /** What a new one begins with. */
  begin: () => Json;
  change: (update: (source: Json) => Json) => void;
  /** Brings the rest of a key in line with its settings. */
  settle: ((key: Json) => Json) | undefined;
  trial: (key: Json) => Promise<Trial | undefined>;
}

export function KeyList({ source, where, title, most, begin, change, settle, ...shared }: Props): ReactElement {
  const keys = keysIn(source, where);
  const order = useOrder(keys.length, (from, to) => change((before) => moveKey(before, where, from, to)));
  // One alone is open from the beginning.
  const [open, setOpen] = useState<ReadonlySet<number>>(() => new Set(keys.length === 1 && where === "dataKeys" ? order.ids : []));
  const [opensNext, setOpensNext] = useState(false);
  const newest = order.ids.at(-1);
  if (opensNext && newest !== undefined && !open.has(newest)) {
    setOpen(new Set([...open, newest]));
    setOpensNext(false);
  }
  return (
    <Stack gap={6}>
      {title !== undefined && (
        <Title order={4} size="h6">
          {title}
        </Title>
      )}
      {keys.map((key, n) => {
        const id = order.ids[n] ?? n;
        const toggle = (): void => setOpen(open.has(id) ? new Set([...open].filter((one) => one !== id)) : new Set([...open, id]));
        return (
          <KeyRow
            key={id}
            {...shared}
            value={key}
            opened={open.has(id)}
            toggle={toggle}
            onChange={(update) => change((before) => changeKey(before, where, n, (one) => settle?.(update(one)) ?? update(one)))}
            onRemove={() => {
              order.removed(n);
              change((before) => removeKey(before, where, n));
            }}
            row={order.row(n)}
            handle={keys.length > 1 ? <MoveHandle name={text(key["name"]) ?? t("New key")} n={n} total={keys.length} events={order.handle(n)} /> : undefined}
          />
        );
      })}
      {keys.length > most && <Text size="xs">{plural(most, "Of these, the first {n} is drawn.", "Of these, the first {n} are drawn.")}</Text>}
      {keys.length < most && (
        <Group>
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              setOpensNext(true);
              change((before) => addKey(before, where, begin()));
            }}
          >
            {t(where === "dataKeys" ? "Add a key" : "Add a latest value")}
          </Button>
        </Group>
      )}
    </Stack>
  );
}
