// A state of a dashboard in a dialog over it. States that are opened within it stay in it.

import { Breadcrumbs, Button, Modal } from "@mantine/core";
import { useState, type ReactElement } from "react";
import type { OverlayLook } from "@/dashboard/actions";
import { BoardContext } from "@/dashboard/board";
import type { OpenState } from "@/dashboard/state";
import { t } from "@/i18n";
import { useBoard, type BoardProps, type DrawState } from "./ActionHost";
import { stateName } from "./stateName";

interface OverlayProps {
  state: OpenState;
  look: OverlayLook;
  props: BoardProps;
  draw: DrawState;
  onClose: () => void;
}

export default function StateOverlay({ state, look, props, draw, onClose }: OverlayProps): ReactElement {
  const [path, setPath] = useState<OpenState[]>([state]);
  const { board, host } = useBoard({ ...props, path, go: (next) => setPath(next.length === 0 ? [state] : next) }, draw, true);
  const current = path.at(-1) ?? state;
  return (
    <Modal
      opened
      onClose={onClose}
      size={`max(${look.width}, 20rem)`}
      title={look.title ?? stateName(props.model, current)}
      closeButtonProps={{ "aria-label": t("Close") }}
      styles={{ body: { height: `max(${look.height}, 16rem)`, display: "flex", flexDirection: "column" } }}
    >
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
      {host}
    </Modal>
  );
}
