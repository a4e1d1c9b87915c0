import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import pino from 'pino';
import { MachineConfigs } from '../../../../api/machine-config.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../../../api/machine-config-node.ts';
import { MachineConfigurations } from '../../../../api/machine-configuration.ts';
import { imageLabels, MACHINE_CONFIGURATION } from '../../../../api/names.ts';
import type { DigestedPullspec } from '../../../../api/references.ts';
import { directoryNode } from '../../../../daemon/host/directory-node.ts';
import { policyDigest } from '../../../../disruption/effective-policies.ts';
import { encodeTransitionLabel } from '../../../../disruption/transitions.ts';
import { bootNode } from '../boot.ts';
import { hostGoesBack } from '../host-goes-back.ts';
import { untilRebootRequested } from '../reboot-request.ts';
import { removeNode } from '../remove.ts';
import { createTestNode, layerFile, type TestNode } from '../testing.ts';
import { type ControlledNode, HOLDER, startNodeControlPlane } from '../testing-control-plane.ts';
import { runNode } from '../testing-daemon.ts';
import { FILLER } from './full-disk.ts';
import {
  isOver,
  policies,
  renderedConfigs,
  type Start,
  startTargets,
  type Target,
  type TestUpdate,
  testImages,
} from './updates.ts';

const POLICY = policyDigest(policies);
const log = pino({ level: process.env['SHALE_TEST_LOG'] ?? 'silent' });
/** A node is not well at once, or never: no check is waited for. */
const healthLimits = { checksMs: 1, kubeletMs: 1 };

/** A node on which a daemon was killed in an update, and another one ended it. */
export interface EndedUpdate {
  /** Whether the daemon was killed, which it is not when the update has fewer changes. */
  readonly killed: boolean;
  readonly dir: string;
}

/** A node whose disk was full in an update, and which ended it when there was room again. */
export interface CrampedUpdate {
  /** Whether the disk was filled, which it is not when the update has fewer changes. */
  readonly filled: boolean;
  /** What the node said of it; undefined where the update needed no more room. */
  readonly told: string | undefined;
  readonly dir: string;
}

/** Nodes that stand before updates, and what a daemon is killed and started with. */
export interface KillBench extends AsyncDisposable {
  /**
   * Brings a copy of a node to where the boot begins in which the daemon is to be killed.
   *
   * @returns the copy's directory, to be given to `killAndRestart` as often as wanted.
   */
  prepare(update: TestUpdate): Promise<string>;
  /**
   * Kills the daemon of a copy of the prepared node before one of its changes of the disk, and starts it anew.
   *
   * @param changes how many it makes before.
   * @returns once the node says that the update is over.
   */
  killAndRestart(update: TestUpdate, prepared: string, changes: number): Promise<EndedUpdate>;
  /**
   * Fills the disk of a copy of the prepared node before one of its daemon's changes, and empties it once the node has
   * said that it is full.
   *
   * @param changes how many it makes before.
   * @returns once the node says that the update is over.
   */
  fillAndEmpty(update: TestUpdate, prepared: string, changes: number): Promise<CrampedUpdate>;
  /** Deletes a node. */
  remove(dir: string): Promise<void>;
}

/** @returns a control plane, and one node for each start; every copy is in a directory of its own. */
export async function createKillBench(): Promise<KillBench> {
  const base = await mkdtemp(path.join(tmpdir(), 'shale-killed-'));
  // The daemon syncs each of its changes, and a real disk would make these hundreds of updates wait most of the time.
  await execa('mount', ['-t', 'tmpfs', 'shale-killed', base]);
  const control = await startNodeControlPlane(log);
  const stock = await createTestNode();
  const images = testImages.map((image) => ({ ...image, ...addImage(stock, image) }));
  const settings = path.join(base, 'settings.json');
  await writeFile(
    settings,
    JSON.stringify({
      ...control.access,
      compileCache: path.join(base, 'compiled'),
      images: [{ name: stock.stock, labels: {}, files: [] }, ...images],
    }),
  );
  await setPolicies();
  for (const each of renderedConfigs) await control.client.create(MachineConfigs, each);
  const starts = new Map<Start, string>([['stock', stock.dir]]);
  let nodes = 0;

  async function setPolicies(): Promise<void> {
    const made = await control.client.create(MachineConfigurations, {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name: MACHINE_CONFIGURATION },
      spec: {},
    });
    const status = { nodeDisruptionPolicyStatus: { clusterPolicies: policies }, policyDigest: POLICY };
    await control.client.replaceStatus(MachineConfigurations, { ...made, status });
  }

  function specOf({ mode, config }: Target): Partial<MachineConfigNodeSpec> {
    const image = mode === 'Standard' ? undefined : images.find((each) => each.config === config)?.name;
    return {
      configVersion: { desired: config },
      ...(image === undefined ? {} : { configImage: { desiredImage: image } }),
      policyDigest: POLICY,
      grant: {
        level: 'Disrupt',
        config,
        ...(image === undefined ? {} : { image }),
        leaseHolder: HOLDER,
      },
    };
  }

  /** A copy is another node to the operator, which has nothing to say of it yet. */
  async function copyOf(
    from: string,
    diskBytes?: number,
  ): Promise<{ dir: string; name: string; node: ControlledNode }> {
    nodes += 1;
    const name = `copy-${nodes}`;
    const dir = path.join(base, name);
    await mkdir(dir);
    if (diskBytes !== undefined) {
      await execa('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes}`, 'shale-cramped', dir]);
    }
    await execa('cp', ['--archive', '--no-target-directory', from, dir]);
    return { dir, name, node: await control.addNode(name) };
  }

  /** Runs a daemon, and the node's boots, until that is so. */
  async function runUntil(over: () => Promise<unknown>, dir: string, nodeName: string): Promise<void> {
    await using _running = runNode(
      { ...directoryNode(dir, stock.source), dir, boot: async () => void (await bootNode(dir)) },
      { client: control.client, nodeName, healthLimits, log },
    );
    await over();
  }

  async function startOf(start: Start): Promise<string> {
    const found = starts.get(start);
    if (found !== undefined || start === 'stock') return found ?? stock.dir;
    const { dir, name, node } = await copyOf(stock.dir);
    const target = startTargets[start];
    await node.want(specOf(target));
    const over = () => node.until(`a node that is ${start}`, isOver({ target, goesBack: false }));
    await runUntil(over, dir, name);
    starts.set(start, dir);
    return dir;
  }

  return {
    async prepare({ from, target, killedIn, hostGoesBack: byHost }) {
      const { dir, name, node } = await copyOf(await startOf(from));
      await node.want(specOf(target));
      for (let boot = 0; boot < killedIn; boot += 1) {
        const daemon = startFaultyDaemon({ dir, name, settings, fault: 'kill', changes: -1 });
        try {
          await untilRebootRequested(dir, AbortSignal.timeout(REBOOT_MS));
        } finally {
          await end(daemon);
        }
        if (byHost) await hostGoesBack(dir, directoryNode(dir, stock.source));
        else await bootNode(dir);
      }
      return dir;
    },

    async killAndRestart(update, prepared, changes) {
      const { dir, name, node } = await copyOf(prepared);
      await node.want(specOf(update.target));
      const over = () => node.until(`${update.name}, killed before change ${changes}`, isOver(update));
      const daemon = startFaultyDaemon({ dir, name, settings, fault: 'kill', changes });
      const through = new AbortController();
      try {
        const requested = untilRebootRequested(dir, through.signal);
        await Promise.race([once(daemon, 'exit'), requested, over()]);
        const { signalCode, exitCode } = daemon;
        if (exitCode !== null) throw new Error(`the daemon ended with exit code ${exitCode}`);
        await kill(daemon);
        through.abort();
        if (await requested) await bootNode(dir);
        await runUntil(over, dir, name);
        return { killed: signalCode === 'SIGKILL', dir };
      } finally {
        through.abort();
        await end(daemon);
      }
    },

    async fillAndEmpty(update, prepared, changes) {
      const { dir, name, node } = await copyOf(prepared, CRAMPED_BYTES);
      await node.want(specOf(update.target));
      const over = () =>
        node.until(`${update.name}, on a disk full before change ${changes}`, isOver(update));
      const daemon = startFaultyDaemon({ dir, name, settings, fault: 'fill', changes });
      const through = new AbortController();
      try {
        const requested = untilRebootRequested(dir, through.signal);
        const told = node.until('that it says so, or is through', (object) => {
          return isOver(update)(object) || saysFull(object) !== undefined;
        });
        await Promise.race([once(daemon, 'exit'), requested, told]);
        if (daemon.exitCode !== null) throw new Error(`the daemon ended with exit code ${daemon.exitCode}`);
        const filled = existsSync(path.join(dir, FILLER));
        await rm(path.join(dir, FILLER), { force: true });
        await Promise.race([once(daemon, 'exit'), requested, over()]);
        await kill(daemon);
        through.abort();
        if (await requested) await bootNode(dir);
        await runUntil(over, dir, name);
        const last = await told.catch(() => undefined);
        return { filled, told: last === undefined ? undefined : saysFull(last), dir };
      } finally {
        through.abort();
        await end(daemon);
      }
    },

    async remove(dir) {
      await removeNode(dir).catch((error: NodeJS.ErrnoException) => {
        // A disk of its own is emptied, but its place stays while it is mounted.
        if (error.code !== 'EBUSY') throw error;
      });
      if (!existsSync(dir)) return;
      await execa('umount', [dir]);
      await rm(dir, { recursive: true });
    },

    [Symbol.asyncDispose]: async () => {
      await control[Symbol.asyncDispose]();
      await stock[Symbol.asyncDispose]();
      await execa('umount', ['--recursive', base]);
      await rm(base, { recursive: true });
    },
  };
}

/** As the builder makes it. */
function addImage(
  node: TestNode,
  { config, files, from }: (typeof testImages)[number],
): { readonly name: DigestedPullspec; readonly labels: Record<string, string> } {
  const transitions = from.map(({ config: before, actions }) => ({
    config: before,
    actions: [...actions],
    base: node.stock,
    causes: [],
  }));
  const labels = {
    [imageLabels.renderedConfig]: config,
    [imageLabels.baseImage]: node.stock,
    [imageLabels.disruption]: encodeTransitionLabel({ version: 1, policyDigest: POLICY, transitions }),
  };
  const layer = files.map((file) => layerFile(file.path, file.content, file.mode));
  return { name: node.addImage(layer, labels), labels };
}

const REBOOT_MS = 60_000;
/** More than an import leaves free on a host (daemon/os/ostree/disk-space.ts). */
const CRAMPED_BYTES = 320 * 1024 * 1024;

/** @returns where a node's status says that its disk is full. */
function saysFull({ status }: MachineConfigNode): string | undefined {
  return /[^"]*(ENOSPC|no space|are free|free space)[^"]*/i.exec(JSON.stringify(status ?? {}))?.[0];
}

function startFaultyDaemon(of: {
  readonly dir: string;
  readonly name: string;
  readonly settings: string;
  readonly fault: 'kill' | 'fill';
  readonly changes: number;
}): ChildProcess {
  const script = path.join(import.meta.dirname, 'killed-daemon.ts');
  return spawn(process.execPath, [script, of.dir, of.name, of.settings, of.fault, String(of.changes)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    // A group of its own: commands of a daemon that died go on, and are ended with it when the test is through.
    detached: true,
  });
}

async function kill(daemon: ChildProcess): Promise<void> {
  if (daemon.signalCode !== null || daemon.exitCode !== null) return;
  const ended = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await ended;
}

/** Ends a daemon and what it has left running, and waits until they are gone. */
async function end(daemon: ChildProcess): Promise<void> {
  await kill(daemon);
  const { pid } = daemon;
  if (pid === undefined) return;
  try {
    for (;;) {
      process.kill(-pid, 'SIGKILL');
      await delay(5);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
