import { posix } from 'node:path';
import { nodePaths } from '../api/names.ts';
import { type UnitConfig, unitFiles } from './configured-units.ts';
import type { NodeConfig } from './node-config.ts';
import { unitPreset } from './unit-preset.ts';

const PRESET = '/etc/systemd/system-preset/20-shale.preset';

/**
 * The files in which an image carries the units, SSH keys and kernel arguments of a config. The builder writes them,
 * and the node daemon verifies them: all of them have mode 0644 and belong to root.
 *
 * @returns their texts by path.
 */
export function layeredFiles(
  config: UnitConfig & Pick<NodeConfig, 'sshKeys' | 'kernelArguments'>,
): ReadonlyMap<string, string> {
  const preset = unitPreset(config);
  return new Map([
    ...[...config.units.values()].flatMap((unit) => [...unitFiles(unit)]),
    ...(preset === undefined ? [] : [[PRESET, preset] as const]),
    ...sshKeyFiles(config.sshKeys),
    ...kernelArgumentFile(config.kernelArguments),
  ]);
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
