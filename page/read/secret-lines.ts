import type { ConfigChange, NodeConfig } from '../../machineconfig/node-config.ts';

/**
 * What of a change the page doesn't show, although its viewer may read the MachineConfigs: a page stands open on a screen
 * that others see. A file may be a key or a pull secret (so `shale gather` leaves out all contents).
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

/** The user and password of a URL (RFC 3986, "Authority"). */
const USERINFO = /(:\/\/)[^\s/@"']+@/g;
/** A setting whose name says that its value is a secret; what precedes the value is kept. */
const SECRET_SETTING =
  /((?:^|[^\w])[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[-_]?key|private[-_]?key|auth)["']?\s*[:=]\s*)(["']?)[^\s"']+\2/gi;
const AUTHORIZATION = /\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi;

/** @returns a line with the values of passwords and tokens replaced by `…`. */
export function maskSecrets(line: string): string {
  return line.replace(USERINFO, '$1…@').replace(AUTHORIZATION, '$1 …').replace(SECRET_SETTING, '$1$2…$2');
}
