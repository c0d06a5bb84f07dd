// What can be done with the chosen widgets, at the pointer.

import { Menu } from "@mantine/core";
import type { ReactElement } from "react";
import { ALIGNMENTS } from "@/dashboard/edit/align";
import { t } from "@/i18n";
import type { WidgetCommands } from "./commands";

export interface MenuPlace {
  x: number;
  y: number;
}

interface WidgetMenuProps {
  place: MenuPlace | undefined;
  selected: number;
  commands: WidgetCommands;
  onClose: () => void;
}

export function WidgetMenu({ place, selected, commands, onClose }: WidgetMenuProps): ReactElement | null {
  return place === undefined ? null : (
    <Menu opened onClose={onClose} position="bottom-start" shadow="md">
      <Menu.Target>
        <button type="button" tabIndex={-1} aria-label={t("Menu of the widgets")} style={{ position: "fixed", left: place.x, top: place.y, width: 1, height: 1, padding: 0, border: 0, opacity: 0 }} />
      </Menu.Target>
      <Menu.Dropdown>
        {selected === 1 && (
          <>
            <Menu.Item onClick={commands.open}>{t("Edit")}</Menu.Item>
            <Menu.Divider />
          </>
        )}
        {selected > 0 && (
          <>
            <Menu.Item rightSection="Ctrl+X" onClick={commands.cutOut}>{t("Cut")}</Menu.Item>
            <Menu.Item rightSection="Ctrl+C" onClick={commands.copy}>{t("Copy")}</Menu.Item>
            <Menu.Item onClick={commands.copyReference}>{t("Copy reference")}</Menu.Item>
            <Menu.Item onClick={commands.duplicate}>{t("Duplicate")}</Menu.Item>
          </>
        )}
        <Menu.Item rightSection="Ctrl+V" onClick={commands.insert}>{t("Paste")}</Menu.Item>
        {selected === 1 && <Menu.Item onClick={commands.copyLook}>{t("Copy style")}</Menu.Item>}
        {selected > 0 && <Menu.Item onClick={commands.insertLook}>{t("Paste style")}</Menu.Item>}
        {selected === 1 && <Menu.Item onClick={commands.takeOut}>{t("Export")}</Menu.Item>}
        {selected > 1 && (
          <>
            <Menu.Divider />
            {ALIGNMENTS.map(({ id, label }) => (
              <Menu.Item key={id} onClick={() => commands.align(id)}>
                {t(label)}
              </Menu.Item>
            ))}
          </>
        )}
        {selected > 0 && (
          <>
            <Menu.Divider />
            <Menu.Item color="red" onClick={commands.remove}>
              {t("Remove")}
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
