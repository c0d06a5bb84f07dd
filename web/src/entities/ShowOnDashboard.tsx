// Shows chosen values of an entity as a widget of a new or an existing dashboard.

import { Modal } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { useLocation } from "wouter";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { addWidget, aliasFor, editable } from "@/dashboard/edit/document";
import { list, object, readDashboard, type Json } from "@/dashboard/model";
import { t } from "@/i18n";
import { FieldsForm } from "@/ui/FieldsForm";
import type { FormField, FormValues } from "@/ui/form/values";
import { newWidget, WIDGET_KINDS } from "@/widgets/catalog";
import { PALETTE } from "@/widgets/color";
import { nameOf } from "./kinds";

type KeyType = "timeseries" | "attribute";

/** Kinds of widgets that can show such keys: attributes have no course. */
function kindsFor(type: KeyType): typeof WIDGET_KINDS {
  return WIDGET_KINDS.filter((kind) => kind.keyless !== true && (kind.type === "latest" || (kind.type === "timeseries" && type === "timeseries")));
}

function fieldsFor(type: KeyType): FormField[] {
  const kinds = kindsFor(type);
  return [
    { name: "kind", label: "Widget", type: "select", required: true, initial: kinds[0]?.fqn, options: kinds.map(({ fqn, title }) => ({ value: fqn, label: title })) },
    {
      name: "where", label: "Dashboard", type: "select", required: true, initial: "NEW",
      options: [{ value: "NEW", label: "A new one" }, { value: "OLD", label: "One that there is" }],
    },
    { name: "title", label: "Title", required: true, when: ({ where }) => where === "NEW" },
    { name: "dashboard", label: "Dashboard to add to", type: "entity", list: "/api/tenant/dashboards", required: true, when: ({ where }) => where === "OLD" },
  ];
}

/** Adds a widget with values of an entity to the first state of a dashboard. */
export function withValues(configuration: unknown, fqn: string, entity: { id: EntityId; name: string }, type: KeyType, keys: readonly string[]): Json {
  const kind = WIDGET_KINDS.find((one) => one.fqn === fqn);
  if (kind === undefined) {
    throw new Error("This kind of widget is not known.");
  }
  const { document, alias } = aliasFor(editable(configuration), entity.id, entity.name);
  const dataKeys = keys.map((name, n) => ({ name, type, label: name, color: PALETTE[n % PALETTE.length], settings: {} }));
  const widget = newWidget(kind, keys.length === 1 ? (keys[0] ?? entity.name) : entity.name);
  const config = object(widget["config"]);
  const datasources = list(config["datasources"]).map((source) => ({ ...object(source), entityAliasId: alias, dataKeys }));
  const states = readDashboard(document).states;
  const state = (states.find((one) => one.root) ?? states[0])?.id ?? "default";
  return addWidget(document, state, { ...widget, config: { ...config, datasources } }, kind.size);
}

export default function ShowOnDashboard({ entity, type, keys, onClose }: { entity: Entity; type: KeyType; keys: string[]; onClose: () => void }): ReactElement {
  const [, go] = useLocation();
  const cache = useQueryClient();
  const add = async (values: FormValues): Promise<void> => {
    const chosen = values["dashboard"] as EntityId | undefined;
    const stored: Entity | { title: unknown } = values["where"] === "OLD" ? await api.get<Entity>(`/api/dashboard/${chosen?.id ?? ""}`) : { title: values["title"] };
    const before = "configuration" in stored ? stored.configuration : {};
    const configuration = withValues(before, String(values["kind"]), { id: entity.id, name: nameOf(entity) }, type, keys);
    const saved = await api.post<Entity>("/api/dashboard", { ...stored, configuration });
    await cache.invalidateQueries();
    go(`/dashboards/${saved.id.id}`);
  };
  return (
    <Modal opened onClose={onClose} title={t("Show on a dashboard")} closeButtonProps={{ "aria-label": t("Close") }}>
      <FieldsForm fields={fieldsFor(type)} values={{ title: nameOf(entity) }} action="Add the widget" onCancel={onClose} onSave={add} />
    </Modal>
  );
}
