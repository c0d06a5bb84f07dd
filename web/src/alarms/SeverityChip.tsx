// A severity in its colour, wherever one is named.

import { Badge } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { SEVERITY_COLORS } from "./alarm";

export function SeverityChip({ severity }: { severity: string }): ReactElement {
  // A chip that may shrink claims no room of its column, whose texts would take all of it.
  return (
    <Badge variant="dot" size="sm" miw="max-content" color={SEVERITY_COLORS[severity] ?? "gray"} data-severity={severity}>
      {t(severity)}
    </Badge>
  );
}
