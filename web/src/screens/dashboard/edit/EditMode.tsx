// A dashboard that is edited.

import { Alert, Button, Group, Menu, Modal, Select, Text, Title } from "@mantine/core";
import { useRef, useState, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import { useSession } from "@/app/session";
import { ALIGNMENTS } from "@/dashboard/edit/align";
import { addWidget, sizeOn } from "@/dashboard/edit/document";
import { dashboardDiff } from "@/dashboard/edit/dashboardDiff";
import { readDashboard } from "@/dashboard/model";
import { readStatePath } from "@/dashboard/state";
import { ConflictDialog, NewerNotice } from "@/editing/Conflict";
import { Leaving } from "@/editing/Leaving";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { onPlant, type NewWidget } from "@/widgets/fromType";
import { AddWidget } from "./add/AddWidget";
import { EditGrid } from "./EditGrid";
import type { StoredDashboard } from "./draft";
import { useDashboardEditor, type DashboardEditor } from "./editor";
import { LayoutBar } from "./LayoutBar";
import { PhoneEditor } from "./PhoneEditor";
import { SettingsDialog } from "./SettingsDialog";
import { WidgetPanel } from "./WidgetPanel";
import { useKeys, useWidgetCommands } from "./commands";
import { WidgetMenu, type MenuPlace } from "./WidgetMenu";
import classes from "./edit.module.css";

function Others({ editor }: { editor: DashboardEditor }): ReactElement {
  const { conflict, closeConflict, document, base, dirty, newer, look, saveOver, saving, drop } = editor;
  const take = (): void => {
    drop();
    location.reload();
  };
  return (
    <>
      <NewerNotice newer={newer} dirty={dirty} onLook={look} onTake={take} />
      <ConflictDialog
        opened={conflict !== undefined}
        onClose={closeConflict}
        conflicts={conflict?.conflicts ?? []}
        changes={conflict === undefined ? [] : dashboardDiff(base, conflict.theirs.configuration)}
        dirty={dirty}
        saving={saving}
        onBoth={() => conflict !== undefined && void saveOver(conflict.merged)}
        onMine={() => void saveOver(document)}
        onTheirs={take}
      />
    </>
  );
}

interface EditModeProps {
  stored: StoredDashboard;
  onSaved: (dashboard: StoredDashboard) => void;
  onDone: () => void;
}

export default function EditMode({ stored, onSaved, onDone }: EditModeProps): ReactElement {
  const { user } = useSession();
  const [search] = useSearchParams();
  const [opened] = useState(() => readStatePath(search.get("state"), readDashboard(stored.configuration)).at(-1));
  const editor = useDashboardEditor(stored, user.id.id, onSaved, opened);
  const { model, state, at, selected, select, edit, dirty } = editor;
  const [settings, setSettings] = useState(false);
  const [adding, setAdding] = useState(false);
  const [menu, setMenu] = useState<MenuPlace>();
  const [asking, setAsking] = useState(false);
  const stateId = state?.id ?? "";
  const [only] = selected.size === 1 ? selected : [];

  const add = (made: NewWidget, isSymbol: boolean): void => {
    const id = crypto.randomUUID();
    const { widget, size } = editor.layout?.grid.type === "scada" ? onPlant(made, isSymbol) : made;
    edit((before) => addWidget(before, at, widget, sizeOn(before, at, size), id));
    select(new Set([id]));
    setAdding(false);
  };
  const panel = useRef<HTMLElement>(null);
  const commands = useWidgetCommands(editor, stored.id.id, () => panel.current?.querySelector("input")?.focus());
  const { duplicate, remove, align, bringIn } = commands;
  useKeys(editor, commands);

  return (
    <div className={classes["board"]}>
      <Group mb="sm" gap="xs">
        <Title order={1} size="h3">
          {nameOf(stored)}
        </Title>
        <Text size="sm">{dirty ? t("Not saved") : t("Nothing to save")}</Text>
        <Group ms="auto" gap="xs">
          {model.states.length > 1 && (
            <Select aria-label={t("State")} w={150} allowDeselect={false} data={model.states.map((one) => ({ value: one.id, label: one.name || one.id }))} value={stateId} onChange={(value) => editor.showState(value ?? stateId)} />
          )}
          <Button onClick={() => setAdding(true)}>{t("Add a widget")}</Button>
          <Button variant="default" disabled={!editor.canUndo} onClick={editor.undo}>
            {t("Undo")}
          </Button>
          <Button variant="default" disabled={!editor.canRedo} onClick={editor.redo}>
            {t("Redo")}
          </Button>
          <Button variant="default" disabled={selected.size === 0} onClick={duplicate}>
            {t("Duplicate")}
          </Button>
          <Button variant="default" disabled={selected.size === 0} onClick={remove}>
            {t("Remove")}
          </Button>
          <Button variant="default" onClick={() => setSettings(true)}>
            {t("Settings")}
          </Button>
          <Button loading={editor.saving} disabled={!dirty} onClick={() => void editor.save()}>
            {t("Save")}
          </Button>
          <Button variant="default" onClick={() => (dirty ? setAsking(true) : onDone())}>
            {t("Done")}
          </Button>
        </Group>
      </Group>
      <Others editor={editor} />
      {editor.restored && dirty && (
        <Alert mb="sm" title={t("Your changes that were not saved are back.")}>
          <Button size="compact-sm" variant="default" onClick={editor.drop}>
            {t("Discard them")}
          </Button>
        </Alert>
      )}
      <Group justify="space-between">
        <LayoutBar editor={editor} />
        {selected.size > 1 && (
          <Menu>
            <Menu.Target>
              <Button size="compact-sm" variant="default">
                {t("Align {n} widgets", { n: selected.size })}
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              {ALIGNMENTS.map(({ id, label }) => (
                <Menu.Item key={id} onClick={() => align(id)}>
                  {t(label)}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
        )}
      </Group>
      <WidgetMenu place={menu} selected={selected.size} commands={commands} onClose={() => setMenu(undefined)} />
      <div className={classes["panes"]}>
        {model.widgets.size === 0 && <EmptyState>{t("Add a widget to begin.")}</EmptyState>}
        {editor.asList ? (
          <PhoneEditor editor={editor} />
        ) : (
          <EditGrid
            editor={editor}
            onMenu={(event) => {
              event.preventDefault();
              setMenu({ x: event.clientX, y: event.clientY });
            }}
          />
        )}
        {only !== undefined && model.widgets.has(only) && (
          <aside ref={panel} className={classes["panel"]} aria-label={t("The chosen widget")}>
            <WidgetPanel key={only} editor={editor} id={only} />
          </aside>
        )}
      </div>
      <AddWidget opened={adding} onClose={() => setAdding(false)} onAdd={add} onFile={(file) => bringIn(file).then(() => setAdding(false))} />
      <SettingsDialog editor={editor} opened={settings} onClose={() => setSettings(false)} />
      <Leaving dirty={dirty} />
      <Modal opened={asking} onClose={() => setAsking(false)} title={t("Leave without saving?")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Text mb="md">{t("Your changes stay in this browser, and are back when you open this again.")}</Text>
        <Group>
          <Button onClick={() => void editor.save().then(() => setAsking(false))}>{t("Save")}</Button>
          <Button variant="default" onClick={onDone}>
            {t("Leave")}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              editor.drop();
              onDone();
            }}
          >
            {t("Discard them")}
          </Button>
        </Group>
      </Modal>
    </div>
  );
}
