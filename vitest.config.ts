import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    // The image's packages (.image-packages) bring tests of their own.
    exclude: ['**/node_modules/**'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // A test that needs a second try to pass hides a bug.
    retry: 0,
  },
});
