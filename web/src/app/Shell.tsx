// The frame of all screens: menu, connection, theme, language, the user.

import { Anchor, AppShell, Box, Burger, Button, Group, Menu, NavLink, ScrollArea, Text, useMantineColorScheme } from "@mantine/core";
import { useDisclosure, useLocalStorage } from "@mantine/hooks";
import { useEffect, type ReactElement, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { api } from "@/api/client";
import { clearTokens } from "@/api/session";
import { setLanguage, t } from "@/i18n";
import { useConnection } from "@/live/socket";
import { menuFor } from "./menu";
import { Palette } from "./Palette";
import { useSession } from "./session";

async function logOut(): Promise<void> {
  await api.post("/api/auth/logout").catch(() => undefined);
  clearTokens();
  location.assign("/login");
}

function ConnectionBanner(): ReactElement | null {
  return useConnection() === "reconnecting" ? (
    <Text role="status" ta="center" py={4} bg="var(--mantine-color-yellow-light)">
      {t("The connection is lost. Values may be old until it is back.")}
    </Text>
  ) : null;
}

function UserMenu(): ReactElement {
  const { user } = useSession();
  const { setColorScheme } = useMantineColorScheme();
  const [contrast, setContrast] = useLocalStorage({ key: "fieldline_contrast", defaultValue: "normal" });
  useEffect(() => {
    document.documentElement.dataset["contrast"] = contrast;
  }, [contrast]);
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle">{user.email}</Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{t("Appearance")}</Menu.Label>
        {(["light", "dark", "auto"] as const).map((scheme) => (
          <Menu.Item key={scheme} onClick={() => setColorScheme(scheme)}>
            {t({ light: "Light", dark: "Dark", auto: "As the system" }[scheme])}
          </Menu.Item>
        ))}
        <Menu.Item onClick={() => setContrast(contrast === "high" ? "normal" : "high")}>
          {t(contrast === "high" ? "Normal contrast" : "High contrast")}
        </Menu.Item>
        <Menu.Label>{t("Language")}</Menu.Label>
        <Menu.Item onClick={() => void setLanguage("en")}>English</Menu.Item>
        <Menu.Item onClick={() => void setLanguage("de")}>Deutsch</Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={() => void logOut()}>{t("Log out")}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

export function Shell({ children }: { children: ReactNode }): ReactElement {
  const { authority } = useSession();
  const [path] = useLocation();
  const [opened, { toggle, close }] = useDisclosure(false);
  const [searching, palette] = useDisclosure(false);
  useEffect(close, [path, close]);
  return (
    <AppShell header={{ height: 56 }} navbar={{ width: 240, breakpoint: "sm", collapsed: { mobile: !opened } }} padding="md">
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" aria-label={t("Menu")} aria-expanded={opened} />
          <Anchor component={Link} href="/home" underline="never" fw={700} c="inherit">
            Fieldline
          </Anchor>
          <Button variant="default" ml="auto" onClick={palette.open}>
            {t("Search")} <Box visibleFrom="sm" component="kbd" ml="xs">Ctrl K</Box>
          </Button>
          <UserMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={t("Main menu")}>
        <ScrollArea>
          {menuFor(authority).map(({ section, items }) => (
            <div key={section}>
              <Text size="xs" fw={600} c="var(--soft-text)" px="sm" pt="sm">
                {t(section)}
              </Text>
              {items.map((item) => (
                <NavLink
                  key={item.path}
                  component={Link}
                  href={item.path}
                  label={t(item.label)}
                  active={path.startsWith(item.path)}
                  {...(path.startsWith(item.path) ? { "aria-current": "page" as const } : {})}
                />
              ))}
            </div>
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main>
        <ConnectionBanner />
        {children}
      </AppShell.Main>
      <Palette opened={searching} onOpen={palette.open} onClose={palette.close} />
    </AppShell>
  );
}
