// What is around a form: values of the whole that its fields are a part of, and names that they can choose from.

import { createContext, type ReactNode } from "react";
import type { FormField, FormOption, FormValues } from "./values";

/** A field that is drawn by what is around the form. */
export interface OwnField {
  field: FormField;
  value: unknown;
  /** The values around it. */
  values: FormValues;
  change: (value: unknown) => void;
}

export interface FormAround {
  /** Values of the outermost form. */
  values: FormValues;
  /** Names of things elsewhere, by what they are. */
  names: Readonly<Record<string, readonly string[]>>;
  /** Choices with names of their own, by what they are. */
  options?: Readonly<Record<string, readonly FormOption[]>>;
  /** What draws fields of the type `own`, by their `drawnBy`. */
  own?: Readonly<Record<string, (field: OwnField) => ReactNode>>;
  /** In a row: it and the rows beside it. */
  siblings?: readonly FormValues[];
}

export const AroundContext = createContext<FormAround>({ values: {}, names: {} });
