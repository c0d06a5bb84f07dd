// Styles and addresses that functions of tenants make: what remains of them changes looks and loads nothing from elsewhere.

import type { CSSProperties } from "react";
import { isLoadingStyle } from "./safeCss";

/** Values in the address of a picture would tell another server what the viewer sees. */
export function isLocalAddress(address: string): boolean {
  // Browsers leave out tabs and line breaks within addresses.
  return /^(data:image\/|blob:|\/(?!\/|\\)|#)/i.test(address.replace(/[\u0000-\u0020]/g, ""));
}

const STYLES = /^(color|background(Color)?|opacity|display|width|minWidth|maxWidth|height|fontSize|fontWeight|fontStyle|fontFamily|lineHeight|letterSpacing|text(Align|Decoration|Transform|Overflow|Shadow)|verticalAlign|whiteSpace|wordBreak|overflow|padding(Left|Right|Top|Bottom)?|border(Left|Right|Top|Bottom)?(Color|Width|Style|Radius)?|boxShadow|visibility)$/;

/** Returns the styles of a result that only change how a cell looks. */
export function cleanStyle(value: unknown): CSSProperties {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.flatMap(([name, one]) => {
      const property = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
      const text = typeof one === "number" ? String(one) : typeof one === "string" ? one : "";
      return STYLES.test(property) && text !== "" && !isLoadingStyle(text) ? [[property, typeof one === "number" ? one : text]] : [];
    }),
  );
}
