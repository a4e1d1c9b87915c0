import path from 'node:path';
import { defineConfig } from 'vite';

/** Builds the browser's part of the page into page/dist, which page/server/page-server.ts serves. */
export default defineConfig({
  root: path.join(import.meta.dirname, 'app'),
  // Relative, because behind a proxy the page may be served below any path.
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
