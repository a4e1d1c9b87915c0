import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

test('npm runs no script of a package by itself, in a checkout and in the image', () => {
  expect(read('.npmrc').split('\n')).toContain('ignore-scripts=true');
  for (const file of ['bin/bootstrap', 'container/install-packages']) {
    expect(read(file).match(/npm (ci|install) (?!.*--ignore-scripts)/)?.[0]).toBeUndefined();
  }
});

test('the only package whose script is run is the one that package.json allows', () => {
  const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> };
  expect(allowScripts).toEqual({ node: true });
  for (const file of ['bin/bootstrap', 'container/install-packages']) {
    const rebuilt = [...read(file).matchAll(/npm rebuild .*--loglevel=error ([\w -]+)/g)].map(([, names]) =>
      names?.trim(),
    );
    expect(rebuilt).toEqual(['node']);
  }
});
