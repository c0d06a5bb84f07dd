// Which part of a state phones show, as an action has asked for it.

export class PartChoice {
  private wanted: string | undefined;
  private readonly listeners = new Set<() => void>();

  /** Asks for the right part of a state, or for none: then each state begins as it usually does. */
  choose(rightOf: string | undefined): void {
    this.wanted = rightOf;
    this.listeners.forEach((hear) => hear());
  }

  isRight(state: string): boolean {
    return this.wanted === state;
  }

  subscribe(hear: () => void): () => void {
    this.listeners.add(hear);
    return () => this.listeners.delete(hear);
  }
}
