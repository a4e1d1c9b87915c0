import { access, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { current, settled } from '../../test/fixtures/settled-node.ts';
import {
  deployment,
  imageOf,
  type NodeUnderTest,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import type { Current } from '../records/current.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { beIdle } from './idle.ts';
import { noMetrics } from './node-metrics.ts';
import type { Observation } from './step.ts';

describe.each(['Standard', 'Layered'] as const)('config drift in %s mode', (mode) => {
  const rendered = standard('rendered-1', [
    { path: '/etc/app.conf', content: 'right' },
    { path: '/etc/systemd/system/app.service', content: '[Service]\n' },
    { path: '/usr/share/app/default.conf', content: 'right' },
  ]);
  const config: Current =
    mode === 'Standard'
      ? rendered
      : { version: 1, mode, config: 'rendered-1', image: imageOf('1'), baseImage: imageOf('0') };

  /** A node on which the config's files are as it has them. */
  async function written(more: NodeUnderTest = {}) {
    const found: string[] = [];
    const node = await stepUnderTest({
      backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
      ...more,
      context: { metrics: { ...noMetrics, driftFound: () => found.push('drift') } },
    });
    const at = (name: string) => path.join(node.root, name);
    await mkdir(at('etc/systemd/system'), { recursive: true });
    await writeFile(at('etc/app.conf'), 'right');
    await writeFile(at('etc/systemd/system/app.service'), '[Service]\n');
    await mkdir(at('usr/share/app'), { recursive: true });
    await writeFile(at('usr/share/app/default.conf'), 'right');
    if (mode === 'Layered') {
      await mkdir(path.dirname(at(nodePaths.imageConfig)));
      await writeFile(at(nodePaths.imageConfig), JSON.stringify(rendered.rendered));
    }
    const look = () => beIdle(node.context, observation({ current: config }));
    const force = async () => {
      await mkdir(path.dirname(at(nodePaths.forceFile)), { recursive: true });
      await writeFile(at(nodePaths.forceFile), '');
    };
    return { ...node, at, look, force, driftsFound: () => found.length };
  }

  test('is reported once, and its end once', async () => {
    const { at, look, phases, events, driftsFound } = await written();
    await look();
    expect(events).toEqual([]);

    await writeFile(at('etc/app.conf'), 'wrong');
    await look();
    await look();
    expect(phases.map(({ kind }) => kind)).toEqual(['updated', 'drifted', 'drifted']);
    expect(phases[1]).toMatchObject({ why: expect.stringContaining('/etc/app.conf: has sha256') });
    expect(events).toEqual([expect.stringContaining('/etc/app.conf: has sha256')]);
    expect(driftsFound()).toBe(1);

    await writeFile(at('etc/app.conf'), 'right');
    await look();
    await look();
    expect(phases.at(-1)).toEqual({ kind: 'updated' });
    expect(events.slice(1)).toEqual(['The node matches its config again']);
    expect(driftsFound()).toBe(1);
  });

  test('is reported again when it differs', async () => {
    const { at, look, events } = await written();
    await writeFile(at('etc/app.conf'), 'wrong');
    await look();
    await writeFile(at('etc/systemd/system/app.service'), 'wrong, too');
    await look();
    expect(events).toEqual([
      expect.not.stringContaining('app.service'),
      expect.stringMatching(/app\.conf.*app\.service/),
    ]);
  });

  test('is ended by the force file, which is removed, and systemd reads its units again', async () => {
    const reloads: string[] = [];
    const { at, look, force, events, phases } = await written({
      services: { daemonReload: async () => void reloads.push('reload') },
    });
    await writeFile(at('etc/systemd/system/app.service'), 'wrong');
    await force();
    await look();
    expect(await readFile(at('etc/systemd/system/app.service'), 'utf8')).toBe('[Service]\n');
    expect(phases).toEqual([{ kind: 'updated' }]);
    expect(events).toEqual([
      expect.stringMatching(/^Restored from rendered-1, .*: \/etc\/systemd\/system\/app\.service\. Services/),
    ]);
    expect(reloads).toEqual(['reload']);
    await expect(access(at(nodePaths.forceFile))).rejects.toThrow('ENOENT');
  });

  test('of no unit needs no reload of systemd', async () => {
    const { at, look, force, events } = await written();
    await writeFile(at('etc/app.conf'), 'wrong');
    await force();
    await look();
    expect(await readFile(at('etc/app.conf'), 'utf8')).toBe('right');
    expect(events).toEqual([expect.stringContaining('Restored from rendered-1')]);
  });

  test('that is not there leaves the force file nothing to do', async () => {
    const { at, look, force, events } = await written();
    await force();
    await look();
    expect(events).toEqual([expect.stringContaining('nothing differs from rendered-1')]);
    await expect(access(at(nodePaths.forceFile))).rejects.toThrow('ENOENT');
  });

  test('that an update ended with is over with it, and the update has succeeded', async () => {
    const { at, context, root } = await written();
    const lastUpdate: UpdateRecord = {
      config: 'rendered-1',
      actions: [{ type: 'Reboot' }],
      causes: [],
      source: 'test',
      startedAt: '2026-01-01T00:00:00.000Z',
      finishedAt: '2026-01-01T00:01:00.000Z',
      bootIDBefore: 'boot-0',
      bootIDAfter: 'boot-1',
      result: 'Failed',
      reason: 'ConfigDrift',
      message: 'changed',
    };
    const observed = observation({ current: config, lastUpdate });
    await writeFile(at('etc/app.conf'), 'wrong');
    expect(await beIdle(context, observed)).toMatchObject({ kind: 'wait' });
    expect(await readLastUpdate(root)).toBeUndefined();
    await writeFile(at('etc/app.conf'), 'right');
    expect(await beIdle(context, observed)).toEqual({ kind: 'again' });
    const { message: _message, reason: _reason, ...rest } = lastUpdate;
    expect(await readLastUpdate(root)).toEqual({ ...rest, result: 'Succeeded' });
  });

  test('is not looked for on a node that Shale does not configure any more', async () => {
    const { at, look, context, phases, events } = await written();
    await writeFile(at('etc/app.conf'), 'wrong');
    await look();
    await beIdle(context, observation({ current: undefined }));
    expect(phases.at(-1)).toEqual({ kind: 'updated' });
    expect(context.memory.drift).toBeUndefined();
    expect(events).toHaveLength(1);
  });

  test('is none where no config names the path, and the force file leaves that alone', async () => {
    const { at, look, force, phases, events } = await written();
    await writeFile(at('etc/admin.conf'), 'mine');
    await look();
    expect(events).toEqual([]);
    await force();
    await look();
    expect(phases).toEqual([{ kind: 'updated' }, { kind: 'updated' }]);
    expect(await readFile(at('etc/admin.conf'), 'utf8')).toBe('mine');
  });

  test('is put back where something of another kind has taken the place', async () => {
    const { at, look, force, phases } = await written();
    await rm(at('etc/app.conf'));
    await mkdir(at('etc/app.conf'));
    await look();
    expect(phases.at(-1)).toMatchObject({ why: expect.stringContaining('/etc/app.conf: is a directory') });
    await force();
    await look();
    expect(phases.at(-1)).toEqual({ kind: 'updated' });
    expect(await readFile(at('etc/app.conf'), 'utf8')).toBe('right');
  });
});

test('the names of its config and of the force file are watched, and none on a node without a config', async () => {
  const { context, root } = await stepUnderTest({
    backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
  });
  const watch = vi.spyOn(context.driftWatch, 'watch');
  const running = standard('rendered-1', [{ path: '/etc/app.conf', content: 'right' }]);
  await beIdle(context, observation({ current: running }));
  const names = watch.mock.lastCall?.[0];
  expect(names?.get(path.join(root, 'etc'))).toContain('app.conf');
  const forceFile = path.join(root, nodePaths.forceFile);
  expect(names?.get(path.dirname(forceFile))).toEqual(new Set([path.basename(forceFile)]));
  await beIdle(context, observation({ current: undefined }));
  expect(watch.mock.lastCall?.[0].size).toBe(0);
});

test('what differs in the /usr of an image is reported, and left to the next boot by the force file', async () => {
  const { context, root, phases } = await stepUnderTest({
    backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
  });
  const at = (name: string) => path.join(root, name);
  const { rendered } = standard('rendered-1', [{ path: '/usr/share/app.conf', content: 'right' }]);
  await mkdir(path.dirname(at(nodePaths.imageConfig)), { recursive: true });
  await writeFile(at(nodePaths.imageConfig), JSON.stringify(rendered));
  await writeFile(at('usr/share/app.conf'), 'wrong');
  await mkdir(path.dirname(at(nodePaths.forceFile)), { recursive: true });
  await writeFile(at(nodePaths.forceFile), '');
  await beIdle(context, observation({ current }));
  expect(phases).toEqual([
    {
      kind: 'drifted',
      reason: 'ConfigDrift',
      byHand: [expect.objectContaining({ path: '/usr/share/app.conf' })],
      why: expect.stringContaining('/usr/share/app.conf: has sha256'),
    },
  ]);
  expect(await readFile(at('usr/share/app.conf'), 'utf8')).toBe('wrong');
});

describe.each(['Standard', 'Layered'] as const)('drift of kernel arguments in %s mode', (mode) => {
  const config = standard('rendered-1', [{ path: '/etc/app.conf', content: 'right' }]);
  const now: Current = mode === 'Standard' ? { ...config, kernelArguments: ['quiet=1'] } : current;

  /** A node of an image whose base has an argument, too. */
  async function onImage() {
    const node = await stepUnderTest({
      backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
    });
    const spec = { ...config.rendered.spec, kernelArguments: ['quiet=1'] };
    const rendered = { ...config.rendered, spec };
    const files = {
      'etc/app.conf': 'right',
      [nodePaths.imageConfig]: JSON.stringify(rendered),
      'usr/lib/bootc/kargs.d/00-base.toml': 'kargs = ["of-base"]',
      [nodePaths.kernelArguments]: 'kargs = ["quiet=1"]\n',
    };
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(node.root, name)), { recursive: true });
      await writeFile(path.join(node.root, name), text);
    }
    const look = (entry: readonly string[], more: Partial<Observation['kernelArguments']> = {}) =>
      beIdle(node.context, observation({ current: now, kernelArguments: { entry, ...more } }));
    return { ...node, look };
  }

  test.each<[string, Observation['kernelArguments'], string | undefined]>([
    ['of the config and an admin', { entry: ['mine', 'quiet=1'], added: ['quiet=1'] }, undefined],
    ['without the one of the config', { entry: ['rw'] }, ': quiet=1 is missing. '],
    ['with one left', { entry: ['nosmt', 'quiet=1'], added: ['nosmt'] }, ': nosmt was added by Shale'],
    [
      'of the config, where the note of what Shale added is damaged',
      { entry: ['quiet=1'], unreadable: 'notes.json: not a record' },
      "Kernel arguments that Shale added can't be told from the host's own: notes.json: not a record. ",
    ],
    ['lost on the way', { entry: ['quiet=1'], running: ['rw'] }, ': quiet=1 is in the bootloader entry, but'],
  ])('%s', async (_name, { entry, ...more }, expected) => {
    const { look, phases } = await onImage();
    await look(entry, more);
    expect(phases).toEqual([
      expected === undefined
        ? { kind: 'updated' }
        : { kind: 'drifted', reason: 'ConfigDrift', byHand: [], why: expect.stringContaining(expected) },
    ]);
  });

  test('is reported after that of files, is left as it is by the force file, and ends', async () => {
    const { look, root, phases, events } = await onImage();
    await writeFile(path.join(root, 'etc/app.conf'), 'wrong');
    await look(['rw']);
    await mkdir(path.dirname(path.join(root, nodePaths.forceFile)), { recursive: true });
    await writeFile(path.join(root, nodePaths.forceFile), '');
    await look(['rw']);
    await look(['quiet=1']);
    expect(phases).toEqual([
      {
        kind: 'drifted',
        reason: 'ConfigDrift',
        byHand: [expect.objectContaining({ path: '/etc/app.conf' })],
        why: expect.stringMatching(/^Changed on .*-force on it\. Kernel arguments differ/),
      },
      {
        kind: 'drifted',
        reason: 'ConfigDrift',
        byHand: [],
        why: expect.stringMatching(/^Kernel arguments differ from rendered-1: quiet=1 is/),
      },
      { kind: 'updated' },
    ]);
    expect(events.at(-1)).toBe('The node matches its config again');
  });
});
