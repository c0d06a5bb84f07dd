import { createTheme } from "@mantine/core";

export const theme = createTheme({
  primaryColor: "teal",
  primaryShade: { light: 9, dark: 5 },
  autoContrast: true,
  defaultRadius: "md",
  fontFamily: "system-ui, sans-serif",
  respectReducedMotion: true,
});
