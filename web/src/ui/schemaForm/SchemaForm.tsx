// A form for any value that a JSON Schema describes. What the schema doesn't know stays in the value; raw JSON is the other view.

import { Autocomplete, Button, Checkbox, Fieldset, Group, MultiSelect, NumberInput, PasswordInput, SegmentedControl, Select, Stack, TagsInput, Text, Textarea, TextInput } from "@mantine/core";
import { lazy, Suspense, useState, type ReactElement, type ReactNode } from "react";
import { t } from "@/i18n";
import { Waiting } from "@/ui/feedback";
import { choicesOf, defaultOf, labelOf, resolve, typeOf, variantsOf, type Json, type Schema, type Variant } from "./schema";
import { offered } from "./offered";

const CodeEditor = lazy(() => import("@/ui/CodeEditor"));

/** What a field is shown with: its value, its place, and how to change it. */
export interface FieldProps {
  name: string;
  label: string;
  schema: Schema;
  root: Schema;
  value: unknown;
  onChange: (value: unknown) => void;
  /** All of the object that the field belongs to. */
  siblings: Json;
  /** Fields that the screen shows in a way of its own; `undefined` for all others. */
  custom: ((field: FieldProps) => ReactNode | undefined) | undefined;
}

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));

const describe = ({ description }: Schema): { description?: string } => (description === undefined ? {} : { description: t(description) });

function MapField({ label, schema, value, onChange }: FieldProps): ReactElement {
  const entries = isRecord(value) ? Object.entries(value) : [];
  const [rows, setRows] = useState(() => entries.map(([key, one]) => [key, textOf(one)] as const));
  const change = (next: (readonly [string, string])[]): void => {
    setRows(next);
    onChange(Object.fromEntries(next.filter(([key]) => key !== "")));
  };
  return (
    <Fieldset legend={label} p="xs">
      {schema.description !== undefined && <Text size="xs" c="var(--soft-text)">{t(schema.description)}</Text>}
      <Stack gap={4}>
        {rows.map(([key, text], at) => (
          <Group key={at} gap={4} wrap="nowrap">
            <TextInput size="xs" aria-label={t("Key {n}", { n: at + 1 })} value={key} onChange={(event) => change(rows.with(at, [event.currentTarget.value, text]))} />
            <TextInput size="xs" aria-label={t("Value {n}", { n: at + 1 })} value={text} onChange={(event) => change(rows.with(at, [key, event.currentTarget.value]))} />
            <Button size="compact-xs" variant="subtle" aria-label={t("Remove row {n}", { n: at + 1 })} onClick={() => change(rows.toSpliced(at, 1))}>
              ×
            </Button>
          </Group>
        ))}
        <Button size="compact-xs" variant="default" onClick={() => setRows([...rows, ["", ""]])}>
          {t("Add a row")}
        </Button>
      </Stack>
    </Fieldset>
  );
}

function ListField(field: FieldProps): ReactElement {
  const items = Array.isArray(field.value) ? (field.value as unknown[]) : [];
  const item = resolve(field.schema.items ?? { type: "string" }, field.root);
  const choices = choicesOf(item, field.name);
  const common = { size: "xs" as const, label: field.label, ...describe(field.schema), value: items.map(textOf), onChange: field.onChange };
  if (choices !== undefined) {
    return <MultiSelect {...common} searchable data={offered(choices, common.value)} />;
  }
  if (typeOf(item) === "string") {
    return <TagsInput {...common} data={[]} splitChars={[","]} />;
  }
  return (
    <Fieldset legend={field.label} p="xs">
      {items.map((one, at) => (
        <Group key={at} align="start" wrap="nowrap" gap={4}>
          <div style={{ flex: 1 }}>
            <Field {...field} name={`${at}`} label={`${field.label} ${at + 1}`} schema={item} value={one} onChange={(next) => field.onChange(items.with(at, next))} />
          </div>
          <Button size="compact-xs" variant="subtle" aria-label={t("Remove row {n}", { n: at + 1 })} onClick={() => field.onChange(items.toSpliced(at, 1))}>
            ×
          </Button>
        </Group>
      ))}
      <Button size="compact-xs" mt={4} variant="default" onClick={() => field.onChange([...items, defaultOf(item, field.root)])}>
        {t("Add a row")}
      </Button>
    </Fieldset>
  );
}

function Properties({ field, schema }: { field: FieldProps; schema: Schema }): ReactElement {
  const value = isRecord(field.value) ? field.value : {};
  return (
    <Stack gap="xs">
      {Object.entries(schema.properties ?? {})
        .filter(([, one]) => one.const === undefined)
        .map(([name, one]) => {
          const known = resolve(one, field.root);
          return <Field key={name} {...field} name={name} label={t(known.title ?? labelOf(name))} schema={known} value={value[name]} siblings={value} onChange={(next) => field.onChange({ ...value, [name]: next })} />;
        })}
    </Stack>
  );
}

function VariantField({ field, tag, variants }: { field: FieldProps; tag: string; variants: Variant[] }): ReactElement {
  const value = isRecord(field.value) ? field.value : {};
  const chosen = variants.find((one) => one.value === String(value[tag]));
  return (
    <Stack gap="xs">
      <Select
        size="xs"
        label={t(labelOf(tag))}
        data={offered(variants, [])}
        value={chosen?.value ?? null}
        allowDeselect={false}
        onChange={(name) => {
          const next = variants.find((one) => one.value === name);
          const start = next === undefined ? {} : defaultOf(next.schema, field.root);
          field.onChange({ ...(isRecord(start) ? start : {}), [tag]: name });
        }}
      />
      {chosen !== undefined && <Properties field={field} schema={{ ...chosen.schema, properties: Object.fromEntries(Object.entries(chosen.schema.properties ?? {}).filter(([name]) => name !== tag)) }} />}
    </Stack>
  );
}

function Code({ field, language }: { field: FieldProps; language: "JS" | "TBEL" | "JSON" }): ReactElement {
  return (
    <div>
      <Text size="xs" fw={500} mb={2}>
        {field.label}
      </Text>
      <Suspense fallback={<Waiting />}>
        <CodeEditor label={field.label} language={language} value={textOf(field.value)} onChange={field.onChange} height="140px" />
      </Suspense>
    </div>
  );
}

/** An object that is written as JSON. */
function ObjectJson({ field }: { field: FieldProps }): ReactElement {
  return (
    <div>
      <Text size="xs" fw={500} mb={2}>
        {field.label}
      </Text>
      <RawJson label={field.label} value={field.value ?? {}} onChange={field.onChange} height="140px" />
    </div>
  );
}

function Field(field: FieldProps): ReactElement {
  const { schema, label, value, onChange } = field;
  const custom = field.custom?.(field);
  if (custom !== undefined) {
    return <>{custom}</>;
  }
  const common = { size: "xs" as const, label, ...describe(schema) };
  const variants = variantsOf(schema, field.root);
  const choices = choicesOf(schema, field.name);
  if (choices !== undefined) {
    const [text, data] = [textOf(value), offered(choices, [textOf(value)])];
    return <Select {...common} data={data} value={data.some((one) => one.value === text) ? text : null} allowDeselect={false} onChange={onChange} />;
  }
  if (variants !== undefined) {
    return <Fieldset legend={label} p="xs"><VariantField field={field} {...variants} /></Fieldset>;
  }
  switch (schema["x-editor"]) {
    case "password":
      return <PasswordInput {...common} visibilityToggleButtonProps={{ "aria-label": t("Show what is written") }} autoComplete="off" value={textOf(value)} onChange={(event) => onChange(event.currentTarget.value)} />;
    case "script":
      return <Code field={field} language={schema["x-language"] === "JS" || /js/i.test(field.name) ? "JS" : "TBEL"} />;
    case "json":
      return typeOf(schema) === "object" ? <ObjectJson field={field} /> : <Code field={field} language="JSON" />;
    case "pem":
    case "template":
      return <Textarea {...common} autosize minRows={1} maxRows={10} value={textOf(value)} onChange={(event) => onChange(event.currentTarget.value)} />;
    case "relationType":
      return <Autocomplete {...common} data={["Contains", "Manages"]} value={textOf(value)} onChange={onChange} />;
    case "map":
      return <MapField {...field} />;
  }
  switch (typeOf(schema)) {
    case "boolean":
      return <Checkbox {...common} checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
    case "number":
    case "integer":
      return (
        <NumberInput
          {...common}
          value={typeof value === "number" ? value : ""}
          allowDecimal={typeOf(schema) === "number"}
          {...(schema.minimum === undefined ? {} : { min: schema.minimum })}
          {...(schema.maximum === undefined ? {} : { max: schema.maximum })}
          {...(schema["x-unit"] === undefined ? {} : { suffix: ` ${schema["x-unit"]}` })}
          onChange={(next) => onChange(next === "" ? null : Number(next))}
        />
      );
    case "array":
      return <ListField {...field} />;
    case "object":
      return schema.properties === undefined ? <MapField {...field} /> : <Fieldset legend={label} p="xs"><Properties field={field} schema={schema} /></Fieldset>;
    default:
      return <TextInput {...common} value={textOf(value)} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
}

/** The value as JSON text; text that is no JSON is not taken over. */
export function RawJson({ label, value, onChange, height = "360px" }: { label: string; value: unknown; onChange: (value: unknown) => void; height?: string }): ReactElement {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  return (
    <Suspense fallback={<Waiting />}>
      <CodeEditor
        label={label}
        language="JSON"
        value={text}
        height={height}
        onChange={(next) => {
          setText(next);
          try {
            onChange(JSON.parse(next));
          } catch {
            // The editor marks what is wrong; the value stays as it was.
          }
        }}
      />
    </Suspense>
  );
}

export function SchemaForm({ schema, value, onChange, custom }: { schema: Schema; value: unknown; onChange: (value: unknown) => void; custom?: FieldProps["custom"] }): ReactElement {
  const [view, setView] = useState("form");
  const root = resolve(schema, schema);
  const field: FieldProps = { name: "", label: "", schema: root, root: schema, value, onChange, siblings: {}, custom };
  const variants = variantsOf(root, schema);
  return (
    <Stack gap="xs">
      <SegmentedControl size="xs" aria-label={t("How the configuration is shown")} value={view} onChange={setView} data={[{ value: "form", label: t("Form") }, { value: "json", label: "JSON" }]} />
      {view === "json" ? (
        <RawJson label={t("Configuration as JSON")} value={value} onChange={onChange} />
      ) : variants !== undefined ? (
        <VariantField field={field} {...variants} />
      ) : (
        <Properties field={field} schema={root} />
      )}
    </Stack>
  );
}
