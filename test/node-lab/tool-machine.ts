import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { present } from '../../api/present.ts';
import { ignoreMissing } from '../../daemon/files/tree-entry.ts';
import type { ImageTool } from '../../daemon/os/image-tool/image-tool.ts';
import { ImageToolBackend } from '../../daemon/os/image-tool/image-tool-backend.ts';
import type { RunOsCommand } from '../../daemon/os/os-command.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import type { LayerEntry, LayerItem } from '../../image/layer/entry.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { removeNode } from '../../workshop/sandbox/node/create.ts';
import { type ImageContent, pushImage } from '../../workshop/sandbox/registry.ts';
import { type ContractNode, hasOstreeLock } from '../fixtures/backend-contract/bench.ts';
import { copiedDirectory } from '../fixtures/copied-directory.ts';
import { deadline } from '../fixtures/patience.ts';
import type { LabSystem } from './lab-node.ts';
import { text } from './lab-updates.ts';

const INSTALL_MS = 600_000;
const BOOT_MS = 120_000;
const COMMAND_MS = 60_000;
/** Where the machine has its pull secret, if it has one. */
export const PULL_SECRET = '/var/lib/kubelet/config.json';

/** What the contract expects of a stock image, beside an operating system. */
const STOCK: readonly LayerEntry[] = [
  text('/usr/lib/bootc/kargs.d/00-base.toml', 'kargs = ["quiet", "systemd.unified_cgroup_hierarchy=1"]\n'),
  text('/etc/chrony.conf', 'pool pool.ntp.org iburst\n'),
  text('/etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
  text('/etc/hosts', '127.0.0.1 localhost\n'),
  text('/etc/motd', ''),
];

/** A machine that an image tool has installed and updates, and what a test does to it. */
export interface ToolMachine extends ContractNode {
  /** Runs a command inside. */
  readonly run: RunOsCommand;
}

/** One installation, and a registry that all machines copied from it pull from. */
export interface ToolMachines extends AsyncDisposable {
  /** @returns a booted copy. */
  create(): Promise<ToolMachine>;
  /** @returns an image that can be booted, of the stock image's first layers and one more. */
  contentOf(layer: readonly LayerItem[], labels?: Readonly<Record<string, string>>): ImageContent;
}

/** @param system installed and booted by the tool. @param imageTool the tool, by a runner of the machine's commands. */
export async function startToolMachines(
  system: LabSystem,
  imageTool: (run: RunOsCommand) => ImageTool,
): Promise<ToolMachines> {
  const archive = await system.archive();
  const base = await mkdtemp(path.join(tmpdir(), 'shale-tool-'));
  const registry = await startDockerRegistry({ dir: base, launcher: DIE_WITH_PARENT });
  const { host } = registry;
  const plainHttp = new Set([host]);
  const parts = { host, client: createRegistryClient({ plainHttp }) };
  const below = { onto: archive, ...present({ bootable: system.bootable }) };
  const contentOf: ToolMachines['contentOf'] = (items, labels = {}) => {
    const between = [
      ...(system.entries?.(host) ?? []),
      ...STOCK.filter(({ path }) => !isTakenAway(path, items)),
    ];
    return { entries: items.flatMap(asEntries), labels, between, ...below };
  };
  const push: ContractNode['addImage'] = (items, labels) =>
    pushImage(parts, 'os/lab', contentOf(items, labels), deadline(INSTALL_MS));
  const stock = await push([text('/usr/share/stock', '')]);
  const copy = copiedDirectory({
    name: 'shale-tool',
    make: async (dir) => system.install?.({ dir, image: stock, archive, signal: deadline(INSTALL_MS) }),
  });
  const create = async (): Promise<ToolMachine> => {
    const dir = await copy();
    const source = registrySource({ root: dir, plainHttp });
    const boot = () => system.boot(dir, source, deadline(BOOT_MS));
    let node = await boot();
    const backendWith: ToolMachine['backendWith'] = (around) => {
      const { root } = node.machine;
      const run = around(node.machine.run);
      const readAuthFile = () => readFile(path.join(root, PULL_SECRET), 'utf8').catch(ignoreMissing);
      return new ImageToolBackend({
        tool: imageTool(run),
        root,
        sysroot: path.join(root, 'sysroot'),
        source: registrySource({ root, plainHttp, readAuthFile }),
        pullSecretFile: PULL_SECRET,
        run,
        commandPath: (place) => path.join('/', path.relative(root, place)),
      });
    };
    return {
      stock,
      keeps: 'ostree',
      isHoldingBack: () => hasOstreeLock(node.machine.root),
      get root() {
        return node.machine.root;
      },
      get run() {
        return node.machine.run;
      },
      get backend() {
        return backendWith((run) => run);
      },
      backendWith,
      addImage: push,
      shutDownAndBoot: async () => {
        // It ends while it answers.
        await node.machine
          .run(['systemctl', 'reboot'], { timeoutMs: COMMAND_MS, signal: deadline(COMMAND_MS) })
          .catch(() => undefined);
        await node.machine.ended();
        node = await boot();
      },
      losePowerAndBoot: async () => {
        await node.machine.kill();
        node = await boot();
      },
      [Symbol.asyncDispose]: async () => {
        await node.machine.kill();
        await removeNode(dir);
      },
    };
  };
  return {
    create,
    contentOf,
    [Symbol.asyncDispose]: async () => {
      await registry.stop();
      await rm(base, { recursive: true, force: true });
    },
  };
}

/** What a layer takes away is left out of the stock image's layer below it, which comes to the same. */
function isTakenAway(place: string, items: readonly LayerItem[]): boolean {
  return items.some((item) => {
    if (item.type === 'whiteout') return place === item.path || place.startsWith(`${item.path}/`);
    return item.type === 'opaque' && place.startsWith(`${item.path}/`);
  });
}

/** @returns what a layer adds. */
function asEntries(item: LayerItem): readonly LayerEntry[] {
  switch (item.type) {
    case 'file':
      if (!(item.content instanceof Uint8Array)) throw new TypeError(`${item.path}: expected bytes`);
      return [{ ...item, content: item.content }];
    case 'whiteout':
    case 'opaque':
      return [];
    default:
      return [item];
  }
}
