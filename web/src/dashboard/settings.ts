// Settings of a dashboard: what its toolbar shows, its logo, its styles.

import { object, text, type Json } from "./json";

export interface DashboardSettings {
  showTitle: boolean;
  titleColor: string | undefined;
  showDashboardsSelect: boolean;
  showEntitiesSelect: boolean;
  showFilters: boolean;
  showTimeWindow: boolean;
  showExport: boolean;
  hideToolbar: boolean;
  /** Whether the toolbar is opened by whoever needs it. */
  isToolbarFolded: boolean;
  /** Whether opening a state replaces the one before, so that there is no path back. */
  isFlat: boolean;
  logo: string | undefined;
  css: string;
}

/** Reads the settings; old files keep some of them with the grid. */
export function readSettings(configuration: Json): DashboardSettings {
  const grid = object(configuration["gridSettings"]);
  const settings = object(configuration["settings"]);
  const shown = (name: string, old?: string): boolean => (settings[name] ?? grid[name] ?? (old === undefined ? undefined : grid[old])) !== false;
  return {
    showTitle: (settings["showTitle"] ?? grid["showTitle"]) === true,
    titleColor: text(settings["titleColor"]) ?? text(grid["titleColor"]),
    showDashboardsSelect: shown("showDashboardsSelect"),
    showEntitiesSelect: shown("showEntitiesSelect", "showDevicesSelect"),
    showFilters: shown("showFilters"),
    showTimeWindow: shown("showDashboardTimewindow"),
    showExport: shown("showDashboardExport"),
    hideToolbar: settings["hideToolbar"] === true,
    isToolbarFolded: settings["toolbarAlwaysOpen"] === false,
    isFlat: settings["stateControllerId"] === "default",
    logo: settings["showDashboardLogo"] === true ? text(settings["dashboardLogoUrl"]) : undefined,
    css: text(settings["dashboardCss"]) ?? "",
  };
}
