import { existsSync, readFileSync } from 'node:fs';
import { deadline } from '../../fixtures/patience.ts';
import { FIRST_TIME_MS, noLab } from '../lab.ts';
import type { LabSystem } from '../lab-node.ts';
import { missingForPreparedRoots } from '../prepared-root.ts';
import { baseArchive } from './base-image.ts';
import { bootcSystem, debianWith } from './bootc-system.ts';

/** The program that `make lab-bootc BOOTC=/path/to/bootc` names. */
const BOOTC = process.env['SHALE_BOOTC'] ?? '';
/** The image that `make lab-bootc BASE=quay.io/fedora/fedora-bootc:NN` names: it brings a bootc of its own. */
const BASE = process.env['SHALE_BOOTC_BASE'] ?? '';

/** Why bootc can't be run here; nothing when it can. */
export const noBootc: string | undefined = missingForBootc();

/** Why no machine can be made with more packages of Debian; nothing when one can. */
export const noMorePackages: string | undefined =
  noBootc ?? (BOOTC === '' ? 'BASE is an image as it is; BOOTC installs packages' : undefined);

/** @param packages more than bootc needs. @returns what bootc installs and updates. */
export function givenSystem(packages: readonly string[] = []): LabSystem {
  return bootcSystem(() =>
    BOOTC === '' ? baseArchive(BASE, deadline(FIRST_TIME_MS)) : debianWith(BOOTC, packages),
  );
}

function missingForBootc(): string | undefined {
  if (BOOTC !== '' && BASE !== '') throw new Error('expected one of BOOTC and BASE, not both');
  if (BOOTC === '' && BASE === '')
    return 'no bootc is given: make lab-bootc BOOTC=/path/to/bootc, or BASE=quay.io/fedora/fedora-bootc:NN';
  if (BOOTC !== '' && !existsSync(BOOTC)) throw new Error(`BOOTC: ${BOOTC} doesn't exist`);
  return missingForPreparedRoots(noLab, readFileSync('/proc/filesystems', 'utf8'));
}
