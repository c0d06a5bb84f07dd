// The text of a function or of markup. Functions may be stored with the modules that they need, which stay.

import { Textarea } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { codeText, isObject, withCode } from "./values";

interface Props {
  label: string;
  description?: string;
  required?: boolean;
  value: unknown;
  change: (value: unknown) => void;
}

const FEWEST_LINES = 3;
const MOST_LINES = 24;

export function CodeField({ label, description, required, value, change }: Props): ReactElement {
  const modules = isObject(value) && isObject(value["modules"]) ? Object.keys(value["modules"]) : [];
  const hint = [description ?? "", modules.length === 0 ? "" : t("Modules: {names}", { names: modules.join(", ") })].filter((line) => line !== "").join(" · ");
  return (
    <Textarea
      label={label}
      required={required ?? false}
      {...(hint === "" ? {} : { description: hint })}
      rows={Math.min(MOST_LINES, Math.max(FEWEST_LINES, codeText(value).split("\n").length + 1))}
      resize="vertical"
      spellCheck={false}
      wrap="off"
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13, whiteSpace: "pre", overflowX: "auto" } }}
      value={codeText(value)}
      onChange={(event) => change(withCode(value, event.currentTarget.value))}
    />
  );
}
