// Does what an action declares.

import type { Act } from "@/dashboard/actions";
import { isOwnAddress, pathAfter, safeUrl, stateAfter } from "@/dashboard/actions";
import type { Board } from "@/dashboard/board";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";

/** Returns what carries out actions on a board. */
export function actOn(board: Board): Act {
  return (action, entity, origin) => {
    const path = board.path();
    switch (action.type) {
      case "openURL": {
        const url = safeUrl(action.url);
        if (url === undefined) {
          notify.error(t("The address of this action is none that may be opened."));
        } else if (action.newTab || !isOwnAddress(url, location.href)) {
          open(url, "_blank", "noopener");
        } else {
          location.assign(url);
        }
        return;
      }
      case "openDashboard":
        board.openDashboard(action.dashboardId, action.stateId === undefined ? undefined : stateAfter(action, { id: action.stateId, params: {} }, entity), action.newTab);
        return;
      case "custom":
      case "customPretty":
      case "mobileAction":
        board.runCode(action, entity, origin);
        return;
      default:
        if (action.overlay === undefined) {
          const next = pathAfter(action, path, entity);
          board.part.choose(action.rightLayout ? next.at(-1)?.id : undefined);
          board.go(next);
        } else {
          board.openOver(stateAfter(action, path.at(-1), entity), action.overlay);
        }
    }
  };
}
