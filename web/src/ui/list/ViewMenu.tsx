// Chooses one of the named views of a list, names what is seen as another, and copies a link to it.

import { Button, Checkbox, Group, Menu, Modal, TextInput } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { LONGEST_NAME, MOST_VIEWS, type ListView, type Views } from "./views";

interface ViewMenuProps {
  views: Views;
  /** What is seen now. */
  seen: Omit<ListView, "name">;
  choose: (view: ListView) => void;
  /** The address of what is seen. */
  link: () => string;
}

export function ViewMenu({ views, seen, choose, link }: ViewMenuProps): ReactElement {
  const [naming, setNaming] = useState(false);
  const [name, setName] = useState("");
  const [isFirst, setFirst] = useState(false);
  const save = async (): Promise<void> => {
    try {
      await views.save({ name: name.trim(), ...seen, isFirst });
      setNaming(false);
    } catch (error) {
      notify.error(error);
    }
  };
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(link());
      notify.ok(t("The link is copied"));
    } catch (error) {
      notify.error(error);
    }
  };
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button size="compact-sm" variant="subtle">
            {t("Views")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.views.map((view) => (
            <Group key={view.name} gap={0} wrap="nowrap">
              <Menu.Item style={{ flex: 1 }} onClick={() => choose(view)}>
                {view.name}
                {view.isFirst === true ? ` (${t("at first")})` : ""}
              </Menu.Item>
              <Menu.Item w={36} aria-label={t("Delete the view {name}", { name: view.name })} title={t("Delete")} onClick={() => void views.remove(view.name).catch(notify.error)}>
                ✕
              </Menu.Item>
            </Group>
          ))}
          {views.views.length > 0 && <Menu.Divider />}
          <Menu.Item disabled={views.views.length >= MOST_VIEWS} onClick={() => setNaming(true)}>
            {t("Keep this view")}
          </Menu.Item>
          {/* Browsers have a clipboard for pages of HTTPS and of their own machine alone. */}
          {isSecureContext && <Menu.Item onClick={() => void copy()}>{t("Copy a link to it")}</Menu.Item>}
        </Menu.Dropdown>
      </Menu>
      <Modal opened={naming} onClose={() => setNaming(false)} title={t("Keep this view")} closeButtonProps={{ "aria-label": t("Close") }}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <TextInput label={t("Name")} required data-autofocus maxLength={LONGEST_NAME} value={name} onChange={(event) => setName(event.currentTarget.value)} />
          <Checkbox my="md" label={t("The list begins with it")} checked={isFirst} onChange={(event) => setFirst(event.currentTarget.checked)} />
          <Button type="submit" disabled={name.trim() === ""}>
            {t("Save")}
          </Button>
        </form>
      </Modal>
    </>
  );
}
