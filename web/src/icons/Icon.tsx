// An icon by its name. One that no set has is left out.

import type { ReactElement } from "react";
import { useDrawings } from "./drawings";

export function Icon({ name, size = "1.2em" }: { name: string; size?: string }): ReactElement | null {
  const drawing = useDrawings()(name);
  return drawing === undefined ? null : (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="currentColor" aria-hidden="true" data-icon={name}>
      <path d={drawing.path} fillRule={drawing.rule} />
    </svg>
  );
}
