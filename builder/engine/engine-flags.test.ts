import { Command } from 'commander';
import { expect, test } from 'vitest';
import { type EngineFlags, engineParts, enginesByAddress, withEngineFlags } from './engine-flags.ts';

function flagsOf(...args: string[]): EngineFlags {
  return withEngineFlags(new Command()).parse(args, { from: 'user' }).opts<EngineFlags>();
}

test('without an address no engine is available', () => {
  expect(enginesByAddress(flagsOf()).available).toBe(false);
  expect(enginesByAddress(flagsOf('--engine-tls-dir', '/tls')).available).toBe(false);
});

test('with an address there is one, which is not asked before it is used', () => {
  expect(enginesByAddress(flagsOf('--engine', 'unix:///no/such.sock')).available).toBe(true);
});

test('an image may take an hour, or the minutes of the flag', () => {
  const limitOf = (flags: EngineFlags) => engineParts(flags, enginesByAddress(flags), 1).limitMs;
  expect(limitOf(flagsOf())).toBe(3_600_000);
  expect(limitOf(flagsOf('--engine-minutes', '5'))).toBe(300_000);
});

test('the directory of the flag is where images are copied to', () => {
  const flags = flagsOf('--engine-work-dir', '/var/work');
  expect(engineParts(flags, enginesByAddress(flags), 2)).toMatchObject({
    workDir: '/var/work',
    built: new Set(),
  });
});
