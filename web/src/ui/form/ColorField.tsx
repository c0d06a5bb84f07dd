// A colour, typed or picked.

import { ColorInput } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";

interface Props {
  label: string;
  /** The colour that holds where none is chosen. */
  placeholder?: string;
  value: string;
  change: (value: string) => void;
}

export default function ColorField({ change, ...props }: Props): ReactElement {
  return <ColorInput {...props} onChange={change} format="hexa" eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />;
}
