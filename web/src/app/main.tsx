import "@mantine/core/styles.css";
import "./app.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { MantineProvider } from "@mantine/core";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "@/api/client";
import { startLanguage } from "@/i18n";
import { watchNetwork } from "@/live/socket";
import { startAppearance } from "@/ui/appearance";
import { Notices } from "@/ui/feedback";
import { loadAhead } from "./ahead";
import { App } from "./App";
import { contrast, theme } from "./theme";

/** A refusal stays one, so only an unreachable or overloaded server is asked again. */
const retry = (failures: number, error: unknown): boolean =>
  failures < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500);

const queries = new QueryClient({ defaultOptions: { queries: { retry, staleTime: 5_000 } } });

startAppearance();
watchNetwork();
loadAhead(queries, location.pathname, location.search);
void startLanguage().then(() => {
  const root = document.getElementById("root");
  if (root !== null) {
    createRoot(root).render(
      <StrictMode>
        <MantineProvider theme={theme} cssVariablesResolver={contrast} defaultColorScheme="auto">
          <QueryClientProvider client={queries}>
            <App />
            <Notices />
          </QueryClientProvider>
        </MantineProvider>
      </StrictMode>,
    );
  }
});
