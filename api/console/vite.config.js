import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const WORTH_BYTES = 1024;

/** Beside every text file the same, compressed as far as it goes: done once, not at each request. */
/** @returns {import("vite").Plugin} */
function compressed() {
  return {
    name: "compressed",
    apply: "build",
    writeBundle({ dir = "dist" }, bundle) {
      for (const name of Object.keys(bundle)) {
        if (!/^assets\/.*\.(js|css|svg)$/.test(name)) continue;
        const path = join(dir, name);
        const bytes = readFileSync(path);
        if (bytes.length >= WORTH_BYTES) writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  };
}

// The policy of the pages allows no inline font or script, so nothing is inlined.
export default defineConfig({
  base: "/console/",
  plugins: [react(), compressed()],
  build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 1200, modulePreload: { polyfill: false } },
});
