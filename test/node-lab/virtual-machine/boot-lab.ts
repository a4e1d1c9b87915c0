import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pino from 'pino';
import { present } from '../../../api/present.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../../api/references.ts';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import type { Reference } from '../../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../../image/registry/registry-client.ts';
import { DIE_WITH_PARENT } from '../../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../../workshop/sandbox/docker-registry.ts';
import { CACHE } from '../../../workshop/sandbox/layout.ts';
import { pushImage } from '../../../workshop/sandbox/registry.ts';
import { ensureRootfsArchive } from '../../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { type NodeControlPlane, startNodeControlPlane } from '../../fixtures/node-control-plane.ts';
import { deadline } from '../../fixtures/patience.ts';
import { labRootfs } from '../lab.ts';
import type { UpdatedMachine } from '../lab-updates.ts';
import { makePodDisk } from './pod-disk.ts';
import { REGISTRY_IN_GUEST } from './stock-layer.ts';
import { startVirtualMachine, type VirtualMachine } from './virtual-machine.ts';
import { ostreeSystem, type VirtualSystem } from './virtual-system.ts';

/** Of everything that the lab does before the machine is switched on, with nothing in the cache and others at work. */
export const SETUP_MS = 1_800_000;
/** Of one update, with the reboots that it takes. */
export const UPDATE_MS = 1_500_000;

/**
 * Kept after the tests: what the machine's serial console showed, the daemon's log among it, and how long things took.
 */
const LOGS = path.join(import.meta.dirname, '../../../.shale/lab');

/**
 * A virtual machine that its own bootloader boots from a disk, with the daemon as it ships, a registry, and a control
 * plane.
 */
export interface BootLab extends NodeControlPlane, UpdatedMachine {
  readonly machine: VirtualMachine;
  /** Does something and notes how long it took. */
  timed<T>(what: string, work: () => Promise<T>): Promise<T>;
}

/** What sets up a machine at its first boot. */
export interface Provision {
  /** Raw disks, beside its own. */
  readonly disks: readonly string[];
  /** Of QEMU. */
  readonly qemuArguments: readonly string[];
}

export interface BootLabOptions {
  /** Of its logs, which are kept; other tests run at the same time. */
  readonly name?: string;
  /** systemd, ostree and a kernel unless given. */
  readonly system?: VirtualSystem;
  /** Called before the machine is switched on. @param directory to write to; it is gone with the lab. */
  provision?(
    parts: NodeControlPlane & Pick<BootLab, 'stock' | 'push'>,
    directory: string,
  ): Promise<Provision>;
}

/** @param stock what the machine comes with, above Debian. */
export async function startBootLab(
  stock: readonly LayerEntry[],
  { name = 'boots', system = ostreeSystem(), provision }: BootLabOptions = {},
): Promise<BootLab> {
  const signal = deadline(SETUP_MS);
  const { timed, figures } = stopwatch();
  await using parts = new AsyncDisposableStack();
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-boots-'));
  parts.defer(() => rm(directory, { recursive: true, force: true }));
  const archive = await timed('root file system', () =>
    ensureRootfsArchive(CACHE, signal, undefined, system.recipe()),
  );

  const registryDirectory = path.join(directory, 'registry');
  await mkdir(registryDirectory);
  const registry = await startDockerRegistry({ dir: registryDirectory, launcher: DIE_WITH_PARENT });
  parts.defer(registry.stop);
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const below = { onto: archive, ...present({ bootable: system.bootable }) };
  const push: UpdatedMachine['push'] = async (content) => {
    const until = deadline(SETUP_MS);
    return inGuest(
      await pushImage({ host: registry.host, client }, 'os/lab', { ...content, ...below }, until),
    );
  };
  const image = await push({ entries: stock });
  const registryPort = Number(registry.host.split(':')[1]);
  const disk = await timed('disk', () => system.makeDisk({ image, archive, stock, registryPort, signal }));

  const control = parts.use(await startNodeControlPlane(pino({ level: 'silent' }), UPDATE_MS));
  const { url, caPem, token } = control.access;
  const ports = { registry: registryPort, api: Number(new URL(url).port) };
  const podDisk = await timed("disk with Shale's image", async () =>
    makePodDisk({ rootfs: await labRootfs(), directory, caPem, token, ports, signal }),
  );

  await mkdir(LOGS, { recursive: true });
  const consoleFile = path.join(LOGS, `${name}-console.log`);
  await writeFile(consoleFile, '');
  const named = underGuestName(client, registry.host);
  const parted = { ...control, stock: image, registry: named, push };
  const { disks = [], qemuArguments = [] } = (await provision?.(parted, directory)) ?? {};
  const ofSystem = (await system.qemuArguments?.(directory)) ?? [];
  const machine = await startVirtualMachine({
    disks: [disk, podDisk, ...disks],
    directory,
    consoleFile,
    qemuArguments: [...ofSystem, ...qemuArguments],
  });
  parts.use(machine);
  await timed('first boot', () => machine.up());
  const owned = parts.move();
  return {
    ...control,
    stock: image,
    registry: named,
    push,
    machine,
    timed,
    [Symbol.asyncDispose]: async () => {
      const text = figures();
      process.stderr.write(text);
      await writeFile(path.join(LOGS, `${name}-timings.txt`), text);
      await owned.disposeAsync();
    },
  };
}

/** @returns the image by the name that the machine has for the registry. */
function inGuest(image: DigestedPullspec): DigestedPullspec {
  return parseDigestedPullspec(`${REGISTRY_IN_GUEST}${image.slice(image.indexOf('/'))}`);
}

/** @returns a client for which the registry has the name that the machine has for it. @param host where it is. */
function underGuestName(client: RegistryClient, host: string): RegistryClient {
  const there = <T extends Pick<Reference, 'registry'>>(at: T): T => ({ ...at, registry: host });
  return {
    getManifest: (reference, signal) => client.getManifest(there(reference), signal),
    putManifest: (reference, manifest, signal) => client.putManifest(there(reference), manifest, signal),
    putReferrer: (at, manifest, signal) => client.putReferrer(there(at), manifest, signal),
    getReferrers: (at, subject, signal) => client.getReferrers(there(at), subject, signal),
    listTags: (at, signal) => client.listTags(there(at), signal),
    deleteManifest: (at, digest, signal) => client.deleteManifest(there(at), digest, signal),
    hasBlob: (at, digest, signal) => client.hasBlob(there(at), digest, signal),
    readBlob: (at, blob, signal) => client.readBlob(there(at), blob, signal),
    putBlob: (at, bytes, signal) => client.putBlob(there(at), bytes, signal),
    putBlobStream: (at, blob, bytes, signal) => client.putBlobStream(there(at), blob, bytes, signal),
    mountBlob: (at, digest, from, signal) => client.mountBlob(there(at), digest, from, signal),
  };
}

function stopwatch(): Pick<BootLab, 'timed'> & { readonly figures: () => string } {
  const lines: string[] = [];
  return {
    timed: async (what, work) => {
      const start = performance.now();
      try {
        return await work();
      } finally {
        lines.push(`${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${what}\n`);
      }
    },
    figures: () => lines.join(''),
  };
}
