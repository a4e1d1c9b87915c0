import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { shellWords } from '../../daemon/os/os-command.ts';

/** When mmdebstrap(1) runs a hook: after the essential packages, so that other packages find it, or after all. */
type When = 'essential' | 'customize';

/**
 * @returns a hook that writes a file of the root file system, and makes the directory that it is in. @param content of
 * whole lines.
 */
export function writeFileHook(file: string, content: string, when: When = 'customize'): string {
  return `--${when}-hook=mkdir -p "$1"${path.posix.dirname(file)} && cat > "$1"${file} <<'END'\n${content}END`;
}

/**
 * @param files what `make install` wrote to `DESTDIR`.
 * @param programs of them, below that: others make another root file system.
 * @returns a hook that has them in the root file system.
 */
export function copyFilesHook(files: string, programs: readonly string[], when: When = 'customize'): string {
  const hash = createHash('sha256');
  for (const program of programs) hash.update(readFileSync(path.join(files, program)));
  const copy = shellWords(['cp', '-R', '--preserve=mode,links', `${files}/.`]);
  return `--${when}-hook=${copy} "$1"/ # ${hash.digest('hex')}`;
}
