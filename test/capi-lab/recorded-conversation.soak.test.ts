/**
 * What do Cluster API's own controllers ask an extension, and what of its answers do they accept? Only they know.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../cluster-lab/cluster-lab.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { Clusters, type Machine, MachineDeployments, Machines } from './capi-kinds.ts';
import { type CapiLab, startCapiLab, untilDiscovered, untilRolledOut } from './capi-lab.ts';
import { stableConversation } from './conversation.ts';
import { givenCapi } from './given-programs.ts';
import { everythingInPlace, IN_PROGRESS, machineOf, updatedAtSecondRequest } from './in-place-answers.ts';
import {
  CLUSTER,
  chronyFile,
  extensionConfig,
  kubeadmConfigTemplate,
  labMachineTemplate,
  NAMESPACE,
  WORKERS,
  workers,
} from './lab-objects.ts';
import { reportKubelet } from './machine-provider.ts';
import { type Exchange, type RecordingExtension, startRecordingExtension } from './recording-extension.ts';

const given = givenCapi();
const MINUTE = 60_000;
const what = 'the conversation of Cluster API with a Runtime Extension';
const title = 'why' in given ? `${what} (skipped: ${given.why})` : what;

/** Where `SHALE_RECORD=1` writes what the product's tests replay. */
const RECORDINGS = path.join(import.meta.dirname, '../capi/conversation');
/** Of which the programs are; none of them says so, as their own build sets it. */
const CLUSTER_API = 'v1.14.2';

describe.skipIf('why' in given)(title, { timeout: patience(5 * MINUTE) }, () => {
  const signal = deadline(60 * MINUTE);
  const where = { namespace: NAMESPACE, signal };
  let lab: CapiLab;
  let extension: RecordingExtension;

  beforeAll(
    async () => {
      if ('why' in given) return;
      lab = await startCapiLab(given.directory, signal);
      extension = await startRecordingExtension(lab.authority);
      const settings = { imagePath: 'spec.template.spec.image', imageRepository: 'registry.example.com/os' };
      await lab.create(extensionConfig('recording', extension, settings));
      await untilDiscovered(lab, 'recording');
      const bootstrap = kubeadmConfigTemplate('chrony-one', { files: [chronyFile('one.example.com')] });
      const infrastructure = labMachineTemplate('image-one', '41.1');
      const parts = { replicas: 2, version: lab.version, bootstrap: bootstrap.ref };
      await lab.create(bootstrap, infrastructure, workers({ ...parts, infrastructure: infrastructure.ref }));
      await untilRolledOut(lab);
    },
    patience(10 * MINUTE),
  );

  afterAll(
    async () => {
      await extension?.[Symbol.asyncDispose]();
      await lab?.[Symbol.asyncDispose]();
    },
    patience(5 * MINUTE),
  );

  /** What is said while something is done, in order; written where recordings are asked for. */
  async function conversation(name: string, during: () => Promise<void>): Promise<readonly string[]> {
    const before = extension.exchanges.length;
    await during();
    return record(name, extension.exchanges.slice(before));
  }

  async function record(name: string, said: readonly Exchange[]): Promise<readonly string[]> {
    const exchanges = stableConversation(said, WORKERS);
    if (process.env['SHALE_RECORD'] === '1') {
      await mkdir(RECORDINGS, { recursive: true });
      const recording = JSON.stringify({ clusterApi: CLUSTER_API, exchanges }, undefined, 2);
      await writeFile(path.join(RECORDINGS, `${name}.json`), `${recording}\n`);
    }
    return exchanges.map(
      ({ hook, response }) => `${hook} ${String(response['message'] ?? response['status'])}`,
    );
  }

  const uids = async () => (await lab.machines()).map(({ metadata }) => metadata.uid).toSorted();

  async function changeChrony(pool: string): Promise<void> {
    const next = kubeadmConfigTemplate(`chrony-${pool}`, { files: [chronyFile(`${pool}.example.com`)] });
    await lab.create(next);
    await lab.changeWorkers({ bootstrap: { configRef: next.ref } });
  }

  const updating = async (): Promise<Machine> => {
    await until('a machine is being updated', async () => {
      const seen = (await lab.machines()).map(updatingCondition);
      return seen.some((condition) => condition?.reason === 'InPlaceUpdating') || JSON.stringify(seen);
    });
    const machine = (await lab.machines()).find(
      (each) => updatingCondition(each)?.reason === 'InPlaceUpdating',
    );
    if (machine === undefined) throw new Error('the machine that is being updated is gone');
    return machine;
  };

  it('begins with its discovery', async () => {
    expect(await record('discovery', extension.exchanges)).toEqual(['Discovery Success']);
    expect(extension.exchanges[0]?.headers).not.toHaveProperty('content-type');
  });

  it('updates machines in place for another chrony.conf, one after the other', async () => {
    const before = await uids();
    extension.answer(updatedAtSecondRequest());
    const said = await conversation('chrony-conf', async () => {
      await changeChrony('two');
      await untilRolledOut(lab);
    });
    expect(said).toEqual([
      'CanUpdateMachineSet Success',
      ...['one machine', 'the other'].flatMap(() => [
        'UpdateMachine the machine is being updated',
        'UpdateMachine the machine is updated',
      ]),
    ]);
    expect(await uids()).toEqual(before);
  });

  it('accepts fields that this version does not know', async () => {
    const before = await uids();
    extension.answer({
      ...updatedAtSecondRequest(),
      CanUpdateMachineSet: (request) => ({ ...everythingInPlace(request), affectsAvailability: false }),
    });
    const said = await conversation('machine-image', async () => {
      const next = labMachineTemplate('image-two', '41.2');
      await lab.create(next);
      await lab.changeWorkers({ infrastructureRef: next.ref });
      await untilRolledOut(lab);
    });
    expect(said.filter((each) => each.startsWith('UpdateMachine'))).toHaveLength(4);
    expect(await uids()).toEqual(before);
  });

  it('makes a spare machine where none may be away, whatever the extension says of availability', async () => {
    const strategy = (maxSurge: number, maxUnavailable: number) => {
      const body = { spec: { rollout: { strategy: { rollingUpdate: { maxSurge, maxUnavailable } } } } };
      return lab.management.client.patch(MachineDeployments, WORKERS, { type: 'merge', body }, where);
    };
    await strategy(1, 0);
    extension.answer({
      ...updatedAtSecondRequest(),
      CanUpdateMachineSet: (request) => ({ ...everythingInPlace(request), affectsAvailability: false }),
    });
    await changeChrony('spare');
    await until('there is a spare machine', async () => (await lab.machines()).length === 3);
    await untilRolledOut(lab);
    await strategy(0, 1);
  });

  it('waits for the kubelet after a change of the version', async () => {
    const before = await uids();
    const version = 'v1.34.1';
    const { UpdateMachine } = updatedAtSecondRequest();
    extension.answer({
      CanUpdateMachineSet: everythingInPlace,
      UpdateMachine: async (request) => {
        const machine = await lab.management.client.get(Machines, machineOf(request), where);
        await reportKubelet(lab.sandbox.client, machine.status?.nodeRef?.name ?? '', version, signal);
        return UpdateMachine(request);
      },
    });
    const said = await conversation('kubernetes-version', async () => {
      await lab.changeWorkers({ version });
      await untilRolledOut(lab);
    });
    expect(said.filter((each) => each.startsWith('UpdateMachine'))).toHaveLength(4);
    expect(await uids()).toEqual(before);
  });

  it('asks again after a failure, and replaces nothing', async () => {
    const before = await uids();
    let failures = 0;
    const { CanUpdateMachineSet, UpdateMachine } = updatedAtSecondRequest();
    extension.answer({
      CanUpdateMachineSet: (request) => {
        failures += 1;
        return failures > 2 ? CanUpdateMachineSet(request) : failure('the workload cluster is away');
      },
      UpdateMachine,
    });
    const said = await conversation('unknown-for-now', async () => {
      await changeChrony('three');
      await untilRolledOut(lab);
    });
    expect(said[0]).toBe('CanUpdateMachineSet the workload cluster is away');
    expect(said).toContain('CanUpdateMachineSet Success');
    expect(failures).toBe(3);
    expect(await uids()).toEqual(before);
  });

  it('reports a machine whose update failed, and asks again', async () => {
    const before = await uids();
    let has = false;
    const { CanUpdateMachineSet, UpdateMachine } = updatedAtSecondRequest();
    extension.answer({
      CanUpdateMachineSet,
      UpdateMachine: (request) => (has ? UpdateMachine(request) : failure('the node rolled back')),
    });
    await conversation('failed-update', async () => {
      await changeChrony('four');
      await until('the failure is reported', async () => {
        const seen = (await lab.machines()).map(updatingCondition);
        return seen.some((condition) => condition?.reason === 'InPlaceUpdateFailed') || JSON.stringify(seen);
      });
      has = true;
      await untilRolledOut(lab);
    });
    expect(await uids()).toEqual(before);
  });

  it('asks nothing while the cluster is paused', async () => {
    const before = await uids();
    extension.answer({ CanUpdateMachineSet: everythingInPlace, UpdateMachine: () => IN_PROGRESS });
    await changeChrony('five');
    const machine = await updating();
    const { client } = lab.management;
    const pause = (paused: boolean) =>
      client.patch(Clusters, CLUSTER, { type: 'merge', body: { spec: { paused } } }, where);
    await pause(true);
    await until('the machine is paused', async () => {
      const { status } = await client.get(Machines, machine.metadata.name, where);
      return status?.conditions?.some(({ type, status: is }) => type === 'Paused' && is === 'True') === true;
    });
    const said = extension.exchanges.length;
    // Three times what it was told to wait.
    await delay(3000);
    expect(extension.exchanges).toHaveLength(said);
    extension.answer(updatedAtSecondRequest());
    await pause(false);
    await untilRolledOut(lab);
    expect(await uids()).toEqual(before);
  });

  it('replaces a machine that is deleted in the middle of its update', async () => {
    extension.answer({ CanUpdateMachineSet: everythingInPlace, UpdateMachine: () => IN_PROGRESS });
    await changeChrony('six');
    const { name } = (await updating()).metadata;
    await conversation('deleted-machine', async () => {
      await lab.management.client.delete(Machines, name, where);
      await until('the machine is gone', async () => {
        const machine = await lab.management.client.find(Machines, name, where);
        return machine === undefined || JSON.stringify(machine.status?.conditions);
      });
      extension.answer(updatedAtSecondRequest());
      await untilRolledOut(lab);
    });
    expect((await lab.machines()).map(({ metadata }) => metadata.name)).not.toContain(name);
  });

  it('replaces machines for what is not patched', async () => {
    const before = new Set(await uids());
    extension.answer({ CanUpdateMachineSet: () => ({ message: 'preKubeadmCommands ran once' }) });
    const said = await conversation('refused', async () => {
      const files = [chronyFile('six.example.com')];
      const next = kubeadmConfigTemplate('commands-one', { files, preKubeadmCommands: ['true'] });
      await lab.create(next);
      await lab.changeWorkers({ bootstrap: { configRef: next.ref } });
      await untilRolledOut(lab);
    });
    expect(said).toEqual(['CanUpdateMachineSet preKubeadmCommands ran once']);
    expect((await uids()).filter((uid) => before.has(uid))).toEqual([]);
  });
});

const failure = (message: string) => ({ status: 'Failure', message });

function updatingCondition({ status }: Machine) {
  return status?.conditions?.find(({ type }) => type === 'Updating');
}
