// Owns the WebSocket of a tab: frames are decoded here, so that a flood of values leaves the page free to draw; but long ones.

import { Heartbeat } from "./heartbeat";
import type { Ending } from "./limits";
import { SIGN, type LiveUpdate } from "./protocol";
import { LONG_FRAME, UpdateGatherer, type FromWorker, type ToWorker } from "./wire";

const tell = (message: FromWorker): void => self.postMessage(message);
const gatherer = new UpdateGatherer((updates) => tell({ type: "updates", updates }));
let socket: WebSocket | undefined;
/** What is sent as soon as the connection is there. */
let waiting: object[] = [];
/** When the last sign of life came. */
let heardAt = Date.now();
// Its end is not waited for: without a network it would come late.
const pulse = new Heartbeat({ ask: () => socket !== undefined && send(socket, [SIGN]), dead: () => drop(heardAt) });

const send = (to: WebSocket, frames: object[]): void => frames.forEach((frame) => to.send(JSON.stringify(frame)));

function ended(since = Date.now(), ending?: Ending): void {
  pulse.end();
  socket = undefined;
  waiting = [];
  tell({ type: "lost", since, ...(ending === undefined ? {} : { ending }) });
}

/** Ends the connection for the page, whatever becomes of the socket. */
function drop(since?: number): void {
  const dropped = socket;
  ended(since);
  dropped?.close();
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
    drop();
    return;
  }
  if (message.type === "check") {
    pulse.check();
    return;
  }
  // The page knows of one connection only.
  socket?.close();
  const opened = new WebSocket(message.url);
  // What a socket that was dropped still says is nobody's any more.
  const isCurrent = (): boolean => socket === opened;
  socket = opened;
  waiting = message.frames;
  pulse.begin();
  opened.onopen = () => {
    if (isCurrent()) {
      pulse.opened();
      heardAt = Date.now();
      send(opened, waiting);
      waiting = [];
      tell({ type: "live" });
    }
  };
  opened.onmessage = ({ data }: MessageEvent<string>) => {
    if (!isCurrent()) {
      return;
    }
    pulse.heard();
    heardAt = Date.now();
    if (data.length < LONG_FRAME) {
      gatherer.add(JSON.parse(data) as LiveUpdate);
    } else {
      gatherer.hurry();
      tell({ type: "text", text: data });
    }
  };
  opened.onclose = ({ code, reason }) => isCurrent() && ended(Date.now(), { code, reason });
};
