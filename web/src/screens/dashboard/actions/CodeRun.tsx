// The frame in which the code of an action runs: hidden, until the code opens a dialog in it.

import { CloseButton, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { useSession } from "@/app/session";
import type { Board } from "@/dashboard/board";
import { object } from "@/dashboard/json";
import { t } from "@/i18n";
import { Bridge } from "@/sandbox/bridge";
import { SANDBOX_PAGE } from "@/sandbox/calls";
import { modulesIn } from "@/sandbox/modules";
import { actionProgram } from "@/sandbox/program";
import { messageOf, notify } from "@/ui/feedback";
import { contextData } from "@/widgets/contextData";
import type { Job } from "./ActionHost";
import classes from "./code.module.css";

/** A frame without anything to do is kept this long, for code that comes back later, milliseconds. */
const IDLE_MS = 20_000;

export default function CodeRun({ job, board, onEnd }: { job: Job; board: Board; onEnd: () => void }): ReactElement {
  const { user, authority, customerId } = useSession();
  const frame = useRef<HTMLIFrameElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  const [dialog, setDialog] = useState<{ unknown: string[] }>();
  const isOpen = useRef(false);
  // What somebody allows, they allow to the modules that the code uses, too.
  const used = useRef("");
  const end = useRef(onEnd);
  end.current = onEnd;
  const { action, entity, origin, call } = job;
  const failed = useRef((_message: string): void => undefined);
  failed.current = (message) => {
    if (call?.onFailure === undefined) {
      notify.error(new Error(t("The code of “{name}” failed: {problem}", { name: action.name, problem: message })));
    } else {
      call.onFailure(message);
      end.current();
    }
  };
  useEffect(() => {
    const bridge = new Bridge({
      board,
      userId: user.id.id,
      code: () => used.current,
      onDialog: (open, unknown) => {
        isOpen.current = open;
        setDialog(open ? { unknown } : undefined);
      },
      onFailure: (message) => failed.current(message),
    });
    let last = Date.now();
    const hear = async (event: MessageEvent<unknown>): Promise<void> => {
      const own = frame.current?.contentWindow;
      if (own === undefined || own === null || event.source !== own) {
        return;
      }
      last = Date.now();
      const { kind, value } = object(event.data);
      if (kind === "result" && call?.onResult !== undefined) {
        call.onResult(value);
        end.current();
        return;
      }
      const answer = await bridge.hear(event.data);
      last = Date.now();
      if (answer !== undefined) {
        // The frame has no origin, so no narrower target than all can be named; it is the one that is addressed.
        own.postMessage(answer, "*");
      }
    };
    const listener = (event: MessageEvent<unknown>): void => void hear(event);
    addEventListener("message", listener);
    const timer = setInterval(() => {
      if (!isOpen.current && bridge.pending() === 0 && Date.now() - last > IDLE_MS) {
        end.current();
      }
    }, 1_000);
    return () => {
      removeEventListener("message", listener);
      clearInterval(timer);
    };
  }, [board, user.id.id, call]);
  useEffect(() => {
    if (dialog !== undefined) {
      close.current?.focus();
    }
  }, [dialog]);
  const fail = (error: unknown): void => {
    failed.current(messageOf(error));
    end.current();
  };
  const start = async (): Promise<void> => {
    const body = call?.body ?? action.code?.body ?? "";
    const modules = await modulesIn(body);
    used.current = modules.length === 0 ? "" : JSON.stringify(modules);
    const data = contextData([...origin.sources]);
    const state = {
      data,
      datasources: data.map((one) => one["datasource"]),
      settings: origin.widget.settings,
      widgetConfig: { title: origin.widget.title },
      actions: {},
      statePath: board.path(),
      dashboard: { id: { entityType: "DASHBOARD", id: board.id } },
      currentUser: { authority, userId: user.id.id, customerId },
      given: {
        entityId: entity?.id ?? null,
        entityName: entity?.name ?? "",
        entityLabel: entity?.latest.get("ENTITY_FIELD/label")?.value ?? "",
        htmlTemplate: action.code?.html ?? "",
        additionalParams: object(origin.extra),
        ...call?.values,
      },
    };
    const program = call === undefined ? actionProgram(body, action.type === "customPretty", modules) : actionProgram(body, call.draws, modules, { names: call.names, returns: call.onResult !== undefined });
    const message = { kind: "start", html: "", css: `#container { box-sizing: border-box; padding: 0 16px; } ${action.code?.css ?? ""}`, modules, js: program, state: JSON.parse(JSON.stringify(state)) as unknown };
    frame.current?.contentWindow?.postMessage(message, "*");
  };
  return (
    <div className={dialog === undefined ? classes["hidden"] : classes["cover"]} onKeyDown={(event) => event.key === "Escape" && onEnd()}>
      <div className={classes["dialog"]} role="dialog" aria-modal={dialog !== undefined} aria-hidden={dialog === undefined} aria-label={action.name}>
        <div className={classes["head"]}>
          <Text fw={600}>{action.name}</Text>
          <CloseButton ref={close} aria-label={t("Close")} onClick={onEnd} />
        </div>
        {dialog !== undefined && dialog.unknown.length > 0 && (
          <Text size="xs" px="md" pb={4} c="var(--soft-text)">
            {t("This dialog is made for ThingsBoard's own page. These parts don't work here: {parts}", { parts: dialog.unknown.join(", ") })}
          </Text>
        )}
        <iframe ref={frame} className={classes["frame"]} sandbox="allow-scripts" src={SANDBOX_PAGE} title={action.name} tabIndex={dialog === undefined ? -1 : 0} onLoad={() => void start().catch(fail)} />
        <Text size="xs" px="md" py={4} c="var(--soft-text)">
          {t("This is code of the dashboard. Never give it a password.")}
        </Text>
      </div>
    </div>
  );
}
