import "@mantine/core/styles.css";
import "./app.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { DirectionProvider, MantineProvider, useDirection } from "@mantine/core";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "@/api/client";
import { startLanguage } from "@/i18n";
import { watchNetwork } from "@/live/socket";
import { startAppearance, useAppearance } from "@/ui/appearance";
import { Notices } from "@/ui/feedback";
import { takeAhead } from "./ahead";
import { App } from "./App";
import { keepSearchWish } from "./searchWish";
import { contrast, theme } from "./theme";

/** A refusal stays one, so only an unreachable or overloaded server is asked again. */
const retry = (failures: number, error: unknown): boolean =>
  failures < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500);

const queries = new QueryClient({
  // Asked even while the browser thinks that it is offline: that a server can't be reached is said, and not waited for.
  defaultOptions: { queries: { retry, staleTime: 5_000, networkMode: "always", refetchOnReconnect: true } },
});

/** Lets the library's own parts, such as menus, open to the right side. */
function DirectionKeeper(): null {
  const { setDirection } = useDirection();
  const direction = useAppearance((state) => state.direction);
  useEffect(() => setDirection(direction), [direction, setDirection]);
  return null;
}

startAppearance();
watchNetwork();
keepSearchWish();
takeAhead(queries, location.pathname, location.search);
/** What asks ahead may have begun this before the page was read to its end. */
const readPage = new Promise<void>((read) => (document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", () => read()) : read()));

void Promise.all([startLanguage(), readPage]).then(() => {
  const root = document.getElementById("root");
  if (root !== null) {
    createRoot(root).render(
      <StrictMode>
        <DirectionProvider initialDirection={useAppearance.getState().direction}>
          <MantineProvider theme={theme} cssVariablesResolver={contrast} defaultColorScheme="auto">
            <DirectionKeeper />
            <QueryClientProvider client={queries}>
              <App />
              <Notices />
            </QueryClientProvider>
          </MantineProvider>
        </DirectionProvider>
      </StrictMode>,
    );
  }
});
