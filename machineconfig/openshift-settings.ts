import { CREDENTIAL_PROVIDER_KIND, NodeSettings, type OpenShiftSettings } from '../api/openshift-settings.ts';
import type { Problem } from './problem.ts';

/** What a field would do in MCO, and what does it in Shale. */
interface Refused {
  readonly reason: string;
  readonly expected: string;
  /** Values that ask for what a host does anyway. */
  readonly asksNothing: readonly unknown[];
}

const REFUSED: Readonly<Record<string, Readonly<Record<string, Refused>>>> = {
  [NodeSettings.kind]: {
    workerLatencyProfile: {
      reason: 'is not supported, and the kubelets report their status as often as before',
      expected:
        'nodeStatusUpdateFrequency in a KubeletConfig, with --node-monitor-grace-period of the kube-controller-manager to match it',
      asksNothing: ['', 'Default'],
    },
    cgroupMode: {
      reason: 'is not supported, and the hosts keep the control groups that they boot with',
      expected: 'kernelArguments in a MachineConfig, such as systemd.unified_cgroup_hierarchy=1',
      asksNothing: [''],
    },
    minimumKubeletVersion: {
      reason: 'is not supported, and no kubelet is refused for its version',
      expected: 'to be omitted',
      asksNothing: [''],
    },
  },
  [CREDENTIAL_PROVIDER_KIND]: {
    matchImages: {
      reason: 'is not supported, and no pod pulls from a mirror with a pull secret of its namespace',
      expected:
        'a MachineConfig with the configuration of a credential provider, and the pull secret of the nodes for mirrors',
      asksNothing: [],
    },
  },
};

/**
 * Finds what a cluster-wide object of OpenShift's asks of nodes and Shale doesn't do.
 *
 * @param object of any kind.
 * @returns a problem for each field that asks for something; none for other kinds.
 */
export function refusedOpenShiftSettings({ apiVersion, kind, metadata, spec }: OpenShiftSettings): Problem[] {
  const fields = apiVersion.startsWith('config.openshift.io/') ? (REFUSED[kind] ?? {}) : {};
  return Object.entries(fields).flatMap(([field, { reason, expected, asksNothing }]) => {
    const value = spec?.[field];
    const isEmpty = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
    if (isEmpty || asksNothing.includes(value)) return [];
    return [{ path: `${kind} ${metadata.name} of config.openshift.io, spec.${field}`, reason, expected }];
  });
}
