// A form that is made of declared fields. What is typed into it stays in this browser until it is saved or given up, if it has a name.

import { Alert, Button, Group, Stack } from "@mantine/core";
import { useContext, useEffect, useState, type FormEvent, type ReactElement, type ReactNode } from "react";
import { useFormDraft, type DraftPlace, type FormDraft } from "@/editing/formDraft";
import { Leaving } from "@/editing/Leaving";
import { formatMoment, t } from "@/i18n";
import { adviceOn, messageOf } from "./errors";
import { AroundContext } from "./form/around";
import { Fields } from "./form/Fields";
import { initialValues, type FormField, type FormValues } from "./form/values";

export type { FormField, FormValues } from "./form/values";

/** For queries whose answer a form begins with: asking again by itself would put what was typed away. */
export const AS_OPENED = { staleTime: Infinity, gcTime: 0 } as const;

interface FieldsFormProps {
  fields: readonly FormField[];
  values: FormValues;
  action: string;
  /**
   * Saves the values, which belong to a version of what is stored; what it throws is shown above the buttons, and nothing that was typed is
   * lost. False if they are not saved yet.
   */
  onSave: (values: FormValues, version: unknown) => Promise<void | false>;
  onCancel?: () => void;
  /** Names the form, so that what is typed is kept. */
  keep?: DraftPlace | undefined;
  /** Told whether there are changes, of forms that are kept. */
  onDirty?: (dirty: boolean) => void;
  /** More buttons, which see the values as they are now and may change them. */
  more?: (values: FormValues, change: (update: (before: FormValues) => FormValues) => void) => ReactNode;
}

function DraftNote({ draft, isOld, discard }: { draft: FormDraft; isOld: boolean; discard: () => void }): ReactElement {
  return (
    <Alert py="xs" role="status" title={t("Your unsaved changes of {time} are back.", { time: formatMoment(draft.at) })}>
      <Stack gap="xs" align="start">
        {draft.withheld && <span>{t("Passwords and other secrets were not kept. Please type them again.")}</span>}
        {isOld && <span>{t("Somebody has saved something else meanwhile. When you save, you are asked which values to keep.")}</span>}
        <Button size="compact-sm" variant="default" onClick={discard}>
          {t("Discard them")}
        </Button>
      </Stack>
    </Alert>
  );
}

export function FieldsForm({ fields, values: initial, action, onSave, onCancel, keep, onDirty, more }: FieldsFormProps): ReactElement {
  const around = useContext(AroundContext);
  const [begun, setBegun] = useState(() => initialValues(fields, initial));
  const draft = useFormDraft(keep, fields, begun);
  const { values, setValues, dirty, restored } = draft;
  const [round, setRound] = useState(0);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => onDirty?.(dirty), [dirty]);
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    draft.hold(true);
    try {
      if ((await onSave(values, draft.version)) !== false) {
        setBegun(values);
        draft.drop();
      }
    } catch (error) {
      setProblem([messageOf(error), adviceOn(error) ?? ""].join("\n").trim());
    } finally {
      draft.hold(false);
      setBusy(false);
    }
  };
  const put = (next: FormValues | ((before: FormValues) => FormValues)): void => {
    setValues(next);
    // Lists of rows hold what is typed into them, so they are drawn anew.
    setRound(round + 1);
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <Stack gap="sm" maw={fields.length > 4 ? 1040 : 560}>
        {restored !== undefined && (
          <DraftNote
            draft={restored}
            isOld={restored.version !== keep?.version}
            discard={() => {
              draft.drop();
              put(begun);
            }}
          />
        )}
        <AroundContext value={{ ...around, values }}>
          <Fields key={round} fields={fields} values={values} change={setValues} />
        </AroundContext>
        {problem !== "" && (
          <p role="alert" style={{ color: "var(--mantine-color-error)", margin: 0, whiteSpace: "pre-line", overflowWrap: "anywhere" }}>
            {problem}
          </p>
        )}
        <Group>
          <Button type="submit" loading={busy}>
            {t(action)}
          </Button>
          {more?.(values, put)}
          {onCancel !== undefined && (
            <Button
              variant="default"
              onClick={() => {
                draft.drop();
                onCancel();
              }}
            >
              {t("Cancel")}
            </Button>
          )}
        </Group>
      </Stack>
      {keep !== undefined && <Leaving dirty={dirty} kept={draft.kept} />}
    </form>
  );
}
