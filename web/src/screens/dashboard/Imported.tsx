// Tells after an import what came over as it was.

import { Alert, Button } from "@mantine/core";
import { lazy, Suspense, useMemo, useState, type ReactElement } from "react";
import { countsOf, importReport } from "@/dashboard/report";
import { t } from "@/i18n";
import { useMissingIcons } from "@/icons/drawings";

const ImportReport = lazy(() => import("./ImportReport"));

export default function Imported({ configuration, onClose }: { configuration: unknown; onClose: () => void }): ReactElement {
  const [reading, setReading] = useState(false);
  const isMissing = useMissingIcons();
  const counts = useMemo(() => countsOf(importReport(configuration, isMissing)), [configuration, isMissing]);
  return (
    <Alert mb="sm" withCloseButton closeButtonLabel={t("Close")} onClose={onClose} color={counts.unknown > 0 ? "yellow" : "teal"}>
      {t("Brought in: {native} widgets as they were made, {approximated} nearly, {code} with code, {unknown} not drawable.", { ...counts })}{" "}
      <Button size="compact-sm" variant="default" onClick={() => setReading(true)}>
        {t("See the report")}
      </Button>
      <Suspense>{reading && <ImportReport configuration={configuration} opened onClose={() => setReading(false)} />}</Suspense>
    </Alert>
  );
}
