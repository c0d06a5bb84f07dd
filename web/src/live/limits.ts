// Which limit the server has ended the connection for, by the code and the reason of its close frame (docs/websocket.md).

/** What a close frame said. */
export interface Ending {
  code: number;
  reason: string;
}

/** A limit in words: what was reached, and what can be done. */
export interface Limit {
  title: string;
  hint: string;
  /** The setting of the tenant profile, as its form calls it. */
  setting?: string;
  /** What the server said, where nothing better is known. */
  reason?: string;
  /** Whether asking for less on this page may be enough. */
  isOwn: boolean;
}

/** A limit was exceeded, or nobody has logged in. */
const POLICY = 1008;
const TOO_BIG = 1009;

/** The scopes that the profile's limits count for, and how its form calls them. */
const SETTINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sessions: {
    tenant: "Sessions of the tenant",
    customer: "Sessions of a customer",
    "regular user": "Sessions of a user",
    "public user": "Sessions of a public user",
  },
  subscriptions: {
    tenant: "Subscriptions of the tenant",
    customer: "Subscriptions of a customer",
    "regular user": "Subscriptions of a user",
    "public user": "Subscriptions of a public user",
  },
};

const LESS = "Show less at a time: close other pages, or open a dashboard with fewer widgets.";

/** The page is told of these otherwise, or they pass by themselves. */
const NO_LIMITS = new Set(["Authentication timeout", "Auth cmd is missing"]);

/** Returns the limit that an end of the connection was for; nothing where it was lost for another reason, so that trying again may help. */
export function limitOf({ code, reason }: Ending): Limit | undefined {
  if (code === TOO_BIG) {
    return { title: "This page asks for more at once than the server takes in one message.", hint: LESS, isOwn: true };
  }
  if (code !== POLICY || NO_LIMITS.has(reason)) {
    return undefined;
  }
  const [, who = "", what = ""] = /^Max (.+) (sessions|subscriptions) limit reached!$/.exec(reason) ?? [];
  const setting = SETTINGS[what]?.[who];
  if (what === "sessions" && setting !== undefined) {
    const hint = "Close other pages of this server. If they are needed, ask the administrator of the installation to raise this limit of the tenant profile: {setting}";
    return { title: "There are as many live connections as the tenant profile allows.", hint, setting, isOwn: false };
  }
  if (what === "subscriptions" && setting !== undefined) {
    const hint = "Show less at a time: close other pages, or open a dashboard with fewer widgets. Or ask the administrator of the installation to raise this limit of the tenant profile: {setting}";
    return { title: "More is followed live than the tenant profile allows.", hint, setting, isOwn: true };
  }
  if (reason === "Max session subscriptions limit reached!") {
    return { title: "This page follows more at once than a connection may.", hint: LESS, isOwn: true };
  }
  if (reason === "Max sessions limit reached!" || reason === "Too many sockets") {
    const hint = "Try again in a few minutes. If it stays so, tell the administrator of the installation.";
    return { title: "The server has as many live connections as it can serve.", hint, isOwn: false };
  }
  if (reason === "Max pending updates limit reached!") {
    const hint = "Show less at a time, or look whether this computer or its network is busy with something else.";
    return { title: "Values come faster than this page takes them.", hint, isOwn: true };
  }
  if (/memory/i.test(reason)) {
    const hint = "Show less at a time: close other pages, or open a dashboard with fewer entities and values. If it stays so, tell the administrator of the installation.";
    return { title: "The memory that the server has for live values is used up.", hint, isOwn: true };
  }
  return { title: "The server has ended the live connection: {reason}", hint: LESS, reason, isOwn: true };
}
