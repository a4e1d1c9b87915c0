import type { ChildProcess } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Node, Nodes } from '../../../api/kubernetes.ts';
import { type ApiClient, isAlreadyExists } from '../../../cluster/api-client.ts';
import { ignoreMissing } from '../../../daemon/files/tree-entry.ts';
import type { ImageSource } from '../../../daemon/os/ostree/image-source.ts';
import { registrySource } from '../../../daemon/os/ostree/registry-source.ts';
import { reportNode } from '../../../workshop/sandbox/machines.ts';
import { removeNode } from '../../../workshop/sandbox/node/create.ts';
import { MachineEnded } from '../../../workshop/sandbox/systemd-node/machine.ts';
import type { BootedNode } from '../../../workshop/sandbox/systemd-node/node.ts';
import { keepLogFile } from '../../fixtures/kept-logs.ts';
import { deadline, patience } from '../../fixtures/patience.ts';
import { killDaemon, startDaemon } from '../lab-daemon.ts';
import type { LabSystem } from '../lab-node.ts';
import { installMachine, type MachineToInstall } from './install-machine.ts';
import { KUBELET_STARTS, parseStart } from './stock-entries.ts';

/** With a whole image to pull before the kubelet starts. */
const BOOT_MS = 600_000;
const COMMAND_MS = 120_000;
const POOL = 'worker';

export interface MachineToAdd extends MachineToInstall {
  /** What its kubelet registers with, where its set-up doesn't say so. */
  readonly taints?: readonly string[];
}

interface Surroundings {
  readonly client: ApiClient;
  readonly kubeconfig: string;
  readonly registryHost: string;
  /** Credentials for the registry. */
  readonly authFile: string;
  readonly system: LabSystem;
  /** Has its disk, and its logs. */
  readonly directory: string;
}

/** Installs a machine and switches it on. */
export async function addMachine(around: Surroundings, to: MachineToAdd): Promise<FreshMachine> {
  const dir = path.join(around.directory, to.name);
  await mkdir(dir);
  const { system, authFile, registryHost } = around;
  const readAuthFile = async () => authFile;
  const source = registrySource({ root: dir, plainHttp: new Set([registryHost]), readAuthFile });
  await installMachine(dir, { system, source, authFile }, to);
  const machine = new FreshMachine(around, to, dir, source);
  machine.switchOn();
  return machine;
}

/** A machine from the day it is switched on: its power supply, its kubelet and its daemon. */
export class FreshMachine implements AsyncDisposable {
  readonly #around: Surroundings;
  readonly #to: MachineToAdd;
  readonly #dir: string;
  readonly #source: ImageSource;
  readonly #logFile: string;
  #node: BootedNode | undefined;
  #daemon: ChildProcess | undefined;
  #booting: Promise<BootedNode | undefined> = Promise.resolve(undefined);
  #power = Promise.resolve();
  #isOff = true;
  /** As performance.now() has it. */
  switchedOnAt = 0;
  /** Seconds from power-on until its Node was registered. */
  joinedAfter: number | undefined;
  /** Since power-on. */
  boots = 0;

  constructor(around: Surroundings, to: MachineToAdd, dir: string, source: ImageSource) {
    this.#around = around;
    this.#to = to;
    this.#dir = dir;
    this.#source = source;
    this.#logFile = `${dir}.log`;
    keepLogFile(`the daemon of ${to.name}`, this.#logFile);
  }

  switchOn(): void {
    this.#isOff = false;
    this.switchedOnAt = performance.now();
    this.joinedAfter = undefined;
    this.boots = 0;
    this.#power = this.#run();
    this.#power.catch(() => undefined);
  }

  /** Without notice. @throws what ended it before. */
  async switchOff(): Promise<void> {
    this.#isOff = true;
    // A boot that is under way ends first: what there is to kill is not known before.
    const last = await this.#booting.catch(() => undefined);
    await killDaemon(this.#daemon);
    await last?.machine.kill();
    await this.#power;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.switchOff();
    } finally {
      await removeNode(this.#dir);
    }
  }

  /** @returns the kubelet's starts so far, each as its note has it. */
  async starts(): Promise<ReturnType<typeof parseStart>[]> {
    const { machine } = this.#up();
    const text = await readFile(path.join(machine.root, KUBELET_STARTS), 'utf8').catch(ignoreMissing);
    return (text ?? '').trim().split('\n').filter(Boolean).map(parseStart);
  }

  /** Runs a shell's command line and returns what it printed, without the last line's end. */
  async sh(line: string): Promise<string> {
    const { machine } = this.#up();
    const limits = { timeoutMs: patience(COMMAND_MS), signal: deadline(COMMAND_MS) };
    return (await machine.run(['sh', '-c', line], limits)).trim();
  }

  #up(): BootedNode {
    if (this.#node === undefined) throw new Error(`${this.#to.name} is down`);
    return this.#node;
  }

  async #run(): Promise<void> {
    const { name } = this.#to;
    const { client } = this.#around;
    while (!this.#isOff) {
      this.#booting = this.#boot();
      this.#node = await this.#booting;
      if (this.#node === undefined) continue;
      await this.#join(this.#node);
      const end = await this.#node.machine.off;
      this.#node = undefined;
      if (end !== 'rebooting') return;
      await killDaemon(this.#daemon);
      await reportNode(client, name, { type: 'rebooting' });
    }
  }

  /** @returns undefined where it went down again before everything had been started. */
  async #boot(): Promise<BootedNode | undefined> {
    this.boots += 1;
    try {
      return await this.#around.system.boot(this.#dir, this.#source, deadline(BOOT_MS), patience(BOOT_MS));
    } catch (error) {
      const { cause } = error as Error;
      if (cause instanceof MachineEnded && cause.end === 'rebooting') return undefined;
      throw error;
    }
  }

  /** What its kubelet does: it registers the Node where there is none, and starts the pod of the DaemonSet. */
  async #join({ machine }: BootedNode): Promise<void> {
    const { name, taints = [] } = this.#to;
    const { client, kubeconfig, registryHost } = this.#around;
    const last = (await this.starts()).at(-1);
    if (last === undefined) throw new Error(`${name} is up, and its kubelet has not started`);
    await client.create(Nodes, newNode(name, [...last.taints, ...taints])).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
    this.joinedAfter ??= (performance.now() - this.switchedOnAt) / 1000;
    await reportNode(client, name, { type: 'up', bootID: await machine.bootID() });
    this.#daemon = startDaemon(this.#logFile, [
      ...['--node-name', name, '--kubeconfig', kubeconfig, '--insecure-registry', registryHost],
      ...['--host-root', machine.root, '--host-init', String(machine.leader), '--log-level', 'debug'],
    ]);
  }
}

function newNode(name: string, taints: readonly string[]): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { pool: POOL, 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name } },
    spec: {
      taints: taints.map((taint) => {
        const [key = '', effect = ''] = taint.split(':');
        return { key, effect };
      }),
    },
  };
}
