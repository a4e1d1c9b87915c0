import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { NodePorts } from '../../daemon/host/host.ts';
import { noLabels } from '../../daemon/host/selinux-labels.ts';
import type { OsBackend } from '../../daemon/os/backend.ts';
import { ComposefsBackend } from '../../daemon/os/bootc-composefs/composefs-backend.ts';
import type { RunOsCommand } from '../../daemon/os/os-command.ts';
import { directoryNode } from '../../workshop/sandbox/node/directory-node.ts';
import { layerDigest, type MemoryImage } from '../../workshop/sandbox/node/memory-source.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { type ContractNode, HOST_ARGUMENTS } from '../fixtures/backend-contract/bench.ts';
import { copiedDirectory } from '../fixtures/copied-directory.ts';
import { nameOfImage } from '../fixtures/test-node.ts';
import { composefsCommands, finalizeStaged } from './composefs-bootc.ts';
import { ComposefsMachine } from './composefs-machine.ts';
import { writeImage } from './image-store.ts';
import { Refusal } from './stand-in.ts';
import { servedImages, standInRunner } from './stand-in-host.ts';

const stockAlone: MemoryImage = { labels: { 'containers.bootc': '1' }, layers: [stockImage()] };

/** A machine whose bootc keeps deployments in composefs, as its stand-in does. */
export interface ComposefsNode extends NodePorts, ContractNode {
  readonly backend: OsBackend;
  readonly dir: string;
  readonly machine: ComposefsMachine;
  readonly run: RunOsCommand;
}

const copyBootedMachine = copiedDirectory({
  name: 'shale-composefs-node',
  isSameForAll: true,
  make: async (dir) => {
    const machine = new ComposefsMachine(dir);
    const image = nameOfImage(stockAlone);
    await writeImage(dir, image, stockAlone);
    const verity = machine.pull(stockAlone, stockAlone.layers.map(layerDigest));
    machine.seed(verity, image);
    for (const [name, text] of [
      ['hostname', 'test\n'],
      ['machine-id', `${'1'.repeat(32)}\n`],
    ] as const) {
      writeFileSync(path.join(machine.state(verity), 'etc', name), text);
    }
    mkdirSync(path.join(machine.sysroot, 'state/os/default/var/lib'), { recursive: true });
    machine.writeEntries('entries', [
      { verity, arguments: [...HOST_ARGUMENTS, ...(await machine.kargsOf(verity))] },
    ]);
    machine.sync();
    machine.boot();
  },
});

/** @returns a booted machine, in a temporary directory that is removed when it is disposed of. */
export async function createComposefsNode(): Promise<ComposefsNode> {
  const dir = await copyBootedMachine();
  const machine = new ComposefsMachine(dir);
  const stock = nameOfImage(stockAlone);
  const { source, add } = servedImages(dir, stockAlone);
  const run = commandsOf(machine);
  const backendWith = (around: (inner: RunOsCommand) => RunOsCommand) =>
    new ComposefsBackend({
      root: machine.root,
      sysroot: machine.sysroot,
      source,
      run: around(run),
      commandPath: (place) => path.join('/', path.relative(machine.root, place)),
      pullSecretFile: '/var/lib/kubelet/config.json',
      relabel: noLabels,
      makeWritable: async () => undefined,
    });
  return {
    ...directoryNode(dir, source),
    dir,
    machine,
    run,
    root: machine.root,
    stock,
    keeps: 'composefs',
    backend: backendWith((inner) => inner),
    backendWith,
    isHoldingBack: () =>
      existsSync(
        path.join(machine.root, 'run/systemd/system/bootc-finalize-staged.service.d/50-shale-hold-back.conf'),
      ) || machine.note()?.finalization_locked === true,
    addImage: (layer, labels = {}) =>
      add({ labels: { ...stockAlone.labels, ...labels }, layers: [stockImage(), layer] }),
    shutDownAndBoot: async () => {
      if (machine.finalizesAtShutdown) shutDown(machine);
      machine.sync();
      machine.boot();
    },
    losePowerAndBoot: async () => {
      machine.losePower();
      machine.boot();
    },
    [Symbol.asyncDispose]: async () => {
      machine.unmount();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A service that fails while the machine goes down keeps it from nothing. */
function shutDown(machine: ComposefsMachine): void {
  try {
    finalizeStaged(machine);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

/**
 * @returns a runner of the machine's commands: bootc's stand-in and systemd's in this process, mount(8) on its
 * directories.
 */
function commandsOf(machine: ComposefsMachine): RunOsCommand {
  const run = standInRunner(machine.dir, { bootc: composefsCommands });
  return async (command, options) => {
    const [program, name = '', ...args] = command;
    options.signal.throwIfAborted();
    switch (program) {
      case 'systemctl':
        if (name !== 'daemon-reload') throw new Error(`the stand-in speaks no systemctl ${name}`);
        machine.daemonReload();
        return '';
      case 'bootctl':
        return `${path.join(machine.dir, 'esp')}\n`;
      case 'rm':
        machine.dropStagedEntries();
        return '';
      case 'sync':
        machine.sync();
        return '';
      case 'mount':
        return mount(machine, [name, ...args]);
      case 'umount':
        execFileSync('umount', [machine.placeOf(name)]);
        return '';
      default:
        return run(command, options);
    }
  };
}

/** As on the machine, whose root alone shows its image: what is bound from there has the image's own /etc. */
function mount(machine: ComposefsMachine, args: readonly string[]): string {
  const [first = '', from = '', to = ''] = args;
  if (first === '--bind') {
    const source = from === '/' ? machine.imageTree(machine.booted) : machine.placeOf(from);
    execFileSync('mount', ['--bind', source, machine.placeOf(to)]);
    return '';
  }
  execFileSync('mount', [first, from, machine.placeOf(to)]);
  return '';
}
