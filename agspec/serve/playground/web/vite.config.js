import { defineConfig } from "vite";

export default defineConfig({
  base: "./", // the page is served under /playground/, whatever the host
  build: { chunkSizeWarningLimit: 8000, target: "es2022" },
  worker: { format: "es" },
});
