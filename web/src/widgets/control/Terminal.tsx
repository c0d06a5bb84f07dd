// A line in which commands to a device are written, with their answers: the debug terminal, and the shell of a device.

import { useEffect, useRef, useState, type FormEvent, type KeyboardEvent, type ReactElement } from "react";
import { number, type Json } from "@/dashboard/model";
import { usePlace } from "@/dashboard/place";
import { t } from "@/i18n";
import type { WidgetProps } from "../registry";
import { parsed } from "./convert";
import { reasonOf } from "./rpc";
import { runShell, type Shell } from "./shell";
import { rpcOf, type Setter } from "./settings";
import { useControl } from "./useControl";
import classes from "./control.module.css";

interface Line {
  kind: "input" | "output" | "error";
  text: string;
}

/** Lines beyond these are forgotten, the oldest first. */
const MOST = 1_000;

/** Takes `method {"any": "JSON"}` apart; what is no JSON goes as text. */
export function commandOf(line: string): { method: string; params: unknown } {
  const [, method = "", rest = ""] = /^(\S+)\s*([^]*)$/.exec(line.trim()) ?? [];
  return { method, params: rest === "" ? undefined : parsed(rest) };
}

const ASKS: Pick<Setter, "action" | "scope"> = { action: "EXECUTE_RPC", scope: "SERVER_SCOPE" };

export default function Terminal({ widget, entities }: WidgetProps): ReactElement {
  const { settings, fqn } = widget;
  const { editing } = usePlace();
  const isShell = fqn.endsWith("rpc_remote_shell");
  const control = useControl(entities, ASKS as Setter);
  const rpc = { ...rpcOf(settings, ""), timeoutMs: number(settings["requestTimeout"]) ?? 500 };
  const [lines, setLines] = useState<Line[]>([]);
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [past, setPast] = useState<{ commands: string[]; at: number }>({ commands: [], at: 0 });
  const [directory, setDirectory] = useState("");
  const stopping = useRef(false);
  const log = useRef<HTMLDivElement>(null);
  const print = (kind: Line["kind"], text: string): void => setLines((before) => [...before, { kind, text }].slice(-MOST));
  const name = control.target?.name ?? "";
  const locked = control.locked;
  useEffect(() => {
    log.current?.scrollTo({ top: log.current.scrollHeight });
  }, [lines]);

  const shell: Shell = {
    call: (method, params) => control.call({ ...rpc, method, params, twoWay: true }),
    print: (kind, text) => print(kind, text),
    enter: setDirectory,
    stopping: () => stopping.current,
  };
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    stopping.current = false;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError")) {
        print("error", reasonOf(error, name, rpc.timeoutMs));
      }
    } finally {
      setBusy(false);
    }
  };
  const id = control.target?.id.id;
  useEffect(() => {
    if (isShell && id !== undefined && locked === undefined && !editing) {
      void attempt(async () => {
        const info = (await shell.call("getTermInfo", null)) as Json | null;
        print("output", [info?.["platform"], info?.["release"]].filter((part) => typeof part === "string").join(" "));
        setDirectory(typeof info?.["cwd"] === "string" ? info["cwd"] : "");
      });
    }
  }, [isShell, id, locked, editing]);

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const line = typed.trim();
    if (line === "" || busy || locked !== undefined) {
      return;
    }
    setTyped("");
    setPast((before) => ({ commands: [...before.commands, line], at: before.commands.length + 1 }));
    print("input", `${isShell ? directory : ""}> ${line}`);
    if (isShell) {
      void attempt(() => runShell(shell, line, directory));
    } else if (line === "help") {
      print("output", `${t("Write a method and, after a blank, its parameters as JSON or text.")}\n\nsetValue {"pin": 1}`);
    } else {
      void attempt(async () => {
        const { method, params } = commandOf(line);
        const answer = await control.call({ ...rpc, method, params, twoWay: true });
        print("output", answer === undefined ? t("An empty answer") : JSON.stringify(answer, null, 2));
      });
    }
  };
  const keys = (event: KeyboardEvent<HTMLInputElement>): void => {
    const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
    const at = Math.min(past.commands.length, Math.max(0, past.at + step));
    if (step !== 0) {
      event.preventDefault();
      setPast({ ...past, at });
      setTyped(past.commands[at] ?? "");
    } else if (event.ctrlKey && (event.key === "c" || event.key === "d") && busy && isShell) {
      event.preventDefault();
      stopping.current = true;
    }
  };
  return (
    <div className={classes["terminal"]}>
      <div ref={log} className={classes["log"]} role="log" tabIndex={0} aria-label={widget.title || t("Terminal")}>
        {locked !== undefined ? <span data-kind="error">{locked}</span> : t("Commands go to {name}.", { name })}
        {lines.map((line, n) => (
          <div key={n} data-kind={line.kind}>
            {line.text}
          </div>
        ))}
      </div>
      <form className={classes["entry"]} onSubmit={submit}>
        <span aria-hidden="true">{isShell ? directory : name}&gt;</span>
        <input aria-label={t("Command")} autoComplete="off" spellCheck={false} readOnly={locked !== undefined} aria-busy={busy} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} onKeyDown={keys} />
        {busy && isShell && (
          <button type="button" onClick={() => (stopping.current = true)}>
            {t("Stop")}
          </button>
        )}
      </form>
    </div>
  );
}
