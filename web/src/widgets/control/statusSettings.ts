// What a status begins with, as ThingsBoard says it, but for its words.

import type { Json } from "@/dashboard/json";

const state = (icon: string, primaryColor: string, secondaryColor: string, ground: string): Json => ({
  showLabel: true,
  showStatus: true,
  icon,
  iconSize: 32,
  iconSizeUnit: "px",
  primaryColor,
  secondaryColor,
  background: { type: "color", color: ground },
  primaryColorDisabled: "rgba(0, 0, 0, 0.38)",
  secondaryColorDisabled: "rgba(0, 0, 0, 0.38)",
  backgroundDisabled: { type: "color", color: "#CACACA" },
});

export const STATUS: Json = {
  layout: "default",
  onState: state("toggle_on", "#fff", "rgba(255, 255, 255, 0.80)", "#3F52DD"),
  offState: state("toggle_off", "rgba(0, 0, 0, 0.87)", "rgba(0, 0, 0, 0.54)", "#FFF"),
};
