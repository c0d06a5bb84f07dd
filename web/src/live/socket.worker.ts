// Owns the WebSocket of a tab: frames are decoded here, so that a flood of values leaves the page free to draw.

import type { LiveUpdate } from "./protocol";
import { UpdateGatherer, type FromWorker, type ToWorker } from "./wire";

const tell = (message: FromWorker): void => self.postMessage(message);
const gatherer = new UpdateGatherer((updates) => tell({ type: "updates", updates }));
let socket: WebSocket | undefined;

const send = (to: WebSocket, frames: object[]): void => frames.forEach((frame) => to.send(JSON.stringify(frame)));

self.onmessage = ({ data: message }: MessageEvent<ToWorker>) => {
  if (message.type === "send") {
    if (socket?.readyState === WebSocket.OPEN) {
      send(socket, message.frames);
    }
    return;
  }
  const opened = new WebSocket(message.url);
  socket = opened;
  opened.onopen = () => {
    send(opened, message.frames);
    tell({ type: "live" });
  };
  opened.onmessage = (event: MessageEvent<string>) => gatherer.add(JSON.parse(event.data) as LiveUpdate);
  opened.onclose = () => {
    socket = undefined;
    tell({ type: "lost" });
  };
};
