// A state of a dashboard over it: in a dialog, or beside what was clicked. States that are opened within it stay in it.

import { CloseButton, Modal, Popover } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { OverlayLook } from "@/dashboard/actions";
import type { Choices } from "@/dashboard/aliases";
import { BoardContext } from "@/dashboard/board";
import type { ClickPlace } from "@/dashboard/lastClick";
import type { OpenState } from "@/dashboard/state";
import { TimeContext } from "@/dashboard/time/control";
import type { FilterValues } from "@/dashboard/viewer";
import { t } from "@/i18n";
import { useQuestions } from "@/sandbox/questions";
import { drawOn } from "../Board";
import { BoardTools, StatePath } from "../BoardTools";
import { useShown } from "../shown";
import { useOwnWindow } from "../time/hooks";
import { useBoard, type BoardProps } from "./ActionHost";
import { stateName } from "./stateName";
import { useClickElsewhere } from "./useClickElsewhere";
import classes from "../dashboard.module.css";

interface OverlayProps {
  state: OpenState;
  look: OverlayLook;
  /** What was clicked; a popover that code opens without a click is a dialog. */
  clicked: ClickPlace | undefined;
  /** The board below. */
  props: BoardProps;
  onClose: () => void;
}

export default function StateOverlay({ state, look, clicked, props, onClose }: OverlayProps): ReactElement {
  const { stored } = props.shown;
  const [path, setPath] = useState<OpenState[]>([state]);
  const go = (next: OpenState[]): void => setPath(next.length === 0 ? [state] : next);
  // It begins as what lies below; what is chosen on it stays on it.
  const [choices, setChoices] = useState<Choices>();
  const [values, setValues] = useState<FilterValues>();
  const time = useOwnWindow(props.shown.time.window);
  const shown = useShown(stored, choices ?? props.shown.choices, values ?? props.shown.values, time);
  const [filled, setFilled] = useState(false);
  const { board, host } = useBoard({ ...props, shown, path, go }, true);
  // Nothing that has to stay beside something else can fill the screen.
  const isBeside = look.kind === "popover" && clicked !== undefined && !filled;
  // Questions of code are asked by the board below, and answering one is no click elsewhere.
  const isAsked = useQuestions(({ asked }) => asked.length > 0);
  const inside = useClickElsewhere(isBeside && look.closesOutside && !isAsked, onClose);
  const current = path.at(-1) ?? state;
  const hasTools = !look.hideToolbar && !stored.settings.hideToolbar;
  const content = (
    <BoardContext value={board}>
      {hasTools ? (
        <BoardTools shown={shown} path={path} go={go} fill={{ filled, toggle: () => setFilled(!filled) }} onChoices={setChoices} onValues={setValues} />
      ) : (
        <StatePath model={shown.model} path={path} go={go} />
      )}
      {drawOn(shown.model, time.window)(current)}
    </BoardContext>
  );
  const title = look.title ?? stateName(shown.model, current);
  const size = { width: `max(${look.width}, 20rem)`, height: `max(${look.height}, 16rem)` };
  if (isBeside) {
    return (
      <TimeContext value={time}>
        {/* What opens from it is within it, too, and so are all clicks there. */}
        <div {...inside} style={{ display: "contents" }}>
          <Popover opened onDismiss={onClose} closeOnClickOutside={false} position={look.placement} withArrow trapFocus shadow="md" middlewares={{ flip: true, shift: { padding: 8 } }}>
            <Popover.Target>
              <span className={classes["anchor"]} style={{ ...clicked }} />
            </Popover.Target>
            <Popover.Dropdown aria-label={title} className={classes["popover"]} style={{ ...size, maxWidth: "calc(100vw - 16px)", maxHeight: "calc(100vh - 16px)" }}>
              <CloseButton size="sm" aria-label={t("Close")} className={classes["popoverClose"]} onClick={onClose} />
              {content}
            </Popover.Dropdown>
          </Popover>
          {host}
        </div>
      </TimeContext>
    );
  }
  return (
    <TimeContext value={time}>
      <Modal opened onClose={onClose} size={size.width} fullScreen={filled} title={title} closeButtonProps={{ "aria-label": t("Close") }} styles={{ body: { height: filled ? "calc(100vh - 5rem)" : size.height, display: "flex", flexDirection: "column" } }}>
        {content}
      </Modal>
      {host}
    </TimeContext>
  );
}
