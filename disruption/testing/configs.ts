import { emptyNodeConfig } from '../../machineconfig/empty-config.ts';
import type { NodeConfig, NodeFile, NodeUnit } from '../../machineconfig/node-config.ts';

/** A rendered config with nothing in it. */
export const emptyConfig: NodeConfig = { ...emptyNodeConfig, name: 'rendered-worker-0' };

/** @returns a plain file of root's, for a config under test. */
export function fileOf(path: string, text: string, more: Partial<NodeFile> = {}): NodeFile {
  return { path, contents: Buffer.from(text), mode: 0o644, user: { id: 0 }, group: { id: 0 }, ...more };
}

/** @returns a config with these files, by path and text, and whatever else is given. */
export function configOf(
  files: Readonly<Record<string, string>>,
  more: Partial<NodeConfig> = {},
): NodeConfig {
  return {
    ...emptyConfig,
    files: new Map(Object.entries(files).map(([path, text]) => [path, fileOf(path, text)])),
    ...more,
  };
}

/** @returns units by name. */
export function unitsOf(...units: readonly Partial<NodeUnit>[]): NodeConfig['units'] {
  const whole = units.map((unit) => ({ name: 'x.service', masked: false, dropins: new Map(), ...unit }));
  return new Map(whole.map((unit) => [unit.name, unit]));
}
