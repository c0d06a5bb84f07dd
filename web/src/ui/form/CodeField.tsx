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

export function CodeField({ label, description, required, value, change }: Props): ReactElement {
  const modules = isObject(value) && isObject(value["modules"]) ? Object.keys(value["modules"]) : [];
  const hint = [description ?? "", modules.length === 0 ? "" : t("Modules: {names}", { names: modules.join(", ") })].filter((line) => line !== "").join(" · ");
  return (
    <Textarea
      label={label}
      required={required ?? false}
      {...(hint === "" ? {} : { description: hint })}
      autosize
      minRows={4}
      maxRows={24}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      value={codeText(value)}
      onChange={(event) => change(withCode(value, event.currentTarget.value))}
    />
  );
}
