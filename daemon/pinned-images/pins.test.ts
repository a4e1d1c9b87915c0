import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { noLabels } from '../host/selinux-labels.ts';
import { OsCommandError, type RunOsCommand } from '../os/os-command.ts';
import { CRIO_DROP_IN, keepPins, type Pins, readPins } from './pins.ts';

const signal = deadline(30_000);
const [A, B] = ['a', 'b'].map((digit) => `r.io/app@sha256:${digit.repeat(64)}`) as [string, string];

let root: string;
let ran: string[];
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'pins-'));
  onTestFinished(() => rm(root, { recursive: true }));
  ran = [];
});

const pins = (containerRuntime: Pins['containerRuntime'], ...images: string[]): Pins => ({
  containerRuntime,
  images,
});

/** @param pinned what the runtime keeps already. @param refuse fails commands. */
function keep(
  before: Pins | undefined,
  wanted: Pins,
  {
    pinned = [] as readonly string[],
    refuse = (_command: readonly string[]): void => undefined,
    isLoaded = true,
  } = {},
): Promise<void> {
  const run: RunOsCommand = async (command) => {
    ran.push(command.join(' '));
    refuse(command);
    return '';
  };
  const services = {
    isLoaded: async () => isLoaded,
    reload: async (unit: string) => void ran.push(`reload ${unit}`),
  };
  const ports = { host: { root }, services, relabel: noLabels, runOnHost: run } as unknown as Parameters<
    typeof keepPins
  >[0];
  return keepPins(ports, before, wanted, (image) => pinned.includes(image), signal);
}
const labelled = (image: string, value: string) =>
  `ctr --namespace=k8s.io images label ${image} io.cri-containerd.pinned=${value}`;

describe('containerd', () => {
  test('is told of what it does not keep yet, and of what goes; what somebody else has pinned is theirs', async () => {
    await keep(undefined, pins('containerd', A, B), { pinned: [B] });
    expect(ran).toEqual([labelled(A, 'pinned')]);
    expect((await readPins(root))?.images).toEqual([A]);
    ran.length = 0;
    await keep(pins('containerd', A), pins('containerd', B), { pinned: [A] });
    expect(ran).toEqual([labelled(B, 'pinned'), labelled(A, '')]);
    expect((await readPins(root))?.images).toEqual([B]);
    ran.length = 0;
    await keep(pins('containerd', B), pins('containerd', B), { pinned: [B] });
    expect(ran).toEqual([]);
  });

  const failing = (error: Error) => () => {
    throw error;
  };
  const ofCommand = (stderr: string) => new OsCommandError(['ctr'], 'exit code 1', { exitCode: 1, stderr });

  test.each([
    ['the image is gone', ofCommand('ctr: image "a": not found')],
    ['the runtime is gone', new OsCommandError(['ctr'], 'not installed', { code: 'ENOENT', stderr: '' })],
  ])('has let go what goes where %s', async (_what, error) => {
    await keep(pins('containerd', A), pins('containerd'), { refuse: failing(error) });
    expect(ran).toEqual([labelled(A, '')]);
    expect(await readPins(root)).toBeUndefined();
  });

  test.each([
    ['it fails otherwise', ofCommand('ctr: connection refused')],
    ['something else fails', new Error('not found')],
  ])('is asked again to let go where %s', async (_what, error) => {
    await expect(keep(pins('containerd', A), pins('containerd'), { refuse: failing(error) })).rejects.toBe(
      error,
    );
    expect((await readPins(root))?.images).toEqual([A]);
  });
});

// A file of root's.
describe.skipIf(process.getuid?.() !== 0)('CRI-O', () => {
  const dropIn = () => readFile(path.join(root, CRIO_DROP_IN), 'utf8').catch(() => undefined);
  beforeEach(() => mkdir(path.join(root, path.dirname(CRIO_DROP_IN)), { recursive: true }));

  test('reads the images from a file, and is told to where it does not keep all of them', async () => {
    await keep(undefined, pins('cri-o', A, B));
    expect(ran).toEqual(['reload crio.service']);
    expect(await dropIn()).toContain(`pinned_images = [\n  "${A}",\n  "${B}",\n]`);
    ran.length = 0;
    await keep(pins('cri-o', A, B), pins('cri-o', A, B), { pinned: [A, B] });
    expect(ran).toEqual([]);
    await keep(pins('cri-o', A, B), pins('cri-o', A, B), { pinned: [A] });
    expect(ran).toEqual(['reload crio.service']);
  });

  test.each([
    [true, ['reload crio.service']],
    [false, []],
  ])('that runs (%s) is told that the file is gone', async (isLoaded, expected) => {
    await keep(undefined, pins('cri-o', A));
    ran.length = 0;
    await keep(pins('cri-o', A), pins('cri-o'), { isLoaded });
    expect(ran).toEqual(expected);
    expect([await dropIn(), await readPins(root)]).toEqual([undefined, undefined]);
  });

  test('keeps a file that is not Shale’s, and one that is, though nobody recorded it', async () => {
    await writeFile(path.join(root, CRIO_DROP_IN), 'of an admin');
    await expect(keep(undefined, pins('cri-o', A))).rejects.toThrow(`${CRIO_DROP_IN} exists`);
    expect([await dropIn(), await readPins(root)]).toEqual(['of an admin', undefined]);
    await rm(path.join(root, CRIO_DROP_IN));
    await keep(undefined, pins('cri-o', A));
    const own = await dropIn();
    await keep(undefined, pins('cri-o', A));
    expect(await dropIn()).toBe(own);
  });

  test('that takes the place of containerd has its own file, and containerd no label', async () => {
    await keep(undefined, pins('containerd', A, B), { pinned: [B] });
    ran.length = 0;
    await keep(pins('containerd', A), pins('cri-o', A), { pinned: [A] });
    expect(ran).toEqual([labelled(A, ''), 'reload crio.service']);
    expect(await readPins(root)).toMatchObject({ containerRuntime: 'cri-o', images: [A] });
  });
});
