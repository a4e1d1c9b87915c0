import { describe, expect, test } from 'vitest';
import type { NodeDisruptionPolicy } from '../api/disruption-policy.ts';
import { kubeletDropIns } from '../machineconfig/services/kubelet-files.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from './effective-policies.ts';

const restart = (serviceName: string) => ({ type: 'Restart' as const, restart: { serviceName } });

describe('effectivePolicies', () => {
  test("an admin's entry replaces the default's whole list", () => {
    const { files } = effectivePolicies(
      { files: [{ path: '/etc/containers/registries.conf', actions: [{ type: 'None' }] }] },
      defaultPolicySettings,
    );
    expect(files?.filter(({ path }) => path === '/etc/containers/registries.conf')).toEqual([
      { path: '/etc/containers/registries.conf', actions: [{ type: 'None' }], source: 'Admin' },
    ]);
  });

  test("the runtime's unit is a setting", () => {
    const text = JSON.stringify(effectivePolicies(undefined, { containerRuntimeUnit: 'containerd.service' }));
    expect(text).toContain('containerd.service');
    expect(text).not.toContain('crio.service');
  });

  test("an admin's policies for units, SSH keys and mirrors take the place of the defaults", () => {
    const none = [{ type: 'None' as const }];
    const policies = effectivePolicies(
      {
        units: [{ name: 'iri-registry.service', actions: none }],
        sshkey: { actions: [{ type: 'Drain' }] },
        imageMirrors: [
          { kind: 'ImageTagMirrorSet', added: none },
          { kind: 'ImageDigestMirrorSet', removed: none },
        ],
      },
      defaultPolicySettings,
    );
    expect(policies.units).toEqual([{ name: 'iri-registry.service', actions: none, source: 'Admin' }]);
    expect(policies.sshkey).toEqual({ actions: [{ type: 'Drain' }], source: 'Admin' });
    expect(policies.imageMirrors?.map(({ kind }) => kind)).toEqual([
      'ImageDigestMirrorSet',
      'ImageTagMirrorSet',
    ]);
    const defaults = effectivePolicies({ imageMirrors: [] }, defaultPolicySettings);
    expect(Object.keys(defaults)).not.toContain('imageMirrors');
    expect(defaults.sshkey).toEqual({ actions: none });
    const paths = defaults.files?.map(({ path }) => path) ?? [];
    expect(paths).toEqual(paths.toSorted());
  });

  test('the digest does not depend on the order in which policies are written', () => {
    const a = { path: '/etc/a', actions: [restart('a.service')] };
    const b = { path: '/etc/b', actions: [restart('b.service')] };
    const digest = (files: NodeDisruptionPolicy['files'] & object) =>
      policyDigest(effectivePolicies({ files }, defaultPolicySettings));
    expect(digest([a, b])).toBe(digest([b, a]));
    expect(digest([a])).not.toBe(digest([a, b]));
  });

  test('a default for files that earlier versions did not generate relabels no image; an admin’s policy does', () => {
    const path = kubeletDropIns.live;
    const policies = effectivePolicies(undefined, defaultPolicySettings);
    const older = { ...policies, files: policies.files?.filter((file) => file.path !== path) ?? [] };
    expect(older.files).not.toHaveLength(policies.files?.length ?? 0);
    expect(policyDigest(older)).toBe(policyDigest(policies));
    const own = effectivePolicies({ files: [{ path, actions: [{ type: 'None' }] }] }, defaultPolicySettings);
    expect(policyDigest(own)).not.toBe(policyDigest(policies));
  });

  test("the digest changes with the container runtime's unit, and not where an older Shale recorded none", () => {
    const policies = effectivePolicies(undefined, defaultPolicySettings);
    const { containerRuntimeUnit: _, ...older } = policies;
    const containerd = { ...policies, containerRuntimeUnit: 'containerd.service' };
    expect(policyDigest(older)).toBe(policyDigest(policies));
    expect(policyDigest(containerd)).not.toBe(policyDigest(policies));
  });
});
