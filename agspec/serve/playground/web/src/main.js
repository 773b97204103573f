// The editor, its completions and the figures.
import { registerCompletion } from "monacopilot";

import { createEditor, LANGUAGES, monaco } from "./editor.js";
import { FILES } from "./files.js";
import { count, fill, noteLatency, say, showCounts, showLatency, showStores } from "./panel.js";
import { abort, complete, stores } from "./server.js";

const POLL_MS = 1000;

const editor = createEditor(document.getElementById("editor"));
const models = Object.fromEntries(
  Object.entries(FILES).map(([path, text]) => [
    path, monaco.editor.createModel(text, undefined, monaco.Uri.file(path)),
  ]),
);
let open = Object.keys(FILES)[0];
let registration = null;

async function ask() {
  const model = editor.getModel();
  const at = model.getOffsetAt(editor.getPosition());
  const text = model.getValue();
  const others = Object.entries(models).filter(([path]) => path !== open);
  if (abort()) count("cancelled");
  count("requested");
  try {
    const told = await complete({
      prefix: text.slice(0, at),
      suffix: text.slice(at),
      path: open,
      language: model.getLanguageId(),
      open_files: others.map(([path, other]) => ({ path, text: other.getValue() })),
    });
    noteLatency({ total: told.took, first: told.latency_ms.first, prepare: told.latency_ms.prepare });
    say("");
    return { completion: told.completion || null };
  } catch (error) {
    if (error.name !== "AbortError") {
      count("failed");
      say(error.message);
    }
    return { completion: null };
  }
}

function register() {
  registration?.deregister();
  registration = registerCompletion(monaco, editor, {
    language: editor.getModel().getLanguageId(),
    trigger: "onTyping",
    maxContextLines: 0,
    requestHandler: ask,
    onCompletionShown: () => count("shown"),
    onCompletionAccepted: () => count("accepted"),
    onCompletionRejected: () => count("not taken"),
    onError: (error) => say(error.message),
  });
}

function show(path) {
  open = path;
  const model = models[path];
  editor.setModel(model);
  editor.setPosition(model.getPositionAt(model.getValueLength()));
  editor.focus();
  document.getElementById("language").value = model.getLanguageId();
  for (const tab of document.querySelectorAll("#tabs button")) {
    tab.setAttribute("aria-selected", String(tab.textContent === path));
  }
  register();
}

async function watchStores() {
  let before = null;
  for (;;) {
    try {
      const now = await stores();
      if (now === null) {
        fill("stores", [["this server drafts nothing", "", ""]]);
        return;
      }
      before ??= now;
      showStores(now, before);
    } catch (error) {
      say(error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

for (const path of Object.keys(FILES)) {
  const tab = Object.assign(document.createElement("button"), { textContent: path });
  tab.addEventListener("click", () => show(path));
  document.getElementById("tabs").append(tab);
}
const language = document.getElementById("language");
language.append(...LANGUAGES.map((name) => new Option(name)));
language.addEventListener("change", () => {
  monaco.editor.setModelLanguage(editor.getModel(), language.value);
  register();
  editor.focus();
});
editor.onDidChangeModelContent(() => {
  if (abort()) count("cancelled");
});

showLatency();
showCounts();
show(open);
watchStores();
