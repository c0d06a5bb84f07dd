// The protocol of a device's shell: a command is begun, its output is asked for until it has ended.

import { list, object, text } from "@/dashboard/model";
import { t } from "@/i18n";

export interface Shell {
  call: (method: string, params: unknown) => Promise<unknown>;
  print: (kind: "output" | "error", text: string) => void;
  enter: (directory: string) => void;
  /** Whether somebody wants the command to end. */
  stopping: () => boolean;
}

/** Distance of the questions for output while there is some, and while there is none, milliseconds. */
const POLL_MS = 200;
const QUIET_MS = 1_000;

function demandOk(answer: unknown): void {
  const read = object(answer);
  if (read["ok"] !== true) {
    throw new Error(text(read["error"]) ?? t("The device refused the command and gave no reason."));
  }
}

/** Runs one command on the device and prints what it says. */
export async function runShell(shell: Shell, command: string, directory: string): Promise<void> {
  demandOk(await shell.call("sendCommand", { command, cwd: directory }));
  let asked = false;
  for (;;) {
    if (shell.stopping() && !asked) {
      asked = true;
      demandOk(await shell.call("terminateCommand", null));
    }
    const status = object(await shell.call("getCommandStatus", null));
    const parts = list(status["data"]).map(object);
    parts.forEach((part) => {
      const [out, error] = [text(part["stdout"]), text(part["stderr"])];
      out === undefined || shell.print("output", out);
      error === undefined || shell.print("error", error);
    });
    if (status["done"] === true) {
      shell.enter(text(status["cwd"]) ?? directory);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, parts.length > 0 ? POLL_MS : QUIET_MS));
  }
}
