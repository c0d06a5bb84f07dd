// The icon before the title of a widget, where a set has it.

import type { ReactElement } from "react";
import { text, type Json } from "@/dashboard/model";
import { chosen } from "@/widgets/color";
import { Icon } from "@/icons/Icon";
import { useDrawings } from "@/icons/drawings";
import classes from "./dashboard.module.css";

const LENGTH = /^\d{1,2}(\.\d+)?(px|em|rem)$/;

export function TitleIcon({ config }: { config: Json }): ReactElement | null {
  const name = text(config["titleIcon"]) ?? "";
  const size = text(config["iconSize"]) ?? "";
  const color = chosen(config["iconColor"]);
  return useDrawings()(name) === undefined ? null : (
    <span className={classes["titleIcon"]} style={color === undefined ? {} : { color }}>
      <Icon name={name} size={LENGTH.test(size) ? size : "24px"} />
    </span>
  );
}
