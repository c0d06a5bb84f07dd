// What actions open over a dashboard: states in dialogs, frames in which their code runs, and what code asks people.

import { lazy, Suspense, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactElement } from "react";
import type { Action, ActionOrigin, OverlayLook } from "@/dashboard/actions";
import { BoardContext, type Board } from "@/dashboard/board";
import { noteClicks, recentClick, type ClickPlace } from "@/dashboard/lastClick";
import type { CodeCall } from "@/dashboard/mobile";
import { PartChoice } from "@/dashboard/part";
import { endMade } from "@/dashboard/sharedSource";
import type { EntityValues } from "@/dashboard/source";
import type { OpenState } from "@/dashboard/state";
import { useSession } from "@/app/session";
import { forgetSandbox } from "@/sandbox/calls";
import { hasConsents, useConsents } from "@/sandbox/consent";
import { useQuestions } from "@/sandbox/questions";
import { drawOn } from "../Board";
import type { Shown } from "../shown";

const CodeRun = lazy(() => import("./CodeRun"));
const DeviceRun = lazy(() => import("./DeviceRun"));
const ConsentNote = lazy(() => import("./ConsentNote"));
const QuestionDialog = lazy(() => import("./QuestionDialog"));
const StateOverlay = lazy(() => import("./StateOverlay"));

/** An action whose code runs. */
export interface Job {
  id: number;
  action: Action;
  entity: EntityValues | undefined;
  origin: ActionOrigin;
  /** One of the functions of an action that asks something of the device. */
  call?: Call;
}

export interface Call extends CodeCall {
  onResult?: (value: unknown) => void;
  onFailure?: (message: string) => void;
}

export interface BoardProps {
  id: string;
  title: string;
  /** What is shown: the dashboard as it is stored, and what has been chosen on it. */
  shown: Shown;
  configuration: unknown;
  path: OpenState[];
  go: (path: OpenState[]) => void;
  openDashboard: Board["openDashboard"];
}

/** Code of more actions than these doesn't run at once; the oldest ends. */
const MOST_JOBS = 4;
let nextJob = 1;

/** Ends what functions of a dashboard do. */
function endFunctions(): void {
  endMade();
  forgetSandbox();
}

/** Makes the board of a dashboard, which stays the same object, and what it opens. One that lies over another leaves questions to that. */
export function useBoard(props: BoardProps, isOver = false): { board: Board; host: ReactElement } {
  const newest = useRef(props);
  newest.current = props;
  useLayoutEffect(() => (isOver ? undefined : endFunctions), [isOver]);
  const [jobs, setJobs] = useState<readonly Job[]>([]);
  const add = (job: Omit<Job, "id">): void => setJobs((before) => [...before, { ...job, id: nextJob++ }].slice(-MOST_JOBS));
  const end = (id: number): void => setJobs((before) => before.filter((job) => job.id !== id));
  const { user } = useSession();
  useConsents(({ changes }) => changes);
  const isAsked = useQuestions(({ asked }) => asked.length > 0);
  const [overlay, setOverlay] = useState<{ state: OpenState; look: OverlayLook; clicked: ClickPlace | undefined }>();
  useEffect(() => (isOver ? undefined : noteClicks()), [isOver]);
  const board = useMemo(
    (): Board => ({
      id: newest.current.id,
      title: newest.current.title,
      model: () => newest.current.shown.model,
      code: () => JSON.stringify(newest.current.configuration),
      path: () => newest.current.path,
      go: (path) => newest.current.go(path),
      part: new PartChoice(),
      draw: (state, embedded) => drawOn(newest.current.shown.model, newest.current.shown.time.window)(state, embedded),
      openOver: (state, look) => setOverlay({ state, look, clicked: recentClick() }),
      openDashboard: (...to) => newest.current.openDashboard(...to),
      runCode: (action, entity, origin) => add({ action, entity, origin }),
    }),
    [],
  );
  // Each part waits for itself: a part that loads must not take the frames of running code off the page.
  const host = (
    <BoardContext value={board}>
      <Suspense>
        {jobs.map((job) =>
          job.action.type === "mobileAction" && job.call === undefined ? (
            <DeviceRun key={job.id} job={job} onCode={add} onEnd={() => end(job.id)} />
          ) : (
            <CodeRun key={job.id} job={job} board={board} onEnd={() => end(job.id)} />
          ),
        )}
      </Suspense>
      <Suspense>{isAsked && !isOver && <QuestionDialog />}</Suspense>
      <Suspense>{!isOver && hasConsents() && <ConsentNote board={board} userId={user.id.id} />}</Suspense>
      <Suspense>{overlay !== undefined && <StateOverlay key={JSON.stringify(overlay.state)} {...overlay} props={props} onClose={() => setOverlay(undefined)} />}</Suspense>
    </BoardContext>
  );
  return { board, host };
}
