import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { argumentsOfDeployment, bootedArguments, COMPOSEFS_BOOT_SCRIPT } from './boot-arguments.ts';

test('the arguments of the booted entry are those of the kernel, without what names deployment and initramfs', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'arguments-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'proc'));
  const text = `initrd=\\EFI\\Linux\\bootc_composefs-a\\initrd root=UUID=1 rw composefs=?${'a'.repeat(128)} dyndbg="file a.c +p"\n`;
  await writeFile(path.join(root, 'proc/cmdline'), text);
  expect(await bootedArguments(root)).toEqual(['root=UUID=1', 'rw', 'dyndbg="file a.c +p"']);
});

test.each<[string, string[], string[], string[], string[]]>([
  ['the same', ['root=1', 'quiet'], ['quiet'], ['quiet'], ['root=1', 'quiet']],
  ['others', ['root=1', 'quiet', 'debug'], ['quiet'], ['nosmt'], ['root=1', 'debug', 'nosmt']],
  ['none any more', ['root=1', 'quiet'], ['quiet'], [], ['root=1']],
  [
    'one more, and all where they were',
    ['quiet', 'root=1'],
    ['quiet'],
    ['nosmt', 'quiet'],
    ['quiet', 'root=1', 'nosmt'],
  ],
])('an image with %s of its own', (_what, booted, bootedImage, image, expected) => {
  expect(argumentsOfDeployment({ booted, bootedImage, image })).toEqual(expected);
});

test.each([
  ['{"status":{"rollbackQueued":false}}', 'root=1 composefs=?ab12 quiet', 'ab12 ab12'],
  ['{"status":{"rollbackQueued":true}}', 'composefs=ab12', 'ab12 another'],
  ['{ "rollbackQueued": true }', 'root=1 composefs=?ab12', 'ab12 another'],
  ['error: no EFI system partition', 'root=1 composefs=?ab12', 'ab12 ab12'],
  ['{"status":{"rollbackQueued":false}}', 'root=1 ostree=/ostree/boot.1', ''],
])('the host itself tells what is booted and what is next: %s, %s', async (status, cmdline, expected) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'boot-script-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = path.join(directory, 'cmdline');
  await writeFile(file, `${cmdline}\n`);
  const script = COMPOSEFS_BOOT_SCRIPT.replace('/proc/cmdline', file);
  const input = `bootc() { echo '${status}'; }\n${script}\necho $(booted) $(next)\n`;
  expect(execFileSync('sh', ['-u'], { input, encoding: 'utf8' }).trim()).toBe(expected);
});
