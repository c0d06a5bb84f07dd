// Fields that the forms of several widget types share.

import { valueAt, type FormField, type FormValues } from "@/ui/form/values";

export const heading = (label: string): FormField => ({ name: "", label, type: "heading" });

type When = NonNullable<FormField["when"]>;

/** Leaves fields to those of their own condition for which this one holds, too. */
export const only = (wanted: When, fields: readonly FormField[]): FormField[] => fields.map((field) => ({ ...field, when: (values) => wanted(values) && (field.when?.(values) ?? true) }));

/** A switch that is on where settings say nothing. */
export const usuallyOn = (name: string, label: string): FormField => ({ name, label, type: "boolean", otherwise: true });

/** Ranges with a colour each. */
export const ranges = (name: string, label: string, when?: FormField["when"]): FormField => ({
  name, label, type: "rows", ...(when === undefined ? {} : { when }),
  fields: [
    { name: "from", label: "From", type: "number" },
    { name: "to", label: "Below", type: "number" },
    { name: "color", label: "Color", type: "color" },
  ],
});

const KINDS = [
  { value: "constant", label: "Always the same" },
  { value: "range", label: "By ranges of the value" },
  { value: "gradient", label: "Along a gradient" },
  { value: "function", label: "What a function makes of it" },
];

/** Fields of a colour that may depend on the value; a plain one of older settings stays plain. */
export function colors(path: string, label: string): FormField[] {
  const isPlain = (values: FormValues): boolean => typeof valueAt(values, path) === "string";
  const is = (kind: string) => (values: FormValues): boolean => valueAt(values, `${path}.type`) === kind;
  const isList = (values: FormValues): boolean => is("range")(values) && Array.isArray(valueAt(values, `${path}.rangeList`));
  const isSimple = (values: FormValues): boolean => is("range")(values) && !isList(values) && valueAt(values, `${path}.rangeList.advancedMode`) !== true;
  return [
    heading(label),
    { name: path, label: "Color", type: "color", when: isPlain },
    { name: `${path}.type`, label: "Comes from", type: "select", options: KINDS, otherwise: "constant", required: true, when: (values) => !isPlain(values) },
    { name: `${path}.color`, label: "Color", type: "color", when: (values) => !isPlain(values) && !is("function")(values) },
    ranges(`${path}.rangeList`, "Ranges with their colors", isList),
    ranges(`${path}.rangeList.range`, "Ranges with their colors", isSimple),
    { name: `${path}.gradient.minValue`, label: "Least value", type: "number", when: is("gradient") },
    { name: `${path}.gradient.maxValue`, label: "Greatest value", type: "number", when: is("gradient") },
    { name: `${path}.gradient.gradient`, label: "Colors from least to greatest", type: "texts", when: (values) => is("gradient")(values) && valueAt(values, `${path}.gradient.advancedMode`) !== true },
    { name: `${path}.colorFunction`, label: "Function of value", type: "code", when: is("function") },
  ];
}

const FONT_UNITS = ["px", "em", "%", "rem", "pt", "pc", "in", "cm", "mm", "ex", "ch", "vw", "vh", "vmin", "vmax"].map((value) => ({ value, label: value }));
export const FAMILIES = ["Roboto", "monospace", "sans-serif", "serif"];
export const WEIGHTS = ["normal", "bold", "bolder", "lighter", "100", "200", "300", "400", "500", "600", "700", "800", "900"];
export const STYLES = ["normal", "italic", "oblique"];

/** Fields of a font. */
export function fonts(path: string, label: string): FormField[] {
  return [
    heading(label),
    { name: `${path}.family`, label: "Font", type: "suggest", options: FAMILIES },
    { name: `${path}.size`, label: "Size", type: "number" },
    { name: `${path}.sizeUnit`, label: "Unit of the size", type: "select", options: FONT_UNITS, otherwise: "px" },
    { name: `${path}.weight`, label: "Weight", type: "select", options: WEIGHTS },
    { name: `${path}.style`, label: "Style", type: "select", options: STYLES },
    { name: `${path}.lineHeight`, label: "Height of lines" },
  ];
}

/** Fields of a font of a text that is written in that of the page, which has no others. */
export const textFonts = (path: string, label: string): FormField[] => fonts(path, label).filter(({ name }) => name !== `${path}.family`);

/** Fields of the letters of a text within a drawing, whose size follows that of the drawing; `size` is the usual one. */
export const letters = (path: string, size: number): FormField[] => [
  { name: `${path}.size`, label: "Size of the letters", type: "number", least: 1, otherwise: size },
  { name: `${path}.weight`, label: "Weight of the letters", type: "select", options: WEIGHTS },
];

/** Fields of when a value came: `showDate`, its format and its look. */
export function dates(label: string, usually: boolean): FormField[] {
  const shown = ({ showDate }: FormValues): boolean => (showDate ?? usually) === true;
  return [
    heading(label),
    { name: "showDate", label: "Show when it came", type: "boolean", otherwise: usually },
    { name: "dateFormat.lastUpdateAgo", label: "How long ago", type: "boolean", otherwise: true, when: shown },
    { name: "dateFormat.format", label: "Format", help: "As in yyyy-MM-dd HH:mm:ss; without one it is that of the language.", when: (values) => shown(values) && valueAt(values, "dateFormat.lastUpdateAgo") === false },
    { name: "dateColor", label: "Color", type: "color", when: shown },
    ...only(shown, letters("dateFont", 12)),
  ];
}
