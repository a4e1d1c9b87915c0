import { describe, expect, test } from 'vitest';
import { noPackages } from '../../../machineconfig/os-packages.ts';
import { first, hostUnderTest, packages, second, third } from '../../../test/fixtures/image-tool-host.ts';
import { PackagesRefused } from '../backend.ts';

describe('packages', () => {
  test('are refused where the tool installs none', async () => {
    const { stage, calls } = await hostUnderTest();
    const extraPackages = { remove: noPackages, add: packages('vim') };
    await expect(stage(first, { extraPackages })).rejects.toThrow(PackagesRefused);
    await stage(first, { extraPackages: { remove: noPackages, add: noPackages } });
    expect(calls).toEqual(['pull']);
  });

  test('come with the image, and what was prepared is locked until Shale stages it', async () => {
    const { stage, calls, host } = await hostUnderTest({ installsPackages: true });
    await stage(second);
    const extraPackages = { remove: packages('nano'), add: packages('vim') };
    const staged = await stage(first, { extraPackages });
    expect(calls).toEqual(['pull', 'drop 1', 'deploy with vim, former nano']);
    expect(host.staged).toEqual({ id: staged.id, kernelArguments: ['rw'] });
    expect((await stage(first, { extraPackages })).id).toBe(staged.id);
    expect(calls).toHaveLength(3);
  });

  test('on an image that is on the disk need nothing of its registry but its labels', async () => {
    const { stage, opened } = await hostUnderTest({ installsPackages: true, layerBytes: 2 ** 60 });
    const extraPackages = { remove: noPackages, add: packages('vim') };
    const staged = await stage(third, { extraPackages });
    expect([staged.image, staged.labels, opened]).toEqual([third, { of: third }, [third]]);
  });

  test('that are not those that were asked for are reported with the image', async () => {
    const { stage } = await hostUnderTest({
      installsPackages: true,
      installs: { installed: ['nano', 'vim'], removed: ['kernel'] },
    });
    const extraPackages = { remove: noPackages, add: packages('vim') };
    await expect(stage(first, { extraPackages })).rejects.toThrow(
      `rpm-ostree has staged ${first} with nano, vim without kernel; expected ${first} with vim`,
    );
  });

  test('come from the repository of an image, where one is named', async () => {
    const { stage, calls, opened } = await hostUnderTest({ installsPackages: true });
    const extraPackages = { remove: noPackages, add: packages('vim'), repository: second };
    await expect(stage(first, { extraPackages })).rejects.toThrow(`${second}: has nothing in`);
    expect(opened).toEqual([first, second]);
    expect(calls).toEqual([]);
  });

  test('that can not be installed leave nothing prepared', async () => {
    const { stage, host, calls } = await hostUnderTest({ installsPackages: true, failsAfterDeploying: true });
    const extraPackages = { remove: noPackages, add: packages('vim') };
    await expect(stage(first, { extraPackages })).rejects.toThrow('no such package');
    expect(host.staged).toBeUndefined();
    expect(calls.at(-1)).toBe('drop 1');
  });
});

test('packages whose installation is interrupted are left to the next try, which drops them', async () => {
  const endsWhileDeploying = new AbortController();
  const given = { installsPackages: true, failsAfterDeploying: true, endsWhileDeploying };
  const { stage, calls } = await hostUnderTest(given);
  const extraPackages = { remove: noPackages, add: packages('vim') };
  await expect(stage(first, { extraPackages, signal: endsWhileDeploying.signal })).rejects.toThrow();
  expect(calls).toEqual(['deploy with vim, former ']);
  await expect(stage(second, { extraPackages })).rejects.toThrow('no such package');
  expect(calls.slice(1)).toEqual(['drop 1', 'deploy with vim, former ', 'drop 1']);
});
