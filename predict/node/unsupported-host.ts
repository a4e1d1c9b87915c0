import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';

/**
 * @returns why a node's daemon supports none of the tools that keep the host's operating system, as the daemon reports
 *   it (daemon/os/detect-backend.ts): such a node keeps what it runs. Undefined for any other node.
 */
export function unsupportedBecause({
  status,
}: {
  readonly status?: MachineConfigNodeStatus | undefined;
}): string | undefined {
  const degraded = status?.conditions?.find(({ type }) => type === 'NodeDegraded');
  return degraded?.status === 'True' && degraded.reason === 'UnsupportedHost'
    ? (degraded.message ?? '')
    : undefined;
}
