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
  ['{"status":{"rollbackQueued":false}}', 'composefs:ab12', 'ab12 ab12'],
  ['{"status":{"rollbackQueued":true}}', 'composefs:ab12', 'ab12 another'],
  ['{ "rollbackQueued": true }', 'transient:composefs=ab12', 'ab12 another'],
  ['error: no EFI system partition', 'composefs:ab12', 'ab12 ab12'],
  ['{"status":{"rollbackQueued":false}}', '/dev/vda3', ''],
])('the host itself tells what is booted and what is next: %s, %s', async (status, source, expected) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'boot-script-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = path.join(directory, 'mountinfo');
  const mounts = [
    `72 1 0:33 / / ro,relatime shared:1 - overlay ${source} ro,lowerdir=/proc/self/fd/5::/proc/self/fd/6,verity=require`,
    `73 72 254:3 /state/deploy/cd34/etc /etc rw,nodev shared:2 - ext4 /dev/vda3 rw`,
    `74 72 0:33 / /run/shale/image ro,relatime shared:9 - overlay composefs:cd34 ro,lowerdir=/proc/self/fd/5`,
  ];
  await writeFile(file, `${mounts.join('\n')}\n`);
  const script = COMPOSEFS_BOOT_SCRIPT.replace('/proc/self/mountinfo', file);
  const input = `bootc() { echo '${status}'; }\n${script}\necho $(booted) $(next)\n`;
  expect(execFileSync('sh', ['-u'], { input, encoding: 'utf8' }).trim()).toBe(expected);
});
