// The menu of whoever is logged in: the own account, how the pages look, the language.

import { Box, Button, Menu, useMantineColorScheme } from "@mantine/core";
import type { ComponentProps, ReactElement } from "react";
import { useLocation } from "wouter";
import { LANGUAGES, setLanguage, t, useLanguage } from "@/i18n";
import { setContrast, setDensity, setDirection, useAppearance } from "@/ui/appearance";
import { CONTRASTS, DENSITIES, DIRECTIONS, entries, logOut, SCHEMES, toggleFullScreen, useIsFullScreen } from "./looks";
import { useSession } from "./session";

/** An item of a menu that says whether it is the chosen one; the library's own says only that it is an item. */
function RadioItem(props: ComponentProps<"button">): ReactElement {
  return <button {...props} type="button" role="menuitemradio" />;
}

/** One of several choices of which one holds. */
function Choice({ label, chosen, onClick }: { label: string; chosen: boolean; onClick: () => void }): ReactElement {
  return (
    <Menu.Item component={RadioItem} aria-checked={chosen} leftSection={<span aria-hidden style={{ display: "inline-block", width: 14 }}>{chosen ? "✓" : ""}</span>} onClick={onClick}>
      {label}
    </Menu.Item>
  );
}

export function UserMenu(): ReactElement {
  const { user } = useSession();
  const [, go] = useLocation();
  const language = useLanguage();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { contrast, density, direction } = useAppearance();
  const isFull = useIsFullScreen();
  return (
    <Menu position="bottom-end" closeOnItemClick={false} width={230}>
      <Menu.Target>
        <Button variant="subtle" maw={280} px="xs" aria-label={user.email}>
          <Box component="span" visibleFrom="sm">
            {user.email}
          </Box>
          <Box component="span" hiddenFrom="sm">
            {user.email.charAt(0)}
          </Box>
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah="calc(100vh - 70px)" style={{ overflowY: "auto" }}>
        <Menu.Item closeMenuOnClick onClick={() => go("/account/profile")}>{t("Your profile")}</Menu.Item>
        <Menu.Item closeMenuOnClick onClick={() => go("/account/security")}>{t("Your security")}</Menu.Item>
        <Menu.Divider />
        <Menu.Item closeMenuOnClick onClick={toggleFullScreen}>{t(isFull ? "Leave full screen" : "Full screen")}</Menu.Item>
        <Menu.Divider />
        <Menu.Label>{t("Appearance")}</Menu.Label>
        {entries(SCHEMES).map(([scheme, label]) => (
          <Choice key={scheme} label={t(label)} chosen={scheme === colorScheme} onClick={() => setColorScheme(scheme)} />
        ))}
        <Menu.Divider />
        {entries(CONTRASTS).map(([one, label]) => (
          <Choice key={one} label={t(label)} chosen={one === contrast} onClick={() => setContrast(one)} />
        ))}
        <Menu.Divider />
        {entries(DENSITIES).map(([one, label]) => (
          <Choice key={one} label={t(label)} chosen={one === density} onClick={() => setDensity(one)} />
        ))}
        <Menu.Divider />
        {entries(DIRECTIONS).map(([one, label]) => (
          <Choice key={one} label={t(label)} chosen={one === direction} onClick={() => setDirection(one)} />
        ))}
        <Menu.Label>{t("Language")}</Menu.Label>
        {entries(LANGUAGES).map(([one, label]) => (
          <Choice key={one} label={label} chosen={one === language} onClick={() => void setLanguage(one)} />
        ))}
        <Menu.Divider />
        <Menu.Item closeMenuOnClick onClick={() => void logOut()}>{t("Log out")}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
