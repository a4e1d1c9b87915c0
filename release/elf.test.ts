import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { elfNeeds } from './elf.ts';

test("names a program's loader and libraries", async () => {
  const cp = await readFile('/bin/cp');
  const { interpreter, libraries } = elfNeeds(cp, 'cp');
  expect(interpreter).toMatch(/^\/lib.*\/ld-/);
  expect(libraries.filter((name) => name.startsWith('libc.'))).toHaveLength(1);
});

test('refuses what is no whole ELF file, by its name', async () => {
  const cp = await readFile('/bin/cp');
  expect(() => elfNeeds(Buffer.from('#!/bin/sh\n'), '/bin/script')).toThrow('/bin/script: is no 64-bit');
  expect(() => elfNeeds(cp.subarray(0, 80), 'cp')).toThrow('cp: is a truncated ELF file');
  const far = Buffer.from(cp.subarray(0, 4096));
  far.writeBigUInt64LE(0xffff_ffffn, 0x20);
  expect(() => elfNeeds(far, 'cp')).toThrow('cp: is a truncated ELF file');
});
