// Scripts in the code editor.

import { completeFromList, type Completion } from "@codemirror/autocomplete";
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript";
import { syntaxTree } from "@codemirror/language";
import { linter, type Diagnostic } from "@codemirror/lint";
import type { Extension } from "@codemirror/state";

/** TBEL looks like JavaScript in all that the tree of a script tells apart here. */
const syntaxErrors = linter((view) => {
  const found: Diagnostic[] = [];
  syntaxTree(view.state).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError && found.length < 20) {
        found.push({ from, to: Math.max(to, from + 1), severity: "error", message: "This is not understood here." });
      }
    },
  });
  return found.map((one) => ({ ...one, to: Math.min(one.to, view.state.doc.length), from: Math.min(one.from, view.state.doc.length) }));
});

/** Returns what scripts add, with words that completion offers besides those of the language. */
export const script = (words: Completion[]): Extension => [javascript(), javascriptLanguage.data.of({ autocomplete: completeFromList(words) }), syntaxErrors];
