import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { splitKernelArguments } from '../../../machineconfig/kernel-arguments.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';

const COMMAND_LINE = 'proc/cmdline';
/** What bootc adds for each deployment, and systemd-boot for the initramfs of an entry. */
const OF_THE_DEPLOYMENT = /^(?:composefs|initrd)=/;

/**
 * The kernel arguments of the booted deployment's BLS entry, by what the kernel was started with: the entry is on the
 * EFI system partition, which hosts needn't mount.
 *
 * @param root the running root.
 */
export async function bootedArguments(root: string): Promise<readonly string[]> {
  const text =
    (await readFile(path.join(root, COMMAND_LINE), 'utf8').catch(ignoreMissing)) ??
    (await readFile(path.join('/', COMMAND_LINE), 'utf8'));
  return splitKernelArguments([text]).filter((argument) => !OF_THE_DEPLOYMENT.test(argument));
}

interface ArgumentsOfImages {
  /** Of the booted deployment. */
  readonly booted: readonly string[];
  /** In kargs.d of the booted image. */
  readonly bootedImage: readonly string[];
  /** In kargs.d of the other image. */
  readonly image: readonly string[];
}

/**
 * @returns the kernel arguments that bootc gives a deployment of an image: those of the booted deployment, without what
 *   only the booted image has in its kargs.d, and with what only the other has (bootc_kargs.rs, compute_new_kargs).
 */
export function argumentsOfDeployment({ booted, bootedImage, image }: ArgumentsOfImages): readonly string[] {
  const gone = new Set(bootedImage.filter((argument) => !image.includes(argument)));
  return [
    ...booted.filter((argument) => !gone.has(argument)),
    ...image.filter((argument) => !bootedImage.includes(argument)),
  ];
}

/**
 * OsBackend.bootScript: the root is mounted from a source that has the digest of what is booted (bootc,
 * composefs_booted), also after a soft reboot, when the kernel was started with another one. bootc tells whether the
 * bootloader has another one first. Where bootc can't tell, the booted deployment counts as the next.
 */
export const COMPOSEFS_BOOT_SCRIPT = `booted() {
  sed -n 's@^[^ ]* [^ ]* [^ ]* / / .* - [^ ]* \\(transient:\\)*composefs[:=]\\([0-9a-f]*\\) .*@\\2@p' /proc/self/mountinfo | tail -n 1
}
next() {
  if bootc status --format=json --format-version=1 | grep -q '"rollbackQueued": *true'; then
    echo another
  else
    booted
  fi
}
`;
