import { execa } from 'execa';

/**
 * The network of the cluster, in a network namespace that the test has for itself (`make cluster-lab`): a bridge with
 * the machines and the control plane on it. The address of the Service `kubernetes` is the bridge's as well, and the
 * API server listens on its port, so that pods reach it without a kube-proxy.
 */

const BRIDGE = 'lab0';
/** Where control plane and registry are. */
export const CONTROL_PLANE_ADDRESS = '10.32.0.1';
const SERVICE_ADDRESS = '10.96.0.1';
/** Where clouds have the credentials of a machine. */
export const METADATA_ADDRESS = '169.254.169.254';
export const SERVICE_RANGE = '10.96.0.0/16';
export const SERVICE_PORT = 443;

/** What a machine has of the network. */
export interface MachineNetwork {
  readonly address: string;
  /** Of its pods. */
  readonly podRange: string;
}

/** @param index of the machine, from 0. */
export function machineNetwork(index: number): MachineNetwork {
  return { address: `10.32.0.${index + 11}`, podRange: `10.244.${index + 1}.0/24` };
}

/** What connects a machine of systemd-nspawn. */
export const NSPAWN_NETWORK = [`--network-bridge=${BRIDGE}`] as const;

/**
 * Makes the bridge. It goes with the namespace.
 *
 * @param machines how many there will be. @throws ExecaError when ip(8) fails, as outside of a namespace of one's own.
 */
export async function makeNetwork(machines: number): Promise<void> {
  const ip = (...args: string[]) => execa('ip', args);
  await ip('link', 'set', 'lo', 'up');
  await ip('link', 'add', BRIDGE, 'type', 'bridge');
  await ip('address', 'add', `${CONTROL_PLANE_ADDRESS}/16`, 'dev', BRIDGE);
  for (const address of [SERVICE_ADDRESS, METADATA_ADDRESS]) {
    await ip('address', 'add', `${address}/32`, 'dev', BRIDGE);
  }
  await ip('link', 'set', BRIDGE, 'up');
  for (const { address, podRange } of Array.from({ length: machines }, (_, index) => machineNetwork(index))) {
    await ip('route', 'add', podRange, 'via', address, 'dev', BRIDGE);
  }
}

/** @param others the other machines. @returns the configuration of a machine's interface (systemd.network(5)). */
export function networkFile(own: MachineNetwork, others: readonly MachineNetwork[]): string {
  const routes = others.map(
    ({ address, podRange }) => `[Route]\nDestination=${podRange}\nGateway=${address}\n`,
  );
  return [
    `[Match]\nName=host0\n[Network]\nAddress=${own.address}/16\nGateway=${CONTROL_PLANE_ADDRESS}\nIPForward=ipv4\n`,
    ...routes,
  ].join('\n');
}

/** @returns the CNI's configuration of a machine: a bridge for its pods, and addresses that no other machine has. */
export function podNetworkFile({ podRange }: MachineNetwork): string {
  return `${JSON.stringify({
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipam: { type: 'host-local', ranges: [[{ subnet: podRange }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
    ],
  })}\n`;
}
