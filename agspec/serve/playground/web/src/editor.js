// Monaco with what a completion needs, and the languages that agspec has rules for.
import * as monaco from "monaco-editor/editor/editor.api.js";
import "monaco-editor/features/bracketMatching/register.js";
import "monaco-editor/features/clipboard/register.js";
import "monaco-editor/features/comment/register.js";
import "monaco-editor/features/cursorUndo/register.js";
import "monaco-editor/features/find/register.js";
import "monaco-editor/features/indentation/register.js";
import "monaco-editor/features/inlineCompletions/register.js";
import "monaco-editor/features/linesOperations/register.js";
import "monaco-editor/features/multicursor/register.js";
import "monaco-editor/features/wordOperations/register.js";
import "monaco-editor/languages/definitions/cpp/register.js";
import "monaco-editor/languages/definitions/csharp/register.js";
import "monaco-editor/languages/definitions/css/register.js";
import "monaco-editor/languages/definitions/go/register.js";
import "monaco-editor/languages/definitions/html/register.js";
import "monaco-editor/languages/definitions/java/register.js";
import "monaco-editor/languages/definitions/javascript/register.js";
import "monaco-editor/languages/definitions/markdown/register.js";
import "monaco-editor/languages/definitions/php/register.js";
import "monaco-editor/languages/definitions/python/register.js";
import "monaco-editor/languages/definitions/ruby/register.js";
import "monaco-editor/languages/definitions/rust/register.js";
import "monaco-editor/languages/definitions/shell/register.js";
import "monaco-editor/languages/definitions/sql/register.js";
import "monaco-editor/languages/definitions/typescript/register.js";
import "monaco-editor/languages/definitions/yaml/register.js";
import EditorWorker from "monaco-editor/editor/editor.worker.js?worker";

// Monaco's word that a suggestion is not wanted any more reaches the page as an error that nobody waits for.
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "Canceled") event.preventDefault();
});

self.MonacoEnvironment = { getWorker: () => new EditorWorker() };

export { monaco };
export const LANGUAGES = [
  "python", "javascript", "typescript", "go", "rust", "java", "c", "cpp", "csharp", "ruby", "php", "shell", "sql",
  "css", "html", "markdown", "yaml",
];

export function createEditor(element) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return monaco.editor.create(element, {
    automaticLayout: true,
    fontSize: 14,
    inlineSuggest: { enabled: true },
    minimap: { enabled: false },
    quickSuggestions: false,
    theme: dark ? "vs-dark" : "vs",
    wordBasedSuggestions: "off",
  });
}
