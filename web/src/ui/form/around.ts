// What is around a form: values of the whole that its fields are a part of, and names that they can choose from.

import { createContext } from "react";
import type { FormValues } from "./values";

export interface FormAround {
  /** Values of the outermost form. */
  values: FormValues;
  /** Names of things elsewhere, by what they are. */
  names: Readonly<Record<string, readonly string[]>>;
}

export const AroundContext = createContext<FormAround>({ values: {}, names: {} });
