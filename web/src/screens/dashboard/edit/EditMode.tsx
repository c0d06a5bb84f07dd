// A dashboard that is edited.

import { Alert, Button, Group, Menu, Modal, Select, Text, Title } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { useSession } from "@/app/session";
import { addWidget, cut, paste, removeWidgets } from "@/dashboard/edit/document";
import { Leaving } from "@/editing/Leaving";
import { nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { EmptyState, notify } from "@/ui/feedback";
import { newWidget, WIDGET_KINDS, type WidgetKind } from "@/widgets/catalog";
import { EditGrid } from "./EditGrid";
import { useDashboardEditor, type DashboardEditor, type StoredDashboard } from "./editor";
import { SettingsDialog } from "./SettingsDialog";
import { WidgetPanel } from "./WidgetPanel";
import classes from "./edit.module.css";

function ConflictDialog({ editor }: { editor: DashboardEditor }): ReactElement {
  const { conflict, closeConflict, document, saveOver, drop } = editor;
  const joined = conflict?.conflicts.length === 0;
  return (
    <Modal opened={conflict !== undefined} onClose={closeConflict} title={t("Somebody else has changed this meanwhile")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Text mb="md">
        {joined
          ? t("You have changed different parts, so both can be kept.")
          : t("Both of you have changed the same in {n} places. Of these, yours would be kept.", { n: conflict?.conflicts.length ?? 0 })}
      </Text>
      <Group>
        <Button onClick={() => conflict !== undefined && void saveOver(conflict.merged)}>{t("Keep both")}</Button>
        <Button variant="default" onClick={() => void saveOver(document)}>
          {t("Keep mine alone")}
        </Button>
        <Button
          variant="default"
          onClick={() => {
            drop();
            location.reload();
          }}
        >
          {t("Take theirs")}
        </Button>
      </Group>
    </Modal>
  );
}

/** Keys within fields and dialogs are theirs. */
const isOfField = (target: EventTarget | null): boolean => target instanceof Element && target.closest("input, textarea, [contenteditable=true], [role=dialog], .cm-editor") !== null;

interface Commands {
  editor: DashboardEditor;
  remove: () => void;
  duplicate: () => void;
  copy: () => void;
  insert: () => void;
}

function useKeys(commands: Commands): void {
  const latest = useRef(commands);
  latest.current = commands;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const { editor, remove, duplicate, copy, insert } = latest.current;
      const control = event.ctrlKey || event.metaKey;
      const key = `${control ? "Ctrl+" : ""}${event.shiftKey ? "Shift+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
      const all = new Set(editor.state?.main.places.map(({ id }) => id));
      const actions: Record<string, () => void> = {
        "Ctrl+z": editor.undo,
        "Ctrl+Shift+z": editor.redo,
        "Ctrl+y": editor.redo,
        "Ctrl+a": () => editor.select(all),
        "Ctrl+c": copy,
        "Ctrl+v": insert,
        "Ctrl+d": duplicate,
        Delete: remove,
        Backspace: remove,
        Escape: () => editor.select(new Set()),
      };
      const action = key === "Ctrl+s" ? () => void editor.save() : isOfField(event.target) ? undefined : actions[key];
      if (action !== undefined) {
        event.preventDefault();
        action();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

interface EditModeProps {
  stored: StoredDashboard;
  onSaved: (dashboard: StoredDashboard) => void;
  onDone: () => void;
}

export default function EditMode({ stored, onSaved, onDone }: EditModeProps): ReactElement {
  const { user } = useSession();
  const editor = useDashboardEditor(stored, user.id.id, onSaved);
  const { model, state, selected, select, edit, dirty } = editor;
  const [settings, setSettings] = useState(false);
  const [asking, setAsking] = useState(false);
  const stateId = state?.id ?? "";
  const [only] = selected.size === 1 ? selected : [];

  const add = (kind: WidgetKind): void => {
    const id = crypto.randomUUID();
    edit((before) => addWidget(before, stateId, newWidget(kind, t(kind.title)), kind.size, id));
    select(new Set([id]));
  };
  const insertText = (clipboard: string): void => {
    const { document: next, ids } = paste(editor.document, stateId, clipboard);
    if (ids.length > 0) {
      edit(() => next);
      select(new Set(ids));
    }
  };
  const duplicate = (): void => insertText(cut(editor.document, stateId, selected));
  const copy = (): void => {
    if (selected.size > 0) {
      navigator.clipboard.writeText(cut(editor.document, stateId, selected)).then(() => notify.ok(t("{n} copied", { n: selected.size })), notify.error);
    }
  };
  const insert = (): void => void navigator.clipboard.readText().then(insertText, notify.error);
  const remove = (): void => {
    edit((before) => removeWidgets(before, stateId, selected));
    select(new Set());
  };
  useKeys({ editor, remove, duplicate, copy, insert });

  return (
    <div className={classes["board"]}>
      <Group mb="sm" gap="xs">
        <Title order={1} size="h3">
          {nameOf(stored)}
        </Title>
        <Text size="sm">{dirty ? t("Not saved") : t("Nothing to save")}</Text>
        <Group ml="auto" gap="xs">
          {model.states.length > 1 && (
            <Select aria-label={t("State")} w={150} allowDeselect={false} data={model.states.map((one) => ({ value: one.id, label: one.name || one.id }))} value={stateId} onChange={(value) => editor.showState(value ?? stateId)} />
          )}
          <Menu>
            <Menu.Target>
              <Button>{t("Add a widget")}</Button>
            </Menu.Target>
            <Menu.Dropdown>
              {WIDGET_KINDS.map((kind) => (
                <Menu.Item key={kind.fqn} onClick={() => add(kind)}>
                  {t(kind.title)}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
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
      {editor.restored && dirty && (
        <Alert mb="sm" title={t("Your changes that were not saved are back.")}>
          <Button size="compact-sm" variant="default" onClick={editor.drop}>
            {t("Discard them")}
          </Button>
        </Alert>
      )}
      <div className={classes["panes"]}>
        {model.widgets.size === 0 && <EmptyState>{t("Add a widget to begin.")}</EmptyState>}
        <EditGrid editor={editor} />
        {only !== undefined && model.widgets.has(only) && (
          <aside className={classes["panel"]} aria-label={t("The chosen widget")}>
            <WidgetPanel key={only} editor={editor} id={only} />
          </aside>
        )}
      </div>
      <SettingsDialog editor={editor} opened={settings} onClose={() => setSettings(false)} />
      <ConflictDialog editor={editor} />
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
