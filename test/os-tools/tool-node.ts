import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { NodePorts } from '../../daemon/host/host.ts';
import type { OsBackend } from '../../daemon/os/backend.ts';
import { bootc } from '../../daemon/os/bootc/bootc.ts';
import type { ImageTool } from '../../daemon/os/image-tool/image-tool.ts';
import { ImageToolBackend } from '../../daemon/os/image-tool/image-tool-backend.ts';
import type { RunOsCommand } from '../../daemon/os/os-command.ts';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { rpmOstree } from '../../daemon/os/rpm-ostree/rpm-ostree.ts';
import { NEXT_ROOT_NOTE } from '../../daemon/os/soft-reboot/userspace-boot.ts';
import { bootNode, bootNodeSoftly } from '../../workshop/sandbox/node/boot.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../workshop/sandbox/node/directory-host.ts';
import { directoryNode } from '../../workshop/sandbox/node/directory-node.ts';
import { type MemoryImage, memorySource } from '../../workshop/sandbox/node/memory-source.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { type ContractNode, hasOstreeLock } from '../fixtures/backend-contract/bench.ts';
import { copiedDirectory } from '../fixtures/copied-directory.ts';
import { deadline } from '../fixtures/patience.ts';
import { nameOfImage } from '../fixtures/test-node.ts';
import { bootcCommands } from './bootc.ts';
import { ostreeOnNode } from './booted-root.ts';
import { writeImage } from './image-store.ts';
import { pullImage } from './pull.ts';
import { rpmOstreeCommands } from './rpm-ostree.ts';
import { readNextRoot } from './soft-reboot.ts';
import type { StandInCommands } from './stand-in.ts';
import { servedImages, standInRunner } from './stand-in-host.ts';

const TOOLS: Readonly<Record<ImageTool['name'], (run: RunOsCommand) => ImageTool>> = {
  bootc,
  'rpm-ostree': rpmOstree,
};

const COMMANDS: Readonly<Record<string, StandInCommands>> = {
  bootc: bootcCommands,
  'rpm-ostree': rpmOstreeCommands,
};
const INSTALL_MS = 120_000;

/** What a daemon acts by, and what a test does to the machine. */
export interface ToolNode extends NodePorts, ContractNode {
  readonly backend: OsBackend;
  readonly dir: string;
  /** Runs a command of the host, the image tool's stand-in too. */
  readonly run: RunOsCommand;
  /** A soft reboot that was asked for: into what was prepared, or into the same deployment again where nothing was. */
  rebootSoftly(): Promise<void>;
  /** What was prepared for a soft reboot is gone. */
  loseNextRoot(): Promise<void>;
  /** @param tool the other one, where a host has both. */
  backendWith(around: (run: RunOsCommand) => RunOsCommand, tool?: ImageTool['name']): OsBackend;
}

/** No image is bootc's without it. */
const BOOTABLE = { 'containers.bootc': '1' };

const stockAlone: MemoryImage = { labels: BOOTABLE, layers: [stockImage()] };

const copyBootedNode = copiedDirectory({
  name: 'shale-tool-node',
  isSameForAll: true,
  make: async (dir) => {
    const { sysroot } = directoryNodeLayout(dir);
    const image = nameOfImage(stockAlone);
    const images = new Map([[image, stockAlone]]);
    await writeImage(dir, image, stockAlone);
    const source = memorySource(images);
    await createNode({ dir, name: 'test', image, source, signal: deadline(INSTALL_MS) });
    for (const { directory } of await listDeployments(sysroot)) {
      await writeFile(
        `${directory}.origin`,
        `[origin]\ncontainer-image-reference=ostree-unverified-registry:${image}\n`,
      );
    }
    await bootNode(dir);
    await pullImage(dir, image, deadline(INSTALL_MS));
  },
});

/** @returns a booted directory node that was installed by an image tool, with the tool's stand-in on its path. */
export async function createToolNode(name: ImageTool['name']): Promise<ToolNode> {
  const dir = await copyBootedNode();
  const layout = directoryNodeLayout(dir);
  const stock = nameOfImage(stockAlone);
  const { source, add } = servedImages(dir, stockAlone);
  const run = standInRunner(dir, COMMANDS);
  const backendWith = (around: (inner: RunOsCommand) => RunOsCommand, tool = name) => {
    const runAround = around(run);
    return new ImageToolBackend({
      tool: TOOLS[tool](runAround),
      root: layout.root,
      sysroot: layout.sysroot,
      source,
      pullSecretFile: '/var/lib/kubelet/config.json',
      run: runAround,
      commandPath: (place) => path.join('/', path.relative(layout.root, place)),
    });
  };
  return {
    ...directoryNode(dir, source),
    dir,
    run,
    root: layout.root,
    stock,
    keeps: 'ostree',
    isHoldingBack: () => hasOstreeLock(layout.root),
    backend: backendWith((inner) => inner),
    backendWith,
    addImage: (layer, labels = {}) =>
      add({ labels: { ...BOOTABLE, ...labels }, layers: [stockImage(), layer] }),
    shutDownAndBoot: async () => {
      const { exitCode, stderr } = await ostreeOnNode(dir, ['admin', 'finalize-staged']);
      if (exitCode !== 0) throw new Error(stderr);
      await bootNode(dir);
    },
    rebootSoftly: async () => {
      const { deployment } = await readDirectoryMachine(layout);
      await bootNodeSoftly(dir, (await readNextRoot(dir)) ?? deployment);
      // ostree-boot-complete.service
      await rm(path.join(layout.root, NEXT_ROOT_NOTE), { force: true });
    },
    loseNextRoot: () => rm(path.join(layout.root, NEXT_ROOT_NOTE), { force: true }),
    losePowerAndBoot: async () => {
      await bootNode(dir);
    },
    [Symbol.asyncDispose]: () => removeNode(dir),
  };
}
