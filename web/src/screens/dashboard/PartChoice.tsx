// On phones, which of the two parts of a state is shown.

import { SegmentedControl } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import classes from "./dashboard.module.css";

export default function PartChoice({ shown, onChoose }: { shown: "main" | "right"; onChoose: (part: "main" | "right") => void }): ReactElement {
  return (
    <SegmentedControl
      className={classes["panes"] ?? ""}
      aria-label={t("Part of the dashboard")}
      value={shown}
      onChange={(value) => onChoose(value === "right" ? "right" : "main")}
      data={[{ value: "main", label: t("Left part") }, { value: "right", label: t("Right part") }]}
    />
  );
}
