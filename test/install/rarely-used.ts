const BIND = 'the API server asks for it when a binding is made; no request is of this verb';

/**
 * Permissions that the tour doesn't use, or not every time, with what uses them; every other one it must use. Worded as
 * wordsOf in permissions.ts does.
 */
export const RARELY_USED: Readonly<Record<string, string>> = {
  ...conflicts('shale-operator', [
    'machineconfignodes.machineconfiguration.openshift.io',
    'machineconfigpools.machineconfiguration.openshift.io',
    'machineconfigurations.operator.openshift.io',
    'kubeletconfigs.machineconfiguration.openshift.io',
    'containerruntimeconfigs.machineconfiguration.openshift.io',
    'imagecontentsourcepolicies.operator.openshift.io',
    'imagedigestmirrorsets.config.openshift.io',
    'imagetagmirrorsets.config.openshift.io',
  ]),
  ...conflicts('machine-os-builder', [
    'machineosconfigs.machineconfiguration.openshift.io',
    'machineosbuilds.machineconfiguration.openshift.io',
  ]),
  ...conflicts('shale-daemon', ['machineconfignodes.machineconfiguration.openshift.io']),
  'shale-operator: patch configmaps fleetlock-slots in shale-system':
    'slots of a lock service, which no pool of the tour names',
  'shale-operator: update machineconfigs.machineconfiguration.openshift.io':
    'a rendered config that somebody changed is made what it was',
  'shale-operator: patch machineconfigs.machineconfiguration.openshift.io':
    'a pool returns to a config that was rendered earlier',
  'shale-operator: delete machineconfigs.machineconfiguration.openshift.io':
    'rendered configs that nobody has used for long',
  ...Object.fromEntries(
    ['kubeletconfigs', 'containerruntimeconfigs'].flatMap((kind) =>
      [`patch ${kind}`, `update ${kind}/status`].map((what) => [
        `shale-operator: ${what}.machineconfiguration.openshift.io`,
        'the tour configures neither the kubelet nor the container runtime',
      ]),
    ),
  ),
  'shale-operator: delete poolrevisions.shale.dev': 'a pool has more than fifty that nothing uses',
  'shale-operator: update machineosconfigs.machineconfiguration.openshift.io':
    'the switch says something else than before',
  'shale-operator: patch imagecontentsourcepolicies.operator.openshift.io':
    'the tour has digest mirrors only',
  'shale-operator: patch imagetagmirrorsets.config.openshift.io': 'the tour has digest mirrors only',
  'shale-operator: get machines.cluster.x-k8s.io': 'the tour has no Machines',
  'shale-operator: get machines.machine.openshift.io': 'the tour has no Machines',
  'shale-operator: bind clusterroles.rbac.authorization.k8s.io machine-os-builder': BIND,
  'shale-operator: bind roles.rbac.authorization.k8s.io machine-os-builder in shale-system': BIND,
  'shale-operator: bind roles.rbac.authorization.k8s.io machine-os-builder in shale-builds': BIND,
  'shale-operator: update configmaps image-signing-keys in shale-system':
    'the key that signs images was rotated, or signing was disabled',
  'shale-operator: get deployments.apps shale-operator in shale-system':
    "the operator's own pod is not known by its name",
  'shale-operator: patch deployments.apps machine-os-builder in shale-system':
    "the operator's own flags or image changed",
  'shale-daemon: get pinnedimagesets.machineconfiguration.openshift.io': 'the tour pins no images',
  'shale-daemon: get configmaps kubelet-ca in shale-system': 'the tour leaves the kubelet its CA',
  'shale-daemon: get secrets node-pull-secret in shale-system': "the tour's registry asks for no credentials",
  'shale-operator: get leases.coordination.k8s.io in medik8s-leases':
    'a lease is not as the cache has it: somebody else wrote it a moment ago',
  'shale-operator: update leases.coordination.k8s.io in medik8s-leases':
    'a lease is renewed, or taken over, when work on a node lasts long',
  'shale-operator: patch events': 'an event that happens again is counted',
  'machine-os-builder: patch events': 'an event that happens again is counted',
  'machine-os-builder: delete machineosbuilds.machineconfiguration.openshift.io':
    'a build of the same inputs is asked for again',
  'machine-os-builder: get secrets in shale-system': "the tour's registry asks for no credentials",
  'shale-daemon: patch events in default': 'an event that happens again is counted',
};

/** What somebody else wrote in the meantime is read again. */
function conflicts(account: string, kinds: readonly string[]): Record<string, string> {
  return Object.fromEntries(kinds.map((kind) => [`${account}: get ${kind}`, 'two write at once']));
}
