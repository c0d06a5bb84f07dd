// Entities with their latest values.

import { Anchor, Table } from "@mantine/core";
import type { ReactElement } from "react";
import { actionsOf } from "@/dashboard/actions";
import { latestOf } from "@/dashboard/source";
import { pathOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { EmptyState, TextLink } from "@/ui/feedback";
import type { WidgetProps } from "./registry";
import { shownValue } from "./text";
import classes from "./widgets.module.css";

export default function EntitiesTable({ widget, entities, act }: WidgetProps): ReactElement {
  const keys = (widget.datasources[0]?.dataKeys ?? []).filter((key) => !key.hidden && key.type !== "other");
  const { displayEntityName, entityNameColumnTitle } = widget.settings;
  const showName = displayEntityName !== false && !keys.some((key) => key.type === "entityField" && key.name === "name");
  const opens = actionsOf(widget.config, "rowClick").length > 0;
  if (entities.length === 0) {
    return <EmptyState>{t("No entities.")}</EmptyState>;
  }
  return (
    <div className={classes["scroll"]}>
      <Table stickyHeader aria-label={widget.title || t("Entities")}>
        <Table.Thead>
          <Table.Tr>
            {showName && <Table.Th>{typeof entityNameColumnTitle === "string" && entityNameColumnTitle !== "" ? entityNameColumnTitle : t("Name")}</Table.Th>}
            {keys.map((key) => (
              <Table.Th key={`${key.type} ${key.name} ${key.label}`}>{key.label}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {entities.map((entity) => {
            const path = pathOf(entity.id);
            const name = opens ? (
              <Anchor component="button" onClick={() => act("rowClick", entity)}>
                {entity.name}
              </Anchor>
            ) : path === undefined ? (
              entity.name
            ) : (
              <TextLink to={path}>{entity.name}</TextLink>
            );
            return (
              <Table.Tr key={entity.id.id}>
                {showName && <Table.Td>{name}</Table.Td>}
                {keys.map((key) => {
                  const value = latestOf(entity, key)?.value;
                  return <Table.Td key={`${key.type} ${key.name} ${key.label}`}>{value === undefined ? "" : shownValue(value, key)}</Table.Td>;
                })}
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </div>
  );
}
