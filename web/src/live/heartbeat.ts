// Notices a connection that nobody has ended and that nothing comes through any more: a computer that slept, another network.

/** After so much silence the server is asked for a sign, milliseconds. */
export const SILENCE_MS = 10_000;
/** How long an answer may take: an answer that was asked for before may be long and the network slow. */
export const PATIENCE_MS = 10_000;
/** The same where there is a reason for doubt: the network was away, or somebody looks at the page again. */
export const DOUBT_MS = 4_000;
/** However slow a network has turned out to be, this is the most. */
const MOST_MS = 120_000;

interface Ends {
  /** Asks the server for a sign. */
  ask: () => void;
  /** Told that the connection is dead. */
  dead: () => void;
}

/**
 * The pulse of one connection after another. Each time that a connection is given up before anything has come through it, the next one gets twice the
 * time: an answer that needs longer than the patience would otherwise be asked for again and again.
 */
export class Heartbeat {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private state: "none" | "opening" | "quiet" | "asked" = "none";
  private patience = PATIENCE_MS;
  private hasHeard = false;

  constructor(private readonly ends: Ends) {}

  /** A connection is being made. */
  begin(): void {
    this.state = "opening";
    this.hasHeard = false;
    this.wait(this.patience);
  }

  /** Something has come: the connection lives. */
  heard(): void {
    if (this.state === "opening" || this.state === "none") {
      return;
    }
    this.hasHeard = true;
    this.patience = PATIENCE_MS;
    this.rest();
  }

  /** The connection is made. The first commands are on their way, so that something must come. */
  opened(): void {
    this.rest();
  }

  /** Asks at once, since there is reason to doubt. */
  check(): void {
    if (this.state === "quiet") {
      this.ask(Math.min(DOUBT_MS, this.patience));
    } else if (this.state === "opening") {
      this.wait(Math.min(DOUBT_MS, this.patience));
    }
  }

  /** The connection has ended. */
  end(): void {
    clearTimeout(this.timer);
    this.state = "none";
  }

  private rest(): void {
    this.state = "quiet";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(this.patience), SILENCE_MS);
  }

  private ask(patience: number): void {
    this.state = "asked";
    this.ends.ask();
    this.wait(patience);
  }

  private wait(patience: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.patience = this.hasHeard ? PATIENCE_MS : Math.min(MOST_MS, this.patience * 2);
      this.end();
      this.ends.dead();
    }, patience);
  }
}
