// A part of the pages that is loaded when it is needed, without what draws it: that can be asked for before there is anything to draw with.

import type { ComponentType } from "react";

export type Part<P> = () => Promise<{ default: ComponentType<P> }>;

export class Coming<P> {
  /** What draws the part, once it has come. */
  drawn: ComponentType<P> | undefined;
  private coming: Promise<void> | undefined;

  constructor(private readonly part: Part<P>) {}

  /** Loads the part. One that can't be had is asked for again by whoever draws it. */
  readonly load = (): Promise<void> => {
    this.coming ??= this.part().then(
      (loaded) => {
        this.drawn = loaded.default;
      },
      (error: unknown) => {
        this.coming = undefined;
        throw error;
      },
    );
    return this.coming;
  };
}
