// One field of a form of values, by its kind.

import { Checkbox, ColorInput, Group, JsonInput, Radio, Select, Switch, TextInput } from "@mantine/core";
import type { KeyboardEvent, ReactElement } from "react";
import { t } from "@/i18n";
import type { FieldInput, InputField } from "./fields";

interface ValueFieldProps {
  field: InputField;
  input: FieldInput;
  fault: string | undefined;
  disabled: boolean;
  onChange: (input: FieldInput) => void;
  /** The person has come to an end with the field. */
  onDone: (input?: FieldInput) => void;
}

const TIME_TYPES = { dateTime: "datetime-local", date: "date", time: "time" } as const;

export function ValueField({ field, input, fault, disabled, onChange, onDone }: ValueFieldProps): ReactElement {
  const { kind, label, required } = field;
  const readOnly = field.editable === "readonly";
  const still = disabled || readOnly;
  const common = { label, required, disabled, ...(fault === undefined ? {} : { error: fault }) };
  const text = typeof input === "boolean" ? "" : input;
  const enter = (event: KeyboardEvent): void => {
    if (event.key === "Enter") {
      onDone();
    }
  };
  switch (kind) {
    case "booleanCheckbox":
      return <Checkbox label={label} disabled={still} checked={input === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
    case "booleanSwitch":
      return <Switch label={label} labelPosition={field.key.settings["slideToggleLabelPosition"] === "before" ? "left" : "right"} disabled={still} checked={input === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
    case "select":
      return (
        <Select
          {...common}
          readOnly={readOnly}
          allowDeselect={false}
          clearable={!required && !still}
          clearButtonProps={{ "aria-label": t("Clear the choice") }}
          data={field.options}
          value={text === "" ? null : text}
          onChange={(next) => onChange(next ?? "")}
        />
      );
    case "radio":
      return (
        <Radio.Group {...common} value={text} onChange={onChange}>
          <Group gap="md" mt={4}>
            {field.options.map((option) => (
              <Radio key={option.value} value={option.value} label={option.label} disabled={still} />
            ))}
          </Group>
        </Radio.Group>
      );
    case "color":
      return <ColorInput {...common} readOnly={readOnly} value={text} onChangeEnd={onDone} onChange={onChange} onBlur={() => onDone()} eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />;
    case "JSON":
      return <JsonInput {...common} readOnly={readOnly} autosize minRows={3} maxRows={16} value={text} onChange={onChange} onBlur={() => onDone()} />;
    case "dateTime":
    case "date":
    case "time":
      return <TextInput {...common} readOnly={readOnly} type={TIME_TYPES[kind]} value={text} onChange={(event) => onChange(event.currentTarget.value)} onBlur={() => onDone()} onKeyDown={enter} />;
    default: {
      const isNumber = kind === "double" || kind === "integer";
      const limits = isNumber ? { type: "number", step: field.step ?? (kind === "integer" ? 1 : "any"), ...(field.min === undefined ? {} : { min: field.min }), ...(field.max === undefined ? {} : { max: field.max }) } : {};
      return <TextInput {...common} {...limits} readOnly={readOnly} value={text} onChange={(event) => onChange(event.currentTarget.value)} onBlur={() => onDone()} onKeyDown={enter} />;
    }
  }
}
