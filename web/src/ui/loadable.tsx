// Parts of the pages that are loaded when they are needed, and drawn at once where they have come before.
//
// React.lazy would show its fallback for a moment even then, and React keeps whatever follows a fallback back for 300 ms.

import { useEffect, useState, type ComponentType, type ReactElement } from "react";
import { Waiting } from "./feedback";

export type Part<P> = () => Promise<{ default: ComponentType<P> }>;

export interface Loadable<P> {
  (props: P): ReactElement;
  /** Loads the part before it is drawn. One that can't be had is asked for again by whoever draws it. */
  load: () => Promise<void>;
}

/** Returns a component for a part. Where the part can't be had, drawing it fails, and drawing it again asks again. */
export function loadable<P extends object>(part: Part<P>): Loadable<P> {
  let Drawn: ComponentType<P> | undefined;
  let coming: Promise<void> | undefined;
  const load = (): Promise<void> => {
    coming ??= part().then(
      (loaded) => {
        Drawn = loaded.default;
      },
      (error: unknown) => {
        coming = undefined;
        throw error;
      },
    );
    return coming;
  };
  function LoadablePart(props: P): ReactElement {
    const [state, setState] = useState<{ error?: unknown }>({});
    const missing = Drawn === undefined && !("error" in state);
    useEffect(() => {
      if (!missing) {
        return undefined;
      }
      let here = true;
      load().then(
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
    return Drawn === undefined ? <Waiting /> : <Drawn {...props} />;
  }
  return Object.assign(LoadablePart, { load });
}
