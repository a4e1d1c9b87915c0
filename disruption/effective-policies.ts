import { createHash } from 'node:crypto';
import type { EffectiveAction } from '../api/disruption-action.ts';
import type { ClusterPolicies, NodeDisruptionPolicy, OpenShiftPolicies } from '../api/disruption-policy.ts';
import { by } from '../api/order.ts';
import { present } from '../api/present.ts';
import type { Digest } from '../api/references.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';
import { kubeletDropIns } from '../machineconfig/services/kubelet-files.ts';
import { CRIO_LOG_LEVEL } from '../machineconfig/services/runtime-files.ts';

/**
 * The policies in force: the defaults, where an admin's entry of the same path or name replaces the whole default entry
 * (MCO, pkg/apihelpers MergeClusterPolicies).
 *
 * @param policy a valid one, or undefined if the admin has none.
 * @param settings what differs between hosts; they become part of the policies, so that everyone who decides by them
 *   decides alike.
 * @returns what holds for every pool that spec.shale says nothing about (poolPolicies); files and units sorted by path
 *   and name, so that the digest does not depend on their order in the spec.
 */
export function effectivePolicies(
  policy: NodeDisruptionPolicy | undefined,
  settings: PolicySettings,
): OpenShiftPolicies {
  const defaults = defaultPolicies(settings);
  const mirrors = policy?.imageMirrors ?? [];
  const imageMirrors = mirrors.length === 0 ? undefined : mirrors.toSorted(by(({ kind }) => kind));
  return {
    containerRuntimeUnit: defaults.containerRuntimeUnit,
    files: override(defaults.files, policy?.files ?? [], (file) => file.path),
    units: override(defaults.units, policy?.units ?? [], (unit) => unit.name),
    sshkey: policy?.sshkey === undefined ? defaults.sshkey : { ...policy.sshkey, source: 'Admin' },
    ...present({ imageMirrors }),
  };
}

function override<T extends object>(
  defaults: readonly T[],
  own: readonly T[],
  keyOf: (entry: T) => string,
): (T & { source?: 'Admin' })[] {
  return replacing<T & { source?: 'Admin' }>(
    defaults,
    own.map((entry) => ({ ...entry, source: 'Admin' as const })),
    keyOf,
  );
}

/** @returns the entries of both lists, sorted by their key; of two with the same key the one of `later`. */
export function replacing<T>(earlier: readonly T[], later: readonly T[], keyOf: (entry: T) => string): T[] {
  const byKey = new Map([...earlier, ...later].map((entry) => [keyOf(entry), entry]));
  return [...byKey].sort(by(([key]) => key)).map(([, entry]) => entry);
}

/** Defaults that an earlier version did not have. */
const LATER_DEFAULTS: readonly string[] = [kubeletDropIns.live, CRIO_LOG_LEVEL];

/** @returns the digest that identifies policies in the labels of images and in the specs of nodes. */
export function policyDigest(policies: ClusterPolicies): Digest {
  const { containerRuntimeUnit: unit, files, ...others } = policies;
  // Images labelled before the unit was recorded assumed MCO's: they keep their digest, and an upgrade rebuilds none of
  // them. Nor does a default for a file that only this version generates: no config in their labels has it.
  const isLater = ({ path, source }: { path: string; source?: 'Admin' }) =>
    source === undefined && LATER_DEFAULTS.includes(path);
  const digested = {
    ...(unit === defaultPolicySettings.containerRuntimeUnit ? {} : present({ containerRuntimeUnit: unit })),
    ...present({ files: files?.filter((file) => !isLater(file)) }),
    ...others,
  };
  return `sha256:${createHash('sha256').update(canonicalJson(digested)).digest('hex')}` as Digest;
}

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

/**
 * The policies where the admin has none: MCO's defaults (pkg/apihelpers, defaultClusterPolicies), and Shale's for two
 * drop-ins that it generates itself. The kubelet's has only fields that leave running pods alone (kubelet-fields.ts),
 * and CRI-O reads its log level again on a reload. Every other drop-in of these services changes what pods get, so no
 * policy covers it.
 */
function defaultPolicies({
  containerRuntimeUnit,
}: PolicySettings): Required<Omit<ClusterPolicies, 'imageMirrors' | 'patterns'>> {
  const reloadRuntime = [reload(containerRuntimeUnit)];
  const trust = 'coreos-update-ca-trust.service';
  const registry = 'iri-registry.service';
  return {
    containerRuntimeUnit,
    files: [
      { path: '/var/lib/kubelet/config.json', actions: [none] },
      { path: kubeletDropIns.live, actions: [restart('kubelet.service')] },
      { path: CRIO_LOG_LEVEL, actions: reloadRuntime },
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
