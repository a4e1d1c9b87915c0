import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { deadline } from '../../fixtures/patience.ts';
import { FIRST_TIME_MS, noLab } from '../lab.ts';
import type { LabSystem } from '../lab-node.ts';
import { comingArchive, noPreparedRoot } from '../prepared-root.ts';
import { missingForVirtualMachines } from '../virtual-machine/missing-requirement.ts';
import { baseArchive } from './base-image.ts';
import { bootcRecipe } from './bootc-recipe.ts';
import { bootcSystem } from './bootc-system.ts';
import { FIRMWARE } from './composefs-system.ts';

/**
 * What `make lab-bootc BOOTC=/path/to/bootc` names: the program, or a directory that its `make install` wrote to as
 * `DESTDIR`.
 */
const GIVEN = process.env['SHALE_BOOTC'] ?? '';
/** The files of bootc, the program among them; empty where the program alone is given. */
export const BOOTC_FILES = isDirectory(GIVEN) ? GIVEN : '';
const BOOTC = BOOTC_FILES === '' ? GIVEN : path.join(BOOTC_FILES, 'usr/bin/bootc');
/** The image that `make lab-bootc BASE=quay.io/fedora/fedora-bootc:NN` names: it brings a bootc of its own. */
const BASE = process.env['SHALE_BOOTC_BASE'] ?? '';

/** Why bootc can't be run here; nothing when it can. */
export const noBootc: string | undefined = missingForBootc();

/** Why no machine can be made of Debian and more; nothing when one can. */
export const noDebian: string | undefined =
  noBootc ?? (BOOTC === '' ? 'BASE is an image as it is; BOOTC is put into Debian' : undefined);

/** Why no machine with a kernel of its own can be made of it; nothing when one can. */
export const noVirtualBootc: string | undefined = noBootc ?? missingForVirtualBootc();

/**
 * @param debian what bootc needs and more; an image that is given stays as it is. @returns what bootc installs and
 * updates.
 */
export function givenSystem(debian = bootcRecipe): LabSystem {
  return bootcSystem(() =>
    BOOTC === '' ? baseArchive(BASE, deadline(FIRST_TIME_MS)) : comingArchive(debian(BOOTC)),
  );
}

function missingForBootc(): string | undefined {
  if (BOOTC !== '' && BASE !== '') throw new Error('expected one of BOOTC and BASE, not both');
  if (BOOTC === '' && BASE === '')
    return 'no bootc is given: make lab-bootc BOOTC=/path/to/bootc, or BASE=quay.io/fedora/fedora-bootc:NN';
  if (BOOTC !== '' && !existsSync(BOOTC)) throw new Error(`BOOTC: ${BOOTC} doesn't exist`);
  return noPreparedRoot;
}

/** Its root is set up by a program of bootc's in its initramfs. */
function missingForVirtualBootc(): string | undefined {
  if (BOOTC_FILES === '')
    return 'its initramfs needs more of bootc than the program: make lab-bootc BOOTC=/path/to/files, which its make install DESTDIR=/path/to/files wrote';
  return missingForVirtualMachines(noLab, process.env, {
    [FIRMWARE]: 'ovmf',
    '/usr/bin/objcopy': 'binutils',
  });
}

function isDirectory(place: string): boolean {
  return place !== '' && statSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
}
