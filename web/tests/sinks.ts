// Servers that take what the program sends out: mails, and text messages by SMPP.

import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

abstract class Sink {
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  constructor() {
    this.server = createServer((socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
      // Whoever sends may go at any moment.
      socket.on("error", () => socket.destroy());
      this.serve(socket);
    });
  }

  protected abstract serve(socket: Socket): void;

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.sockets.forEach((socket) => socket.destroy());
    this.server.close();
  }
}

export interface Mail {
  to: string;
  text: string;
}

/** A mail server that takes every mail. */
export class MailSink extends Sink {
  readonly mails: Mail[] = [];

  protected serve(socket: Socket): void {
    let left = "";
    let to = "";
    let text: string[] | undefined;
    const answer = (line: string): void => {
      if (text !== undefined) {
        if (line === ".") {
          this.mails.push({ to, text: text.join("\n") });
          text = undefined;
          socket.write("250 taken\r\n");
        } else {
          text.push(line);
        }
        return;
      }
      to = /^RCPT TO:<(.+?)>/i.exec(line)?.[1] ?? to;
      if (/^DATA/i.test(line)) {
        text = [];
        socket.write("354 go on\r\n");
      } else if (/^QUIT/i.test(line)) {
        socket.end("221 bye\r\n");
      } else {
        socket.write("250 ok\r\n");
      }
    };
    socket.write("220 sink\r\n");
    socket.on("data", (bytes: Buffer) => {
      const lines = (left + bytes.toString()).split("\r\n");
      left = lines.pop() ?? "";
      lines.forEach(answer);
    });
  }
}

const SMPP_HEAD = 16;
const SUBMIT_SM = 4;

/** A message centre that takes every message. */
export class MessageSink extends Sink {
  /** What came, with its numbers and its text, as it stands in the message. */
  readonly messages: string[] = [];

  protected serve(socket: Socket): void {
    let left: Buffer = Buffer.alloc(0);
    socket.on("data", (bytes: Buffer) => {
      left = Buffer.concat([left, bytes]);
      while (left.length >= SMPP_HEAD && left.length >= left.readUInt32BE(0)) {
        const [length, command] = [left.readUInt32BE(0), left.readUInt32BE(4)];
        if (command === SUBMIT_SM) {
          this.messages.push(left.subarray(SMPP_HEAD, length).toString("latin1"));
        }
        const head = Buffer.alloc(SMPP_HEAD);
        const named = Buffer.from("sink\0");
        head.writeUInt32BE(SMPP_HEAD + named.length, 0);
        head.writeUInt32BE((command | 0x8000_0000) >>> 0, 4);
        left.copy(head, 12, 12, 16);
        socket.write(Buffer.concat([head, named]));
        left = left.subarray(length);
      }
    });
  }
}
