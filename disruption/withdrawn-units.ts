import type { NodeConfig } from '../machineconfig/node-config.ts';

const UNIT_DIRECTORY = '/etc/systemd/system';

/** How a config takes a unit away from the services that may run. */
export type Withdrawal = 'masked' | 'removed';

/**
 * Lists the units that a config masks, and those whose unit file it no longer has. systemd can't restart them:
 * `systemctl restart` refuses a masked unit, and one that it finds nowhere. So a restart that a policy requires of them
 * is a stop, and a reload is nothing. Where the operating system has a unit of the same name as a removed one, that one
 * is restarted.
 *
 * @param from what the node runs. @param to its target.
 */
export function withdrawnUnits(from: NodeConfig, to: NodeConfig): ReadonlyMap<string, Withdrawal> {
  const withdrawn = new Map<string, Withdrawal>();
  const kept = unitFilesOf(to);
  for (const name of [...unitFilesOf(from), ...masksOf(from)]) {
    if (!kept.has(name)) withdrawn.set(name, 'removed');
  }
  for (const name of masksOf(to)) withdrawn.set(name, 'masked');
  return withdrawn;
}

/** @returns the names of the units that a config brings. */
function unitFilesOf({ files, units }: NodeConfig): ReadonlySet<string> {
  const own = [...units.values()].filter(({ contents = '', masked }) => contents !== '' && !masked);
  return new Set([...own.map(({ name }) => name), ...[...files.keys()].filter(isUnitFile).map(nameOf)]);
}

function masksOf({ links, units }: NodeConfig): readonly string[] {
  const masks = [...links.values()].filter(({ path, target }) => target === '/dev/null' && isUnitFile(path));
  const masked = [...units.values()].filter((unit) => unit.masked);
  return [...masked.map(({ name }) => name), ...masks.map(({ path }) => nameOf(path))];
}

function isUnitFile(path: string): boolean {
  return path.startsWith(`${UNIT_DIRECTORY}/`) && !nameOf(path).includes('/');
}

function nameOf(path: string): string {
  return path.slice(UNIT_DIRECTORY.length + 1);
}
