import { describe, expect, it } from 'vitest';
import { nextKernelArguments, parseKargsFragment } from './kernel-arguments.ts';

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
