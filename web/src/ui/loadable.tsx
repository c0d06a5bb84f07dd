// Parts of the pages that are loaded when they are needed, and drawn at once where they have come before.
//
// React.lazy would show its fallback for a moment even then, and React keeps whatever follows a fallback back for 300 ms.

import { useEffect, useState, type ReactElement } from "react";
import { Coming, type Part } from "./coming";
import { Waiting } from "./feedback";

export type Loadable<P> = (props: P) => ReactElement;

/** Returns a component for a part. Where the part can't be had, drawing it fails, and drawing it again asks again. */
export function drawing<P extends object>(part: Coming<P>): Loadable<P> {
  return function LoadablePart(props: P): ReactElement {
    const [state, setState] = useState<{ error?: unknown }>({});
    const missing = part.drawn === undefined && !("error" in state);
    useEffect(() => {
      if (!missing) {
        return undefined;
      }
      let here = true;
      part.load().then(
        () => here && setState({}),
        (error: unknown) => here && setState({ error }),
      );
      return () => {
        here = false;
      };
    }, [missing]);
    if ("error" in state) {
      throw state.error;
    }
    const Drawn = part.drawn;
    return Drawn === undefined ? <Waiting /> : <Drawn {...props} />;
  };
}

export function loadable<P extends object>(part: Part<P>): Loadable<P> {
  return drawing(new Coming(part));
}
