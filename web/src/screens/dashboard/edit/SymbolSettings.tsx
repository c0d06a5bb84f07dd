// What is set of a widget's symbol: where its values come from, what clicks do, and its properties.

import { Accordion, Fieldset, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactElement } from "react";
import { list, object, text, type Json } from "@/dashboard/json";
import { settleAction } from "@/dashboard/edit/mobileAction";
import { t } from "@/i18n";
import { EmptyState, Problem, Waiting } from "@/ui/feedback";
import { Fields } from "@/ui/form/Fields";
import type { FormValues } from "@/ui/form/values";
import { drawingText } from "@/ui/images";
import { merged, metadataOf } from "@/widgets/symbol/symbol";
import { behaviorParts, OWN, propertyBeginnings, propertyFields, withBehavior, withProperties, type BehaviorPart } from "@/widgets/symbol/symbolForm";

interface Props {
  settings: Json;
  change: (update: (before: FormValues) => FormValues) => void;
}

/** An action follows its type; other behaviours have no types of actions, and stay as they are. */
function settled(next: FormValues, before: FormValues): FormValues {
  return { [OWN]: settleAction(object(next[OWN]), object(before[OWN])) };
}

export default function SymbolSettings({ settings, change }: Props): ReactElement {
  const own = text(settings["scadaSymbolContent"]);
  const link = text(settings["scadaSymbolUrl"]) ?? "";
  const drawing = useQuery({ queryKey: ["drawing", link], queryFn: () => drawingText(link), enabled: own === undefined && link !== "", staleTime: Infinity, retry: false });
  const content = own ?? drawing.data;
  const form = useMemo(() => {
    const metadata = metadataOf(content ?? "");
    const properties = list(metadata["properties"]);
    return { behaviors: behaviorParts(metadata), properties: propertyFields(properties), begin: propertyBeginnings(properties) };
  }, [content]);
  if (drawing.isError) {
    return <Problem error={drawing.error} />;
  }
  if (content === undefined) {
    return own === undefined && link === "" ? <EmptyState>{t("No symbol is chosen yet.")}</EmptyState> : <Waiting />;
  }
  const stored = object(settings["scadaSymbolObjectSettings"]);
  const valuesOf = (part: BehaviorPart): FormValues => ({ [OWN]: merged(part.begin, object(stored["behavior"])[part.id] ?? {}) });
  return (
    <Stack gap="sm">
      {form.behaviors.length > 0 && (
        <Fieldset legend={t("Behavior")} p="xs">
          <Accordion multiple variant="contained" chevronPosition="left">
            {form.behaviors.map((part) => (
              <Accordion.Item key={part.id} value={part.id}>
                <Accordion.Control>
                  {part.title}
                  {part.hint !== "" && (
                    <Text size="xs" c="var(--soft-text)">
                      {part.hint}
                    </Text>
                  )}
                </Accordion.Control>
                <Accordion.Panel>
                  <Fields fields={part.fields} values={valuesOf(part)} change={(update) => change((before) => withBehavior(before, part, (own) => settled(update(own), own)))} />
                </Accordion.Panel>
              </Accordion.Item>
            ))}
          </Accordion>
        </Fieldset>
      )}
      {form.properties.length > 0 && (
        <Fieldset legend={t("Properties")} p="xs">
          <Fields fields={form.properties} values={object(merged(form.begin, stored["properties"] ?? {}))} change={(update) => change((before) => withProperties(before, form.begin, update))} />
        </Fieldset>
      )}
    </Stack>
  );
}
