import { readFileSync } from 'node:fs';
import path from 'node:path';
import pino from 'pino';
import { describe, expect, test } from 'vitest';
import type { Clusters } from '../../capi/clusters/clusters.ts';
import { type Hook, pathOf } from '../../capi/contract/hooks.ts';
import { UpdateHooks } from '../../capi/hooks.ts';
import { applyStrategicMergePatch } from '../../workshop/apiserver/patch/strategic-merge-patch.ts';
import { documentedSchema } from '../fixtures/capi/runtime-sdk.ts';
import { drivenBy, workload } from '../fixtures/capi/workload.ts';
import { image } from '../fixtures/objects.ts';

/** What the controllers of Cluster API v1.14.2 asked the recording extension of the lab (test/capi-lab). */
interface Recording {
  readonly exchanges: readonly {
    readonly hook: Hook | 'Discovery';
    readonly path: string;
    readonly request: Request;
    readonly response: Readonly<Record<string, unknown>>;
  }[];
}

interface Request {
  readonly current: Objects;
  readonly desired: Objects;
}
type Objects = Readonly<Record<string, { readonly spec: { readonly template: { readonly spec: unknown } } }>>;

const OWNER = { kind: 'MachineDeployment', namespace: 'default', name: 'sandbox-workers' };
const STREAMS = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'os-image-streams', namespace: 'shale-system' },
  data: { 'v1.34.1': image('a') },
};

function recording(name: string): Recording {
  return JSON.parse(readFileSync(path.join(import.meta.dirname, 'conversation', `${name}.json`), 'utf8'));
}

/** The hooks over a workload cluster whose pool the recorded MachineDeployment drives. */
function hooks(): UpdateHooks {
  const clusters: Clusters = {
    readWorkload: async () => workload([drivenBy(OWNER), STREAMS]),
    readOthers: async () => [],
    updateMachine: async () => ({ kind: 'inProgress', retryAfterSeconds: 10, message: 'staging' }),
    reportNewMachines: async () => undefined,
  };
  return new UpdateHooks({
    clusters,
    log: pino({ level: 'silent' }),
    metrics: { answered: () => undefined },
  });
}

async function ask(name: string, hook: Hook) {
  const exchange = recording(name).exchanges.find((each) => each.hook === hook);
  if (exchange === undefined) throw new Error(`${name} has no ${hook}`);
  documentedSchema(pathOf(hook).replace(/[^/]+$/, '{name}'), 'request').parse(exchange.request);
  const response = await hooks().respond(hook, async () => exchange.request, AbortSignal.timeout(10_000));
  return { request: exchange.request, response: response as Readonly<Record<string, unknown>> };
}

/** Each object of a request with the field of its patch. */
const PATCHED = [
  ['bootstrapConfigTemplate', 'bootstrapConfigTemplatePatch'],
  ['infrastructureMachineTemplate', 'infrastructureMachineTemplatePatch'],
] as const;

function patched(object: unknown, patch: unknown): unknown {
  if (patch === undefined) return object;
  const { patch: bytes } = patch as { readonly patch: string };
  const json = JSON.parse(Buffer.from(bytes, 'base64').toString('utf8'));
  // Lists of these objects are replaced whole, as in a merge patch: no field of them has a merge key.
  return applyStrategicMergePatch(object as never, json);
}

describe('of a change that Shale makes in place', () => {
  test.each([
    ['chrony-conf', false],
    ['unknown-for-now', false],
    ['failed-update', false],
    ['kubernetes-version', true],
    ['machine-image', true],
  ])('%s: the patches make the templates equal', async (name, affectsAvailability) => {
    const { request, response } = await ask(name, 'CanUpdateMachineSet');
    expect(response).toMatchObject({ status: 'Success', affectsAvailability });
    for (const [object, field] of PATCHED) {
      const after = patched(request.current[object], response[field]) as Objects[string];
      expect(after.spec.template.spec).toEqual(request.desired[object]?.spec.template.spec);
    }
  });

  test('the version is in the patch of the MachineSet', async () => {
    const { request, response } = await ask('kubernetes-version', 'CanUpdateMachineSet');
    const after = patched(request.current['machineSet'], response['machineSetPatch']) as Objects[string];
    expect(after.spec.template.spec).toMatchObject({ version: 'v1.34.1' });
  });
});

test('commands of kubeadm need new machines', async () => {
  const { response } = await ask('refused', 'CanUpdateMachineSet');
  expect(response).toMatchObject({
    status: 'Success',
    message: expect.stringContaining('preKubeadmCommands'),
  });
  expect(Object.keys(response).filter((field) => field.endsWith('Patch'))).toEqual([]);
});

test.each(['chrony-conf', 'kubernetes-version', 'machine-image', 'deleted-machine'])(
  '%s: a machine that is updated is found in the request',
  async (name) => {
    const { response } = await ask(name, 'UpdateMachine');
    expect(response).toMatchObject({ status: 'Success', retryAfterSeconds: 10 });
  },
);
