import { expect, test } from 'vitest';
import type { Deployment, Namespace, Node } from '../../api/kubernetes.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { answeringClient } from '../../test/fixtures/answering-client.ts';
import { aNode } from '../../test/fixtures/objects.ts';
import { checkEnginePods, judgeEnginePods } from './check-engine-pods.ts';

const ENFORCE = 'pod-security.kubernetes.io/enforce';
const CONTROL_PLANE = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' };
const signal = new AbortController().signal;

const namespaceWith = (labels: Record<string, string>): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shale-builds', labels },
});
const installed = { namespace: namespaceWith({ [ENFORCE]: 'privileged' }), isLimited: true };

function operatorWith(...args: string[]): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shale-operator' },
    spec: { template: { spec: { containers: [{ name: 'operator', args: ['operator', ...args] }] } } },
  } as unknown as Deployment;
}

const tainted = (...taints: { key: string; effect: string }[]) => aNode('a', { spec: { taints } });
const on = (os: string) => aNode('a', { metadata: { name: 'a', labels: { 'kubernetes.io/os': os } } });
const runtime = (...runtimeHandlers: NonNullable<NonNullable<Node['status']>['runtimeHandlers']>) =>
  aNode('a', { status: { runtimeHandlers } });
const able = { name: '', features: { userNamespaces: true } };
const unable = { name: '', features: { userNamespaces: false } };

/** @returns `level: what` of each finding. */
function judged(
  facts: Partial<Parameters<typeof judgeEnginePods>[0]>,
  nodes: readonly Node[] = [],
  ...args: string[]
): string[] {
  const cluster = { operator: operatorWith(...args), nodes };
  return judgeEnginePods({ ...installed, ...facts }, cluster).map(({ level, what }) => `${level}: ${what}`);
}

const ALL_WELL = 'ok: Namespace shale-builds, its policy and a node for the pods of builds are there';

test.each<[string, readonly Node[]]>([
  ['a node', [aNode('a')]],
  ['a control-plane node', [tainted(CONTROL_PLANE)]],
  ['a node that others avoid', [tainted({ key: 'slow', effect: 'PreferNoSchedule' })]],
  ['one of two nodes', [tainted({ key: 'gpu', effect: 'NoSchedule' }), aNode('b')]],
  ['a node with user namespaces', [runtime(able)]],
  ['one of two nodes with user namespaces', [runtime(unable), runtime(able)]],
  ['a node whose runtime reports nothing about them', [runtime(unable), runtime()]],
  ['a node whose other handler has none', [runtime({ name: 'gvisor' }, able)]],
])('%s takes the pods of builds', (_, nodes) => {
  expect(judged({}, nodes)).toEqual([ALL_WELL]);
});

test.each<[string, readonly Node[]]>([
  ['a node with a taint', [tainted({ key: 'gpu', effect: 'NoSchedule' })]],
  ['a control-plane node that evicts', [tainted({ ...CONTROL_PLANE, effect: 'NoExecute' })]],
  ['a cordoned node', [aNode('a', { spec: { unschedulable: true } })]],
  ['a node of another operating system', [on('windows')]],
])('%s does not', (_, nodes) => {
  expect(judged({}, nodes)).toEqual([expect.stringMatching(/^warning: no node takes the pods of builds/)]);
});

test.each<[string, readonly Node[]]>([
  ['says that it has none', [runtime(unable)]],
  ['does not say that it has any', [runtime({ name: '' })]],
  ['has them for another handler alone', [runtime({ name: 'kata', features: able.features }, unable)]],
])('user namespaces are missing where the runtime of every node %s', (_, nodes) => {
  const missing = /^warning: the container runtime of no node supports user namespaces/;
  expect(judged({}, nodes)).toEqual([expect.stringMatching(missing)]);
  const namespace = namespaceWith({ [ENFORCE]: 'privileged', 'shale.dev/host-users': 'allowed' });
  expect(judged({ namespace }, nodes, '--engine-host-users')).toEqual([ALL_WELL]);
  expect(judged({}, nodes, '--engine-host-users')).toEqual([
    expect.stringMatching(/^failure: the operator has --engine-host-users, but Namespace shale-builds lacks/),
  ]);
});

test.each<[string, Parameters<typeof judged>[0], RegExp]>([
  ['no namespace', { namespace: undefined }, /^failure: Namespace shale-builds does not exist/],
  ['no policy', { isLimited: false }, /^warning: ValidatingAdmissionPolicy shale-build-pods or its binding/],
  [
    'a namespace that enforces baseline',
    { namespace: namespaceWith({ [ENFORCE]: 'baseline' }) },
    /^warning: Namespace shale-builds has the label \S+: baseline instead of \S+: privileged/,
  ],
  [
    'a namespace without the label',
    { namespace: namespaceWith({}) },
    /^warning: Namespace shale-builds has no label \S+: privileged/,
  ],
])('%s is named', (_, facts, message) => {
  expect(judged(facts, [aNode('a')])).toEqual([expect.stringMatching(message)]);
});

const refusing = answeringClient({
  find: () => Promise.reject(new ApiError(403, 'GET', { message: 'namespaces is forbidden' })),
});

test.each<[string, Deployment | undefined]>([
  ['no operator', undefined],
  ['an operator whose engine is at an address', operatorWith('--engine', 'unix:///run/podman.sock')],
  ['an operator without an engine', operatorWith('--engine=none')],
])('nothing is asked for %s', async (_, operator) => {
  expect(await checkEnginePods(refusing, { operator, nodes: [] }, signal)).toEqual([]);
});

test.each([['--engine', 'pod'], ['--engine=pod'], []])('with %j it is asked', async (...args) => {
  const operator = operatorWith(...args.filter((each) => typeof each === 'string'));
  expect(await checkEnginePods(refusing, { operator, nodes: [] }, signal)).toMatchObject([
    { level: 'warning', what: expect.stringContaining('namespaces is forbidden') },
  ]);
});
