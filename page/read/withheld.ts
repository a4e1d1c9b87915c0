import type { ConfigChange, NodeConfig } from '../../machineconfig/node-config.ts';

/**
 * What of a change the page doesn't show, although its viewer may read the MachineConfigs: a page stands open on a
 * screen that others see. A file may be a key or a pull secret (so `shale gather` leaves out all contents).
 */

/** Mode bit: everybody on the node may read the file. */
const OTHERS_READ = 0o004;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/** @returns why the lines of a change are not shown; undefined when they are. */
export function whyWithheld(change: ConfigChange, sides: readonly NodeConfig[]): string | undefined {
  if (change.kind === 'passwordHash') return 'it is a password hash';
  if (change.kind === 'file') {
    const files = sides.flatMap(({ files }) => files.get(change.path) ?? []);
    if (files.some(({ mode }) => (mode & OTHERS_READ) === 0))
      return 'its mode keeps it from being read by every user of the node';
    if (files.some(({ contents }) => PRIVATE_KEY.test(Buffer.from(contents).toString('latin1'))))
      return 'it contains a private key';
  }
  if (change.kind === 'unit') {
    const units = sides.flatMap(({ units }) => units.get(change.name) ?? []);
    const texts = units.flatMap(({ contents = '', dropins }) => [contents, ...dropins.values()]);
    if (texts.some((text) => PRIVATE_KEY.test(text))) return 'it contains a private key';
  }
  return undefined;
}
