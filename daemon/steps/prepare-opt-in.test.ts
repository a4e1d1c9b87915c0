import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { imageLabels, nodePaths } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { noPackages } from '../../machineconfig/os-packages.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { deployment, imageOf, neverHeld, standard } from '../../test/fixtures/step-context.ts';
import type { OsBackend } from '../os/backend.ts';
import { requirementsOfOptIn } from './prepare-layered.ts';

const STOCK = imageOf('0');
const current = {
  ...standard('rendered-1', [{ path: '/etc/app.conf', content: 'rendered' }]),
  baseImage: STOCK,
};
const labels = { [imageLabels.renderedConfig]: 'rendered-1', [imageLabels.baseImage]: STOCK };
const change = {
  image: imageOf('1'),
  extraKernelArguments: { remove: [], add: [] },
  extraPackages: { remove: noPackages, add: noPackages },
};

type Files = Readonly<Record<string, string | undefined>>;

async function put(root: string, files: Files): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    if (text === undefined) continue;
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), text);
  }
}

/** A node that runs the config, and its image, which the backend deploys. Files override those that make both equal. */
async function nodeAndImage(
  disk: Files = {},
  image: Files = {},
  tool: 'ostree' | 'bootc' = 'ostree',
  status?: OsBackend['status'],
) {
  const top = await mkdtemp(path.join(tmpdir(), 'shale-opt-in-'));
  onTestFinished(() => rm(top, { recursive: true }));
  const [root, stagedRoot] = [path.join(top, 'running'), path.join(top, 'staged')];
  const stock = { 'usr/lib/os-release': 'stock', 'usr/etc/hosts': 'localhost' };
  await put(root, { ...stock, 'etc/hosts': 'localhost', 'etc/app.conf': 'rendered', ...disk });
  const ofLayer = { [nodePaths.imageConfig]: JSON.stringify(current.rendered) };
  const etc = { 'etc/hosts': 'localhost', 'etc/app.conf': 'rendered' };
  await put(stagedRoot, { ...stock, 'usr/etc/app.conf': 'rendered', ...etc, ...ofLayer, ...image });
  const calls: string[] = [];
  const backend = {
    tool: async () => ({ name: tool, installsPackages: false }),
    stage: async (name: DigestedPullspec) => {
      calls.push('stage');
      return deployment(stagedRoot, { image: name });
    },
    unstage: async () => void calls.push('unstage'),
    status: status ?? (async () => ({ booted: deployment(root, { image: STOCK }) })),
  } as unknown as OsBackend;
  const decide = (own: Readonly<Record<string, string>> = labels, held = neverHeld) =>
    requirementsOfOptIn({ ports: { backend, host: { root } }, held, signal: deadline(60_000) }, current, {
      change,
      labels: own,
    });
  return { decide, calls, root, stagedRoot };
}

test('a node that has the content of the image takes no action, and the image does not stay the next boot', async () => {
  const { decide, calls } = await nodeAndImage();
  expect(await decide()).toMatchObject({
    actions: [],
    source: 'the node has the content of the image already',
  });
  expect(calls).toEqual(['stage', 'unstage']);
});

test('an image does not become the next boot, not even for a moment, once somebody else holds the node', async () => {
  const { decide, calls } = await nodeAndImage();
  await expect(decide(labels, AbortSignal.abort(new Error('held')))).rejects.toThrow('held');
  expect(calls).toEqual([]);
});

test('what the layer brings below a link of the base lies where the link leads', async () => {
  const { decide, root, stagedRoot } = await nodeAndImage({}, { [nodePaths.imageConfig]: undefined });
  for (const top of [root, stagedRoot]) {
    await put(top, { 'usr/lib/share/os': 'stock' });
    await symlink('lib/share', path.join(top, 'usr/share'));
  }
  await put(stagedRoot, { [nodePaths.imageConfig]: JSON.stringify(current.rendered) });
  expect(await decide()).toMatchObject({ actions: [] });
});

describe('a reboot is asked for, and nothing is staged, where', () => {
  test.each<[string, Readonly<Record<string, string>>, RegExp]>([
    [
      'the image is of another config',
      { ...labels, [imageLabels.renderedConfig]: 'rendered-2' },
      /rendered-2/,
    ],
    ['the image does not name its config', { [imageLabels.baseImage]: STOCK }, /instead of rendered-1/],
    ['the image is based on another', { ...labels, [imageLabels.baseImage]: imageOf('9') }, /based on/],
    ['the image does not name its base', { [imageLabels.renderedConfig]: 'rendered-1' }, /base image/],
    ['a container engine made its base', { ...labels, [imageLabels.stockImage]: STOCK }, /container engine/],
  ])('%s', async (_name, own, why) => {
    const { decide, calls } = await nodeAndImage();
    const { actions, source } = await decide(own);
    expect(actions).toEqual([{ type: 'Reboot' }]);
    expect(source).toMatch(why);
    expect(calls).toEqual([]);
  });

  test('the backend writes what is staged at shutdown only', async () => {
    const { decide, calls } = await nodeAndImage({}, {}, 'bootc');
    expect((await decide()).actions).toEqual([{ type: 'Reboot' }]);
    expect(calls).toEqual([]);
  });
});

describe('a reboot is asked for, and what was staged for the comparison goes, where', () => {
  test.each<[string, Files, Files, RegExp]>([
    ['a file of the config was edited', { 'etc/app.conf': 'by hand' }, {}, /app\.conf is not as rendered-1/],
    ['the image brings what no config has', {}, { 'usr/bin/tool': 'new' }, /\/usr\/bin is not the same/],
    ['the image has less', { 'usr/bin/tool': 'old' }, {}, /\/usr\/bin\/tool is not the same/],
    ['the image has another version', {}, { 'usr/lib/os-release': 'other' }, /os-release is not the same/],
    [
      'the image has another kernel',
      {},
      { 'usr/lib/modules/6.12.9/vmlinuz': 'kernel' },
      /can't be applied live: .*a kernel and its modules take effect at boot only/,
    ],
    [
      'the image has something beside /usr and /etc',
      {},
      { 'nix/store': 'x' },
      /can't be applied live: \/nix differs/,
    ],
    ['the image carries no config', {}, { [nodePaths.imageConfig]: undefined }, /no rendered config/],
  ])('%s', async (_name, disk, image, why) => {
    const { decide, calls } = await nodeAndImage(disk, image);
    const { actions, source } = await decide();
    expect(actions).toEqual([{ type: 'Reboot' }]);
    expect(source).toMatch(why);
    expect(calls).toEqual(['stage', 'unstage']);
  });

  test('what is booted can not be read, with its error', async () => {
    const status = async () => ({ booted: deployment('/dev/null', { image: STOCK }) });
    const { decide, calls } = await nodeAndImage({}, {}, 'ostree', status);
    await expect(decide()).rejects.toThrow('ENOTDIR');
    expect(calls).toEqual(['stage', 'unstage']);
  });

  test('the comparison fails, with its error', async () => {
    const { decide, calls } = await nodeAndImage({}, { [nodePaths.imageConfig]: 'no record' });
    await expect(decide()).rejects.toThrow(SyntaxError);
    expect(calls).toEqual(['stage', 'unstage']);
  });
});
