import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import {
  deployment,
  imageOf,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { beIdle } from './idle.ts';
import { requireOwnContent } from './own-content.ts';
import { refuseChangedDisk } from './preparation.ts';
import { repair } from './repair.ts';
import { verifyBoot } from './verify.ts';

const WRONG = 'system_u:object_r:user_tmp_t:s0';
const RIGHT = 'system_u:object_r:etc_t:s0';
const request = { id: 'r-1', by: 'ann', at: '2026-01-01T00:00:00Z' };
const rendered = standard('rendered-1', [
  { path: '/etc/app.conf', content: 'right' },
  { path: '/opt/my app.conf', content: 'right' },
]);

describe.each<[string, Current]>([
  ['standard', rendered],
  ['layered', { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') }],
])('SELinux labels in %s mode', (mode, current) => {
  /** A node with the config on it, whose policy has one label for all. */
  async function labelled() {
    const labels = new Map<string, string | undefined>();
    const relabelled: string[] = [];
    const compared: string[] = [];
    const node = await stepUnderTest({
      backend: {
        status: async () => ({ booted: deployment('/booted', { image: imageOf('1') }) }),
        cleanup: async () => undefined,
      },
      host: { softBootSince: async () => undefined },
      ports: {
        relabel: async (_root, names) => {
          relabelled.push(...names);
          for (const name of names) labels.delete(name);
        },
        wrongLabels: async (names) => {
          compared.push(...names);
          return names
            .filter((name) => labels.has(name))
            .map((name) => {
              const found = labels.get(name);
              return { name, wanted: RIGHT, ...present({ found }) };
            });
        },
      },
    });
    const { context, root } = node;
    const at = (name: string) => path.join(root, name);
    for (const directory of ['var/opt', path.dirname(nodePaths.imageConfig)])
      await mkdir(at(directory), { recursive: true });
    await symlink('var/opt', at('opt'));
    await writeFile(at('etc/app.conf'), 'right');
    await writeFile(at('opt/my app.conf'), 'right');
    await writeFile(at(nodePaths.imageConfig), JSON.stringify(rendered.rendered));
    const look = () => beIdle(context, observation({ current }));
    return { ...node, at, labels, relabelled, compared, look };
  }

  test('that differ are drift, by the path that the config names, until they are right', async () => {
    const { labels, look, phases, compared } = await labelled();
    labels.set('/etc/app.conf', WRONG);
    labels.set('/var/opt/my app.conf', undefined);
    labels.set('/etc/admin.conf', WRONG);
    await look();
    labels.clear();
    await look();
    expect(phases).toEqual([
      {
        kind: 'drifted',
        reason: 'ConfigDrift',
        byHand: [
          expect.objectContaining({ path: '/etc/app.conf' }),
          expect.objectContaining({ path: '/opt/my app.conf' }),
        ],
        why: expect.stringContaining(
          `/etc/app.conf: has SELinux label ${WRONG}, but should have ${RIGHT}; /opt/my app.conf: has no SELinux label, but should have ${RIGHT}. Revert`,
        ),
      },
      { kind: 'updated' },
    ]);
    expect(compared.slice(0, 2)).toEqual(['/etc/app.conf', '/var/opt/my app.conf']);
  });

  test('are not reported beside another difference of the same path', async () => {
    const { at, labels, look, phases } = await labelled();
    labels.set('/etc/app.conf', WRONG);
    await writeFile(at('etc/app.conf'), 'wrong');
    await look();
    expect(phases).toEqual([
      {
        kind: 'drifted',
        reason: 'ConfigDrift',
        byHand: [expect.objectContaining({ what: 'content' })],
        why: expect.not.stringContaining('label'),
      },
    ]);
  });

  test('are restored by the force file, and by a repair', async () => {
    const { at, context, events, labels, look, phases, relabelled } = await labelled();
    labels.set('/var/opt/my app.conf', WRONG);
    await mkdir(path.dirname(at(nodePaths.forceFile)), { recursive: true });
    await writeFile(at(nodePaths.forceFile), '');
    await look();
    labels.set('/etc/app.conf', undefined);
    await repair(context, request, observation({ current }));
    await look();
    expect(phases).toEqual([{ kind: 'updated' }, { kind: 'updated' }]);
    expect(relabelled).toEqual(['/var/opt/my app.conf', '/etc/app.conf']);
    expect(events).toEqual([
      expect.stringContaining(`${nodePaths.forceFile} exists: /opt/my app.conf. `),
      expect.stringContaining('ann requested a repair: /etc/app.conf. '),
    ]);
  });

  test('that differ prevent an update, before it is staged and before it changes anything', async () => {
    const { context, labels } = await labelled();
    labels.set('/etc/app.conf', WRONG);
    const { ports, signal } = context;
    await expect(refuseChangedDisk({ ports, current, stuck: undefined, signal })).rejects.toThrow(
      '/etc/app.conf: has SELinux label',
    );
    await expect(requireOwnContent({ ports, current, disk: 'AsRecorded', signal })).rejects.toThrow(
      '/etc/app.conf: has SELinux label',
    );
  });

  test('that another image’s policy has changed are restored once it is booted', async () => {
    const { context, labels, relabelled, root } = await labelled();
    labels.set('/var/opt/my app.conf', WRONG);
    const entry = entryTo(current);
    await context.journal.write(entry);
    await verifyBoot(context, entry, observation({ bootID: 'boot-2', current }));
    expect(relabelled, mode).toEqual(['/var/opt/my app.conf']);
    expect(await readLastUpdate(root)).toMatchObject({ result: 'Succeeded' });
  });
});

function entryTo(next: Current): JournalEntryAt<'rebooting'> {
  return {
    version: 1,
    step: 'rebooting',
    plan: { config: next.config, staged: true, actions: [{ type: 'Reboot' }], causes: [], source: 'test' },
    next,
    bootID: 'boot-1',
    startedAt: '2026-01-01T00:00:00.000Z',
    leaseHolder: 'shale-operator',
    rebootingSince: '2026-01-01T00:00:01.000Z',
  };
}

test('labels below the /usr of an image are its own', async () => {
  const compared: (readonly string[])[] = [];
  const { context, root } = await stepUnderTest({
    backend: {
      status: async () => ({ booted: deployment('/booted', { image: imageOf('1') }) }),
      cleanup: async () => undefined,
    },
    ports: {
      wrongLabels: async (names) => {
        compared.push(names);
        return [];
      },
    },
  });
  const config = standard('rendered-1', [
    { path: '/usr/share/app.conf', content: 'right' },
    { path: '/usr/local/app.conf', content: 'right' },
  ]);
  for (const name of ['usr/share', 'var/usrlocal', path.dirname(nodePaths.imageConfig)])
    await mkdir(path.join(root, name), { recursive: true });
  await symlink('../var/usrlocal', path.join(root, 'usr/local'));
  await writeFile(path.join(root, nodePaths.imageConfig), JSON.stringify(config.rendered));
  const current: Current = { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') };
  await beIdle(context, observation({ current }));
  expect(compared).toEqual([['/var/usrlocal/app.conf']]);
});
