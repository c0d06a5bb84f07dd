// A code editor for scripts and JSON, loaded only where one is shown.

import { autocompletion, closeBrackets, completionKeymap, type Completion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState, StateEffect, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef, type ReactElement } from "react";

export interface CodeEditorProps {
  label: string;
  value: string;
  language: "JS" | "TBEL" | "JSON" | "HTML" | "CSS";
  /** Called for each change. */
  onChange: (value: string) => void;
  /** Words that completion offers besides those of the language. */
  words?: Completion[];
  /** A message of the server about the text: `line 3, column 5: …`. */
  error?: string | undefined;
  height?: string;
}

const DARK = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null], color: "light-dark(#7a1fa2, #d6a6ff)" },
  { tag: [tags.string, tags.regexp], color: "light-dark(#0b6b2e, #9be7a5)" },
  { tag: tags.number, color: "light-dark(#8a4b00, #ffcf8a)" },
  { tag: tags.comment, color: "light-dark(#5c6964, #9aa8a2)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.definition(tags.variableName)], color: "light-dark(#0a4f8a, #8fc7ff)" },
]);

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--mantine-color-body)", color: "var(--mantine-color-text)", height: "100%" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft-text)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-tooltip": { backgroundColor: "var(--mantine-color-body)", color: "var(--mantine-color-text)" },
});

/** Returns what a language adds; its grammar comes when something is written in it. */
async function languageOf(language: CodeEditorProps["language"], words: Completion[]): Promise<Extension> {
  switch (language) {
    case "HTML":
    case "CSS":
      return [];
    case "JSON": {
      const { jsonText } = await import("./code/jsonText");
      return jsonText();
    }
    default: {
      const { script } = await import("./code/script");
      return script(words);
    }
  }
}

/** Searching comes with the first of its keys. */
function searching(): Extension {
  let isHere = false;
  const begin = (key: string) => (view: EditorView) => {
    if (isHere) {
      return false;
    }
    void import("./code/search").then(({ searchKeymap }) => {
      if (!isHere) {
        isHere = true;
        view.dispatch({ effects: StateEffect.appendConfig.of(keymap.of(searchKeymap)) });
      }
      searchKeymap.find((one) => one.key === key)?.run?.(view);
    });
    return true;
  };
  return keymap.of(["Mod-f", "F3", "Mod-g", "Mod-Shift-l", "Mod-Alt-g", "Mod-d"].map((key) => ({ key, preventDefault: true, run: begin(key) })));
}

function placeOfError(state: EditorState, error: string): Diagnostic {
  const [, line, column] = /line (\d+)(?:, column (\d+))?/i.exec(error) ?? [];
  const at = state.doc.line(Math.min(Math.max(1, Number(line ?? 1)), state.doc.lines));
  return { from: Math.min(at.to, at.from + Math.max(0, Number(column ?? 1) - 1)), to: at.to, severity: "error", message: error };
}

export default function CodeEditor({ label, value, language, onChange, words = [], error, height = "220px" }: CodeEditorProps): ReactElement {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const change = useRef(onChange);
  change.current = onChange;
  const start = useRef({ value, words });
  useEffect(() => {
    const parent = host.current;
    if (parent === null) {
      return undefined;
    }
    const grammar = new Compartment();
    const extensions = [
      lineNumbers(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      syntaxHighlighting(DARK),
      syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
      autocompletion(),
      lintGutter(),
      searching(),
      keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      EditorView.updateListener.of((update) => update.docChanged && change.current(update.state.doc.toString())),
      LOOK,
      grammar.of([]),
    ];
    const made = new EditorView({ parent, state: EditorState.create({ doc: start.current.value, extensions }) });
    view.current = made;
    let here = true;
    // Without its grammar, text is edited all the same.
    languageOf(language, start.current.words).then((extension) => here && made.dispatch({ effects: grammar.reconfigure(extension) }), () => undefined);
    return () => {
      here = false;
      made.destroy();
    };
  }, [label, language]);
  useEffect(() => {
    const made = view.current;
    start.current = { value, words };
    if (made !== undefined && made.state.doc.toString() !== value) {
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: value } });
    }
  }, [value, words]);
  useEffect(() => {
    const made = view.current;
    made?.dispatch(setDiagnostics(made.state, error === undefined ? [] : [placeOfError(made.state, error)]));
  }, [error]);
  return <div ref={host} style={{ height, border: "1px solid var(--mantine-color-default-border)", borderRadius: 6, overflow: "auto", fontSize: 13 }} />;
}
