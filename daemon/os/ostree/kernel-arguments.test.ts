import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import {
  argumentsOfCommandLine,
  argumentsToStage,
  imageKernelArguments,
  kargsArchitecture,
  nextKernelArguments,
  noteExtraArguments,
  parseKargsFragment,
} from './kernel-arguments.ts';

const noExtra = { remove: [], add: [] };

describe('kargs.d fragments', () => {
  it.each([
    ['kargs = ["a", "b=1 c"]', ['a', 'b=1', 'c']],
    ['kargs = ["a"]\nmatch-architectures = ["x86_64"]', ['a']],
    ['kargs = ["a"]\nmatch-architectures = ["aarch64"]', []],
  ])('%j gives %j', (text, expected) => {
    expect(parseKargsFragment('x.toml', text, 'x86_64')).toEqual(expected);
  });

  it.each(['kargs = "a"', 'kargs = ["a"]\nother = 1', 'not toml', ''])('%j is refused', (text) => {
    expect(() => parseKargsFragment('x.toml', text, 'x86_64')).toThrow('x.toml: expected kargs');
  });
});

describe('nextKernelArguments', () => {
  it.each([
    {
      name: 'the host’s stay, the image’s are exchanged',
      booted: ['root=x', 'rw', 'old'],
      bootedImage: ['old'],
      stagedImage: ['new'],
      extra: noExtra,
      expected: ['root=x', 'rw', 'new'],
    },
    {
      name: 'an argument that the host has too stays once',
      booted: ['quiet', 'root=x', 'quiet'],
      bootedImage: ['quiet'],
      stagedImage: [],
      extra: noExtra,
      expected: ['quiet', 'root=x'],
    },
    {
      name: 'extra ones follow, and the former extra ones go',
      booted: ['root=x', 'img', 'extra=1'],
      bootedImage: ['img'],
      stagedImage: ['img'],
      extra: { remove: ['extra=1', 'never-there'], add: ['extra=2'] },
      expected: ['root=x', 'img', 'extra=2'],
    },
  ])('$name', ({ expected, ...change }) => {
    expect(nextKernelArguments(change)).toEqual(expected);
  });
});

async function emptyDirectory(): Promise<string> {
  const place = await mkdtemp(path.join(tmpdir(), 'kargs-'));
  onTestFinished(() => rm(place, { recursive: true }));
  return place;
}

/** @returns the root of a deployment whose image has these fragments. */
async function rootWith(fragments: Readonly<Record<string, string>>): Promise<string> {
  const root = await emptyDirectory();
  const directory = path.join(root, 'usr/lib/bootc/kargs.d');
  await mkdir(directory, { recursive: true });
  for (const [name, text] of Object.entries(fragments)) await writeFile(path.join(directory, name), text);
  return root;
}

describe('the kernel arguments of an image', () => {
  it('are those of its fragments, in the order of their names', async () => {
    const root = await rootWith({
      '20-b.toml': 'kargs = ["b"]',
      '10-a.toml': 'kargs = ["a"]',
      '30-c.toml': 'kargs = ["c"]\nmatch-architectures = ["aarch64"]',
      README: 'no fragment',
    });
    expect(await imageKernelArguments(root, 'x86_64')).toEqual(['a', 'b']);
  });

  it('are none without fragments', async () => {
    expect(await imageKernelArguments(await emptyDirectory(), 'x86_64')).toEqual([]);
  });

  it.each([
    ['x64', 'x86_64'],
    ['arm64', 'aarch64'],
    ['ppc64', 'powerpc64'],
    ['loong64', 'loong64'],
  ])('of %s are for %s', (arch, expected) => {
    expect(kargsArchitecture(arch)).toBe(expected);
  });
});

it.each([
  [
    'an ostree host',
    'BOOT_IMAGE=/x rw ostree=/ostree/boot.1/os/1/0 "a=b c"\n',
    ['BOOT_IMAGE=/x', 'rw', 'ostree=/ostree/boot.1/os/1/0', '"a=b c"'],
  ],
  ['another machine, on which the node is a container', 'BOOT_IMAGE=/x rw quiet\n', undefined],
  ['nobody', undefined, undefined],
])('the command line of %s is %j', (_name, text, expected) => {
  expect(argumentsOfCommandLine(text)).toEqual(expected);
});

describe('what Shale adds to a deployment', () => {
  const staged = async (
    state: string,
    booted: { image?: ReturnType<typeof imageOf>; kernelArguments: string[] },
  ) =>
    argumentsToStage(state, {
      booted: { ...booted, directory: await rootWith({ '10.toml': 'kargs = ["img"]' }) },
      stagedImage: ['new'],
      extra: { remove: ['recorded'], add: ['add'] },
    });

  it('is refused with arguments of an image that would break the boot entry', async () => {
    const state = await emptyDirectory();
    const stage = async (bootedImage: string) =>
      argumentsToStage(state, {
        booted: { kernelArguments: ['rw'], directory: await rootWith({ '10.toml': bootedImage }) },
        stagedImage: ['x="un closed'],
        extra: { remove: [], add: [] },
      });
    await expect(stage('kargs = []')).rejects.toThrow(/kargs\.d: .* has a double quote that is not closed/);
    // A host that runs with them may take another image.
    expect(await stage("kargs = ['x=\"un closed']")).toEqual(['rw', 'x="un closed']);
  });

  it('goes as it was noted, whatever is recorded otherwise', async () => {
    const state = await emptyDirectory();
    const kernelArguments = ['root=x', 'img', 'noted', 'recorded'];
    await noteExtraArguments(state, { image: imageOf('1'), kernelArguments }, ['noted']);
    expect(await staged(state, { image: imageOf('1'), kernelArguments })).toEqual([
      'root=x',
      'recorded',
      'new',
      'add',
    ]);
  });

  it.each([
    ['of another image', { image: imageOf('2'), kernelArguments: ['root=x', 'img', 'noted', 'recorded'] }],
    ['with other arguments', { image: imageOf('1'), kernelArguments: ['root=x', 'noted', 'recorded'] }],
    ['of no image', { kernelArguments: ['root=x', 'img', 'noted', 'recorded'] }],
  ])('goes as it is recorded for a deployment %s', async (_name, booted) => {
    const state = await emptyDirectory();
    const kernelArguments = ['root=x', 'img', 'noted', 'recorded'];
    await noteExtraArguments(state, { image: imageOf('1'), kernelArguments }, ['noted']);
    expect(await staged(state, booted)).toEqual(['root=x', 'noted', 'new', 'add']);
  });

  it('is noted anew for the same deployment, and forgotten of the oldest of many', async () => {
    const state = await emptyDirectory();
    const note = (name: string, extra: string) =>
      noteExtraArguments(state, { image: imageOf('1'), kernelArguments: [name, extra] }, [extra]);
    await noteExtraArguments(state, { image: imageOf('1'), kernelArguments: ['first', 'a', 'b'] }, ['a']);
    await noteExtraArguments(state, { image: imageOf('1'), kernelArguments: ['first', 'a', 'b'] }, ['b']);
    const first = { image: imageOf('1'), kernelArguments: ['first', 'a', 'b'] };
    expect(await staged(state, first)).toEqual(['first', 'a', 'new', 'add']);
    for (let index = 0; index < 15; index += 1) await note(`other-${index}`, 'x');
    expect(await staged(state, first)).toEqual(['first', 'a', 'new', 'add']);
    await note('the sixteenth', 'x');
    expect(await staged(state, first)).toEqual(['first', 'a', 'b', 'new', 'add']);
  });
});
