import { MachineConfigs } from '../../../api/machine-config.ts';
import type { Grant, MachineConfigNode, MachineConfigNodeSpec } from '../../../api/machine-config-node.ts';
import { type ClusterPolicies, MachineConfigurations } from '../../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../../api/names.ts';
import { conditionIsTrue } from '../../../cluster/conditions.ts';
import { policyDigest } from '../../../disruption/effective-policies.ts';
import { type DaemonUnderTest, HOLDER } from './testing-daemon.ts';

export const CHRONY = '/etc/chrony.conf';

/** @returns whether a node runs that config and is done with it. */
export const isAt = (config: string) => (object: MachineConfigNode) =>
  conditionIsTrue(object.status?.conditions, 'Updated') && object.status?.configVersion?.current === config;

/** @returns the condition by which a node says that it failed; undefined where it does not. */
export const degraded = ({ status }: MachineConfigNode) =>
  status?.conditions?.find(({ type, status: is }) => type === 'NodeDegraded' && is === 'True');

/** @returns what the operator writes for a node in standard mode. */
export const standardSpec =
  (policy: string) =>
  (config: string, level?: Grant['level']): Partial<MachineConfigNodeSpec> => ({
    configVersion: { desired: config },
    policyDigest: policy,
    ...(level === undefined ? {} : { grant: { level, config, leaseHolder: HOLDER } }),
  });

/** Puts a policy in force by which a change of chrony.conf restarts chronyd. @returns its digest. */
export async function policies(
  { client }: DaemonUnderTest,
  more: ClusterPolicies['files'] = [],
): Promise<string> {
  const clusterPolicies: ClusterPolicies = {
    files: [
      { path: CHRONY, actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }] },
      ...(more ?? []),
    ],
  };
  const made = await client.create(MachineConfigurations, {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: MACHINE_CONFIGURATION },
    spec: {},
  });
  const digest = policyDigest(clusterPolicies);
  const status = { nodeDisruptionPolicyStatus: { clusterPolicies }, policyDigest: digest };
  await client.replaceStatus(MachineConfigurations, { ...made, status });
  return digest;
}

/** Makes a rendered config whose chrony.conf has that content. */
export async function render(
  { client }: DaemonUnderTest,
  name: string,
  content: string,
  kernelArguments: string[] = [],
): Promise<void> {
  const source = `data:,${encodeURIComponent(content)}`;
  const files = [{ path: CHRONY, mode: 0o644, overwrite: true, contents: { source } }];
  await client.create(MachineConfigs, {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files } }, kernelArguments },
  });
}
