import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import type { NodePorts } from '../../daemon/host/node-ports.ts';
import { NEXT_ROOT_NOTE } from '../../daemon/host/userspace-boot.ts';
import type { OsBackend } from '../../daemon/os/backend.ts';
import { bootc } from '../../daemon/os/bootc/bootc.ts';
import type { ImageTool } from '../../daemon/os/image-tool/image-tool.ts';
import { ImageToolBackend } from '../../daemon/os/image-tool/image-tool-backend.ts';
import { osCommandRunner, type RunOsCommand } from '../../daemon/os/os-command.ts';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { rpmOstree } from '../../daemon/os/rpm-ostree/rpm-ostree.ts';
import { bootNode, bootNodeSoftly } from '../../workshop/sandbox/node/boot.ts';
import { createNode } from '../../workshop/sandbox/node/create.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../workshop/sandbox/node/directory-host.ts';
import { directoryNode } from '../../workshop/sandbox/node/directory-node.ts';
import { type MemoryImage, memorySource } from '../../workshop/sandbox/node/memory-source.ts';
import { removeNode } from '../../workshop/sandbox/node/remove.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import type { ContractNode } from '../fixtures/backend-contract.ts';
import { deadline } from '../fixtures/patience.ts';
import { ostreeOnNode, STAND_INS } from './booted-root.ts';
import { writeImages } from './image-store.ts';
import { pullImage } from './pull.ts';
import { readNextRoot } from './soft-reboot.ts';

const TOOLS: Readonly<Record<ImageTool['name'], (run: RunOsCommand) => ImageTool>> = {
  bootc,
  'rpm-ostree': rpmOstree,
};

/** What a daemon acts by, and what a test does to the machine. */
export interface ToolNode extends NodePorts, ContractNode {
  readonly backend: OsBackend;
  readonly dir: string;
  /** A soft reboot that was asked for: into what was prepared, or into the same deployment again where nothing was. */
  rebootSoftly(): Promise<void>;
  /** What was prepared for a soft reboot is gone. */
  loseNextRoot(): Promise<void>;
  /** @param tool the other one, where a host has both. */
  backendWith(around: (run: RunOsCommand) => RunOsCommand, tool?: ImageTool['name']): OsBackend;
}

/** @returns a booted directory node that was installed by an image tool, with the tool's stand-in on its path. */
export async function createToolNode(name: ImageTool['name']): Promise<ToolNode> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-tool-node-'));
  const layout = directoryNodeLayout(dir);
  const images = new Map<DigestedPullspec, MemoryImage>();
  const addImage = async (image: MemoryImage): Promise<DigestedPullspec> => {
    const hash = createHash('sha256').update(JSON.stringify(image)).digest('hex');
    const pullspec = parseDigestedPullspec(`registry.test:5000/os/image@sha256:${hash}`);
    images.set(pullspec, image);
    await writeImages(dir, images);
    return pullspec;
  };
  const stock = await addImage({ labels: {}, layers: [stockImage()] });
  const source = memorySource(images);
  await createNode({ dir, name: 'test', image: stock, source, signal: deadline(30_000) });
  for (const { directory } of await listDeployments(layout.sysroot)) {
    await writeFile(
      `${directory}.origin`,
      `[origin]\ncontainer-image-reference=ostree-unverified-registry:${stock}\n`,
    );
  }
  await bootNode(dir);
  await pullImage(dir, stock);

  const run = osCommandRunner([
    'env',
    `STAND_IN_NODE=${dir}`,
    `STAND_IN_RUNTIME=${process.execPath}`,
    `STAND_IN_PATH=${process.env['PATH']}`,
    `PATH=${STAND_INS}:${process.env['PATH']}`,
  ]);
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
    root: layout.root,
    stock,
    backend: backendWith((inner) => inner),
    backendWith,
    addImage: (layer, labels = {}) => addImage({ labels, layers: [stockImage(), layer] }),
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
