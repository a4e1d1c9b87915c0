/**
 * What an API server says to the settings of a pool: kube-apiserver where KUBEBUILDER_ASSETS names one, else the
 * embedded one.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { type Answer, type Api, eventually, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { applier, owners } from '../../workshop/apiserver/conformance/apply.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';

const BASE = path.join(import.meta.dirname, '../../manifests/base');
const POOLS = '/apis/machineconfiguration.openshift.io/v1/machineconfigpools';
const signal = deadline(patience(120_000));
let api: Api;
let operator: string;
const apply = applier(() => api);

beforeAll(async () => {
  api = await startApi();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(client, await readKustomization(BASE), { log, signal });
  operator = await api.tokenOf({ namespace: 'shale-system', name: 'shale-operator' });
  // A policy is in force a moment after it was made.
  await eventually(
    () => tryPool({}, { 'shale.dev/a': '' }),
    ({ headers }: Answer) => headers['warning'] !== undefined,
  );
}, patience(90_000));
afterAll(() => api.stop());

const aPool = (spec: object, annotations: Readonly<Record<string, string>> = {}, name = 'worker') => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: MachineConfigPools.kind,
  metadata: { name, annotations },
  spec,
});
const tryPool = (spec: object, annotations?: Readonly<Record<string, string>>, token?: string) =>
  api.call(
    'POST',
    `${POOLS}?dryRun=All&fieldValidation=Strict`,
    aPool(spec, annotations),
    token === undefined ? {} : { token },
  );

describe('the schema of spec.shale', () => {
  test('takes every setting', async () => {
    const shale = {
      maintenanceWindows: [{ schedule: '0 22 * * 6', duration: '4h', timeZone: 'Europe/Berlin' }],
      liveOutsideWindows: true,
      waves: [
        { nodes: 1, bake: '30m' },
        { nodes: '25%', bake: '1h30m' },
      ],
      dependsOn: ['infra'],
      holdOnAlerts: ['severity="critical", team=~"a|b"'],
      holdOnQueries: ['up == 0'],
      holds: { vulnerabilities: 'high', acceptedBaseImages: [`sha256:${'a'.repeat(64)}`] },
      failureDomains: { topologyKey: 'topology.kubernetes.io/zone', maxUnavailable: '20%' },
      hooksBefore: ['lb'],
      hooksAfter: ['example.com_gpu'],
      soak: '0s',
      failureThreshold: { canary: 1, after: 2 },
      unhealthyAfter: '10m',
      autoRollback: false,
      rebootPolicy: 'AtNextReboot',
      maxArmed: '20%',
      rebootSentinel: '/var/run/reboot-required',
      softReboot: true,
      prefetch: true,
      updateCordoned: true,
      containerRuntime: 'cri-o',
    };
    const { status, body, headers } = await tryPool({ shale });
    expect([status, body.spec?.shale, headers['warning']]).toEqual([201, shale, undefined]);
  });

  test.each<[string, object, RegExp]>([
    ['a misspelt name', { wave: [] }, /unknown field "spec\.shale\.wave"/],
    ['seconds', { soak: 30 }, /spec\.shale\.soak.*string/],
    ['a duration in words', { soak: 'soon' }, /spec\.shale\.soak.*expected a duration in hours, minutes/],
    ['days', { waves: [{ nodes: 1, bake: '1d' }] }, /waves\[0\]\.bake.*expected a duration/],
    ['a wave of no node', { waves: [{ nodes: 0, bake: '1h' }] }, /waves\[0\]\.nodes.*greater than or equal/],
    ['too large a share', { waves: [{ nodes: '101%', bake: '1h' }] }, /waves\[0\]\.nodes.*should match/],
    ['a wave that does not bake', { waves: [{ nodes: 1 }] }, /waves\[0\]\.bake.*Required/],
    ['another policy', { rebootPolicy: 'Never' }, /supported values: "Automatic", "AtNextReboot"/],
    ['a flag in words', { autoRollback: 'yes' }, /autoRollback.*boolean/],
    ['a relative path', { rebootSentinel: 'run/a' }, /expected the absolute path of a file/],
    ['a domain of no label', { failureDomains: { topologyKey: 'a b' } }, /expected the key of a label/],
    ['an unknown severity', { holds: { vulnerabilities: 'severe' } }, /supported values: "critical", "high"/],
    ['an image by tag', { holds: { acceptedBaseImages: ['r/a:1'] } }, /expected a digest such as sha256/],
    ['a name of no hook', { hooksBefore: ['a/b'] }, /expected the name of a hook/],
    [
      'six fields of a schedule',
      { maintenanceWindows: [{ schedule: '0 0 22 * * 6', duration: '4h' }] },
      /expected a cron expression of five fields/,
    ],
  ])('refuses %s', async (_what, shale, message) => {
    const { status, body } = await tryPool({ shale });
    expect([400, 422]).toContain(status);
    expect(body.message).toMatch(message);
  });
});

describe('a warning', () => {
  test.each<[string, object, Readonly<Record<string, string>>, RegExp]>([
    [
      'a misspelt annotation',
      {},
      { 'shale.dev/wave': '[]' },
      /shale\.dev\/wave: settings of a pool are fields/,
    ],
    ['an annotation of earlier versions', {}, { 'shale.dev/waves': '[]' }, /read for one more version/],
    ['a limit that is no percentage', { maxUnavailable: '3' }, {}, /spec\.maxUnavailable can't be read/],
  ])('is given for %s', async (_what, spec, annotations, message) => {
    const { status, headers } = await tryPool(spec, annotations);
    expect([status, String(headers['warning'])]).toEqual([201, expect.stringMatching(message)]);
  });

  const requests = { 'shale.dev/rollback': '{}', 'shale.dev/source-revision': 'a', 'example.com/a': 'b' };
  test.each<[string, object, Readonly<Record<string, string>>]>([
    ['requests and records', { maxUnavailable: '20%' }, requests],
    ['a number', { maxUnavailable: 3 }, {}],
  ])('is not given for %s', async (_what, spec, annotations) => {
    expect((await tryPool(spec, annotations)).headers['warning']).toBeUndefined();
  });

  test('is not given to the operator', async () => {
    await api.call('POST', POOLS, aPool({}, {}, 'infra'));
    const body = { metadata: { annotations: { 'shale.dev/wave': '' } } };
    const { status, headers } = await api.call('PATCH', `${POOLS}/infra?dryRun=All`, body, {
      contentType: 'application/merge-patch+json',
      token: operator,
    });
    expect([status, headers['warning']]).toEqual([200, undefined]);
  });
});

test('settings that GitOps applies and the configuration that the operator writes have an owner each', async () => {
  const set = (soak: string) => aPool({ shale: { soak, waves: [{ nodes: 1, bake: '1h' }] } }, {}, 'gitops');
  const manager = 'argocd-controller';
  expect((await apply(POOLS, set('1m'), manager)).status).toBe(201);
  const written = await api.call(
    'PATCH',
    `${POOLS}/gitops?fieldManager=shale-operator`,
    { spec: { configuration: { name: 'rendered-gitops-1' } } },
    { contentType: 'application/merge-patch+json', token: operator },
  );
  expect([written.status, written.body.message]).toEqual([200, undefined]);
  const again = await apply(POOLS, set('2m'), manager);
  expect([again.status, again.body.spec?.shale.soak, again.body.spec?.configuration]).toEqual([
    200,
    '2m',
    { name: 'rendered-gitops-1' },
  ]);
  expect(owners(again.body).map(([name, operation]) => [name, operation])).toEqual([
    [manager, 'Apply'],
    ['shale-operator', 'Update'],
  ]);
  // Without a setting in Git there is none.
  const without = await apply(POOLS, aPool({ shale: { soak: '2m' } }, {}, 'gitops'), manager);
  expect(without.body.spec.shale).toEqual({ soak: '2m' });
});
