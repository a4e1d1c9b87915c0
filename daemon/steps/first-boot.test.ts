import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  type NodeUnderTest,
  observation,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import { decide } from '../decide.ts';
import { readCurrent } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import type { Observation } from './step.ts';
import { takeUpBoot } from './ungranted-boot.ts';
import { unverifiedBecause, verifyBoot } from './verify.ts';

const IMAGE = imageOf('7');
const CONFIG = 'rendered-7';
const { spec } = observation();

/** A fresh node that has booted an image of its pool for the first time; a daemon has looked at that boot. */
async function freshNode(ports: NodeUnderTest['ports'] = {}) {
  const labels = { [imageLabels.renderedConfig]: CONFIG };
  const step = await stepUnderTest({
    host: { bootID: async () => 'boot-1', softBootSince: async () => undefined },
    backend: { status: async () => ({ booted: deployment('/booted', { image: IMAGE, labels }) }) },
    ports: { runCheck: async () => ({ passed: true }), ...ports },
  });
  await takeUpBoot(step.context);
  const look = async (more: Partial<Observation['spec']> = {}): Promise<Observation> => {
    const journal = await step.context.journal.read();
    const current = await readCurrent(step.root);
    const target = { configVersion: { desired: CONFIG }, configImage: { desiredImage: IMAGE } };
    const { current: _none, ...rest } = observation({
      bootID: 'boot-1',
      bootedImage: IMAGE,
      journal,
      spec: { ...spec, ...target, imageSigningKeys: 'Disabled', ...more },
    });
    return { ...rest, current };
  };
  /** Takes the step that the daemon decides on, which has to be the verification. */
  const verify = async (more: Partial<Observation['spec']> = {}) => {
    const seen = await look(more);
    const decided = decide(seen);
    if (decided.kind !== 'verify') throw new Error(`decided ${decided.kind}`);
    return verifyBoot(step.context, decided.entry, seen);
  };
  return { ...step, look, verify };
}

async function addRequiredCheck(root: string): Promise<void> {
  const place = path.join(root, 'etc/greenboot/check/required.d/10-net.sh');
  await mkdir(path.dirname(place), { recursive: true });
  await writeFile(place, '');
  await chmod(place, 0o755);
}

test('its image becomes what it runs once it is healthy, and nothing is left to do', async () => {
  const { context, root, verify, look, events } = await freshNode();
  expect(await verify()).toEqual({ kind: 'again' });
  expect(await readCurrent(root)).toMatchObject({ mode: 'Layered', config: CONFIG, image: IMAGE });
  const record = await readLastUpdate(root);
  expect(record).toMatchObject({ result: 'Succeeded', firstBoot: true, actions: [] });
  expect(record).not.toHaveProperty('withoutGrant');
  expect(events).toEqual([expect.stringMatching(/came with .*, and is healthy$/)]);
  expect(await context.journal.read()).toBeUndefined();
  expect(decide(await look())).toEqual({ kind: 'idle' });
  await takeUpBoot(context);
  expect(await context.journal.read()).toBeUndefined();
});

test('it waits for a signature of its image, and goes on once there is one', async () => {
  const { context, root, phases, verify } = await freshNode();
  expect(await verify({ imageSigningKeys: 'sha256:unknown' })).toMatchObject({ kind: 'wait' });
  expect(phases.at(-1)).toMatchObject({
    kind: 'verifying',
    doing: expect.stringMatching(/^Waiting for a signature of the image that the node came with: ./),
  });
  expect(await readCurrent(root)).toBeUndefined();
  expect(await context.journal.read()).toMatchObject({ step: 'verifying', firstBoot: true });
  expect(await verify()).toEqual({ kind: 'again' });
  expect(await readLastUpdate(root)).toMatchObject({ result: 'Succeeded' });
});

test('it needs no signature of an image that it is to leave', async () => {
  const { root, verify, look } = await freshNode();
  const other = { configVersion: { desired: 'rendered-8' }, configImage: { desiredImage: imageOf('8') } };
  expect(await verify({ ...other, imageSigningKeys: 'sha256:unknown' })).toEqual({ kind: 'again' });
  expect(await readCurrent(root)).toMatchObject({ config: CONFIG });
  expect(decide(await look(other))).toMatchObject({ kind: 'prepare', target: { image: imageOf('8') } });
});

test('its image is not called unsigned where the daemon ends before it has looked', async () => {
  const { context, look } = await freshNode();
  const observed = await look({ imageSigningKeys: 'sha256:unknown' });
  expect(await unverifiedBecause(context, observed)).toEqual(expect.any(String));
  const ended = { ...context, signal: AbortSignal.abort(new Error('the daemon ends')) };
  await expect(unverifiedBecause(ended, observed)).rejects.toThrow('the daemon ends');
});

test('it is not rolled back where it stays unhealthy: there is nothing to roll back to', async () => {
  const { context, root, verify, look, phases } = await freshNode({
    runCheck: async () => ({ passed: false, why: 'no route' }),
  });
  await addRequiredCheck(root);
  expect(await verify()).toMatchObject({ kind: 'wait' });
  const entry = (await context.journal.read()) as Extract<JournalEntry, { step: 'verifying' }>;
  const over = { ...entry.verifying, sinceMs: Math.max(0, uptime() * 1000 - 3_600_000) };
  await context.journal.write({ ...entry, verifying: over });
  expect(await verify()).toEqual({ kind: 'again' });
  expect(await readLastUpdate(root)).toMatchObject({ result: 'Failed', firstBoot: true });
  expect(await readCurrent(root)).toMatchObject({ config: CONFIG });
  expect(await context.journal.read()).toBeUndefined();
  expect(phases.every(({ kind }) => kind === 'verifying')).toBe(true);
  const failed = { config: CONFIG, image: IMAGE, why: 'no route', reason: 'HealthCheckFailed' as const };
  expect(decide({ ...(await look()), failed })).toMatchObject({ kind: 'recheck' });
});
