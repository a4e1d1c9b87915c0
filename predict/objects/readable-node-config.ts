import type { MachineConfig } from '../../api/machine-config.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';

/** @returns undefined for a config that is gone or can't be read: its nodes reboot. */
export function readableNodeConfig(config: MachineConfig | undefined): NodeConfig | undefined {
  const parsed = config === undefined ? undefined : parseNodeConfig(config);
  return parsed?.ok === true ? parsed.config : undefined;
}
