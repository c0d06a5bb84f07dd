import { createTheme, type CSSVariablesResolver } from "@mantine/core";

export const theme = createTheme({
  primaryColor: "teal",
  primaryShade: 9,
  autoContrast: true,
  defaultRadius: "md",
  fontFamily: "system-ui, sans-serif",
  respectReducedMotion: true,
  components: {
    // The head of a dialog is no head of the page.
    ModalHeader: { defaultProps: { role: "presentation" } },
    DrawerHeader: { defaultProps: { role: "presentation" } },
  },
});

/** Buttons get darker under the pointer: white on the library's lighter colours can't be read well. */
const HOVERED = { "--mantine-color-teal-filled-hover": "#066b4c", "--mantine-color-red-filled-hover": "#851015" };

/** Colours of text that the library leaves below a contrast of 4.5 on its own backgrounds. */
export const contrast: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-anchor": "#08533b",
    "--mantine-color-error": "#a3181d",
    "--mantine-color-placeholder": "#66716c",
    "--mantine-color-dimmed": "#4d5a54",
    "--mantine-color-teal-light-color": "#064d37",
    "--mantine-color-red-light-color": "#8f1418",
    "--mantine-color-yellow-light-color": "#5f3b00",
    "--mantine-color-blue-light-color": "#0b4a8f",
    "--mantine-color-red-filled": "#a3181d",
    "--mantine-color-orange-text": "#a3390a",
    "--mantine-color-orange-outline": "#a3390a",
    ...HOVERED,
  },
  dark: {
    "--mantine-color-anchor": "#63e6be",
    "--mantine-color-error": "#ff9d9d",
    "--mantine-color-placeholder": "#9aa5a0",
    "--mantine-color-dimmed": "#b4c2bb",
    "--mantine-color-teal-light-color": "#8ff0d2",
    "--mantine-color-red-light-color": "#ffb3b3",
    "--mantine-color-yellow-light-color": "#ffe08a",
    "--mantine-color-blue-light-color": "#a9d3ff",
    ...HOVERED,
  },
});
