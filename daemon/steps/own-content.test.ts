import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import { standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { JournalEntry } from '../records/journal.ts';
import { isForced } from '../standard/drift.ts';
import { managedContent } from '../standard/managed-content.ts';
import { ForeignChangeError } from '../standard/write-config.ts';
import { contentDigest, readTreeEntry } from '../tree/tree-entry.ts';
import { contentOfConfigs, requireOwnContent } from './own-content.ts';
import { refuseChangedDisk } from './preparation.ts';
import type { UpdateWork } from './update-context.ts';

const current = standard('rendered-1', [
  { path: '/etc/app.conf', content: 'right' },
  { path: '/usr/share/app.conf', content: 'right' },
]);

/** A node whose file in /etc has this text. */
async function nodeWith(text: string) {
  const { context, root } = await stepUnderTest();
  const at = (name: string) => path.join(root, name);
  for (const [name, content] of [
    ['/etc/app.conf', text],
    ['/usr/share/app.conf', 'right'],
  ] as const) {
    await mkdir(path.dirname(at(name)), { recursive: true });
    await writeFile(at(name), content);
  }
  const force = async () => {
    await mkdir(path.dirname(at(nodePaths.forceFile)), { recursive: true });
    await writeFile(at(nodePaths.forceFile), '');
  };
  const { ports, signal } = context;
  const require = (more: Partial<UpdateWork> = {}) =>
    requireOwnContent({ ports, current, again: false, signal, ...more } as UpdateWork);
  const { wrongLabels } = ports;
  const refuse = (stuck?: JournalEntry) => refuseChangedDisk({ root, wrongLabels, current, stuck, signal });
  return { root, at, force, require, refuse, read: () => readFile(at('/etc/app.conf'), 'utf8') };
}

describe('what somebody has changed', () => {
  test('prevents an update, before and when it begins', async () => {
    const { require, refuse, read } = await nodeWith('wrong');
    await expect(refuse()).rejects.toThrow('/etc/app.conf');
    await expect(require()).rejects.toBeInstanceOf(ForeignChangeError);
    expect(await read()).toBe('wrong');
  });

  test('is put back once by the force file, and is no reason to refuse', async () => {
    const { root, force, require, refuse, read } = await nodeWith('wrong');
    await force();
    await refuse();
    expect(await isForced(root)).toBe(true);
    await require();
    expect([await read(), await isForced(root)]).toEqual(['right', false]);
  });

  test('prevents nothing where an update is resumed, or has left the disk between two states', async () => {
    const { require, refuse, read } = await nodeWith('wrong');
    await require({ again: true });
    await refuse({} as JournalEntry);
    expect(await read()).toBe('wrong');
  });

  test('is nothing on a node that Shale does not configure', async () => {
    const { require } = await nodeWith('wrong');
    await require({ current: undefined });
  });
});

test('what nobody has changed prevents nothing', async () => {
  const { require, refuse } = await nodeWith('right');
  await refuse();
  await require();
});

describe('the content of configs in /etc', () => {
  const digestAt = async (place: string) => [contentDigest(await readTreeEntry(place))];
  const next = standard('rendered-2', [{ path: '/etc/next.conf', content: 'next' }]);

  test('is what lies there, and of the next one where an update is resumed', async () => {
    const { root, at } = await nodeWith('by hand');
    await writeFile(at('/etc/next.conf'), 'next');
    const own = ['/etc/app.conf', await digestAt(at('/etc/app.conf'))] as const;
    const ofNext = ['/etc/next.conf', await digestAt(at('/etc/next.conf'))] as const;
    const content = await managedContent(root, next);
    expect([...(await contentOfConfigs({ root, current, again: false }, content))]).toEqual([own]);
    expect([...(await contentOfConfigs({ root, current, again: true }, content))]).toEqual([own, ofNext]);
    expect([...(await contentOfConfigs({ root, current, again: true }, undefined))]).toEqual([own]);
    expect([...(await contentOfConfigs({ root, current: undefined, again: false }, content))]).toEqual([]);
  });
});
