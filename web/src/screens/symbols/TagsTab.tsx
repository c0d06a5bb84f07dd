// The code of each tag: how what has it is drawn, and what a click on it does.

import { Badge, Group, NavLink, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement } from "react";
import { list, object, text, type Json } from "@/dashboard/json";
import { t } from "@/i18n";
import { EmptyState, Waiting } from "@/ui/feedback";
import { tagCode, tagsIn, withTagCode, type TagCode } from "./symbolFile";

const CodeEditor = lazy(() => import("@/ui/CodeEditor"));

const API = ["text", "font", "icon", "formatValue", "callAction", "setValue", "disable", "enable", "cssAnimate", "cssAnimation", "resetCssAnimation", "finishCssAnimation", "connectorAnimate", "connectorAnimation", "resetConnectorAnimation", "finishConnectorAnimation", "generateElementId", "unitSymbol", "convertUnitValue"];

/** What completion offers to code of a symbol. */
export function wordsOf(metadata: Json): { label: string; type: string }[] {
  const named = (part: string, before: string): { label: string; type: string }[] => list(metadata[part]).flatMap((one) => text(object(one)["id"]) ?? []).map((id) => ({ label: `${before}.${id}`, type: "variable" }));
  return [...API.map((name) => ({ label: `ctx.api.${name}`, type: "function" })), ...named("behavior", "ctx.values"), ...named("properties", "ctx.properties"), ...["tags", "svg"].map((name) => ({ label: `ctx.${name}`, type: "variable" }))];
}

interface Props {
  drawing: string;
  metadata: Json;
  change: (update: (before: Json) => Json) => void;
}

export function TagsTab({ drawing, metadata, change }: Props): ReactElement {
  const drawn = tagsIn(drawing);
  const all = [...new Set([...drawn, ...list(metadata["tags"]).flatMap((tag) => text(object(tag)["tag"]) ?? [])])];
  const [chosen, setChosen] = useState(all[0]);
  const tag = chosen !== undefined && all.includes(chosen) ? chosen : all[0];
  if (tag === undefined) {
    return <EmptyState>{t("The drawing has no tags yet. Give them to its elements in “Elements”.")}</EmptyState>;
  }
  const code = tagCode(metadata, tag);
  const put = (changed: Partial<TagCode>): void => change((before) => withTagCode(before, tag, changed));
  return (
    <Group align="start" wrap="nowrap">
      <Stack gap={2} w={180} component="nav" aria-label={t("Tags")} style={{ flex: "none" }}>
        {all.map((name) => {
          const { render, click } = tagCode(metadata, name);
          const has = [render === "" ? "" : t("drawn"), click === "" ? "" : t("click")].filter((one) => one !== "").join(", ");
          return <NavLink key={name} component="button" active={name === tag} label={name} description={drawn.includes(name) ? has : t("not in the drawing")} onClick={() => setChosen(name)} />;
        })}
      </Stack>
      <Stack gap="xs" flex={1} miw={0}>
        {!drawn.includes(tag) && <Badge color="orange" variant="outline">{t("not in the drawing")}</Badge>}
        <Suspense fallback={<Waiting />}>
          <Text size="sm">{t("How it is drawn, with each new value: function (ctx, element)")}</Text>
          <CodeEditor key={`${tag} render`} label={t("How “{tag}” is drawn", { tag })} language="JS" value={code.render} words={wordsOf(metadata)} onChange={(render) => put({ render })} height="30vh" />
          <Text size="sm">{t("What a click does: function (ctx, element, event)")}</Text>
          <CodeEditor key={`${tag} click`} label={t("What a click on “{tag}” does", { tag })} language="JS" value={code.click} words={wordsOf(metadata)} onChange={(click) => put({ click })} height="20vh" />
        </Suspense>
      </Stack>
    </Group>
  );
}
