// Keeps styles of a dashboard or a widget on the page as long as it is shown.

import { useEffect, useId } from "react";
import { scopedSheet } from "@/dashboard/scopedCss";

/** Returns what the element must have as `data-scope` for the styles to hold there. */
export function useScopedCss(css: string): string {
  const id = useId();
  useEffect(() => {
    const sheet = scopedSheet(css, `[data-scope="${id}"]`);
    if (sheet === undefined) {
      return undefined;
    }
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    return () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    };
  }, [css, id]);
  return id;
}
