import { InvalidArgumentError } from 'commander';
import type { IgnitionOwner } from '../../machineconfig/ignition/config.ts';

/** What flags of `shale create machineconfig` name, before the local files are read. */

/** A file of the nodes, and the local file with its contents. */
export interface FileFlag {
  readonly path: string;
  readonly source: string;
  readonly mode: number;
  readonly user: IgnitionOwner | undefined;
  readonly group: IgnitionOwner | undefined;
}

/** A systemd unit, and the local file with its contents. */
export interface UnitFlag {
  readonly unit: string;
  readonly source: string;
}

/** A drop-in of a unit, and the local file with its contents. */
export interface DropInFlag extends UnitFlag {
  readonly name: string;
}

const DEFAULT_MODE = 0o644;
const FILE =
  '/etc/chrony.conf=./chrony.conf, or with mode and owner, /etc/agent.conf=./agent.conf:0600:root:root';

/**
 * @param text PATH=LOCALFILE[:MODE[:USER[:GROUP]]]. A colon belongs to the name of the local file unless an octal mode
 *   follows it.
 * @throws {InvalidArgumentError}
 */
export function parseFileFlag(text: string): FileFlag {
  const [path, rest] = halves(text, FILE);
  const [, source = '', mode, user, group] =
    /^(.+?)(?::([0-7]{3,4})(?::([^:]*)(?::([^:]*))?)?)?$/s.exec(rest) ?? [];
  if (!path.startsWith('/'))
    throw new InvalidArgumentError(`Expected an absolute path on the nodes before "=", such as ${FILE}.`);
  return {
    path,
    source,
    mode: mode === undefined ? DEFAULT_MODE : Number.parseInt(mode, 8),
    user: owner(user),
    group: owner(group),
  };
}

/** @param text UNIT=LOCALFILE. @throws {InvalidArgumentError} */
export function parseUnitFlag(text: string): UnitFlag {
  const [unit, source] = halves(text, 'example.service=./example.service');
  return { unit, source };
}

/** @param text UNIT/NAME.conf=LOCALFILE. @throws {InvalidArgumentError} */
export function parseDropInFlag(text: string): DropInFlag {
  const example = 'chronyd.service/10-restart.conf=./restart.conf';
  const [target, source] = halves(text, example);
  const [unit = '', name = '', ...more] = target.split('/');
  if (unit === '' || name === '' || more.length > 0)
    throw new InvalidArgumentError(`Expected UNIT/NAME before "=", such as ${example}.`);
  return { unit, name, source };
}

function halves(text: string, example: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)];
  throw new InvalidArgumentError(
    `Expected a name and a local file with "=" between them, such as ${example}.`,
  );
}

/** Digits are an id, as chown(1) reads them. */
function owner(text: string | undefined): IgnitionOwner | undefined {
  if (text === undefined || text === '') return undefined;
  return /^\d+$/.test(text) ? { id: Number(text) } : { name: text };
}
