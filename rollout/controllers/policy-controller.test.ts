import { describe, expect, it, vi } from 'vitest';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { CredentialProviderSettings, NodeSettings } from '../../api/openshift-settings.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { effectivePolicies } from '../../disruption/effective-policies.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { kstatus, ownConditions } from '../../test/fixtures/kstatus.ts';
import { aPool } from '../../test/fixtures/objects.ts';
import { someOptions } from '../../test/fixtures/rollout-options.ts';
import { defaultRolloutOptions } from '../options.ts';
import { PolicyController, policyStatus } from './policy-controller.ts';

const settings = { containerRuntimeUnit: 'crio.service', pools: [] };
const NOW = Date.parse('2026-06-01T00:00:00Z');
const chrony = {
  files: [
    {
      path: '/etc/chrony.conf',
      actions: [{ type: 'Restart' as const, restart: { serviceName: 'chronyd.service' } }],
    },
  ],
};
/** Reboot stands alone by MCO's rule. */
const invalid = {
  files: [{ path: '/etc/x', actions: [{ type: 'Reboot' as const }, { type: 'Drain' as const }] }],
};
const configuration = (more: Pick<MachineConfiguration, 'spec' | 'status'> = {}): MachineConfiguration => ({
  apiVersion: 'operator.openshift.io/v1',
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster', generation: 3 },
  ...more,
});
const inForce = (status: MachineConfiguration['status']) =>
  status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files?.map(({ path }) => path);

it('the admin’s policies are in force beside the defaults', () => {
  const status = policyStatus(configuration({ spec: { nodeDisruptionPolicy: chrony } }), settings, NOW);
  expect(inForce(status)).toContain('/etc/chrony.conf');
  expect(inForce(status)).toContain('/etc/containers/registries.conf');
  expect(status).toMatchObject({ observedGeneration: 3, policyDigest: expect.stringMatching(/^sha256:/) });
  expect(ownConditions(status.conditions)).toMatchObject([
    { type: 'NodeDisruptionPolicyApplied', status: 'True' },
  ]);
});

it('what has no effect in spec is in the message of the condition', () => {
  const spec = {
    managedBootImages: { machineManagers: [] },
    nodeDisruptionPolicy: { files: [{ path: '/etc/*.conf', actions: [{ type: 'None' as const }] }] },
  };
  const [condition] = policyStatus(configuration({ spec }), settings, NOW).conditions ?? [];
  expect(condition).toMatchObject({ status: 'True', reason: 'AsSpecified' });
  expect(condition?.message).toMatch(
    /are in effect; spec\.managedBootImages: is not supported, because .*; spec\.nodeDisruptionPolicy\.files\[0\]\.path: has no wildcards/,
  );
});

it('what fails is in a field and in a condition, and in neither once nothing fails', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'shale-system' } };
  const failure = { kind: 'Refused', why: 'denied; ask ops' } as const;
  const step = { object, doing: 'reading it', failure, since: NOW, lastAt: NOW, failures: 9, retryAt: NOW };
  const failures = [{ ...step, isReported: true }];
  const during = policyStatus(configuration(), { ...settings, failures }, NOW);
  expect(during.failingSteps).toMatchObject([
    { kind: 'ConfigMap', name: 'b', step: 'reading it', reason: 'Refused', message: 'denied; ask ops' },
  ]);
  expect(during.conditions).toContainEqual(
    expect.objectContaining({
      type: 'Degraded',
      message: 'ConfigMap shale-system/b: reading it fails: denied; ask ops',
    }),
  );
  expect(policyStatus(configuration({ status: during }), settings, NOW)).not.toHaveProperty('failingSteps');
});

it('an invalid spec leaves the last good policies in force and says what is wrong', () => {
  const good = policyStatus(configuration({ spec: { nodeDisruptionPolicy: chrony } }), settings, NOW);
  const broken = configuration({ spec: { nodeDisruptionPolicy: invalid }, status: good });
  const status = policyStatus(broken, settings, NOW);
  expect(inForce(status)).toEqual(inForce(good));
  expect(status.policyDigest).toBe(good.policyDigest);
  expect(ownConditions(status.conditions)).toMatchObject([{ status: 'False', reason: 'InvalidPolicy' }]);
  const metadata = { generation: 3 };
  expect([good, status].map((each) => kstatus({ metadata, status: each }))).toEqual(['Current', 'Failed']);
});

it('an invalid spec on its first day leaves the defaults in force', () => {
  const status = policyStatus(configuration({ spec: { nodeDisruptionPolicy: invalid } }), settings, NOW);
  expect(status.policyDigest).toBe(policyStatus(configuration(), settings, NOW).policyDigest);
});

it("policies that stay in force name the container runtime's unit, whoever recorded them", () => {
  const status = { nodeDisruptionPolicyStatus: { clusterPolicies: { files: [] } } };
  const broken = configuration({ spec: { nodeDisruptionPolicy: invalid }, status });
  const containerd = { containerRuntimeUnit: 'containerd.service' };
  expect(
    policyStatus(broken, { ...containerd, pools: [] }, NOW).nodeDisruptionPolicyStatus?.clusterPolicies,
  ).toEqual({
    files: [],
    ...containerd,
  });
});

it('is the same when nothing has changed', () => {
  const first = policyStatus(configuration({ spec: { nodeDisruptionPolicy: chrony } }), settings, NOW);
  const again = configuration({ spec: { nodeDisruptionPolicy: chrony }, status: first });
  expect(policyStatus(again, settings, NOW + 60_000)).toEqual(first);
});

describe('what spec says besides policies', () => {
  const conditionsOf = (spec: MachineConfiguration['spec'], status?: MachineConfiguration['status']) =>
    policyStatus(configuration({ spec, status }), settings, NOW);
  const found = (status: MachineConfiguration['status'], type: string) =>
    status?.conditions?.find((each) => each.type === type);

  it.each(['Unmanaged', 'Removed'])('%s is a condition, until it is gone', (managementState) => {
    const status = conditionsOf({ managementState });
    expect(found(status, 'Unmanaged')).toMatchObject({ status: 'True', reason: managementState });
    expect(found(status, 'NodeDisruptionPolicyApplied')).toMatchObject({ status: 'True' });
    expect(found(conditionsOf({ managementState: 'Managed' }, status), 'Unmanaged')).toBeUndefined();
  });

  it('a field that Shale does not have is refused by a condition, until it is gone', () => {
    const status = conditionsOf({ failedRevisionLimit: 3, managedBootImages: { machineManagers: [] } });
    expect(found(status, 'SettingsRefused')).toMatchObject({
      status: 'True',
      reason: 'NotSupported',
      message: expect.stringMatching(
        /^spec\.failedRevisionLimit: is not supported.*; spec\.managedBootImages: is not supported/,
      ),
    });
    expect(found(conditionsOf({}, status), 'SettingsRefused')).toBeUndefined();
  });

  it('settings of other objects are refused by the same condition', () => {
    const elsewhere = { path: 'Node cluster', reason: 'is not supported', expected: 'a KubeletConfig' };
    const status = policyStatus(
      configuration({ spec: { failedRevisionLimit: 3 } }),
      { ...settings, elsewhere: [elsewhere] },
      NOW,
    );
    expect(found(status, 'SettingsRefused')?.message).toBe(
      'spec.failedRevisionLimit: is not supported; expected to be omitted; Node cluster: is not supported; expected a KubeletConfig',
    );
  });

  it('what Shale does about boot images is said by a condition, unless nothing else is asked for', () => {
    const status = conditionsOf({
      managedBootImages: { machineManagers: [{ selection: { mode: 'All' } }] },
      bootImageSkewEnforcement: { mode: 'Automatic' },
    });
    expect(found(status, 'SettingsRefused')?.message).toMatch(
      /^spec\.managedBootImages: .*it publishes an image for new nodes.*; spec\.bootImageSkewEnforcement: .*stops no rollout/,
    );
    const asDone = { bootImageSkewEnforcement: { mode: 'None' } };
    expect(found(conditionsOf(asDone, status), 'SettingsRefused')).toBeUndefined();
  });

  it('what is honored needs no condition', () => {
    const status = conditionsOf({
      managementState: 'Force',
      operatorLogLevel: 'Debug',
      logLevel: 'Trace',
      irreconcilableValidationOverrides: { storage: ['Disks'] },
    });
    expect(ownConditions(status.conditions).map(({ type }) => type)).toEqual(['NodeDisruptionPolicyApplied']);
  });
});

describe('policies of pools', () => {
  const files = [{ path: '/etc/app/*.conf', actions: [{ type: 'None' as const }] }];
  const edge = { name: 'edge', poolSelector: { matchLabels: { tier: 'edge' } }, files };
  const spec = { shale: { nodeDisruptionPolicies: [edge] } };
  const pools = [aPool('worker'), { ...aPool('edge'), metadata: { name: 'edge', labels: { tier: 'edge' } } }];

  it('are recorded for each pool, with their digests', () => {
    const status = policyStatus(configuration({ spec }), { ...settings, pools }, NOW);
    expect(status.poolPolicies?.map((each) => [each.pools, each.policies.patterns?.length])).toEqual([
      [['edge'], 1],
      [['worker'], undefined],
    ]);
    expect(status.poolPolicies?.map((each) => each.policyDigest === status.policyDigest)).toEqual([
      false,
      true,
    ]);
    expect(status.summary?.pools).toBe('edge: edge');
  });

  it('that select no pool are named in the message of the condition', () => {
    const status = policyStatus(configuration({ spec }), settings, NOW);
    expect(ownConditions(status.conditions)).toMatchObject([
      { status: 'True', message: expect.stringContaining('edge selects no MachineConfigPool') },
    ]);
  });

  it('stay in force while spec is invalid', () => {
    const good = policyStatus(configuration({ spec }), { ...settings, pools }, NOW);
    const broken = {
      shale: {
        nodeDisruptionPolicies: [{ ...edge, files: files.map((file) => ({ ...file, path: '/**' })) }],
      },
    };
    const bad = configuration({ spec: broken, status: good });
    const status = policyStatus(bad, { ...settings, pools }, NOW);
    expect(status.poolPolicies).toEqual(good.poolPolicies);
    expect(status.summary).toEqual(good.summary);
    expect(ownConditions(status.conditions)).toMatchObject([{ status: 'False', reason: 'InvalidPolicy' }]);
  });

  it('are gone from the status when they are gone from spec', () => {
    const good = policyStatus(configuration({ spec }), { ...settings, pools }, NOW);
    const status = policyStatus(configuration({ status: good }), { ...settings, pools }, NOW);
    expect(status.poolPolicies).toBeUndefined();
    expect(status.summary?.pools).toBeUndefined();
  });
});

describe('the controller', () => {
  const signal = new AbortController().signal;
  const cluster = new MemoryCluster();
  const operator = steppedOperator(cluster, () => NOW);
  const status = () => cluster.get(MachineConfigurations, 'cluster')?.status;

  it('creates the MachineConfiguration and reports the defaults as in force', async () => {
    expect(await operator.policy.reconcile('cluster', signal)).toEqual({
      kind: 'requeue',
      afterMs: 300_000,
    });
    expect(ownConditions(status()?.conditions)).toMatchObject([
      { type: 'NodeDisruptionPolicyApplied', status: 'True' },
    ]);
    expect(status()?.policyDigest).toMatch(/^sha256:/);
  });

  it('writes nothing when nothing has changed', async () => {
    operator.catchUp();
    const before = cluster.writes;
    await operator.policy.reconcile('cluster', signal);
    expect(cluster.writes).toBe(before);
  });

  it("writes the container runtime's unit that its flag names into what is in force", async () => {
    const own = new MemoryCluster();
    const { caches, failing } = steppedOperator(own, () => NOW);
    const options = someOptions({ hosts: { containerRuntimeUnit: 'containerd.service' } });
    const client = own.client();
    const controller = new PolicyController({ client, caches, options, failing, now: () => NOW });
    await controller.reconcile('cluster', signal);
    const written = own.get(MachineConfigurations, 'cluster')?.status;
    const { clusterPolicies } = written?.nodeDisruptionPolicyStatus ?? {};
    expect(clusterPolicies).toEqual(effectivePolicies(undefined, options.hosts));
    expect(clusterPolicies?.containerRuntimeUnit).toBe('containerd.service');
    expect(written?.policyDigest).not.toBe(status()?.policyDigest);
  });

  it.each([404, 403])(
    'reports settings of OpenShift that it does not have, and does without the kinds (%i)',
    async (code) => {
      const own = new MemoryCluster();
      const stepped = steppedOperator(own, () => NOW);
      const { caches, failing } = stepped;
      const client = own.client();
      const find = client.find.bind(client);
      let isServed = false;
      vi.spyOn(client, 'find').mockImplementation(async (kind, name, where) => {
        if (kind.group !== 'config.openshift.io' || isServed) return find(kind, name, where);
        if (code === 404) return undefined;
        throw new ApiError(code, name, {});
      });
      const parts = { client, caches, options: defaultRolloutOptions, failing, now: () => NOW };
      own.put(MachineConfigurations, configuration({ spec: {} }));
      const refusedNow = async () => {
        stepped.catchUp();
        await new PolicyController(parts).reconcile('cluster', signal);
        const conditions = own.get(MachineConfigurations, 'cluster')?.status?.conditions;
        return conditions?.find(({ type }) => type === 'SettingsRefused')?.message;
      };
      expect(await refusedNow()).toBeUndefined();
      isServed = true;
      const apiVersion = 'config.openshift.io/v1';
      const metadata = { name: 'cluster' };
      own.put(NodeSettings, { apiVersion, kind: 'Node', metadata, spec: { workerLatencyProfile: 'X' } });
      for (const kind of CredentialProviderSettings)
        own.put(kind, { apiVersion, kind: kind.kind, metadata, spec: { matchImages: ['a.io'] } });
      const message = await refusedNow();
      expect(message).toMatch(
        /^Node cluster .*workerLatencyProfile: .*; CRIOCredentialProviderConfig cluster /,
      );
      expect(message?.match(/matchImages/g)).toHaveLength(1);
    },
  );

  it('creates none where another tool does, and reports on the one that this tool has created', async () => {
    const own = new MemoryCluster();
    const options = someOptions({ createsMachineConfiguration: false });
    const stepped = steppedOperator(own, () => NOW);
    const { caches, failing } = stepped;
    const client = own.client();
    const controller = new PolicyController({ client, caches, options, failing, now: () => NOW });
    expect(await controller.reconcile('cluster', signal)).toEqual({ kind: 'done' });
    expect(own.list(MachineConfigurations)).toEqual([]);
    own.put(MachineConfigurations, configuration({ spec: {} }));
    stepped.catchUp();
    await controller.reconcile('cluster', signal);
    expect(own.get(MachineConfigurations, 'cluster')?.status?.policyDigest).toMatch(/^sha256:/);
  });

  it('ignores an object of another name', async () => {
    await operator.policy.reconcile('other', signal);
    expect(cluster.list(MachineConfigurations).map(({ metadata }) => metadata.name)).toEqual(['cluster']);
  });

  it('leaves it to its event when somebody else created the object first, and swallows nothing else', async () => {
    const late = steppedOperator(cluster, () => NOW);
    expect(await late.policy.reconcile('cluster', signal)).toEqual({ kind: 'done' });
    cluster.remove(MachineConfigurations, 'cluster');
    cluster.trouble = () => 'unavailable';
    await expect(late.policy.reconcile('cluster', signal)).rejects.toMatchObject({ status: 503 });
  });
});
