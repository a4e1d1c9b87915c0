import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { LayerEntry } from '../../image/layer/entry.ts';

/** Debian's busybox-static: one program without libraries, which is a shell and its usual commands. */
const BUSYBOX = ['/usr/bin/busybox', '/bin/busybox'];
const COMMANDS = [
  'cat',
  'chmod',
  'cp',
  'echo',
  'env',
  'grep',
  'ls',
  'mkdir',
  'mv',
  'rm',
  'sh',
  'sleep',
  'touch',
  'wc',
];

/** @returns why an image can't be given a shell on this machine; undefined when it can. */
export function shellObstacle(): string | undefined {
  return BUSYBOX.some((file) => existsSync(file))
    ? undefined
    : 'no shell for images (package busybox-static)';
}

/**
 * @returns entries that give an image a shell, so that commands can run in it.
 * @throws Error where there is none.
 */
export async function shellEntries(): Promise<readonly LayerEntry[]> {
  const file = BUSYBOX.find((name) => existsSync(name));
  if (file === undefined) throw new Error(shellObstacle());
  const owner = { uid: 0, gid: 0 };
  return [
    { type: 'file', path: '/usr/bin/busybox', mode: 0o755, ...owner, content: await readFile(file) },
    ...COMMANDS.map(
      (name): LayerEntry => ({ type: 'symlink', path: `/usr/bin/${name}`, target: 'busybox', ...owner }),
    ),
  ];
}
