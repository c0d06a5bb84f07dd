// What is around a form: values of the whole that its fields are a part of, and names that they can choose from.

import { createContext } from "react";
import type { FormOption, FormValues } from "./values";

export interface FormAround {
  /** Values of the outermost form. */
  values: FormValues;
  /** Names of things elsewhere, by what they are. */
  names: Readonly<Record<string, readonly string[]>>;
  /** Choices with names of their own, by what they are. */
  options?: Readonly<Record<string, readonly FormOption[]>>;
  /** In a row: it and the rows beside it. */
  siblings?: readonly FormValues[];
}

export const AroundContext = createContext<FormAround>({ values: {}, names: {} });
