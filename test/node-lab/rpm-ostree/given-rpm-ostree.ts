import { existsSync } from 'node:fs';
import path from 'node:path';
import { noPreparedRoot } from '../prepared-root.ts';

/** The files that `make lab-rpm-ostree RPM_OSTREE=/path/to/files` names: what its `make install` wrote to `DESTDIR`. */
export const RPM_OSTREE = process.env['SHALE_RPM_OSTREE'] ?? '';

/** Why rpm-ostree can't be run here; nothing when it can. */
export const noRpmOstree: string | undefined = missingForRpmOstree(RPM_OSTREE);

function missingForRpmOstree(files: string): string | undefined {
  if (files === '') return 'no rpm-ostree is given: make lab-rpm-ostree RPM_OSTREE=/path/to/files';
  const program = path.join(files, 'usr/bin/rpm-ostree');
  if (!existsSync(program)) throw new Error(`RPM_OSTREE: ${program} doesn't exist`);
  return noPreparedRoot;
}
