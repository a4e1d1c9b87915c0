import { existsSync, readFileSync } from 'node:fs';
import type { LayerEntry } from '../../../image/layer/entry.ts';

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
  return staticBusybox() === undefined ? 'no shell for images (package busybox-static)' : undefined;
}

/**
 * @returns entries that give an image a shell, so that commands can run in it.
 * @throws Error where there is none.
 */
export function shellEntries(): readonly LayerEntry[] {
  const content = staticBusybox();
  if (content === undefined) throw new Error(shellObstacle());
  const owner = { uid: 0, gid: 0 };
  return [
    { type: 'file', path: '/usr/bin/busybox', mode: 0o755, ...owner, content },
    ...COMMANDS.map(
      (name): LayerEntry => ({ type: 'symlink', path: `/usr/bin/${name}`, target: 'busybox', ...owner }),
    ),
  ];
}

/** The package busybox has one that needs libraries, under the same name. */
function staticBusybox(): Buffer | undefined {
  const file = BUSYBOX.find((name) => existsSync(name));
  const content = file === undefined ? undefined : readFileSync(file);
  return content?.includes('/ld-linux') === true ? undefined : content;
}
