// The fields of a form, drawn from their declarations.

import { Autocomplete, Checkbox, MultiSelect, NumberInput, PasswordInput, Select, TagsInput, Textarea, TextInput, Title } from "@mantine/core";
import { lazy, Suspense, useContext, type ReactElement } from "react";
import { t } from "@/i18n";
import { AroundContext } from "./around";
import { ChoiceField } from "./ChoiceField";
import { CodeField } from "./CodeField";
import { EntityPicker } from "./EntityPicker";
import { JsonField } from "./JsonField";
import { RatesField } from "./RatesField";
import { RowsField } from "./RowsField";
import { UnitField } from "./UnitField";
import { ValueField } from "./ValueField";
import { valueAt, withField, wordsOf, type FormField, type FormValues } from "./values";
import classes from "./form.module.css";

const ColorField = lazy(() => import("./ColorField"));
const ImageField = lazy(() => import("./ImageField").then((module) => ({ default: module.ImageField })));
const SeveralEntities = lazy(() => import("./SeveralEntities").then((module) => ({ default: module.SeveralEntities })));

interface FieldProps {
  field: FormField;
  value: unknown;
  values: FormValues;
  change: (value: unknown) => void;
}

const WIDE = new Set(["heading", "rows", "long", "code", "json", "value", "unit", "image", "own"]);

const DAY_MS = 86_400_000;
const pad = (n: number): string => String(n).padStart(2, "0");

/** Writes milliseconds since midnight as a time of the day. */
export function hoursText(ms: unknown): string {
  const minutes = Math.floor((typeof ms === "number" ? ms % DAY_MS : 0) / 60_000);
  return `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}

function localTime(ts: unknown): string {
  if (typeof ts !== "number" || ts === 0) {
    return "";
  }
  return new Date(ts - new Date(ts).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function Field({ field, value, values, change }: FieldProps): ReactElement {
  const help = field.help === undefined ? {} : { description: t(field.help) };
  const common = { label: t(field.label), required: field.required ?? false, ...help };
  const usual = typeof field.otherwise === "boolean" || field.otherwise === undefined ? {} : { placeholder: String(field.otherwise) };
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  const problem = text === "" ? undefined : field.problem?.(text);
  const around = useContext(AroundContext);
  const options = [
    ...(field.options ?? []).map((option) => (typeof option === "string" ? { value: option, label: t(wordsOf(option)) } : { value: option.value, label: t(option.label) })),
    ...(field.optionsFrom?.(around) ?? []),
  ];
  switch (field.type) {
    case "heading":
      return (
        <Title order={3} size="h5" mt="sm">
          {t(field.label)}
        </Title>
      );
    case "number":
      return <NumberInput {...common} {...usual} {...(field.least === undefined ? {} : { min: field.least })} {...(field.most === undefined ? {} : { max: field.most })} value={text === "" ? "" : Number(text)} onChange={(next) => change(next === "" ? null : Number(next))} />;
    case "boolean":
      return <Checkbox mt="xs" label={common.label} {...help} checked={(value ?? field.otherwise) === true} onChange={(event) => change(event.currentTarget.checked)} />;
    case "long":
      return <Textarea {...common} {...usual} error={problem === undefined ? undefined : t(problem)} autosize minRows={2} value={text} onChange={(event) => change(event.currentTarget.value)} />;
    case "code":
      return <CodeField {...common} value={value} change={change} />;
    case "password":
      return <PasswordInput {...common} visibilityToggleButtonProps={{ "aria-label": t("Show what is written") }} autoComplete="new-password" value={text} onChange={(event) => change(event.currentTarget.value)} />;
    case "select":
      return <Select {...common} data={options} value={text === "" ? (typeof field.otherwise === "string" ? field.otherwise : null) : text} allowDeselect={false} clearable={field.required !== true && field.otherwise === undefined} onChange={change} />;
    case "several":
      return <MultiSelect {...common} data={options} value={Array.isArray(value) ? value.map(String) : []} onChange={change} />;
    case "suggest":
      return <Autocomplete {...common} {...usual} data={options.map((option) => option.value)} value={text} onChange={change} />;
    case "color":
      return (
        <Suspense fallback={<TextInput {...common} value={text} readOnly />}>
          <ColorField label={common.label} {...usual} value={text} change={change} />
        </Suspense>
      );
    case "texts":
      return <TagsInput {...common} data={options.map((option) => option.value)} value={Array.isArray(value) ? value.map(String) : []} onChange={change} />;
    case "words":
      return <TagsInput {...common} data={options.map((option) => option.value)} value={text.split(" ").filter((word) => word !== "")} onChange={(words) => change(words.join(" "))} />;
    case "value":
      return <ValueField label={common.label} {...help} value={value ?? field.otherwise} change={change} />;
    case "choice":
    case "choices":
      return <ChoiceField label={common.label} {...help} choices={field.choicesOf?.(values) ?? []} multiple={field.type === "choices"} value={value} change={change} />;
    case "unit":
      return <UnitField label={common.label} {...help} known={options.map((option) => option.value)} value={value} change={change} />;
    case "image":
      return (
        <Suspense fallback={<TextInput {...common} value={text} readOnly />}>
          <ImageField label={common.label} value={text} onChange={change} />
        </Suspense>
      );
    case "entity": {
      const list = (field.list ?? "").replace(/\{([\w.]+)\}/g, (_, path: string) => String(valueAt(values, path) ?? ""));
      return <EntityPicker {...common} list={list} value={value} {...(field.pick === undefined ? {} : { pick: field.pick })} {...(field.one === undefined ? {} : { one: field.one })} onChange={change} />;
    }
    case "entities":
      return (
        <Suspense fallback={<TextInput {...common} value="" readOnly />}>
          <SeveralEntities label={field.label} entityType={field.list ?? ""} value={value} onChange={change} />
        </Suspense>
      );
    case "own": {
      const drawn = around.own?.[field.drawnBy ?? ""]?.({ field, value, values, change });
      return drawn === undefined ? <JsonField label={common.label} {...help} value={value} change={change} /> : <>{drawn}</>;
    }
    case "json":
      return <JsonField label={common.label} {...help} value={value} change={change} />;
    case "rows":
      return <RowsField field={field} value={value} change={change} />;
    case "rates":
      return <RatesField label={common.label} value={value} change={change} />;
    case "time":
      return (
        <TextInput {...common} type="datetime-local" value={localTime(value)} onChange={(event) => change(Date.parse(event.currentTarget.value) || 0)} />
      );
    case "hours":
      return (
        <TextInput
          {...common}
          type="time"
          value={hoursText(value)}
          onChange={(event) => {
            const [hours = 0, minutes = 0] = event.currentTarget.value.split(":").map(Number);
            change((hours * 60 + minutes) * 60_000);
          }}
        />
      );
    default:
      return <TextInput {...common} value={text} error={problem === undefined ? undefined : t(problem)} {...usual} onChange={(event) => change(event.currentTarget.value)} />;
  }
}

interface FieldsProps {
  fields: readonly FormField[];
  values: FormValues;
  change: (update: (before: FormValues) => FormValues) => void;
}

export function Fields({ fields, values, change }: FieldsProps): ReactElement {
  return (
    <div className={classes["fields"]}>
      {fields
        .filter((field) => field.when?.(values) ?? true)
        .map((field) => (
          <div key={`${field.name} ${field.label}`} className={WIDE.has(field.type ?? "text") && field.slim !== true ? classes["wide"] : ""}>
            <Field
              field={field}
              value={valueAt(values, field.name)}
              values={values}
              change={(value) => change((before) => withField(before, field, value))}
            />
          </div>
        ))}
    </div>
  );
}
