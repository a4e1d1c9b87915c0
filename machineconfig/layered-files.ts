import { posix } from 'node:path';
import { nodePaths } from '../api/names.ts';
import type { NodeConfig, NodeUnit } from './node-config.ts';

const UNIT_DIRECTORY = '/etc/systemd/system';
const PRESET = '/etc/systemd/system-preset/20-shale.preset';

/**
 * The files in which an image carries the units, SSH keys and kernel arguments of a config. The builder writes them, and
 * the node daemon verifies them: all of them have mode 0644 and belong to root.
 *
 * @returns their texts by path.
 */
export function layeredFiles(
  config: Pick<NodeConfig, 'units' | 'sshKeys' | 'kernelArguments'>,
): ReadonlyMap<string, string> {
  return new Map([
    ...[...config.units.values()].flatMap((unit) => [...unitFiles(unit)]),
    ...presetFile(config.units),
    ...sshKeyFiles(config.sshKeys),
    ...kernelArgumentFile(config.kernelArguments),
  ]);
}

/**
 * @returns the texts of a unit and of its drop-ins by path. MCO skips one without content (`writeUnit`, `writeDropins`): an
 *   empty unit file would be a mask (systemd.unit(5)).
 */
export function unitFiles(unit: NodeUnit): ReadonlyMap<string, string> {
  const unitPath = posix.join(UNIT_DIRECTORY, unit.name);
  const own = unit.masked || unit.contents === undefined ? [] : [[unitPath, unit.contents] as const];
  const dropins = [...unit.dropins].map(
    ([name, contents]) => [posix.join(`${unitPath}.d`, name), contents] as const,
  );
  return new Map([...own, ...dropins].filter(([, text]) => text !== ''));
}

/**
 * The base image is never downloaded, so of its own units only the name is known. A preset says what is wanted where the image is
 * installed; on a node its daemon enables and disables them (daemon/tree/units-of-image.ts).
 */
function presetFile(units: NodeConfig['units']): [string, string][] {
  const lines = [...units.values()].filter(isPreset).map(presetLine).sort();
  return lines.length === 0 ? [] : [[PRESET, `${lines.join('\n')}\n`]];
}

function isPreset(unit: NodeUnit): boolean {
  return unit.enabled !== undefined && unit.contents === undefined && !unit.masked;
}

function presetLine(unit: NodeUnit): string {
  return `${unit.enabled === true ? 'enable' : 'disable'} ${unit.name}`;
}

/**
 * Homes are state, so keys lie under /etc/ssh, where sshd looks once its configuration says so (sshd_config(5),
 * AuthorizedKeysFile); the usual places stay in the list.
 */
function sshKeyFiles(sshKeys: NodeConfig['sshKeys']): [string, string][] {
  if (sshKeys.size === 0) return [];
  const config = `AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition ${nodePaths.authorizedKeysDirectory}/%u\n`;
  return [
    [nodePaths.sshdConfig, config],
    ...[...sshKeys].map(([user, keys]): [string, string] => [
      posix.join(nodePaths.authorizedKeysDirectory, user),
      `${keys.join('\n')}\n`,
    ]),
  ];
}

/** bootc's kargs.d (bootc documentation, "Kernel arguments"); other backends' daemons read the same file. */
function kernelArgumentFile(kernelArguments: readonly string[]): [string, string][] {
  if (kernelArguments.length === 0) return [];
  const list = kernelArguments.map((argument) => JSON.stringify(argument)).join(', ');
  return [[nodePaths.kernelArguments, `kargs = [${list}]\n`]];
}
