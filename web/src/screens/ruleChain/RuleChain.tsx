// The editor of a rule chain.

import { Badge, Button, Group, Menu, Modal, Select, Tabs, Text, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { lazy, Suspense, useRef, useState, type ReactElement } from "react";
import { useSearchParams } from "wouter";
import { api } from "@/api/client";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { nodeOf, definitionOf, type Component } from "@/ruleChain/components";
import { addNode, connect, move, reach, setRemark } from "@/ruleChain/edits";
import { ruleChainDiff } from "@/ruleChain/diff";
import { writeFile } from "@/ruleChain/file";
import { arrange, NODE } from "@/ruleChain/layout";
import { newKey, placeOf, writeChain, type ChainDocument, type Remark } from "@/ruleChain/model";
import { download } from "@/ui/csv";
import { notify, Problem, TextLink, Waiting } from "@/ui/feedback";
import { useThingTitle } from "@/ui/pageTitle";
import { Canvas } from "./Canvas";
import { EditorContext, loadChain, NO_MARKS, useEditor, useNewEditor, type Loaded } from "./editor";
import { ConflictDialog, NewerNotice } from "@/editing/Conflict";
import { Leaving } from "@/editing/Leaving";
import { NodePanel } from "./NodePanel";
import { NodeTypes } from "./NodeTypes";
import { duplicate, removeSelected, useShortcuts } from "./shortcuts";
import { WireDialog } from "./WireDialog";
import classes from "./ruleChain.module.css";

const ChainVersions = lazy(() => import("./ChainVersions"));
const DebugPanel = lazy(() => import("./DebugPanel"));
const ReplayPanel = lazy(() => import("./ReplayPanel"));

interface Wanted {
  from: string;
  to: string;
}

/** A chain as differences are told of it. */
const told = (chain: ChainDocument): unknown => writeChain(chain, { remarks: chain.remarks.map(({ key: _key, ...remark }) => remark) });

function Others(): ReactElement {
  const { base, chain, conflict, closeConflict, dirty, drop, entity, look, metadata, newer, saveOver, saving } = useEditor();
  const take = (): void => void drop().then(closeConflict, notify.error);
  return (
    <>
      <NewerNotice newer={newer} dirty={dirty} onLook={look} onTake={take} />
      <ConflictDialog
        opened={conflict !== undefined}
        onClose={closeConflict}
        conflicts={conflict?.conflicts ?? []}
        changes={conflict === undefined ? [] : ruleChainDiff(told(base), told(conflict.theirs))}
        dirty={dirty}
        saving={saving}
        onBoth={() => conflict !== undefined && void saveOver(conflict.merged)}
        onMine={() => void saveOver(chain)}
        onTheirs={take}
      >
        <Button variant="subtle" onClick={() => download(`${entity.name ?? "chain"}.json`, writeFile(entity, metadata()))}>
          {t("Export mine")}
        </Button>
      </ConflictDialog>
    </>
  );
}

function Tools({ find }: { find: React.RefObject<HTMLInputElement | null> }): ReactElement {
  const editor = useEditor();
  const { entity, chain, edit, dirty, saving, selected, marks, setMarks, wire } = editor;
  const flow = useReactFlow();
  const cache = useQueryClient();
  const some = selected.size > 0 || wire !== undefined;
  const [only] = selected;
  const [versions, setVersions] = useState(false);
  const remark = (kind: Remark["kind"]): void => {
    const inside = chain.nodes.filter(({ key }) => selected.has(key)).map(placeOf);
    const center = flow.screenToFlowPosition({ x: window.innerWidth / 2, y: window.innerHeight / 2 });
    const [left, top] = inside.length === 0 || kind === "note" ? [center.x, center.y] : [Math.min(...inside.map(({ x }) => x)) - 30, Math.min(...inside.map(({ y }) => y)) - 50];
    const width = inside.length === 0 || kind === "note" ? 240 : Math.max(...inside.map(({ x }) => x)) - left + NODE.width + 30;
    const height = inside.length === 0 || kind === "note" ? 120 : Math.max(...inside.map(({ y }) => y)) - top + NODE.height + 40;
    const made: Remark = { key: newKey(), kind, text: t(kind === "frame" ? "Frame" : "Note"), x: left, y: top, width, height };
    edit((now) => setRemark(now, made));
  };
  const light = (way: "upstream" | "downstream"): void => setMarks({ ...marks, lit: reach(chain, only ?? "", way) });
  const setRoot = async (): Promise<void> => {
    await api.post(`/api/ruleChain/${entity.id.id}/root`);
    await cache.invalidateQueries({ queryKey: ["rule chain", entity.id.id] });
    notify.ok(t("This is the root chain now."));
  };
  return (
    <Group gap={6}>
      <TextLink to="/ruleChains">{t("Rule chains")}</TextLink>
      <Title order={1} size="h4">
        {entity.name}
      </Title>
      {entity.root && <Badge variant="light">{t("Root")}</Badge>}
      <Text size="xs" role="status" c="var(--soft-text)">
        {dirty ? t("Not saved") : ""}
      </Text>
      <Select
        ref={find}
        size="xs"
        w={170}
        ms="auto"
        searchable
        aria-label={t("Find a node")}
        placeholder={`${t("Find a node")} (Ctrl+F)`}
        value={null}
        data={chain.nodes.map(({ key, stored }) => ({ value: key, label: stored.name }))}
        onChange={(key) => {
          if (key !== null) {
            editor.select(new Set([key]));
            void flow.fitView({ nodes: [{ id: key }], maxZoom: 1.2 });
          }
        }}
      />
      <Button size="compact-sm" variant="default" disabled={!editor.canUndo} onClick={editor.undo}>
        {t("Undo")}
      </Button>
      <Button size="compact-sm" variant="default" disabled={!editor.canRedo} onClick={editor.redo}>
        {t("Redo")}
      </Button>
      <Menu>
        <Menu.Target>
          <Button size="compact-sm" variant="default">
            {t("Edit")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item disabled={selected.size === 0} rightSection="Ctrl+D" onClick={() => duplicate(editor)}>{t("Duplicate")}</Menu.Item>
          <Menu.Item disabled={!some} rightSection="Del" onClick={() => removeSelected(editor, false)}>{t("Delete")}</Menu.Item>
          <Menu.Item disabled={selected.size === 0} rightSection="⇧Del" onClick={() => removeSelected(editor, true)}>{t("Delete and reconnect")}</Menu.Item>
          <Menu.Divider />
          <Menu.Item onClick={() => remark("frame")}>{t("Add a frame")}</Menu.Item>
          <Menu.Item onClick={() => remark("note")}>{t("Add a note")}</Menu.Item>
          <Menu.Item onClick={() => void arrange(chain).then((places) => edit((now) => move(now, places)))}>{t("Arrange all nodes")}</Menu.Item>
          <Menu.Item rightSection="Ctrl+1" onClick={() => void flow.fitView()}>{t("Show all")}</Menu.Item>
          <Menu.Divider />
          <Menu.Item disabled={selected.size !== 1} onClick={() => light("upstream")}>{t("Light up what comes before")}</Menu.Item>
          <Menu.Item disabled={selected.size !== 1} onClick={() => light("downstream")}>{t("Light up what comes after")}</Menu.Item>
          <Menu.Item disabled={marks.lit === undefined} onClick={() => setMarks(marks.counts.size === 0 ? NO_MARKS : { ...marks, lit: undefined })}>{t("Light off")}</Menu.Item>
          <Menu.Divider />
          <Menu.Item onClick={() => setVersions(true)}>{t("Versions")}</Menu.Item>
          <Menu.Item onClick={() => download(`${entity.name ?? "chain"}.json`, writeFile(entity, editor.metadata()))}>{t("Export")}</Menu.Item>
          <Menu.Item disabled={entity.root} onClick={() => void setRoot().catch(notify.error)}>{t("Make it the root chain")}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Suspense>{versions && <ChainVersions id={entity.id.id} onClose={() => setVersions(false)} onRestored={editor.drop} />}</Suspense>
      <Button size="compact-sm" variant="subtle" component="a" href={`/ruleChains/${entity.id.id}/details`}>
        {t("Details")}
      </Button>
      <Button size="compact-sm" loading={saving} disabled={!dirty} onClick={() => void editor.save()}>
        {t("Save")}
      </Button>
    </Group>
  );
}

function Side({ onWire }: { onWire: (from: string, to: string) => void }): ReactElement {
  const { chain, selected, select, findings, wire } = useEditor();
  const [search, setSearch] = useSearchParams();
  const tab = search.get("panel") ?? "node";
  const setTab = (next: string | null): void =>
    setSearch((before) => {
      const after = new URLSearchParams(before);
      if (next === null || next === "node") {
        after.delete("panel");
      } else {
        after.set("panel", next);
      }
      return after;
    }, { replace: true });
  const node = selected.size === 1 ? chain.nodes.find(({ key }) => selected.has(key)) : undefined;
  const name = (key: string | undefined): string => chain.nodes.find((one) => one.key === key)?.stored.name ?? "";
  return (
    <aside className={classes["side"]} aria-label={t("Details")}>
      <Tabs value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List mb="xs">
          <Tabs.Tab value="node">{t("Node")}</Tabs.Tab>
          <Tabs.Tab value="debug">{t("Debug")}</Tabs.Tab>
          <Tabs.Tab value="replay">{t("Replay")}</Tabs.Tab>
          <Tabs.Tab value="findings">{t("Findings ({n})", { n: findings.length })}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="node">
          {node !== undefined ? (
            <NodePanel key={node.key} node={node} onWire={onWire} />
          ) : wire !== undefined ? (
            <Button size="xs" variant="default" onClick={() => onWire(wire.from, wire.to)}>
              {t("Change the labels")}
            </Button>
          ) : (
            <Text size="sm" c="var(--soft-text)">
              {t("Select a node to see and change what it does. Drag types from the left, or press + and type a name.")}
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="debug">
          <Suspense fallback={<Waiting />}>
            <DebugPanel />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="replay">
          <Suspense fallback={<Waiting />}>
            <ReplayPanel />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="findings">
          <ul className={classes["events"]}>
            {findings.map(({ node: key, text }, at) => (
              <li key={at}>
                {key !== undefined && (
                  <Button size="compact-xs" variant="subtle" onClick={() => select(new Set([key]))}>
                    {name(key)}
                  </Button>
                )}{" "}
                {t(text)}
              </li>
            ))}
          </ul>
        </Tabs.Panel>
      </Tabs>
    </aside>
  );
}

function Workbench({ loaded, reload }: { loaded: Loaded; reload: () => Promise<void> }): ReactElement {
  const { user } = useSession();
  const editor = useNewEditor(loaded, user.id.id, reload);
  const flow = useReactFlow();
  const find = useRef<HTMLInputElement>(null);
  const palette = useRef<HTMLElement>(null);
  const [wiring, setWiring] = useState<Wanted>();
  const [letGo, setLetGo] = useState<{ from: string; x: number; y: number }>();
  const { edit, select, selected, chain } = editor;
  useShortcuts(editor, {
    save: () => editor.dirty && void editor.save(),
    find: () => find.current?.focus(),
    fit: () => void flow.fitView(),
    palette: () => palette.current?.querySelector("input")?.focus(),
  });
  /** A new node follows the selected one, else it comes to the middle of what is seen. */
  const add = (component: Component): void => {
    const [key] = selected;
    const before = selected.size === 1 ? chain.nodes.find((node) => node.key === key) : undefined;
    const middle = flow.screenToFlowPosition({ x: window.innerWidth / 2, y: window.innerHeight / 2 });
    const at = before === undefined ? { x: middle.x - NODE.width / 2, y: middle.y - NODE.height / 2 + 70 * (chain.nodes.length % 4) } : { x: placeOf(before).x + NODE.width + 120, y: placeOf(before).y };
    const node = nodeOf(component, at.x, at.y);
    edit((now) => addNode(now, node));
    if (before !== undefined && definitionOf(component)?.inEnabled !== false && definitionOf(editor.classes.get(before.stored.type))?.outEnabled !== false) {
      setWiring({ from: before.key, to: node.key });
    }
    select(new Set([node.key]));
  };
  const pick = (component: Component): void => {
    if (letGo !== undefined) {
      const node = nodeOf(component, letGo.x, letGo.y - NODE.height / 2);
      const label = definitionOf(editor.classes.get(chain.nodes.find(({ key }) => key === letGo.from)?.stored.type ?? ""))?.relationTypes[0] ?? "Success";
      edit((now) => connect(addNode(now, node), letGo.from, node.key, [label]));
      setLetGo(undefined);
      setWiring({ from: letGo.from, to: node.key });
      select(new Set([node.key]));
    }
  };
  return (
    <EditorContext value={editor}>
      <div className={classes["editor"]}>
        <div>
          <Tools find={find} />
          <Others />
          {editor.restored && (
            <Group gap="xs" role="status">
              <Text size="xs">{t("Changes that were not saved are back.")}</Text>
              <Button size="compact-xs" variant="subtle" onClick={() => void editor.drop()}>
                {t("Drop them")}
              </Button>
            </Group>
          )}
        </div>
        <div className={classes["body"]}>
          <nav ref={palette} className={classes["palette"]} aria-label={t("Node types")}>
            <NodeTypes onPick={add} />
          </nav>
          <Canvas onWire={(from, to) => setWiring({ from, to })} onLetGo={(from, x, y) => setLetGo({ from, x, y })} />
          <Side onWire={(from, to) => setWiring({ from, to })} />
        </div>
      </div>
      {wiring !== undefined && <WireDialog key={`${wiring.from}>${wiring.to}`} {...wiring} onClose={() => setWiring(undefined)} />}
      <Modal opened={letGo !== undefined} onClose={() => setLetGo(undefined)} title={t("Which node comes next?")} closeButtonProps={{ "aria-label": t("Close") }}>
        <NodeTypes onPick={pick} focus />
      </Modal>
      <Leaving dirty={editor.dirty} />
    </EditorContext>
  );
}

export default function RuleChain({ id }: { id: string }): ReactElement {
  const loaded = useQuery({ queryKey: ["rule chain", id], queryFn: () => loadChain(id), staleTime: Infinity, gcTime: 0 });
  const [round, setRound] = useState(0);
  useThingTitle(loaded.data?.entity.name);
  if (loaded.isPending) {
    return <Waiting />;
  }
  if (loaded.isError) {
    return <Problem error={loaded.error} />;
  }
  const reload = async (): Promise<void> => {
    await loaded.refetch();
    setRound((before) => before + 1);
  };
  return (
    <ReactFlowProvider>
      <Workbench key={round} loaded={loaded.data} reload={reload} />
    </ReactFlowProvider>
  );
}
