// A state of a dashboard over it: in a dialog, or beside what was clicked. States that are opened within it stay in it.

import { Breadcrumbs, Button, CloseButton, Modal, Popover } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { OverlayLook } from "@/dashboard/actions";
import { BoardContext } from "@/dashboard/board";
import type { ClickPlace } from "@/dashboard/lastClick";
import type { OpenState } from "@/dashboard/state";
import { t } from "@/i18n";
import { useBoard, type BoardProps, type DrawState } from "./ActionHost";
import { stateName } from "./stateName";
import classes from "../dashboard.module.css";

interface OverlayProps {
  state: OpenState;
  look: OverlayLook;
  /** What was clicked; a popover that code opens without a click is a dialog. */
  clicked: ClickPlace | undefined;
  props: BoardProps;
  draw: DrawState;
  onClose: () => void;
}

export default function StateOverlay({ state, look, clicked, props, draw, onClose }: OverlayProps): ReactElement {
  const [path, setPath] = useState<OpenState[]>([state]);
  const { board, host } = useBoard({ ...props, path, go: (next) => setPath(next.length === 0 ? [state] : next) }, draw, true);
  const current = path.at(-1) ?? state;
  const content = (
    <BoardContext value={board}>
      {path.length > 1 && (
        <Breadcrumbs mb="xs">
          {path.map((open, n) => (
            <Button key={`${open.id} ${n}`} size="compact-sm" variant="subtle" onClick={() => setPath(path.slice(0, n + 1))}>
              {stateName(props.model, open)}
            </Button>
          ))}
        </Breadcrumbs>
      )}
      {draw(current)}
    </BoardContext>
  );
  const title = look.title ?? stateName(props.model, current);
  const size = { width: `max(${look.width}, 20rem)`, height: `max(${look.height}, 16rem)` };
  if (look.kind === "popover" && clicked !== undefined) {
    return (
      <>
        <Popover opened onDismiss={onClose} closeOnClickOutside={look.closesOutside} position={look.placement} withArrow trapFocus shadow="md" middlewares={{ flip: true, shift: { padding: 8 } }}>
          <Popover.Target>
            <span className={classes["anchor"]} style={{ ...clicked }} />
          </Popover.Target>
          <Popover.Dropdown aria-label={title} className={classes["popover"]} style={{ ...size, maxWidth: "calc(100vw - 16px)", maxHeight: "calc(100vh - 16px)" }}>
            <CloseButton size="sm" aria-label={t("Close")} className={classes["popoverClose"]} onClick={onClose} />
            {content}
          </Popover.Dropdown>
        </Popover>
        {host}
      </>
    );
  }
  return (
    <>
      <Modal opened onClose={onClose} size={size.width} title={title} closeButtonProps={{ "aria-label": t("Close") }} styles={{ body: { height: size.height, display: "flex", flexDirection: "column" } }}>
        {content}
      </Modal>
      {host}
    </>
  );
}
