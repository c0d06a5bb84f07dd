// What a frame asks for with the rights of who looks is done only while they are doing something themselves.

/** The most that one frame has done in a while, and that while in milliseconds. */
const MOST = 20;
const WHILE_MS = 10_000;

/** Lets messages of a frame through shortly after a click or key, in it or in the page, and not too many of them. */
export class ActionGate {
  private recent: number[] = [];

  constructor(
    private readonly isActive = (): boolean => navigator.userActivation?.isActive === true,
    private readonly now: () => number = Date.now,
  ) {}

  passes(): boolean {
    const now = this.now();
    this.recent = this.recent.filter((ts) => ts > now - WHILE_MS);
    if (!this.isActive() || this.recent.length >= MOST) {
      return false;
    }
    this.recent.push(now);
    return true;
  }
}
