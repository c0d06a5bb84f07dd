// Cards that lead to screens: one that is named, or those of the menu.

import type { ReactElement } from "react";
import { Link } from "wouter";
import { useSession } from "@/app/session";
import { list, text } from "@/dashboard/model";
import { plainWords } from "@/dashboard/words";
import { t } from "@/i18n";
import { Icon } from "@/icons/Icon";
import { EmptyState } from "@/ui/feedback";
import type { WidgetProps } from "../registry";
import { offeredTo, screenFor } from "./destinations";
import classes from "./home.module.css";

export default function NavigationCards({ widget }: WidgetProps): ReactElement {
  const { authority } = useSession();
  const { settings } = widget;
  if (widget.fqn.endsWith("navigation_card")) {
    const path = text(settings["path"]) ?? "";
    const screen = screenFor(path, authority);
    const icon = text(settings["icon"]);
    const name = plainWords(text(settings["name"]) ?? screen?.label ?? path);
    return screen === undefined ? <EmptyState>{t("{name}: there is no such screen here for your role.", { name })}</EmptyState> : (
      <Link className={classes["card"]} href={screen.path}>
        {icon !== undefined && <Icon name={icon} />}
        {name}
      </Link>
    );
  }
  const named = new Set(list(settings["filter"]).map((path) => screenFor(String(path), authority)?.path ?? String(path)));
  const kind = settings["filterType"];
  const shown = offeredTo(authority).filter(({ path }) => (kind === "include" ? named.has(path) : kind === "exclude" ? !named.has(path) : true));
  return (
    <nav className={classes["cards"]} aria-label={t("Screens")}>
      {shown.map((screen) => (
        <Link key={screen.path} className={classes["card"]} href={screen.path}>
          {t(screen.label)}
        </Link>
      ))}
    </nav>
  );
}
