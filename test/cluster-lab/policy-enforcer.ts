import type { LayerEntry } from '../../image/layer/entry.ts';
import { enabledUnit, text } from '../node-lab/lab-updates.ts';
import { POLICY_ENFORCER } from './given-programs.ts';
import { SERVICE_RANGE } from './lab-network.ts';

/** kube-router on each machine, for NetworkPolicies alone: routes and Services are the lab's own. */

/** It calls these. */
export const ENFORCER_PACKAGES = ['iptables', 'ipset'] as const;
export const ENFORCER_USER = 'system:kube-router';
export const ENFORCER_CONFIG = 'etc/kubernetes/kube-router.kubeconfig';

const UNIT = `[Unit]
Description=kube-router
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0
[Service]
EnvironmentFile=/etc/kubernetes/kubelet.env
ExecStart=/usr/bin/${POLICY_ENFORCER} --run-firewall --run-router=false --run-service-proxy=false \
  --kubeconfig=/${ENFORCER_CONFIG} --hostname-override=\${NODE_NAME} --service-cluster-ip-range=${SERVICE_RANGE}
Restart=always
RestartSec=1
`;

/** Between pods of one machine, whose packets the bridge passes on by itself. */
const BRIDGE_SETTINGS = 'net.bridge.bridge-nf-call-iptables = 1\n';

/** @returns what a machine has for it, beside the program and the packages. */
export function enforcerEntries(): readonly LayerEntry[] {
  return [
    ...enabledUnit(`${POLICY_ENFORCER}.service`, UNIT),
    text('/usr/lib/sysctl.d/60-network-policies.conf', BRIDGE_SETTINGS),
  ];
}

/** What it may do, as its own manifests have it (cloudnativelabs/kube-router, daemonset/). */
export function enforcerObjects(): string {
  const name = POLICY_ENFORCER;
  const verbs = ['get', 'list', 'watch'];
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules: [
      { apiGroups: [''], resources: ['namespaces', 'pods', 'services', 'nodes', 'endpoints'], verbs },
      { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs },
    ],
  };
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: ENFORCER_USER }],
  };
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [role, binding] });
}
