// Settings of a dashboard that is edited: its states, their grids, its toolbar, its time window, its aliases and filters.

import { Modal, Tabs } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import type { DashboardEditor } from "./editor";
import { Aliases } from "./settings/Aliases";
import { Filters } from "./settings/Filters";
import { GridTab } from "./settings/GridTab";
import { States } from "./settings/States";
import { ToolbarTab } from "./settings/ToolbarTab";
import { TimeTab } from "./TimeTab";

export function SettingsDialog({ editor, opened, onClose }: { editor: DashboardEditor; opened: boolean; onClose: () => void }): ReactElement {
  return (
    <Modal opened={opened} onClose={onClose} size="xl" title={t("Settings of the dashboard")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Tabs defaultValue="states" keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="states">{t("States")}</Tabs.Tab>
          <Tabs.Tab value="grid">{t("Grid")}</Tabs.Tab>
          <Tabs.Tab value="toolbar">{t("Toolbar")}</Tabs.Tab>
          <Tabs.Tab value="aliases">{t("Aliases")}</Tabs.Tab>
          <Tabs.Tab value="filters">{t("Filters")}</Tabs.Tab>
          <Tabs.Tab value="time">{t("Time")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="states">
          <States editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="grid">
          <GridTab editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="aliases">
          <Aliases editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="toolbar">
          <ToolbarTab editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="filters">
          <Filters editor={editor} />
        </Tabs.Panel>
        <Tabs.Panel value="time">
          <TimeTab editor={editor} />
        </Tabs.Panel>
      </Tabs>
    </Modal>
  );
}
