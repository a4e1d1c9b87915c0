import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { imageLabels, nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import { RegistryError } from '../../image/registry/registry-error.ts';
import {
  deployment,
  imageOf,
  neverHeld,
  observation,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import type { NodeDeployment, OsBackend, StageOptions } from '../os/backend.ts';
import type { OsTool } from '../os/os-tool.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { prepareLayered } from './prepare-layered.ts';

const target = { mode: 'Layered', config: 'rendered-2', image: imageOf('2') } as const;
const stock = imageOf('0');
const POLICY = `sha256:${'a'.repeat(64)}`;
const layered: Current = {
  version: 1,
  mode: 'Layered',
  config: 'rendered-1',
  image: imageOf('1'),
  baseImage: stock,
};
const transitions = encodeTransitionLabel({
  version: 1,
  policyDigest: POLICY,
  transitions: [
    { config: 'rendered-1', base: stock, actions: [{ type: 'DaemonReload' }], causes: [] },
    { config: 'rendered-0', base: stock, actions: [{ type: 'Reboot' }], causes: [] },
  ],
});
const labels = {
  [imageLabels.renderedConfig]: 'rendered-2',
  [imageLabels.baseImage]: stock,
  [imageLabels.stockImage]: imageOf('9'),
  [imageLabels.disruption]: transitions,
};

interface Case {
  readonly labels?: Record<string, string>;
  readonly current?: Current | undefined;
  readonly stuck?: JournalEntry;
  readonly booted?: Partial<NodeDeployment>;
  readonly softReboot?: boolean;
  /** What the kernel was started with. */
  readonly running?: readonly string[];
  /** Of the deployment that the image would have. */
  readonly next?: Partial<NodeDeployment>;
  /** Filled with the images that the backend deploys. */
  readonly deployed?: string[];
  /** The running root. */
  readonly disk?: (root: string) => Promise<void>;
  /** Of the host's image tool. */
  readonly tool?: Partial<OsTool>;
  /** What the backend fails with. */
  readonly failing?: Error;
  /** Whether the backend shows the labels before it stages. */
  readonly asks?: boolean;
}

/** Prepares the target on a node. */
async function prepare(given: Case) {
  const { labels: own = labels, current, stuck, booted = {}, softReboot, deployed = [], asks = true } = given;
  const { disk = async () => undefined } = given;
  const asked: StageOptions[] = [];
  const backend: Partial<OsBackend> = {
    fetch: async (image, options) => {
      asked.push(options);
      if (given.failing !== undefined) throw given.failing;
      if (asks) options.accept?.(own);
      deployed.push(image);
      return deployment('/staged', { image, labels: own, canSoftReboot: true, ...given.next });
    },
    status: async () => ({ booted: deployment('/booted', booted) }),
    tool: async () => ({ name: 'ostree', installsPackages: false, ...given.tool }),
  };
  const { context, root } = await stepUnderTest({ backend });
  await disk(root);
  const prepared = await prepareLayered(
    {
      client: context.client,
      ports: context.ports,
      admit: async (image) => {
        deployed.push(`admitted ${image}`);
      },
      spec: {
        ...observation().spec,
        policyDigest: POLICY,
        ...present({ softReboot }),
      },
      current,
      runningArguments: given.running,
      stuck,
      onProgress: () => undefined,
      held: neverHeld,
      signal: context.signal,
    },
    target,
  );
  return { prepared, asked };
}

describe('an image that is staged', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    [
      'was built from another config',
      { [imageLabels.renderedConfig]: 'rendered-3' },
      /rendered-3.*rendered-2/,
    ],
    ['does not name its config', {}, /has no label dev\.shale\.rendered-config; expected rendered-2/],
  ])('is refused when it %s, before anything is staged', async (_name, own, message) => {
    const refusal = { name: 'PrepareRefused', message: expect.stringMatching(message) };
    const deployed: string[] = [];
    await expect(prepare({ labels: own, deployed })).rejects.toMatchObject(refusal);
    expect(deployed).toEqual([`admitted ${target.image}`]);
    // What is on the disk is not believed, either.
    await expect(prepare({ labels: own, asks: false })).rejects.toMatchObject(refusal);
  });

  test('is refused when the registry does not have it, with what brings it back', async () => {
    const gone = new RegistryError('GET r.io/os manifests/sha256:2: manifest unknown (HTTP 404)', {
      code: 'MANIFEST_UNKNOWN',
      status: 404,
    });
    const refusal = {
      name: 'PrepareRefused',
      message: expect.stringMatching(
        /is not in the registry, .*manifest unknown.* build it again: kubectl annotate machineosconfig worker machineconfiguration\.openshift\.io\/rebuild=VALUE/,
      ),
    };
    await expect(prepare({ failing: gone })).rejects.toMatchObject(refusal);
    const about = new Error('stage', { cause: gone });
    await expect(prepare({ failing: about })).rejects.toMatchObject(refusal);
    const away = new RegistryError('HTTP 503', { status: 503 });
    await expect(prepare({ failing: away })).rejects.toBe(away);
  });

  test.each([
    ['standard', standard('rendered-1', [{ path: '/etc/app.conf', content: 'rendered' }])],
    ['layered', layered],
  ])('waits on a node in %s mode whose files somebody has changed', async (_name, current) => {
    const changed = (content: string, force?: string) => async (root: string) => {
      const { rendered } = standard('rendered-1', [{ path: '/etc/app.conf', content: 'rendered' }]);
      await mkdir(path.dirname(path.join(root, nodePaths.imageConfig)), { recursive: true });
      await writeFile(path.join(root, nodePaths.imageConfig), JSON.stringify(rendered));
      await writeFile(path.join(root, 'etc/app.conf'), content);
      if (force === undefined) return;
      await mkdir(path.dirname(path.join(root, force)), { recursive: true });
      await writeFile(path.join(root, force), '');
    };
    const deployed: string[] = [];
    await expect(prepare({ current, deployed, disk: changed('by hand') })).rejects.toMatchObject({
      name: 'PrepareRefused',
      message: expect.stringMatching(/^Changed on the node .*\/etc\/app\.conf: has .*create .*force/),
    });
    expect(deployed).toEqual([]);
    await prepare({ current, disk: changed('rendered') });
    await prepare({ current, disk: changed('by hand', nodePaths.forceFile) });
  });

  test('is taken when it was built from the target config', async () => {
    const { prepared } = await prepare({ labels: { [imageLabels.renderedConfig]: 'rendered-2' } });
    expect(prepared.plan).toMatchObject({ config: 'rendered-2', image: target.image });
  });

  test('is what runs next, with what its labels say of the images below it', async () => {
    const { prepared, asked } = await prepare({ current: layered });
    expect(prepared).toEqual({
      plan: {
        config: 'rendered-2',
        image: target.image,
        staged: true,
        actions: [{ type: 'DaemonReload' }],
        causes: [],
        source: 'the label of the image',
      },
      next: {
        version: 1,
        mode: 'Layered',
        config: 'rendered-2',
        image: target.image,
        baseImage: stock,
        stockImage: imageOf('9'),
      },
      policyDigest: POLICY,
      softRebootAllowed: false,
    });
    expect(asked.map(({ evenIfBooted }) => evenIfBooted)).toEqual([false]);
  });

  test('takes away what standard mode had added, and is a deployment of its own for a reboot', async () => {
    const packages = { installed: ['htop'], removed: [] };
    const current: Current = { ...standard('rendered-1'), kernelArguments: ['quiet'], packages };
    const { prepared, asked } = await prepare({ current });
    expect(prepared.plan).toMatchObject({
      actions: [{ type: 'Reboot' }],
      source:
        'the node switches from standard to layered mode, and its image has rendered-2 instead of rendered-1',
    });
    expect(asked.map(({ evenIfBooted }) => evenIfBooted)).toEqual([false, true]);
    expect(asked[0]).toMatchObject({
      extraKernelArguments: { remove: ['quiet'], add: [] },
      extraPackages: { remove: packages, add: { installed: [], removed: [] } },
    });
  });

  test('may be booted softly where the pool allows it', async () => {
    const current: Current = { ...layered, config: 'rendered-0' };
    const soft = await prepare({ current, softReboot: true });
    expect(soft.prepared).toMatchObject({ plan: { softReboot: true }, softRebootAllowed: true });
    const full = await prepare({ current });
    expect(full.prepared.plan.softReboot).toBeUndefined();
  });

  test('is booted fully where the kernel was started without one of its arguments', async () => {
    const current: Current = { ...layered, config: 'rendered-0' };
    const quiet = { kernelArguments: ['quiet'] };
    const { prepared } = await prepare({
      current,
      softReboot: true,
      running: ['rw'],
      booted: quiet,
      next: quiet,
    });
    expect(prepared.plan.softReboot).toBeUndefined();
    expect(prepared.plan.source).toContain('no soft reboot: the kernel was started without quiet');
  });
});

describe('an image asks for', () => {
  const reboot = [{ type: 'Reboot' }];
  const ofTarget = { [imageLabels.renderedConfig]: target.config };
  const stuck = { plan: { config: 'rendered-9' } } as JournalEntry;

  test.each<[string, Case, readonly object[], RegExp]>([
    [
      'nothing, where the node has booted it',
      { booted: { image: target.image } },
      [],
      /has booted this image/,
    ],
    [
      'a reboot on a fresh node',
      { booted: { image: stock } },
      reboot,
      /no config that a transition could start from/,
    ],
    [
      'a reboot after a live update that hangs',
      { current: layered, stuck },
      reboot,
      /rendered-9 was started/,
    ],
    [
      'a reboot from an unknown former base',
      { current: { ...layered, baseImage: imageOf('7') } },
      reboot,
      /./,
    ],
    [
      'a reboot from a former base that is not recorded',
      { current: { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') } },
      reboot,
      /./,
    ],
    [
      'a reboot from a config that its label does not have',
      { current: { ...layered, config: 'rendered-7' } },
      reboot,
      /./,
    ],
    ['a reboot where it has no label', { current: layered, labels: ofTarget }, reboot, /./],
    [
      'a reboot where its label can not be read',
      { current: layered, labels: { ...ofTarget, [imageLabels.disruption]: '{' } },
      reboot,
      /./,
    ],
    [
      'a reboot where its label follows other policies',
      {
        current: layered,
        labels: {
          ...ofTarget,
          [imageLabels.disruption]: encodeTransitionLabel({
            version: 1,
            policyDigest: `sha256:${'b'.repeat(64)}`,
            transitions: [{ config: 'rendered-1', base: stock, actions: [], causes: [] }],
          }),
        },
      },
      reboot,
      /./,
    ],
  ])('%s', async (_name, given, actions, source) => {
    const { prepared } = await prepare(given);
    expect(prepared.plan.actions).toEqual(actions);
    expect(prepared.plan.source).toMatch(source);
    expect(prepared.plan.source).not.toBe('the label of the image');
  });
});

describe('on a host that can’t apply an image live', () => {
  const tool = { name: 'bootc', appliesLive: false } as const;

  test('an image is rebooted into, also where the change itself needs no reboot', async () => {
    const booted = { image: imageOf('1') };
    const { prepared } = await prepare({ current: layered, booted, tool });
    expect(prepared.plan).toMatchObject({
      actions: [{ type: 'Reboot' }],
      source: expect.stringMatching(/^bootc can't apply an image to the running system on this host$/),
    });
    const elsewhere = await prepare({ current: layered, booted, tool: { name: 'bootc' } });
    expect(elsewhere.prepared.plan.actions).toEqual([{ type: 'DaemonReload' }]);
  });

  test('one that reboots anyway keeps its own reason', async () => {
    const { prepared } = await prepare({ current: { ...layered, config: 'rendered-0' }, tool });
    expect(prepared.plan).toMatchObject({ actions: [{ type: 'Reboot' }], source: 'the label of the image' });
  });

  test('the image that it has booted asks for nothing', async () => {
    const { prepared } = await prepare({ booted: { image: target.image }, tool });
    expect(prepared.plan.actions).toEqual([]);
  });
});
