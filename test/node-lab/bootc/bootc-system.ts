import { present } from '../../../api/present.ts';
import type { LabSystem } from '../lab-node.ts';
import { bootPreparedRoot, PREPARED_ROOT } from '../prepared-root.ts';
import { toolEntries } from '../tool-entries.ts';
import { installByBootc } from './install-bootc.ts';

/** @param archive what has bootc. @returns machines that are installed and updated by it. */
export function bootcSystem(archive: LabSystem['archive']): LabSystem {
  return {
    ...PREPARED_ROOT,
    archive,
    entries: toolEntries,
    bootable: true,
    install: installByBootc,
    // bootc pulls by itself.
    boot: (dir, source, signal, bootMs) =>
      bootPreparedRoot(dir, source, signal, { network: 'shared', ...present({ bootMs }) }),
  };
}
