import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { readChange } from '../../page/read/read-change.ts';
import { aRenderedConfig } from '../fixtures/objects.ts';

/**
 * Anyone who may write a MachineConfig decides how long the process works that shows it to readers of the page. A test
 * of this file that fails doesn't end: its deadline is vitest's.
 */

const compressed = (path: string, text: string) => ({
  path,
  contents: { source: `data:;base64,${gzipSync(text).toString('base64')}`, compression: 'gzip' },
});

function changeTo(files: readonly object[], noted: Readonly<Record<string, string>> = {}) {
  const [old, next] = ['old', 'new'].map(
    (name): MachineConfig => ({
      ...aRenderedConfig(name),
      metadata: { name, annotations: noted },
      spec: {
        config: { ignition: { version: '3.5.0' }, storage: { files: name === 'old' ? [] : files } },
      } as MachineConfig['spec'],
    }),
  );
  const configs = new Map(
    [old, next].flatMap((each) => (each === undefined ? [] : [[each.metadata.name, each]])),
  );
  return readChange('worker', { from: 'old', to: 'new', sources: [] }, configs);
}

test.each([
  ['words that could be the name of a setting', '-a'],
  ['names of settings', 'token'],
  ['assignments', 'token='],
  ['spaces', ' '],
  ['beginnings of URLs', '://a'],
  ['quotes', `token="'\\`],
  ['headers', 'bearer '],
])('a long line of %s is shown as its start', (_, piece) => {
  const { changes } = changeTo([compressed('/etc/a', piece.repeat(2_000_000 / piece.length))]);
  const [mode, line = ''] = changes[0]?.lines?.slice(-2) ?? [];
  expect(mode).toContain('# mode');
  expect(line.length).toBeLessThan(500);
  expect(line).toMatch(/^\+.*…$/);
});

test('what decompresses to more than a page shows is not compared, whatever limits its config records', () => {
  const mib = 1024 * 1024;
  const limits = { [annotations.limits]: JSON.stringify({ fileBytes: 2 ** 40, configBytes: 2 ** 40 }) };
  const bomb = (path: string) => compressed(path, '\n'.repeat(15 * mib));
  expect(changeTo([bomb('/etc/a')], limits).changes).toMatchObject([{ withheld: 'the change is too large' }]);
  const bombs = ['a', 'b', 'c', 'd', 'e'].map((name) => bomb(`/etc/${name}`));
  expect(changeTo(bombs, limits).remark).toMatch("can't be read");
});

test('many files that are very different from each other are compared up to a limit of them all', () => {
  const files = Array.from({ length: 200 }, (_, index) =>
    compressed(`/etc/${index}`, Array.from({ length: 990 }, (_, line) => `${line}\n`).join('')),
  );
  const withheld = changeTo(files).changes.filter((entry) => entry.withheld === 'the change is too large');
  expect(withheld.length).toBeGreaterThan(190);
});
