import path from 'node:path';
import { defineConfig } from 'vite';

/** Builds what runs in the browser (`npm run build:page`) into page/dist, where page/server/assets.ts finds it. */
export default defineConfig({
  root: path.join(import.meta.dirname, 'app'),
  // Wherever it is served: behind a proxy the page may have a path above it.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: path.join(import.meta.dirname, 'dist'),
    emptyOutDir: true,
    target: 'es2022',
    // The policy of the page (page-server.ts) refuses inline scripts and data: images.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
