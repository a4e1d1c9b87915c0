import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { current, settled } from '../../test/fixtures/settled-node.ts';
import {
  deployment,
  imageOf,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { contentDigest, readTreeEntry } from '../files/tree-entry.ts';
import type { OsStatus } from '../os/backend.ts';
import { type Current, writeCurrent } from '../records/current.ts';
import { writeStatePaths } from '../records/managed-paths.ts';
import { beIdle } from './idle.ts';
import { policeImages } from './image-policy.ts';

test('a node at its target deletes once what it no longer needs, and again after the next boot', async () => {
  let cleanups = 0;
  const { context, phases } = await stepUnderTest({
    backend: {
      status: async () => ({ booted: deployment('/booted', { image: imageOf('1') }) }),
      cleanup: async () => {
        cleanups += 1;
      },
    },
  });

  expect(await beIdle(context, observation({ current }))).toEqual({ kind: 'wait', ms: 600_000 });
  await beIdle(context, observation({ current }));
  expect(cleanups).toBe(1);

  await beIdle(context, observation({ current, bootID: 'boot-2' }));
  expect(cleanups).toBe(2);
  await beIdle(context, observation({ current: { ...current, config: 'rendered-2' }, bootID: 'boot-2' }));
  expect(cleanups).toBe(3);
  expect(phases).toEqual(Array.from({ length: 4 }, () => ({ kind: 'updated' })));
});

test('what no config has in a state path any more is taken away, if an update could not', async () => {
  const { context, root } = await stepUnderTest({
    backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
  });
  const running = standard('rendered-1');
  await writeCurrent(root, running);
  const left = path.join(root, 'opt/left');
  await mkdir(path.dirname(left));
  await writeFile(left, 'x');
  await writeStatePaths(root, new Map([['/opt/left', [contentDigest(await readTreeEntry(left))]]]));
  await beIdle(context, observation({ current: running }));
  await expect(access(left)).rejects.toThrow('ENOENT');
});

test('what an update left over is put in order once nobody else holds the node', async () => {
  const calls: string[] = [];
  const { context, phases } = await stepUnderTest({
    backend: {
      status: async () => ({
        booted: deployment('/booted', { image: imageOf('1') }),
        staged: deployment('/staged', { image: imageOf('2') }),
      }),
      unstage: async () => void calls.push('unstage'),
      cleanup: async () => void calls.push('cleanup'),
    },
  });
  const { spec } = observation();
  const heldBy = 'its lease is held by ops';
  await beIdle(context, observation({ current, spec: { ...spec, heldBy } }));
  expect(calls).toEqual([]);
  await beIdle(context, observation({ current, spec }));
  expect(calls).toEqual(['unstage', 'cleanup']);
  expect(phases).toEqual([{ kind: 'updated' }, { kind: 'updated' }]);
});

test('what was prepared for another target is forgotten', async () => {
  const { context } = await stepUnderTest({
    backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
  });
  context.memory.prepared = {
    plan: { config: 'rendered-2', staged: true, actions: [], causes: [], source: 'test' },
    next: current,
    policyDigest: undefined,
    softRebootAllowed: false,
  };
  await beIdle(context, observation({ current }));
  expect(context.memory.prepared).toBeUndefined();
});

test('a node that booted another deployment has its tools verify images again', async () => {
  const { context, root } = await stepUnderTest({
    backend: settled({ booted: deployment('/booted', { image: imageOf('1') }) }),
  });
  const policy = path.join(root, 'etc/containers/policy.json');
  const open = '{"default":[{"type":"insecureAcceptAnything"}]}';
  await mkdir(path.dirname(policy));
  await writeFile(policy, open);
  const onBootc = observation({ current, osBackend: { name: 'bootc', installsPackages: false } });
  await policeImages(context, onBootc, [{ image: imageOf('1'), publicKey: 'PEM' }]);
  await writeFile(policy, open);
  // Whoever holds the node may be the one who writes it.
  await beIdle(context, { ...onBootc, spec: { ...onBootc.spec, heldBy: 'maintenance' } });
  expect(await readFile(policy, 'utf8')).toBe(open);
  await beIdle(context, onBootc);
  expect(await readFile(policy, 'utf8')).toContain('sigstoreSigned');
  expect(context.memory.imagePolicy?.kind).toBe('applied');
});

test.each([
  ['in standard mode', observation({ current: standard('rendered-1') }), []],
  ['on which only Shale pulls', observation({ current }), [{ image: imageOf('1'), publicKey: 'PEM' }]],
])('the policy of a node %s is left alone', async (_name, observed, images) => {
  const { context, root } = await stepUnderTest();
  const policy = path.join(root, 'etc/containers/policy.json');
  await mkdir(path.dirname(policy));
  await writeFile(policy, 'not even valid');
  await policeImages(context, observed, images);
  expect(await readFile(policy, 'utf8')).toBe('not even valid');
  expect(context.memory.imagePolicy).toEqual({ kind: 'not-required' });
});

test('a node whose next boot could not be settled tries again', async () => {
  let cleanups = 0;
  let refusals = 1;
  const { context } = await stepUnderTest({
    backend: {
      status: async () => ({
        booted: deployment('/booted', { image: imageOf('1') }),
        staged: deployment('/staged', { image: imageOf('2') }),
      }),
      unstage: async () => {
        refusals -= 1;
        if (refusals === 0) throw new Error('the tool is busy');
      },
      cleanup: async () => {
        cleanups += 1;
      },
    },
  });

  await expect(beIdle(context, observation({ current }))).rejects.toThrow('the tool is busy');
  expect(cleanups).toBe(0);
  await beIdle(context, observation({ current }));
  expect(cleanups).toBe(1);
});

describe('the next boot is what runs', () => {
  const onImage = (digit: string) => deployment(`/${digit}`, { image: imageOf(digit) });
  const onStock: Current = { ...standard('rendered-1'), baseImage: imageOf('0') };
  const stageFirst = `stage ${imageOf('1')} {"remove":[],"add":[]}`;

  test.each<[string, Current | undefined, OsStatus, readonly string[]]>([
    ['the booted image', current, { booted: onImage('1') }, []],
    [
      'the booted image, with another staged',
      current,
      { booted: onImage('1'), staged: onImage('2') },
      ['unstage'],
    ],
    ['an image applied live and staged', current, { booted: onImage('0'), staged: onImage('1') }, []],
    ['an image applied live and not staged', current, { booted: onImage('0') }, [stageFirst]],
    [
      'an image applied live, with another staged',
      current,
      { booted: onImage('0'), staged: onImage('2') },
      [stageFirst],
    ],
    ['standard mode', onStock, { booted: onImage('0') }, []],
    [
      'standard mode, with its own image staged',
      onStock,
      { booted: onImage('0'), staged: onImage('0') },
      ['unstage'],
    ],
    [
      'standard mode, with another image staged',
      onStock,
      { booted: onImage('0'), staged: onImage('2') },
      ['unstage'],
    ],
    ['nothing of Shale', undefined, { booted: onImage('0') }, []],
    [
      'an image that is not known, with one staged',
      undefined,
      { booted: deployment('/booted'), staged: onImage('2') },
      ['unstage'],
    ],
  ])('on a node that runs %s', async (_name, runs, status, expected) => {
    const done: string[] = [];
    const { context } = await stepUnderTest({ backend: settled(status, done) });

    await beIdle(context, observation({ current: runs }));

    expect(done).toEqual([...expected, 'cleanup']);
  });
});
