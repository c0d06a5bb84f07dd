// How the page looks to what is drawn in a widget: colours that are computed don't follow it by themselves.

import { useComputedColorScheme } from "@mantine/core";
import { useMemo } from "react";
import { cardScheme } from "@/dashboard/look";
import type { Widget } from "@/dashboard/model";
import { useAppearance, type Contrast } from "@/ui/appearance";
import type { Scheme } from "./color";

/** The scheme and the contrast of the page, which the system, too, may change at any time. */
export function usePageLook(): { scheme: Scheme; contrast: Contrast } {
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  const contrast = useAppearance((appearance) => appearance.contrast);
  return { scheme, contrast };
}

/** The scheme of the ground that a widget is drawn on: that of its card, or of the page. */
export function useScheme(widget: Widget): Scheme {
  const { scheme } = usePageLook();
  return useMemo(() => cardScheme(widget.fqn, widget.config, widget.settings) ?? scheme, [widget, scheme]);
}
