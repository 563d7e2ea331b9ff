import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The policy of the pages allows no inline font or script, so nothing is inlined.
export default defineConfig({
  base: "/console/",
  plugins: [react()],
  build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 1200, modulePreload: { polyfill: false } },
});
