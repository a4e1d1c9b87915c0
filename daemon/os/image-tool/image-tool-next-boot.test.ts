import { describe, expect, test } from 'vitest';
import { present } from '../../../api/present.ts';
import {
  first,
  type Given,
  hostUnderTest,
  none,
  second,
  third,
} from '../../../test/fixtures/image-tool-host.ts';
import { commitOf, type HostDeployment } from '../../../test/fixtures/ostree-host.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { PrepareRefused } from '../../records/current.ts';
import { NoDeploymentError, SoftRebootRefused } from '../backend.ts';

const signal = deadline(60_000);

describe('what was prepared and is locked', () => {
  test('is neither the next boot nor finalized, but dropped with the rest', async () => {
    const { backend, host, calls } = await hostUnderTest({ canSoftReboot: true });
    const held: HostDeployment = { id: `${commitOf('held')}.0`, kernelArguments: [] };
    await host.put(held);
    await host.stage({ ...held, locked: true });
    expect((await backend.status(signal)).staged).toBeUndefined();
    await expect(backend.finalizeStaged(new Map(), signal)).rejects.toThrow(NoDeploymentError);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
    await backend.unstage(signal);
    expect(calls).toEqual(['drop 1']);
    await backend.unstage(signal);
    expect(calls).toEqual(['drop 1']);
  });

  test('is never the next boot in place of what was staged before', async () => {
    const { backend, stage, reboot, host } = await hostUnderTest();
    await stage(first);
    await backend.fetch(second, { extraKernelArguments: none, signal });
    expect((await backend.status(signal)).staged).toBeUndefined();
    await reboot();
    expect(host.booted.id.slice(0, 64)).toBe(commitOf(third));
  });

  // What is staged is another image that was applied live, or one that was fetched before.
  describe.each(['2022.7', '2026.4'])('with ostree %s', (version) => {
    test.each(['applied live', 'fetched'])(
      'is at no moment the next boot in place of one that was %s',
      async (before) => {
        const { backend, stage, host } = await hostUnderTest({ version });
        if (before === 'fetched') await backend.fetch(first, { extraKernelArguments: none, signal });
        else await stage(first);
        await backend.fetch(second, { extraKernelArguments: { remove: [], add: ['quiet'] }, signal });
        expect(host.staged?.id.slice(0, 64)).toBe(commitOf(`${second} `));
        expect(host.nextBoots).not.toContain(commitOf(`${second} `));
        expect((await backend.status(signal)).staged).toBeUndefined();
      },
    );

    test.each<[string, Given]>([
      ['is not to be found', {}],
      ['can not be pulled', { failsToPull: second }],
    ])('is nothing where it %s: what was staged before is the next boot again', async (_why, given) => {
      const { backend, stage, isReachable, host } = await hostUnderTest({ version, ...given });
      await stage(first, { extraKernelArguments: { remove: [], add: ['quiet'] } });
      isReachable.now = given.failsToPull !== undefined;
      await expect(backend.fetch(second, { extraKernelArguments: none, signal })).rejects.toThrow('is gone');
      const { staged } = await backend.status(signal);
      expect(staged).toMatchObject({ image: first, kernelArguments: ['rw', 'quiet'] });
      expect(host.nextBoot()).toBe(commitOf(`${first} `));
    });
  });

  test.each<[string, Given]>([
    ['ostree', { refuses: second }],
    ['the tool', { failsAfterPulling: second }],
  ])('is locked as soon as the tool has staged it, also where %s fails then', async (_what, given) => {
    const { backend, stage, host, reboot } = await hostUnderTest({ version: '2026.4', ...given });
    await stage(first);
    const fetching = backend.fetch(second, { extraKernelArguments: none, signal });
    await expect(fetching).rejects.toThrow('no room');
    expect((await backend.status(signal)).staged).toBeUndefined();
    await reboot();
    expect(host.booted.id.slice(0, 64)).toBe(commitOf(third));
  });

  test('is what is staged already, which stays the next boot', async () => {
    const { backend, stage, calls } = await hostUnderTest();
    await stage(first);
    await backend.fetch(first, { extraKernelArguments: none, signal });
    expect((await backend.status(signal)).staged?.image).toBe(first);
    expect(calls).toEqual(['pull']);
  });
});

describe('a root that would not boot', () => {
  test.each(['fetch', 'stage'] as const)('is not left on the disk by %s, nor pulled again', async (how) => {
    const { backend, host, calls } = await hostUnderTest({ composefs: 'signed' });
    const bring = () => backend[how](second, { extraKernelArguments: none, signal });
    await expect(bring()).rejects.toThrow(PrepareRefused);
    expect(host.staged).toBeUndefined();
    expect(host.nextBoot()).toBe(commitOf(third));
    await expect(bring()).rejects.toThrow('/usr/lib/ostree/prepare-root.conf demands');
    expect(calls.filter((call) => call === 'pull')).toHaveLength(1);
  });

  test('is a composefs that the host’s ostree does not make', async () => {
    const { stage, host } = await hostUnderTest({ composefs: 'yes' });
    await expect(stage(second)).rejects.toThrow('demands a composefs (composefs.enabled = yes), which');
    expect(host.staged).toBeUndefined();
    const coming = await hostUnderTest({ composefs: 'yes', version: '2026.4' });
    expect((await coming.stage(second)).image).toBe(second);
  });

  test('leaves what was staged before the next boot', async () => {
    const { backend, host, stage } = await hostUnderTest({ version: '2026.4' });
    await stage(first);
    host.composefs = 'signed';
    await expect(backend.fetch(second, { extraKernelArguments: none, signal })).rejects.toThrow(
      PrepareRefused,
    );
    expect(host.nextBoot()).toBe(commitOf(`${first} `));
  });

  test('is also that of the booted image, with a kernel argument that demands a signature', async () => {
    const { stage, host } = await hostUnderTest();
    const add = ['ostree.prepare-root.composefs=signed'];
    await expect(stage(third, { extraKernelArguments: { remove: [], add } })).rejects.toThrow(PrepareRefused);
    expect(host.staged).toBeUndefined();
  });
});

describe('a soft reboot', () => {
  test('is prepared for what the tool says it can boot', async () => {
    const { backend, stage, host } = await hostUnderTest({
      canSoftReboot: true,
      composefs: 'yes',
      version: '2026.4',
    });
    expect((await stage(first)).canSoftReboot).toBe(true);
    expect((await backend.status(signal)).booted).not.toHaveProperty('canSoftReboot');
    await backend.finalizeStaged(new Map(), signal);
    await backend.prepareSoftReboot(signal);
    expect(host.commands.slice(-2)).toEqual([
      'admin prepare-soft-reboot --reset',
      'admin prepare-soft-reboot 0',
    ]);
  });

  test.each([undefined, 'no', 'maybe'])(
    'is not promised for a root that ostree refuses: composefs %s',
    async (composefs) => {
      const { backend, stage, host } = await hostUnderTest({
        canSoftReboot: true,
        ...present({ composefs }),
      });
      const staged = await stage(first);
      expect(staged).not.toHaveProperty('canSoftReboot');
      await backend.finalizeStaged(new Map(), signal);
      await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
      expect(host.commands.join('\n')).not.toContain('prepare-soft-reboot');
    },
  );

  test('is not for a root that has to be signed: what the tool has staged of it is dropped', async () => {
    const { backend, stage } = await hostUnderTest({ canSoftReboot: true, composefs: 'signed' });
    await expect(stage(first)).rejects.toThrow('demands a signed composefs');
    expect((await backend.status(signal)).staged).toBeUndefined();
  });

  test('is refused for anything else', async () => {
    const { backend, stage } = await hostUnderTest();
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(/that the booted deployment supports/);
    const { id } = await stage(first);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(`that ${id} supports`);
    await expect(backend.prepareSoftReboot(signal)).rejects.toThrow(SoftRebootRefused);
  });
});

describe('a rollback', () => {
  test('drops what is staged, and has the tool boot the previous deployment', async () => {
    const { backend, stage, calls, reboot, host } = await hostUnderTest();
    await stage(first);
    await reboot();
    await stage(second);
    calls.length = 0;
    await backend.rollback(signal);
    expect(calls).toEqual(['drop 1', 'rollback']);
    expect((await backend.status(signal)).staged?.image).toBe(third);
    // Asked again the tool would swap them back.
    await backend.rollback(signal);
    expect(calls).toEqual(['drop 1', 'rollback']);
    expect(host.written).toHaveLength(2);
  });

  test('is refused without a previous deployment', async () => {
    const { backend, stage } = await hostUnderTest();
    await expect(backend.rollback(signal)).rejects.toThrow(NoDeploymentError);
    await stage(first);
    await expect(backend.rollback(signal)).rejects.toThrow('there is no previous deployment to roll back to');
  });

  test('by the host itself is the script of the tool', async () => {
    const { backend } = await hostUnderTest();
    expect(await backend.rollbackScript([], signal)).toBe('bootc rollback');
    await expect(backend.rollbackScript([], AbortSignal.abort())).rejects.toThrow(/abort/);
  });
});
