// A colour, typed or picked.

import { ColorInput } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";

export default function ColorField({ label, value, change }: { label: string; value: string; change: (value: string) => void }): ReactElement {
  return <ColorInput label={label} value={value} onChange={change} format="hexa" eyeDropperButtonProps={{ "aria-label": t("Pick a color from the screen") }} />;
}
