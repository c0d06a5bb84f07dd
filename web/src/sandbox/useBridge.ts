// Answers what the code in a widget's frame asks of the page and the server.

import { useContext, useEffect, useRef, type RefObject } from "react";
import { SessionContext } from "@/app/session";
import { BoardContext } from "@/dashboard/board";
import { Bridge } from "./bridge";

/** Serves a frame as long as it is shown. `code` is what runs in it besides what stands in the dashboard. */
export function useBridge(frame: RefObject<HTMLIFrameElement | null>, code: string): void {
  const board = useContext(BoardContext);
  const userId = useContext(SessionContext)?.user.id.id;
  const newest = useRef(code);
  newest.current = code;
  useEffect(() => {
    // Where a dashboard is edited, its code may do nothing.
    const bridge = board === undefined || userId === undefined ? undefined : new Bridge({ board, userId, code: () => newest.current });
    const hear = async (event: MessageEvent<unknown>): Promise<void> => {
      const own = frame.current?.contentWindow;
      if (own === undefined || own === null || event.source !== own) {
        return;
      }
      const answer = await bridge?.hear(event.data);
      if (answer !== undefined) {
        // The frame has no origin, so no narrower target than all can be named; it is the one that is addressed.
        own.postMessage(answer, "*");
      }
    };
    const listener = (event: MessageEvent<unknown>): void => void hear(event);
    addEventListener("message", listener);
    return () => removeEventListener("message", listener);
  }, [board, userId, frame]);
}
