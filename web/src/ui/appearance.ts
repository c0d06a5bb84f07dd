// How the pages look on this browser, besides light and dark: contrast, density, and the direction of lines. Chosen in the user's menu, and remembered.

import { create } from "zustand";

export type Contrast = "normal" | "high";
export type Density = "comfortable" | "dense";
export type Direction = "ltr" | "rtl";

const CONTRAST = "fieldline_contrast";
const DENSITY = "fieldline_density";
const DIRECTION = "fieldline_direction";

interface Appearance {
  contrast: Contrast;
  density: Density;
  direction: Direction;
}

function stored(): Appearance {
  const contrast = localStorage.getItem(CONTRAST)?.replaceAll('"', "");
  return {
    // Who has asked the system for more contrast gets it here, too.
    contrast: contrast === "high" || (contrast === undefined && matchMedia("(prefers-contrast: more)").matches) ? "high" : "normal",
    density: localStorage.getItem(DENSITY) === "dense" ? "dense" : "comfortable",
    direction: localStorage.getItem(DIRECTION) === "rtl" ? "rtl" : "ltr",
  };
}

export const useAppearance = create<Appearance>(() => (typeof localStorage === "undefined" ? { contrast: "normal", density: "comfortable", direction: "ltr" } : stored()));

/** Lets the style sheets know what was chosen. */
export function startAppearance(): void {
  const put = ({ contrast, density, direction }: Appearance): void => {
    document.documentElement.dir = direction;
    document.documentElement.dataset["contrast"] = contrast;
    document.documentElement.dataset["density"] = density;
  };
  put(useAppearance.getState());
  useAppearance.subscribe(put);
}

export function setContrast(contrast: Contrast): void {
  localStorage.setItem(CONTRAST, contrast);
  useAppearance.setState({ contrast });
}

export function setDensity(density: Density): void {
  localStorage.setItem(DENSITY, density);
  useAppearance.setState({ density });
}

/** Lays the pages out for languages that are read from the right. Charts, maps and drawings stay as they are. */
export function setDirection(direction: Direction): void {
  localStorage.setItem(DIRECTION, direction);
  useAppearance.setState({ direction });
}
