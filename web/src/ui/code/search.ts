// Searching in the code editor.

export { searchKeymap } from "@codemirror/search";
