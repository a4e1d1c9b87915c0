import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { MachineConfiguration } from '../../api/machine-configuration.ts';
import { buildFailures, type MachineOSBuild } from '../../api/machine-os-build.ts';
import type { Condition } from '../../api/object.ts';
import { aMachineOSConfig } from '../../test/fixtures/objects.ts';
import { condition, machineConfigNode, observed, pool, SINCE } from '../../test/fixtures/observed-cluster.ts';
import { judgeConditions } from './check-conditions.ts';
import { conditionRemedies } from './condition-remedies.ts';

const NOW = Date.parse(SINCE) + 3_720_000;
const AGE = `(since ${SINCE}, for 1h2m)`;

function judge(
  {
    configuration,
    ...more
  }: Parameters<typeof observed>[0] & {
    readonly configuration?: readonly Condition[];
  },
  now = NOW,
) {
  const object: MachineConfiguration | undefined = configuration && {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: {},
    status: { conditions: [...configuration] },
  };
  return judgeConditions({ ...observed(more), configuration: object }, now);
}

const build = (name: string, config: string, ...conditions: Condition[]): MachineOSBuild => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSBuild',
  metadata: { name, creationTimestamp: SINCE },
  spec: {
    machineConfig: { name: config },
    machineOSConfig: { name: 'worker' },
    renderedImagePushSpec: 'r.example.com/os/worker:1',
  },
  status: { conditions },
});
const target = { name: 'rendered-worker-1' };
const layered = {
  machineOSConfigs: [aMachineOSConfig('worker')],
  pools: [{ ...pool([]), spec: { ...pool([]).spec, configuration: target } }],
};

test('a cluster in which nothing needs attention says so', () => {
  const healthy = {
    configuration: [condition('Layering', 'True'), condition('NodeDisruptionPolicyApplied', 'True')],
    pools: [
      pool([condition('Updated', 'True'), condition('Degraded', 'False'), condition('UpdatesHeld', 'False')]),
    ],
    machineOSConfigs: [aMachineOSConfig('worker')],
    machineConfigNodes: [
      machineConfigNode('a', {
        conditions: [condition('NodeDegraded', 'False'), condition('UpdatePrepared', 'True')],
      }),
    ],
  };
  expect(judge(healthy)).toEqual([
    { level: 'ok', check: 'conditions', what: 'no pool, node or build needs attention' },
  ]);
});

test.each<[string, Condition, level: string, what: string, fix: RegExp]>([
  [
    'a node of an unsupported host',
    condition('NodeDegraded', 'True', 'no bootc', 'UnsupportedHost'),
    'failure',
    'NodeDegraded (UnsupportedHost): no bootc',
    /^install an OS that bootc, rpm-ostree or ostree manages/,
  ],
  [
    'a node whose files were changed',
    condition('NodeDegraded', 'True', '/etc/a differs', 'ConfigDrift'),
    'failure',
    'NodeDegraded (ConfigDrift): /etc/a differs',
    /shale repair a$/,
  ],
  [
    'a node whose update failed',
    condition('NodeDegraded', 'True', 'unit x failed', 'UpdateFailed'),
    'failure',
    'NodeDegraded (UpdateFailed): unit x failed',
    /^run shale explain a to see/,
  ],
  [
    'a node that can not stage',
    condition('UpdatePrepared', 'False', 'certificate expired', 'PrepareFailed'),
    'failure',
    'UpdatePrepared (PrepareFailed): certificate expired',
    /pull secret .* full disk/,
  ],
  [
    'a node that the operator can not work on',
    condition('StepsFailing', 'True', 'cordoning it fails: denied', 'Refused'),
    'failure',
    'StepsFailing (Refused): cordoning it fails: denied',
    /a webhook|the webhook/,
  ],
  [
    'a daemon that can not report',
    condition('DaemonStepsFailing', 'True', 'reporting fails: no', 'RequestFailed'),
    'failure',
    'DaemonStepsFailing (RequestFailed): reporting fails: no',
    /the webhook/,
  ],
  [
    'a node without its certificates',
    condition('CertificatesApplied', 'False', 'a MachineConfig has the file', 'OwnedByMachineConfig'),
    'warning',
    'CertificatesApplied (OwnedByMachineConfig): a MachineConfig has the file',
    /^do what the message says/,
  ],
  [
    'images that are not pinned',
    condition('PinnedImageSetsDegraded', 'True', 'no space', 'PullFailed'),
    'warning',
    'PinnedImageSetsDegraded (PullFailed): no space',
    /pinned-images/,
  ],
])('of a node: %s', (_what, bad, level, what, fix) => {
  const machineConfigNodes = [machineConfigNode('a', { conditions: [bad] })];
  expect(judge({ machineConfigNodes })).toEqual([
    {
      level,
      check: 'conditions',
      what: `MachineConfigNode a: ${what} ${AGE}`,
      fix: expect.stringMatching(fix),
    },
  ]);
});

test.each<[string, Condition]>([
  ['stages', condition('UpdatePrepared', 'False', 'Staging', 'Staging')],
  ['gets its certificates', condition('CertificatesApplied', 'False', 'Applying', 'Applying')],
  ['needs no signature policy', condition('SignaturePolicyApplied', 'False', '', 'NotRequired')],
  ['waits for its drain', condition('Drained', 'False', 'pod a', 'Draining')],
])('a node that %s needs nobody', (_what, usual) => {
  const machineConfigNodes = [machineConfigNode('a', { conditions: [usual] })];
  expect(judge({ machineConfigNodes })).toMatchObject([{ level: 'ok' }]);
});

test('nodes with the same condition, reason and message are one finding, and more than five are counted', () => {
  const same = { conditions: [condition('NodeDegraded', 'True', 'unit x failed', 'UpdateFailed')] };
  const other = { conditions: [condition('NodeDegraded', 'True', 'unit y failed', 'UpdateFailed')] };
  const machineConfigNodes = [
    ...['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => machineConfigNode(name, same)),
    machineConfigNode('h', other),
  ];
  expect(judge({ machineConfigNodes }).map(({ what }) => what)).toEqual([
    `MachineConfigNode a, b, c, d, e and 2 more nodes: NodeDegraded (UpdateFailed): unit x failed ${AGE}`,
    `MachineConfigNode h: NodeDegraded (UpdateFailed): unit y failed ${AGE}`,
  ]);
});

test.each<[string, Condition, readonly string[]]>([
  [
    'two nodes failed',
    condition('Degraded', 'True', 'the rollout stopped: 2 nodes failed', 'Degraded'),
    [`failure MachineConfigPool worker: Degraded: the rollout stopped: 2 nodes failed ${AGE}`],
  ],
  [
    'its nodes have it themselves',
    condition('Degraded', 'True', 'Node a is reporting', 'NodesDegraded'),
    ['ok no pool, node or build needs attention'],
  ],
  [
    'a setting can not be read',
    condition('Degraded', 'True', "spec.shale.holdOnAlerts can't be read", 'Degraded'),
    [`failure MachineConfigPool worker: Degraded: spec.shale.holdOnAlerts can't be read ${AGE}`],
  ],
  [
    'another pool selects its node',
    condition('Degraded', 'True', 'Node a is in infra, too', 'NodesInSeveralPools'),
    [`failure MachineConfigPool worker: Degraded (NodesInSeveralPools): Node a is in infra, too ${AGE}`],
  ],
  [
    'new nodes wait for long',
    condition('NewNodesWaiting', 'True', 'a: not Ready', 'Overdue'),
    [`warning MachineConfigPool worker: NewNodesWaiting (Overdue): a: not Ready ${AGE}`],
  ],
  [
    'new nodes are being updated',
    condition('NewNodesWaiting', 'True', 'a: staging', 'Waiting'),
    ['ok no pool, node or build needs attention'],
  ],
])('of a pool: %s', (_what, bad, expected) => {
  expect(judge({ pools: [pool([bad])] }).map(({ level, what }) => `${level} ${what}`)).toEqual(expected);
});

test.each([
  ['AlertsUnknown', '--alertmanager-url'],
  ['QueriesUnknown', '--prometheus-url'],
  ['RebootSlotUnknown', '--fleetlock-token-file'],
])('a service that does not answer (%s) is found behind other holds, with its flags', (reason, flag) => {
  const held = condition('UpdatesHeld', 'True', 'pool infra; no answer', 'AwaitingPools');
  const heldUpdates = [
    { reason: 'AwaitingPools', message: 'pool infra' },
    { reason, message: 'connect ECONNREFUSED' },
  ];
  expect(judge({ pools: [pool([held], { heldUpdates })] })).toMatchObject([
    {
      level: 'failure',
      what: `MachineConfigPool worker: UpdatesHeld (${reason}): connect ECONNREFUSED ${AGE}`,
      fix: expect.stringContaining(flag),
    },
  ]);
  const answers = { ...held, status: 'False' as const };
  expect(judge({ pools: [pool([answers])] })).toMatchObject([{ level: 'ok' }]);
});

test('an operator before 0.2 reports the first hold alone, as the reason of the condition', () => {
  const first = condition('UpdatesHeld', 'True', 'it is unknown', 'AlertsUnknown');
  const behind = condition('UpdatesHeld', 'True', 'it is unknown, too', 'AwaitingPools');
  expect(judge({ pools: [pool([first]), pool([behind])] }).map(({ what }) => what)).toEqual([
    `MachineConfigPool worker: UpdatesHeld (AlertsUnknown): it is unknown ${AGE}`,
  ]);
});

test('of builds those are reported that a pool waits for, with the remedy of the reason', () => {
  const failed = condition('Failed', 'True', 'no such host', 'RegistryUnavailable');
  const retrying = condition('Building', 'True', 'attempt 2 failed', 'Retrying');
  const of = (...conditions: Condition[]) =>
    judge({
      ...layered,
      builds: [build('old', 'rendered-worker-0', failed), build('new', target.name, ...conditions)],
    });
  expect(of(failed)).toEqual([
    {
      level: 'failure',
      check: 'conditions',
      what: `MachineOSBuild new: Failed (RegistryUnavailable): no such host ${AGE}`,
      fix: buildFailures.RegistryUnavailable,
    },
  ]);
  expect(of(retrying)).toMatchObject([
    { level: 'warning', what: expect.stringContaining('attempt 2 failed') },
  ]);
  expect(of(condition('Building', 'True', 'pushing', 'Pushing'))).toMatchObject([{ level: 'ok' }]);
});

test('of a MachineOSConfig the builder reports what it waits for, and a tag that it could not move', () => {
  const conditions = [
    condition('BuildWaiting', 'True', 'no base image', 'BaseImageMissing'),
    condition('StepsFailing', 'True', 'keeping its build fails: no', 'Refused'),
    condition('BootImagePublished', 'False', 'the tag is immutable', 'PushFailed'),
  ];
  const machineOSConfigs = [{ ...aMachineOSConfig('worker'), status: { conditions } }];
  expect(judge({ machineOSConfigs })).toMatchObject([
    {
      level: 'warning',
      what: `MachineOSConfig worker: BuildWaiting (BaseImageMissing): no base image ${AGE}`,
    },
    { level: 'failure', what: expect.stringContaining('keeping its build fails: no') },
    { level: 'warning', fix: expect.stringContaining('shale node image worker') },
  ]);
});

test('of the MachineConfiguration the operator reports the switch, the policies and what fails', () => {
  const configuration = [
    condition('Layering', 'Unknown', 'data.enabled: yes', 'InvalidSwitch'),
    condition('LayeringDegraded', 'True', 'creating the builder fails: no', 'StepFailing'),
    condition('Degraded', 'True', 'Node a: cordoning it fails: no', 'StepsFailing'),
    condition('NodeDisruptionPolicyApplied', 'False', 'a file has no path', 'InvalidPolicy'),
    condition('SettingsRefused', 'True', 'irreconcilableValidationOverrides', 'NotSupported'),
  ];
  expect(judge({ configuration }).map(({ level, what }) => `${level} ${what}`)).toEqual([
    `failure MachineConfiguration cluster: Layering (InvalidSwitch): data.enabled: yes ${AGE}`,
    `failure MachineConfiguration cluster: LayeringDegraded (StepFailing): creating the builder fails: no ${AGE}`,
    `failure MachineConfiguration cluster: Degraded (StepsFailing): Node a: cordoning it fails: no ${AGE}`,
    `failure MachineConfiguration cluster: NodeDisruptionPolicyApplied (InvalidPolicy): a file has no path ${AGE}`,
    `warning MachineConfiguration cluster: SettingsRefused (NotSupported): irreconcilableValidationOverrides ${AGE}`,
  ]);
});

test('each section of a page that a remedy names exists', async () => {
  const texts = JSON.stringify(conditionRemedies);
  const named = new Set(Array.from(texts.matchAll(/docs\/[\w./-]+\.md(?:#\w+)?/g), ([page]) => page));
  expect(named.size).toBeGreaterThan(5);
  for (const name of named) {
    const [page = '', anchor] = name.split('#');
    const headings = Array.from((await readFile(page, 'utf8')).matchAll(/^#+ (.*)$/gm), ([, text = '']) =>
      text.toLowerCase(),
    );
    expect(anchor === undefined || headings.includes(anchor), name).toBe(true);
  }
});
