// What stands in the place of a widget that nobody here can draw: its type, and the values that it would have shown.

import { Text } from "@mantine/core";
import type { ReactElement } from "react";
import { latestOf } from "@/dashboard/source";
import { t } from "@/i18n";
import type { WidgetProps } from "./registry";
import { shownValue } from "./text";
import classes from "./widgets.module.css";

export default function UnknownWidget({ widget, entities }: WidgetProps): ReactElement {
  const keys = widget.datasources.flatMap((source) => source.dataKeys);
  return (
    <div className={classes["scroll"]} tabIndex={0}>
      <Text size="sm" mb="xs">
        {t("Widgets of the type {type} can't be drawn yet. These are its values.", { type: widget.fqn })}
      </Text>
      <dl>
        {entities.slice(0, 50).flatMap((entity) =>
          keys.map((key) => {
            const value = latestOf(entity, key)?.value;
            return (
              <div key={`${entity.id.id} ${key.type} ${key.name}`}>
                <dt>
                  {entity.name} · {key.label}
                </dt>
                <dd>{value === undefined ? "–" : shownValue(value, key)}</dd>
              </div>
            );
          }),
        )}
      </dl>
    </div>
  );
}
