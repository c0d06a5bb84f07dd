import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { startLanguage } from "@/i18n";
import { LoginPage } from "./LoginPage";
import "./login.css";

void startLanguage().then(() => {
  const root = document.getElementById("root");
  if (root !== null) {
    createRoot(root).render(
      <StrictMode>
        <LoginPage />
      </StrictMode>,
    );
  }
});
