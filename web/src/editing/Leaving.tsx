// Asks before a link leads away from changes that are not saved.

import { Button, Group, Modal, Text } from "@mantine/core";
import { useEffect, useState, type ReactElement } from "react";
import { useLocation } from "wouter";
import { currentClaims } from "@/api/session";
import { t } from "@/i18n";

const TELLS = {
  true: "Your changes stay in this browser, and are back when you open this again.",
  partly: "Your changes stay in this browser, but for passwords and other secrets.",
  false: "Your changes will be lost.",
} as const;

/** `kept` says whether the changes stay in this browser. */
export function Leaving({ dirty, kept = true }: { dirty: boolean; kept?: boolean | "partly" }): ReactElement {
  const [target, setTarget] = useState<string>();
  const [, go] = useLocation();
  useEffect(() => {
    if (!dirty) {
      return undefined;
    }
    const clicked = (event: MouseEvent): void => {
      const link = event.target instanceof Element ? event.target.closest("a[href^='/']") : null;
      if (link !== null && !event.ctrlKey && !event.metaKey && !event.shiftKey && link.getAttribute("target") !== "_blank") {
        event.preventDefault();
        event.stopPropagation();
        setTarget(link.getAttribute("href") ?? "/");
      }
    };
    const unloading = (event: BeforeUnloadEvent): void => {
      // Where the session has ended, staying would be no way to save, and what is kept is not lost.
      if (kept === false || currentClaims() !== undefined) {
        event.preventDefault();
      }
    };
    document.addEventListener("click", clicked, true);
    window.addEventListener("beforeunload", unloading);
    return () => {
      document.removeEventListener("click", clicked, true);
      window.removeEventListener("beforeunload", unloading);
    };
  }, [dirty, kept]);
  return (
    <Modal opened={target !== undefined} onClose={() => setTarget(undefined)} title={t("Leave without saving?")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Text mb="md">{t(TELLS[`${kept}`])}</Text>
      <Group>
        <Button onClick={() => target !== undefined && go(target)}>{t("Leave")}</Button>
        <Button variant="default" onClick={() => setTarget(undefined)}>
          {t("Stay")}
        </Button>
      </Group>
    </Modal>
  );
}
