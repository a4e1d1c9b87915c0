import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { LEASE_HOLDER, observation, standard, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { readCurrent } from '../records/current.ts';
import { startLiveApply, TargetMismatch } from './apply-live.ts';
import type { Update } from './update.ts';

const update: Update = {
  plan: {
    config: 'rendered-2',
    staged: true,
    actions: [{ type: 'Restart', service: 'app.service' }],
    causes: [],
    source: 'test',
  },
  next: standard('rendered-2', [{ path: '/etc/app.conf', content: 'new' }]),
};

describe('a live apply', () => {
  test('ends once the services have restarted and the files are as the config has them', async () => {
    const { context, root } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: { restart: async () => undefined },
    });

    expect(await startLiveApply(context, update, observation())).toEqual({ kind: 'again' });

    expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
    expect(await readCurrent(root)).toMatchObject({ config: 'rendered-2' });
    expect(await context.journal.read()).toBeUndefined();
  });

  test('needs a reboot where a service has changed what was applied', async () => {
    const { context, root, events } = await stepUnderTest({
      leaseHolder: LEASE_HOLDER,
      services: {
        restart: async () => writeFile(path.join(root, 'etc/app.conf'), 'the service has its own'),
      },
    });

    expect(await startLiveApply(context, update, observation())).toEqual({ kind: 'again' });

    expect(await readCurrent(root)).toBeUndefined();
    expect(await context.journal.read()).toMatchObject({
      step: 'applying',
      plan: { actions: [{ type: 'Reboot' }], source: expect.stringContaining('/etc/app.conf') },
    });
    expect(events).toEqual([expect.stringContaining('/etc/app.conf')]);
  });

  test('names at most five of the paths that differ', () => {
    const paths = ['/a', '/b', '/c', '/d', '/e', '/f', '/g'];
    expect(new TargetMismatch(paths.slice(0, 1)).message).toMatch(/: \/a$/);
    expect(new TargetMismatch(paths.slice(0, 5)).message).toMatch(/\/e$/);
    expect(new TargetMismatch(paths).message).toMatch(/\/e and 2 more$/);
  });
});
