import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { isForced } from '../content/drift/drift.ts';
import { verifyWithLabels } from '../content/drift/label-drift.ts';
import { managedContent } from '../content/managed-content.ts';
import { ForeignChangeError } from '../content/write/write-content.ts';
import { contentDigest, readTreeEntry } from '../files/tree-entry.ts';
import { noWrongLabels } from '../host/selinux-labels.ts';
import { writeCurrent } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { writeLastUpdate } from '../records/last-update.ts';
import { readLeftOut, writeLeftOut } from '../records/left-out.ts';
import type { DiskWork } from './disk-work.ts';
import { leftOutOf, takeUpLeftOut } from './left-out.ts';
import { nodeDrift } from './node-drift.ts';
import { contentOfConfigs, requireOwnContent } from './own-content.ts';
import { refuseChangedDisk } from './preparation.ts';

const current = standard('rendered-1', [
  { path: '/etc/app.conf', content: 'right' },
  { path: '/usr/share/app.conf', content: 'right' },
]);

function lastUpdateTo(config: string): UpdateRecord {
  return {
    config,
    actions: [{ type: 'Reboot' }],
    causes: [],
    source: '',
    startedAt: '2026-01-01T00:00:00Z',
    finishedAt: '2026-01-01T00:01:00Z',
    bootIDBefore: 'boot-1',
    bootIDAfter: 'boot-2',
    result: 'Succeeded',
  };
}

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
  const require = (more: Partial<DiskWork> = {}) =>
    requireOwnContent({ ports, current, disk: 'AsRecorded', signal, ...more });
  const refuse = (stuck?: JournalEntry) => refuseChangedDisk({ ports, current, stuck, signal });
  return { root, at, force, require, refuse, read: () => readFile(at('/etc/app.conf'), 'utf8') };
}

describe('what somebody has changed', () => {
  test('prevents an update, before and when it begins', async () => {
    const { require, refuse, read } = await nodeWith('wrong');
    await expect(refuse()).rejects.toThrow('/etc/app.conf');
    await expect(require()).rejects.toBeInstanceOf(ForeignChangeError);
    expect(await read()).toBe('wrong');
  });

  test('is not what an update has left out, until somebody changes that', async () => {
    const { at, root, require, refuse } = await nodeWith('wrong');
    const { context } = await stepUnderTest();
    const { signal } = context;
    const host = { host: { root }, wrongLabels: noWrongLabels };
    const content = await managedContent(root, current);
    const found = () => verifyWithLabels(host, content, signal);
    await writeLeftOut(root, leftOutOf(content, await found(), 'no room'));
    await refuse();
    await require();
    const boot = {
      kernelArguments: { entry: [] },
      osBackend: { name: 'ostree', installsPackages: false },
    } as const;
    const drift = async () =>
      nodeDrift({ current, content, drifts: await found(), leftOut: await readLeftOut(root) }, boot);
    expect(await drift()).toEqual({
      reason: 'UpdateIncomplete',
      byHand: [],
      why: expect.stringMatching(
        /^The update to rendered-1 did not bring all of its content: no room\. \/etc\/app\.conf: has sha256 .*\. Change the MachineConfig/,
      ),
    });
    await writeFile(at('/etc/app.conf'), 'other');
    await expect(refuse()).rejects.toThrow('/etc/app.conf: has sha256');
    expect(await drift()).toMatchObject({
      reason: 'ConfigDrift',
      why: expect.stringMatching(/^Changed on the node/),
    });
  });

  test('is not what the failed update of an earlier daemon has left out, either', async () => {
    const { root, refuse } = await nodeWith('wrong');
    const { context } = await stepUnderTest();
    const ports = { ...context.ports, host: { ...context.ports.host, root } };
    await writeCurrent(root, current);
    const failed = { ...lastUpdateTo('rendered-1'), result: 'Failed', reason: 'ConfigDrift' } as const;
    await writeLastUpdate(root, { ...failed, message: 'Kernel arguments differ' });
    await takeUpLeftOut(ports, context.signal);
    await expect(refuse()).rejects.toThrow('/etc/app.conf');
    await writeLastUpdate(root, {
      ...failed,
      message: 'Changed on the node since Shale wrote it: /etc/app.conf',
    });
    await takeUpLeftOut(ports, context.signal);
    await refuse();
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
    await require({ disk: 'Uncertain' });
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
    const { signal } = new AbortController();
    await writeFile(at('/etc/next.conf'), 'next');
    const own = ['/etc/app.conf', await digestAt(at('/etc/app.conf'))] as const;
    const ofNext = ['/etc/next.conf', await digestAt(at('/etc/next.conf'))] as const;
    const content = await managedContent(root, next);
    expect([...(await contentOfConfigs({ root, current, disk: 'AsRecorded', signal }, content))]).toEqual([
      own,
    ]);
    expect([...(await contentOfConfigs({ root, current, disk: 'Uncertain', signal }, content))]).toEqual([
      own,
      ofNext,
    ]);
    expect([...(await contentOfConfigs({ root, current, disk: 'Uncertain', signal }, undefined))]).toEqual([
      own,
    ]);
    expect([
      ...(await contentOfConfigs({ root, current: undefined, disk: 'AsRecorded', signal }, content)),
    ]).toEqual([]);
  });
});
