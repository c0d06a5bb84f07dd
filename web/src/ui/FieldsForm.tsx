// A form declared as a list of fields.

import { Button, Checkbox, Group, NumberInput, PasswordInput, Stack, Textarea, TextInput } from "@mantine/core";
import { useState, type FormEvent, type ReactElement } from "react";
import { t } from "@/i18n";
import { messageOf } from "./feedback";

export interface FormField {
  name: string;
  label: string;
  type?: "text" | "number" | "boolean" | "long" | "password";
  required?: boolean;
  help?: string;
}

export type FormValues = Record<string, unknown>;

interface FieldsFormProps {
  fields: FormField[];
  values: FormValues;
  action: string;
  /** Saves the values; what it throws is shown above the buttons, and nothing that was typed is lost. */
  onSave: (values: FormValues) => Promise<void>;
  onCancel?: () => void;
}

function Field({ field, value, change }: { field: FormField; value: unknown; change: (value: unknown) => void }): ReactElement {
  const common = { label: t(field.label), required: field.required ?? false, ...(field.help === undefined ? {} : { description: t(field.help) }) };
  const text = typeof value === "string" ? value : "";
  switch (field.type) {
    case "number":
      return <NumberInput {...common} value={typeof value === "number" ? value : ""} onChange={(next) => change(next === "" ? null : next)} />;
    case "boolean":
      return <Checkbox label={common.label} checked={value === true} onChange={(event) => change(event.currentTarget.checked)} />;
    case "long":
      return <Textarea {...common} autosize minRows={2} value={text} onChange={(event) => change(event.currentTarget.value)} />;
    case "password":
      return <PasswordInput {...common} value={text} onChange={(event) => change(event.currentTarget.value)} />;
    default:
      return <TextInput {...common} value={text} onChange={(event) => change(event.currentTarget.value)} />;
  }
}

export function FieldsForm({ fields, values: initial, action, onSave, onCancel }: FieldsFormProps): ReactElement {
  const [values, setValues] = useState(initial);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await onSave(values);
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <Stack gap="sm" maw={560}>
        {fields.map((field) => (
          <Field
            key={field.name}
            field={field}
            value={values[field.name]}
            change={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
          />
        ))}
        {problem !== "" && (
          <p role="alert" style={{ color: "var(--mantine-color-error)", margin: 0 }}>
            {problem}
          </p>
        )}
        <Group>
          <Button type="submit" loading={busy}>
            {t(action)}
          </Button>
          {onCancel !== undefined && (
            <Button variant="default" onClick={onCancel}>
              {t("Cancel")}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
