// A dashboard that is edited.

import { Alert, Button, Group, Menu, Modal, Select, Stack, Text, Title } from "@mantine/core";
import { useEffect, useRef, useState, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import { useSession } from "@/app/session";
import { aligned, ALIGNMENTS, type Alignment } from "@/dashboard/edit/align";
import { addWidget, cut, movePlaces, paste, pasteReferences, placesOf, reference, removeWidgets, sizeOn } from "@/dashboard/edit/document";
import { dashboardDiff } from "@/dashboard/edit/dashboardDiff";
import { readDashboard } from "@/dashboard/model";
import { readStatePath } from "@/dashboard/state";
import { DiffView } from "@/editing/DiffView";
import { Leaving } from "@/editing/Leaving";
import { nameOf } from "@/entities/kinds";
import { plural, t } from "@/i18n";
import { EmptyState, notify } from "@/ui/feedback";
import { onPlant, type NewWidget } from "@/widgets/fromType";
import { AddWidget } from "./add/AddWidget";
import { EditGrid } from "./EditGrid";
import { useDashboardEditor, type DashboardEditor, type StoredDashboard } from "./editor";
import { LayoutBar } from "./LayoutBar";
import { PhoneEditor } from "./PhoneEditor";
import { SettingsDialog } from "./SettingsDialog";
import { WidgetPanel } from "./WidgetPanel";
import { WidgetMenu, type MenuPlace, type WidgetCommands } from "./WidgetMenu";
import classes from "./edit.module.css";

function ConflictDialog({ editor }: { editor: DashboardEditor }): ReactElement {
  const { conflict, closeConflict, document, base, saveOver, drop } = editor;
  const joined = conflict?.conflicts.length === 0;
  return (
    <Modal opened={conflict !== undefined} onClose={closeConflict} size="xl" title={t("Somebody else has changed this meanwhile")} closeButtonProps={{ "aria-label": t("Close") }}>
      <Text mb="md">
        {joined
          ? t("You have changed different parts, so both can be kept.")
          : plural(conflict?.conflicts.length ?? 0, "Both of you have changed the same in {n} place. Of these, yours would be kept.", "Both of you have changed the same in {n} places. Of these, yours would be kept.")}
      </Text>
      {conflict !== undefined && (
        <Stack mb="md" mah="45vh" style={{ overflow: "auto" }} tabIndex={0} role="region" aria-label={t("What they have changed")}>
          <Title order={2} size="h5">
            {t("What they have changed")}
          </Title>
          <DiffView changes={dashboardDiff(base, conflict.theirs.configuration)} />
        </Stack>
      )}
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
const isOfField = (target: EventTarget | null): boolean => target instanceof Element && target.closest("input:not([type=radio], [type=checkbox]), textarea, [contenteditable=true], [role=dialog], .cm-editor") !== null;

interface Commands extends WidgetCommands {
  editor: DashboardEditor;
}

function useKeys(commands: Commands): void {
  const latest = useRef(commands);
  latest.current = commands;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const { editor, remove, duplicate, copy, copyReference, insert } = latest.current;
      const control = event.ctrlKey || event.metaKey;
      const key = `${control ? "Ctrl+" : ""}${event.shiftKey ? "Shift+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
      const all = new Set(editor.layout?.places.map(({ id }) => id));
      const actions: Record<string, () => void> = {
        "Ctrl+z": editor.undo,
        "Ctrl+Shift+z": editor.redo,
        "Ctrl+y": editor.redo,
        "Ctrl+a": () => editor.select(all),
        "Ctrl+c": copy,
        "Ctrl+Shift+c": copyReference,
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
  const insertText = (clipboard: string): void => {
    const pasted = paste(editor.document, at, clipboard);
    const { document: next, ids } = pasted.ids.length > 0 ? pasted : pasteReferences(editor.document, at, stored.id.id, clipboard);
    if (ids.length > 0) {
      edit(() => next);
      select(new Set(ids));
    } else {
      notify.error(t("There is nothing to paste: widgets copied here or in another dashboard, or references to widgets of this one that are not here yet."));
    }
  };
  const duplicate = (): void => insertText(cut(editor.document, at, selected));
  const toClipboard = (text: string): void => {
    if (selected.size > 0) {
      navigator.clipboard.writeText(text).then(() => notify.ok(t("{n} copied", { n: selected.size })), notify.error);
    }
  };
  const copy = (): void => toClipboard(cut(editor.document, at, selected));
  const copyReference = (): void => toClipboard(reference(editor.document, at, stored.id.id, selected));
  const align = (how: Alignment): void => {
    const { places } = placesOf(editor.document, at);
    const chosen = new Map([...selected].flatMap((id) => {
      const place = places.get(id);
      return place === undefined ? [] : [[id, place]];
    }));
    const next = movePlaces(editor.document, at, aligned(chosen, how));
    if (next === editor.document) {
      notify.error(t("There is no room: they would lie on other widgets."));
    }
    edit(() => next);
  };
  const insert = (): void => void navigator.clipboard.readText().then(insertText, notify.error);
  const remove = (): void => {
    edit((before) => removeWidgets(before, at, selected));
    select(new Set());
  };
  const commands: WidgetCommands = { remove, duplicate, copy, copyReference, insert, align };
  useKeys({ editor, ...commands });

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
          <aside className={classes["panel"]} aria-label={t("The chosen widget")}>
            <WidgetPanel key={only} editor={editor} id={only} />
          </aside>
        )}
      </div>
      <AddWidget opened={adding} onClose={() => setAdding(false)} onAdd={add} />
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
