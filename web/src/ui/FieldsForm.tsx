// A form declared as a list of fields.

import { Button, Group, Stack } from "@mantine/core";
import { useState, type FormEvent, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import { messageOf } from "./feedback";
import { Fields } from "./form/Fields";
import { initialValues, type FormField, type FormValues } from "./form/values";

export type { FormField, FormValues } from "./form/values";

/** For queries whose answer a form begins with: asking again by itself would put what was typed away. */
export const AS_OPENED = { staleTime: Infinity, gcTime: 0 } as const;

interface FieldsFormProps {
  fields: readonly FormField[];
  values: FormValues;
  action: string;
  /** Saves the values; what it throws is shown above the buttons, and nothing that was typed is lost. */
  onSave: (values: FormValues) => Promise<void>;
  onCancel?: () => void;
  /** Told of each change of a value. */
  onTouched?: () => void;
  /** More buttons, which see the values as they are now and may change them. */
  more?: (values: FormValues, change: (update: (before: FormValues) => FormValues) => void) => ReactNode;
}

export function FieldsForm({ fields, values: initial, action, onSave, onCancel, onTouched, more }: FieldsFormProps): ReactElement {
  const [values, put] = useState(() => initialValues(fields, initial));
  const setValues: typeof put = (next) => {
    onTouched?.();
    put(next);
  };
  const [round, setRound] = useState(0);
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
      <Stack gap="sm" maw={fields.length > 4 ? 1040 : 560}>
        <Fields key={round} fields={fields} values={values} change={setValues} />
        {problem !== "" && (
          <p role="alert" style={{ color: "var(--mantine-color-error)", margin: 0 }}>
            {problem}
          </p>
        )}
        <Group>
          <Button type="submit" loading={busy}>
            {t(action)}
          </Button>
          {more?.(values, (update) => {
            setValues(update);
            // Lists of rows hold what is typed into them, so they are drawn anew.
            setRound(round + 1);
          })}
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
