import { existsSync, readFileSync } from 'node:fs';
import { noLab } from '../lab.ts';
import { missingForPreparedRoots } from '../prepared-root.ts';

/** The program that `make lab-bootc BOOTC=/path/to/bootc` names. */
export const BOOTC = process.env['SHALE_BOOTC'] ?? '';

/** Why bootc can't be run here; nothing when it can. */
export const noBootc: string | undefined = missingForBootc(BOOTC);

function missingForBootc(bootc: string): string | undefined {
  if (bootc === '') return 'no bootc is given: make lab-bootc BOOTC=/path/to/bootc';
  if (!existsSync(bootc)) throw new Error(`BOOTC: ${bootc} doesn't exist`);
  return missingForPreparedRoots(noLab, readFileSync('/proc/filesystems', 'utf8'));
}
