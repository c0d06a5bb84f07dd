// Gives elements of a drawing their tags: one is chosen by a click on it, or from the list.

import { Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useMemo, useRef, useState, type ReactElement } from "react";
import { number, object } from "@/dashboard/json";
import { t } from "@/i18n";
import { SANDBOX_PAGE } from "@/sandbox/calls";
import classes from "@/widgets/widgets.module.css";
import { elementsIn, isTagName, MARK, numbered, withElementTag } from "./elements";
import program from "./pick.js?raw";

function Picker({ drawing, chosen, onChoose }: { drawing: string; chosen: number | undefined; onChoose: (n: number) => void }): ReactElement {
  const frame = useRef<HTMLIFrameElement>(null);
  const [loaded, setLoaded] = useState(false);
  const newest = useRef(onChoose);
  newest.current = onChoose;
  useEffect(() => {
    const hear = (event: MessageEvent<unknown>): void => {
      const n = event.source === frame.current?.contentWindow ? number(object(event.data)["chosen"]) : undefined;
      if (n !== undefined) {
        newest.current(n);
      }
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, []);
  useEffect(() => {
    if (loaded) {
      // The frame has no origin, so no narrower target than all can be named; it is the one that is addressed.
      frame.current?.contentWindow?.postMessage({ kind: "program", source: program, state: { drawing: numbered(drawing), mark: MARK } }, "*");
    }
  }, [loaded, drawing]);
  useEffect(() => {
    if (loaded) {
      frame.current?.contentWindow?.postMessage({ kind: "news", news: { chosen: chosen ?? -1 } }, "*");
    }
  }, [loaded, chosen]);
  return <iframe ref={frame} className={classes["symbol"]} sandbox="allow-scripts" src={SANDBOX_PAGE} title={t("Elements of the drawing")} tabIndex={-1} onLoad={() => setLoaded(true)} />;
}

export function Tagging({ drawing, onChange }: { drawing: string; onChange: (drawing: string) => void }): ReactElement {
  const elements = useMemo(() => elementsIn(drawing), [drawing]);
  const [chosen, setChosen] = useState<number>();
  const [typed, setTyped] = useState<string>();
  const element = elements.find(({ n }) => n === chosen);
  const tag = typed ?? element?.tag ?? "";
  const choose = (n: number | undefined): void => {
    setChosen(n);
    setTyped(undefined);
  };
  const put = (wanted: string): void => {
    if (element !== undefined) {
      onChange(withElementTag(drawing, element.n, wanted));
      setTyped(undefined);
    }
  };
  return (
    <Stack gap="xs">
      <Text size="sm">{t("Click an element of the drawing, or choose it from the list, and name its tag. Elements of one tag are drawn alike.")}</Text>
      <div style={{ height: 260, border: "1px solid var(--mantine-color-default-border)", borderRadius: 6, overflow: "hidden" }}>
        <Picker key={drawing} drawing={drawing} chosen={chosen} onChoose={choose} />
      </div>
      <Group align="end" gap="xs">
        <Select
          flex={1}
          searchable
          label={t("Element")}
          value={element === undefined ? null : String(element.n)}
          data={elements.map(({ n, name, id, tag: own }) => ({ value: String(n), label: `${n} ${name}${id === "" ? "" : ` #${id}`}${own === "" ? "" : ` – ${own}`}` }))}
          limit={200}
          onChange={(n) => choose(n === null ? undefined : Number(n))}
        />
        <TextInput flex={1} label={t("Its tag")} disabled={element === undefined} value={tag} error={tag !== "" && !isTagName(tag) ? t("Letters, digits, spaces and . : - _ alone") : undefined} onChange={(event) => setTyped(event.currentTarget.value)} />
        <Button disabled={element === undefined || tag === element.tag || !isTagName(tag)} onClick={() => put(tag)}>
          {t("Give it this tag")}
        </Button>
        <Button variant="default" disabled={element === undefined || element.tag === ""} onClick={() => put("")}>
          {t("Take its tag away")}
        </Button>
      </Group>
    </Stack>
  );
}
