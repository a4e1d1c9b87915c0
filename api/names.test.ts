import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SHALE_VERSION } from './names.ts';

test("the version is the package's", () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  expect(SHALE_VERSION).toBe(manifest.version);
});
