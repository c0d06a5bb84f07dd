// MQTT 3.1.1: as much of it as a device needs that sends values and answers commands, and a client of the broker.

import { connect, type Socket } from "node:net";

const CONNECT = 0x10;
const CONNACK = 2;
const PUBLISH = 3;
const PUBLISH_ONCE_AT_LEAST = 0x32;
const PUBACK = 4;
const SUBSCRIBE = 0x82;
const SUBACK = 9;
const DISCONNECT = 0xe0;
const CLEAN = 0x02;
const WITH_USER = 0x80;
const WITH_PASSWORD = 0x40;
const RETAIN = 0x01;
const KEEP_ALIVE_S = 600;

export interface Command {
  method: string;
  params: unknown;
}

/** What a device answers to a command; nothing if it doesn't. */
export type Answer = (command: Command) => unknown;

const short = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const words = (value: string): Buffer => Buffer.concat([short(Buffer.byteLength(value)), Buffer.from(value)]);

function packet(head: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length: number[] = [];
  for (let rest = body.length; rest > 0 || length.length === 0; rest >>= 7) {
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  }
  return Buffer.concat([Buffer.from([head, ...length]), body]);
}

/** Takes the first whole packet off what has come. */
function firstOf(bytes: Buffer): { head: number; body: Buffer; rest: Buffer } | undefined {
  let length = 0;
  for (let n = 1; n < Math.min(5, bytes.length); n++) {
    const part = bytes.readUInt8(n);
    length += (part & 0x7f) << (7 * (n - 1));
    if (part < 0x80) {
      const end = n + 1 + length;
      return bytes.length < end ? undefined : { head: bytes.readUInt8(0), body: bytes.subarray(n + 1, end), rest: bytes.subarray(end) };
    }
  }
  return undefined;
}

interface LogIn {
  clientId: string;
  user?: string;
  password?: string;
  /** Whether the session ends with the connection. */
  isClean: boolean;
}

/** A connection: its packets, and who waits for them. */
class Connection {
  /** Fails when the connection ends. */
  readonly ended: Promise<never>;
  private came: Buffer = Buffer.alloc(0);
  private lastId = 0;
  /** Who waits for a packet of a kind with a number. */
  private readonly waiting = new Map<string, (body: Buffer) => void>();
  private refuse: (reason: Error) => void = () => undefined;

  protected constructor(private readonly socket: Socket) {
    this.ended = new Promise((_resolve, reject) => (this.refuse = reject));
    this.ended.catch(() => undefined);
    socket.on("data", (bytes: Buffer) => this.take(bytes));
    socket.on("error", (error) => this.refuse(error));
    socket.on("close", () => this.refuse(new Error("the broker has ended the connection")));
  }

  end(): void {
    this.socket.end(packet(DISCONNECT));
  }

  async publishText(topic: string, content: string, isRetained = false): Promise<void> {
    const id = ++this.lastId;
    const taken = this.heard(PUBACK, id);
    this.socket.write(packet(PUBLISH_ONCE_AT_LEAST | (isRetained ? RETAIN : 0), words(topic), short(id), Buffer.from(content)));
    await taken;
  }

  async subscribe(filter: string): Promise<void> {
    const id = ++this.lastId;
    const subscribed = this.heard(SUBACK, id);
    this.socket.write(packet(SUBSCRIBE, short(id), words(filter), Buffer.from([1])));
    const code = (await subscribed).readUInt8(2);
    if (code > 2) {
      throw new Error(`the broker has refused the subscription: ${code}`);
    }
  }

  protected async logIn({ clientId, user, password, isClean }: LogIn): Promise<void> {
    const accepted = this.heard(CONNACK);
    const flags = (isClean ? CLEAN : 0) | (user === undefined ? 0 : WITH_USER) | (password === undefined ? 0 : WITH_PASSWORD);
    const names = [clientId, ...(user === undefined ? [] : [user]), ...(password === undefined ? [] : [password])];
    this.socket.write(packet(CONNECT, words("MQTT"), Buffer.from([4, flags]), short(KEEP_ALIVE_S), ...names.map(words)));
    const code = (await accepted).readUInt8(1);
    if (code !== 0) {
      throw new Error(`the broker has refused the client: ${code}`);
    }
  }

  protected receive(_topic: string, _content: string): void {
    // Who waits for messages takes them.
  }

  private heard(kind: number, id?: number): Promise<Buffer> {
    return Promise.race([this.ended, new Promise<Buffer>((resolve) => this.waiting.set(`${kind} ${id ?? ""}`, resolve))]);
  }

  private take(bytes: Buffer): void {
    this.came = Buffer.concat([this.came, bytes]);
    for (let found = firstOf(this.came); found !== undefined; found = firstOf(this.came)) {
      this.came = found.rest;
      const kind = found.head >> 4;
      if (kind === PUBLISH) {
        this.confirm(found.head, found.body);
      } else {
        const key = `${kind} ${kind === CONNACK ? "" : found.body.readUInt16BE(0)}`;
        this.waiting.get(key)?.(found.body);
        this.waiting.delete(key);
      }
    }
  }

  private confirm(head: number, body: Buffer): void {
    const end = 2 + body.readUInt16BE(0);
    const isConfirmed = (head & 0x06) !== 0;
    if (isConfirmed) {
      this.socket.write(packet(PUBACK << 4, body.subarray(end, end + 2)));
    }
    this.receive(body.subarray(2, end).toString(), body.subarray(isConfirmed ? end + 2 : end).toString());
  }
}

export class MqttDevice extends Connection {
  /** What the device was asked to do, in the order in which it came. */
  readonly commands: Command[] = [];

  private constructor(
    socket: Socket,
    private readonly answer: Answer,
  ) {
    super(socket);
  }

  /** Connects with an access token, and waits for commands. */
  static async connect(url: string, token: string, answer: Answer = () => undefined): Promise<MqttDevice> {
    const { hostname, port } = new URL(url);
    const device = new MqttDevice(connect(Number(port), hostname), answer);
    await device.logIn({ clientId: "", user: token, isClean: true });
    await device.subscribe("v1/devices/me/rpc/request/+");
    return device;
  }

  /** Sends telemetry, and returns when the broker has taken it. */
  async send(values: Record<string, unknown>): Promise<void> {
    await this.publish("v1/devices/me/telemetry", values);
  }

  protected override receive(topic: string, content: string): void {
    const command = JSON.parse(content) as Command;
    this.commands.push(command);
    const answer = this.answer(command);
    if (answer !== undefined) {
      // A connection that ends meanwhile is told to whoever waits for something of it.
      this.publish(topic.replace("/request/", "/response/"), answer).catch(() => undefined);
    }
  }

  private publish(topic: string, content: unknown): Promise<void> {
    return this.publishText(topic, JSON.stringify(content));
  }
}

/** A client of the publish/subscribe broker. */
export class MqttClient extends Connection {
  /** What it got. */
  readonly messages: { topic: string; content: string }[] = [];

  /** Connects; fails where the broker refuses the client. */
  static async connect(url: string, logIn: LogIn): Promise<MqttClient> {
    const { hostname, port } = new URL(url);
    const client = new MqttClient(connect(Number(port), hostname));
    await client.logIn(logIn);
    return client;
  }

  protected override receive(topic: string, content: string): void {
    this.messages.push({ topic, content });
  }
}
