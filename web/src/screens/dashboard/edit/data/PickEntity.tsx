// Chooses one entity of any kind.

import { Group, Select } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { EntityId } from "@/api/types";
import { ENTITY_TYPES } from "@/dashboard/edit/aliasForms";
import { t } from "@/i18n";
import { EntityPicker } from "@/ui/form/EntityPicker";

const PICKED = ENTITY_TYPES.filter(({ list }) => list !== undefined);

/** Chooses an entity, for which the dashboard gets an alias if it has none. */
export function PickEntity({ choose }: { choose: (chosen: EntityId) => void }): ReactElement {
  const [type, setType] = useState("DEVICE");
  const path = PICKED.find(({ value }) => value === type)?.list ?? "";
  return (
    <Group gap={6} align="end" wrap="nowrap">
      <Select aria-label={t("Kind of entity")} w={110} allowDeselect={false} data={PICKED.map(({ value, label }) => ({ value, label: t(label) }))} value={type} onChange={(value) => setType(value ?? type)} />
      <EntityPicker label={t("Choose an entity")} list={path} value={null} onChange={(chosen) => chosen !== null && typeof chosen !== "string" && choose(chosen)} />
    </Group>
  );
}
