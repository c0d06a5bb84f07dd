// A value as JSON. What is half typed is not stored yet.

import { JsonInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";

interface Props {
  label: string;
  description?: string;
  value: unknown;
  change: (value: unknown) => void;
}

export function JsonField({ label, description, value, change }: Props): ReactElement {
  const [text, setText] = useState(value === undefined || value === null ? "" : JSON.stringify(value, null, 2));
  return (
    <JsonInput
      label={label}
      description={description}
      autosize
      minRows={2}
      maxRows={20}
      value={text}
      validationError={t("This is no JSON; the last correct value is kept.")}
      onChange={(next) => {
        setText(next);
        try {
          change(next.trim() === "" ? null : (JSON.parse(next) as unknown));
        } catch {
          // A half typed value is not stored yet.
        }
      }}
    />
  );
}
