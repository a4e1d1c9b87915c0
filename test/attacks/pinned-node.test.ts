/**
 * Who has taken over a package of npm's, or the registry between it and a checkout, wants a program of theirs to run as
 * Node.
 */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';

const ROOT = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      integrity: z.string().optional(),
      link: z.boolean().optional(),
      os: z.union([z.string(), z.array(z.string())]).optional(),
      cpu: z.union([z.string(), z.array(z.string())]).optional(),
      optionalDependencies: z.record(z.string(), z.string()).optional(),
    }),
  ),
});
const { packages } = Lock.parse(JSON.parse(read('package-lock.json')));

test.each(['linux-x64', 'linux-arm64'])('the lock file has Node for %s by digest', (platform) => {
  const [os, cpu] = platform.split('-');
  const name = `node-${platform}`;
  expect(packages[`node_modules/${name}`]).toMatchObject({
    version: packages['']?.optionalDependencies?.[name],
    integrity: expect.stringMatching(/^sha512-/),
  });
  expect([packages[`node_modules/${name}`]?.os, packages[`node_modules/${name}`]?.cpu].flat()).toEqual([
    os,
    cpu,
  ]);
});

test('nothing is installed that the lock file does not have by digest', () => {
  const unpinned = Object.entries(packages).filter(
    ([place, { integrity, link }]) =>
      place.includes('node_modules/') && link !== true && integrity === undefined,
  );
  expect(unpinned.map(([place]) => place)).toEqual([]);
});

describe.each(['bin/bootstrap', 'container/install-packages'])('%s', (file) => {
  const commands = [
    ...read(file).matchAll(/^\s*(?!#).*\bnpm (?:ci|i|install|rebuild|exec|update)\b.*$/gm),
  ].map(([line]) => line.trim());

  test('installs what the lock file has, or nothing', () => {
    expect(commands).toHaveLength(1);
    expect(commands[0]).toMatch(/^npm ci .*--ignore-scripts/);
  });
});

test('no package brings a program by a script', () => {
  expect(read('.npmrc').split('\n')).toContain('ignore-scripts=true');
  expect(JSON.parse(read('package.json'))).not.toHaveProperty('allowScripts');
});

test('no page and no workflow tells anybody otherwise', async () => {
  for (const file of ['README.md', 'CONTRIBUTING.md', 'Makefile', 'Containerfile'])
    expect(await readFile(path.join(ROOT, file), 'utf8'), file).not.toMatch(/npm (?:install|rebuild)\b/);
});
