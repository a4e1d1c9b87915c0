import type { EffectiveAction } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/machine-configuration.ts';

/** Settings of the default policies that differ between hosts. */
export interface PolicySettings {
  /** The service of the container runtime: crio.service, or containerd.service on hosts that run containerd. */
  readonly containerRuntimeUnit: string;
}

export const defaultPolicySettings: PolicySettings = { containerRuntimeUnit: 'crio.service' };

const none: EffectiveAction = { type: 'None' };
const special: EffectiveAction = { type: 'Special' };
const daemonReload: EffectiveAction = { type: 'DaemonReload' };
const reload = (serviceName: string): EffectiveAction => ({ type: 'Reload', reload: { serviceName } });
const restart = (serviceName: string): EffectiveAction => ({ type: 'Restart', restart: { serviceName } });

/** The policies where the admin has none: MCO's defaults (pkg/apihelpers, defaultClusterPolicies). */
export function defaultPolicies({
  containerRuntimeUnit,
}: PolicySettings): Required<Omit<ClusterPolicies, 'imageMirrors'>> {
  const reloadRuntime = [reload(containerRuntimeUnit)];
  const trust = 'coreos-update-ca-trust.service';
  const registry = 'iri-registry.service';
  return {
    containerRuntimeUnit,
    files: [
      { path: '/var/lib/kubelet/config.json', actions: [none] },
      { path: '/etc/machine-config-daemon/no-reboot/containers-gpg.pub', actions: reloadRuntime },
      { path: '/etc/containers/policy.json', actions: reloadRuntime },
      { path: '/etc/containers/registries.conf', actions: [special] },
      { path: '/etc/containers/registries.d', actions: reloadRuntime },
      { path: '/etc/nmstate/openshift', actions: [none] },
      {
        path: '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
        actions: [restart(trust), restart(containerRuntimeUnit)],
      },
      { path: '/etc/crio/policies', actions: reloadRuntime },
      { path: '/etc/kubernetes/credential-providers', actions: [restart('kubelet.service')] },
      {
        path: '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf',
        actions: [daemonReload, restart('kubelet.service')],
      },
      { path: '/etc/iri-registry', actions: [restart(registry)] },
      { path: '/usr/local/bin/load-registry-image.sh', actions: [restart(registry)] },
      { path: '/etc/pki/ca-trust/source/anchors/iri-root-ca.crt', actions: [restart(trust)] },
    ],
    units: [{ name: registry, actions: [daemonReload, restart(registry)] }],
    sshkey: { actions: [none] },
  };
}
