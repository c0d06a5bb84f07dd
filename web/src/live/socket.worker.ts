// Owns the WebSocket of a tab: frames are decoded here, so that a flood of values leaves the page free to draw; but long ones.

import type { LiveUpdate } from "./protocol";
import { LONG_FRAME, UpdateGatherer, type FromWorker, type ToWorker } from "./wire";

const tell = (message: FromWorker): void => self.postMessage(message);
const gatherer = new UpdateGatherer((updates) => tell({ type: "updates", updates }));
let socket: WebSocket | undefined;
/** What is sent as soon as the connection is there. */
let waiting: object[] = [];

const send = (to: WebSocket, frames: object[]): void => frames.forEach((frame) => to.send(JSON.stringify(frame)));

function ended(): void {
  socket = undefined;
  waiting = [];
  tell({ type: "lost" });
}

self.onmessage = ({ data: message }: MessageEvent<ToWorker>) => {
  if (message.type === "send") {
    if (socket?.readyState === WebSocket.OPEN) {
      send(socket, message.frames);
    } else if (socket !== undefined) {
      waiting.push(...message.frames);
    }
    return;
  }
  if (message.type === "close") {
    // Its end is not waited for: without a network it would come late.
    socket?.removeEventListener("close", ended);
    socket?.close();
    ended();
    return;
  }
  const opened = new WebSocket(message.url);
  socket = opened;
  waiting = message.frames;
  opened.onopen = () => {
    send(opened, waiting);
    waiting = [];
    tell({ type: "live" });
  };
  opened.onmessage = ({ data }: MessageEvent<string>) => {
    if (data.length < LONG_FRAME) {
      gatherer.add(JSON.parse(data) as LiveUpdate);
    } else {
      gatherer.hurry();
      tell({ type: "text", text: data });
    }
  };
  opened.addEventListener("close", ended);
};
