// Small drawings for the icons that controls name most. An icon that isn't among them is left out.

import type { ReactElement } from "react";

const DRAWINGS: Record<string, string> = {
  power_settings_new: "M12 3v9M6.5 6.5a8 8 0 1 0 11 0",
  arrow_back_ios_new: "M15 5l-7 7 7 7",
  arrow_forward_ios: "M9 5l7 7-7 7",
  arrow_outward: "M7 17L17 7M9 7h8v8",
  add: "M12 5v14M5 12h14",
  remove: "M5 12h14",
  keyboard_arrow_up: "M5 15l7-7 7 7",
  keyboard_arrow_down: "M5 9l7 7 7-7",
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  lightbulb: "M9 18h6M10 21h4M8.5 15a6 6 0 1 1 7 0V16h-7z",
  thermostat: "M10 14V5a2 2 0 0 1 4 0v9a4 4 0 1 1-4 0",
  play_arrow: "M8 5l11 7-11 7z",
  stop: "M6 6h12v12H6z",
  pause: "M9 5v14M15 5v14",
  refresh: "M19 6v5h-5M19 11a7 7 0 1 0-1 5",
  lock: "M6 11h12v9H6zM9 11V7a3 3 0 0 1 6 0v4",
  lock_open: "M6 11h12v9H6zM9 11V7a3 3 0 0 1 6-1",
  water_drop: "M12 3c4 5 6 8 6 11a6 6 0 0 1-12 0c0-3 2-6 6-11z",
  volume_up: "M4 10v4h4l5 4V6L8 10zM16 9a4 4 0 0 1 0 6",
  volume_off: "M4 10v4h4l5 4V6L8 10zM16 10l4 4M20 10l-4 4",
  bolt: "M13 3L5 14h6l-1 7 8-11h-6z",
  air: "M4 9h10a3 3 0 1 0-3-3M4 13h14a3 3 0 1 1-3 3M4 17h6",
  warning: "M12 4l9 16H3zM12 10v4M12 17v.5",
  error: "M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 8v5M12 16v.5",
  info: "M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 11v5M12 8v.5",
  settings: "M12 9a3 3 0 1 0 0 6a3 3 0 0 0 0-6M12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M5.6 18.4l2.1-2.1M16.3 7.7l2.1-2.1",
  notifications: "M6 17V11a6 6 0 0 1 12 0v6zM4 17h16M10 20h4",
  devices: "M3 6h14v9H3zM9 19h6M18 10h4v10h-4z",
  speed: "M4 17a9 9 0 1 1 16 0M12 13l4-5",
  wb_sunny: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  cloud: "M7 18a4 4 0 0 1 0-8a6 6 0 0 1 11 2a3 3 0 0 1 0 6z",
  vibration: "M9 4h6v16H9zM5 8v8M19 8v8M2 10v4M22 10v4",
  visibility: "M2 12c3-5 6-7 10-7s7 2 10 7c-3 5-6 7-10 7s-7-2-10-7zM12 9a3 3 0 1 0 0 6a3 3 0 0 0 0-6",
  wifi: "M3 9a13 13 0 0 1 18 0M6 13a9 9 0 0 1 12 0M9.5 16.5a4 4 0 0 1 5 0M12 20v.1",
  battery_full: "M8 5h8v16H8zM10 2h4v3h-4z",
  schedule: "M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 7v5l4 2",
  place: "M12 21c-5-6-7-9-7-12a7 7 0 0 1 14 0c0 3-2 6-7 12zM12 7a2 2 0 1 0 0 4a2 2 0 0 0 0-4",
  person: "M12 4a4 4 0 1 0 0 8a4 4 0 0 0 0-8M4 21c0-5 4-7 8-7s8 2 8 7",
  search: "M10 4a6 6 0 1 0 0 12a6 6 0 0 0 0-12M15 15l6 6",
  edit: "M4 20l1-4L16 5l3 3L8 19z",
  delete: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  more_horiz: "M6 12h.1M12 12h.1M18 12h.1",
  more_vert: "M12 6v.1M12 12v.1M12 18v.1",
  arrow_forward: "M5 12h14M13 6l6 6-6 6",
  arrow_back: "M19 12H5M11 6l-6 6 6 6",
  show_chart: "M4 17l5-6 4 4 7-9",
  dashboard: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  send: "M4 5l16 7-16 7 2-7zM6 12h6",
  download: "M12 4v11M7 10l5 5 5-5M5 20h14",
  upload: "M12 16V5M7 10l5-5 5 5M5 20h14",
  chevron_right: "M9 5l7 7-7 7",
  chevron_left: "M15 5l-7 7 7 7",
  compress: "M12 3v6M9 6l3 3 3-3M12 21v-6M9 18l3-3 3 3M4 12h16",
  touch_app: "M9 12V6a1.5 1.5 0 0 1 3 0v5l6 2-1 8h-6l-5-6z",
  "done": "M5 13l4 4L19 7",
  close: "M6 6l12 12M18 6L6 18",
};
const OTHER_NAMES: Record<string, string> = {
  "mdi:thermometer": "thermostat", device_thermostat: "thermostat", "mdi:water-percent": "water_drop", "mdi:water": "water_drop", opacity: "water_drop", "mdi:gauge": "speed",
  "mdi:flash": "bolt", flash_on: "bolt", "mdi:weather-windy": "air", "mdi:alert": "warning", light_mode: "wb_sunny", "mdi:weather-sunny": "wb_sunny", devices_other: "devices",
  "mdi:power-plug": "bolt", location_on: "place", access_time: "schedule", "mdi:vibrate": "vibration", volume_down: "volume_up",
  "mdi:lightbulb": "lightbulb", "mdi:lightbulb-outline": "lightbulb", lightbulb_outline: "lightbulb", "mdi:power": "power_settings_new", check: "done",
  mode_edit: "edit", create: "edit", delete_outline: "delete", delete_forever: "delete", open_in_new: "arrow_outward", launch: "arrow_outward", info_outline: "info",
  clear: "close", timeline: "show_chart", history: "schedule", file_download: "download", file_upload: "upload",
};

/** Names that can be chosen where an icon is. */
export const ICON_NAMES: readonly string[] = Object.keys(DRAWINGS).sort();

/** Whether there is a drawing for an icon. */
export function drawingOf(name: string): string | undefined {
  const known = OTHER_NAMES[name] ?? name;
  return Object.hasOwn(DRAWINGS, known) ? DRAWINGS[known] : undefined;
}

export function Icon({ name, size = "1.2em" }: { name: string; size?: string }): ReactElement | null {
  const path = drawingOf(name);
  return path === undefined ? null : (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
