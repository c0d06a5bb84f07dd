// The frame of all screens: menu, connection, search, the user.

import { Anchor, AppShell, Box, Burger, Button, Group } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, useEffect, useRef, type ReactElement, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { useNoticeSettings } from "@/alarms/noticeSettings";
import { t } from "@/i18n";
import { useBroker } from "./broker";
import { ConnectionBanner } from "./ConnectionBanner";
import { menuFor } from "./menu";
import { OverloadHint } from "./OverloadHint";
import { Palette } from "./Palette";
import { useSession } from "./session";
import { UserMenu } from "./UserMenu";
import classes from "./shell.module.css";

const AlarmNotices = lazy(() => import("@/alarms/AlarmNotices"));

export function Shell({ children }: { children: ReactNode }): ReactElement {
  const { authority } = useSession();
  const [path] = useLocation();
  const [opened, { toggle, close }] = useDisclosure(false);
  const [searching, palette] = useDisclosure(false);
  const notices = useNoticeSettings();
  const broker = useBroker();
  useEffect(close, [path, close]);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    // What led here is gone, such as a row of a list: the keyboard goes on within the screen, and not before the menu. Focus needs to know
    // where everything lies, which the browser finds out for the next frame anyway.
    const frame = requestAnimationFrame(() => {
      if (document.activeElement === document.body) {
        main.current?.focus({ preventScroll: true });
      }
    });
    return () => cancelAnimationFrame(frame);
  }, [path]);
  return (
    <AppShell header={{ height: 56 }} navbar={{ width: 240, breakpoint: "sm", collapsed: { mobile: !opened } }} padding="md">
      <AppShell.Header>
        <button type="button" className={classes["skip"]} onClick={() => main.current?.focus()}>
          {t("To the content")}
        </button>
        <Group h="100%" px={{ base: "xs", sm: "md" }} gap="sm" wrap="nowrap">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" aria-label={t("Menu")} aria-expanded={opened} />
          <Anchor component={Link} href="/home" underline="never" fw={700} c="inherit" style={{ flex: "none" }}>
            Fieldline
          </Anchor>
          <Group ms="auto" gap="sm" wrap="nowrap" miw={0}>
            <OverloadHint />
          </Group>
          <Button variant="default" px={{ base: "xs", sm: "md" }} style={{ flex: "none" }} onClick={palette.open}>
            {t("Search")} <Box visibleFrom="sm" component="kbd" ms="xs">Ctrl K</Box>
          </Button>
          <UserMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={t("Main menu")}>
        <div className={classes["menu"]}>
          {menuFor(authority, broker.data).map(({ section, items }) => (
            <div key={section}>
              <div className={classes["section"]}>{t(section)}</div>
              {items.map((item) => (
                <Link key={item.path} href={item.path} className={classes["item"] ?? ""} {...(path.startsWith(item.path) ? { "aria-current": "page" as const } : {})}>
                  {t(item.label)}
                </Link>
              ))}
            </div>
          ))}
        </div>
      </AppShell.Navbar>
      <AppShell.Main ref={main} tabIndex={-1} className={classes["main"] ?? ""}>
        <ConnectionBanner />
        {children}
      </AppShell.Main>
      {authority !== "SYS_ADMIN" && (notices.sound || notices.browser) && (
        <Suspense>
          <AlarmNotices />
        </Suspense>
      )}
      <Palette opened={searching} onOpen={palette.open} onClose={palette.close} />
    </AppShell>
  );
}
