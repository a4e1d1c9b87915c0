import { isDeepStrictEqual } from 'node:util';
import type { MachineConfigNode, UpdateRecord } from '../../api/machine-config-node.ts';
import { formatNodeState } from '../../disruption/transitions.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { COSTS, type Cost } from '../../predict/cost.ts';
import type { PoolAsk } from '../../predict/plan.ts';
import { NODE } from '../fixtures/node-control-plane.ts';
import { aMachineConfigNode } from '../fixtures/objects.ts';
import { MemoryRegistry } from '../fixtures/registry/memory-registry.ts';
import { BrokenPromise, costOfRecord, describe, differingActions } from './compare-actions.ts';
import { isRefused, type Mode, slots, withdrawnBy } from './slots.ts';
import { differences, type Snapshot } from './snapshot.ts';
import {
  firstState,
  formatState,
  stateAfter,
  type Walk,
  type WalkState,
  type WalkStep,
  wantedOf,
} from './steps.ts';
import { ownOf, pushStockImage, type Version } from './stock-images.ts';
import { pullspec, WalkCluster, type Wanted } from './walk-cluster.ts';
import { type Done, WalkNode, whyStuck } from './walk-node.ts';

const STOCK = 'os/stock';

/**
 * Walks one node through configs: before each step it is written down what `shale plan` says, after it what the node
 * did and what lies on its disk.
 *
 * @returns how many steps changed the node, by what they cost.
 * @throws BrokenPromise at the first step where they differ.
 */
export async function runWalk(walk: Walk, signal: AbortSignal): Promise<ReadonlyMap<Cost, number>> {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const tag = `${registry.host}/${STOCK}:latest`;
  const digests = {
    '2': await pushStockImage(client, tag, '2', signal),
    '1': await pushStockImage(client, tag, '1', signal),
  };
  const imageOf = (version: Version) => pullspec(registry.host, STOCK, digests[version]);
  const cluster = new WalkCluster(client, `${registry.host}/os/worker`, signal);
  await using node = await WalkNode.start(registry.host, imageOf('1'));
  const moveTag = async (version: Version) => {
    const manifest = await client.getManifest(parseReference(imageOf(version)), signal);
    await client.putManifest(parseReference(tag), manifest, signal);
  };
  const world = new WalkWorld({ walk, cluster, node, imageOf, tag, moveTag });
  await world.begin();
  for (const [index, step] of walk.steps.entries()) {
    signal.throwIfAborted();
    await world.take(index, step);
  }
  return world.costs;
}

interface Parts {
  readonly walk: Walk;
  readonly cluster: WalkCluster;
  readonly node: WalkNode;
  readonly imageOf: (version: Version) => string;
  readonly tag: string;
  readonly moveTag: (version: Version) => Promise<void>;
}

/** What was predicted of a step. */
interface Prediction {
  readonly plan: PoolAsk;
  /** What the node ran. */
  readonly from: MachineConfigNode['status'];
}

class WalkWorld {
  readonly #parts: Parts;
  readonly costs = new Map<Cost, number>(COSTS.map((cost) => [cost, 0]));
  #state: WalkState;
  #earlier: WalkState[] = [];
  /** What the stock image of the node is, in the version that it is. */
  #stock: Snapshot = new Map();
  #stockArguments: readonly string[] = [];
  /** The version of the operating system that the node runs. */
  #runs: Version = '1';
  #record: UpdateRecord | undefined;
  #prediction: readonly string[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#state = firstState(parts.walk);
  }

  /**
   * A new node gets the first config. Nothing is predicted for it: `shale plan` counts a node that has reported nothing as a
   * reboot.
   */
  async begin(): Promise<void> {
    const { cluster, node } = this.#parts;
    this.#stock = await node.snapshot(DIRECTORIES);
    this.#stockArguments = await node.kernelArguments();
    const rendered = cluster.apply(this.#wanted(this.#state));
    await node.publish(rendered, cluster.machineConfiguration);
    const [spec = missing()] = await cluster.assign([
      aMachineConfigNode(NODE, { configVersion: { desired: '' } }),
    ]);
    const object = await node.bring(spec);
    this.#refuse('the first config', whyStuck(object) ?? []);
    cluster.settle();
    await node.done();
    this.#record = object.status?.lastUpdate;
    await this.#compareTree('the first config');
  }

  async take(index: number, step: WalkStep): Promise<void> {
    const what = `step ${index} (${JSON.stringify(step)})`;
    if (step.kind === 'boot') await this.#boot(what);
    // Of a base that a MachineOSConfig names nothing is asked while there is none.
    else if (step.kind !== 'base' || this.#state.layered || this.#parts.walk.base === 'osImageURL') {
      await this.#change(what, stateAfter(this.#state, step, this.#earlier));
    }
  }

  #wanted(state: WalkState): Wanted {
    const { walk, imageOf, tag } = this.#parts;
    return wantedOf(state, { imageOf, tag, base: walk.base });
  }

  async #change(what: string, next: WalkState): Promise<void> {
    const { cluster, node, walk, moveTag } = this.#parts;
    const before = await node.object();
    const movesTag = walk.base === 'tag' && next.version !== this.#state.version;
    // A refused change moves no tag: a step either edits or moves it.
    if (movesTag) await moveTag(next.version);
    const plan = await cluster.plan(this.#wanted(next), [before]);
    if ('problems' in plan) {
      if (!isRefused(this.#state.variants, next.variants)) this.#refuse(what, ['refused', ...plan.problems]);
      return;
    }
    if (isRefused(this.#state.variants, next.variants)) this.#refuse(what, ['is not refused']);
    this.#earlier.push(this.#state);
    this.#state = next;
    const rendered = cluster.apply(this.#wanted(next));
    await node.publish(rendered, cluster.machineConfiguration);
    const [spec = missing()] = await cluster.assign([before]);
    const after = isDeepStrictEqual({ ...spec, grant: undefined }, { ...before.spec, grant: undefined })
      ? before
      : await node.bring(spec);
    this.#refuse(what, whyStuck(after) ?? []);
    cluster.settle();
    const isLayered = next.layered;
    if (isLayered || walk.base === 'osImageURL') this.#runs = next.version;
    const done = await node.done();
    const prediction = { plan, from: before.status };
    this.#compareActions(what, prediction, after, done);
    await this.#compareTree(what);
  }

  async #boot(what: string): Promise<void> {
    const { node } = this.#parts;
    const after = await node.boot();
    this.#refuse(what, whyStuck(after) ?? []);
    const { services } = await node.done();
    const record = after.status?.lastUpdate;
    const isSame = record?.startedAt === this.#record?.startedAt;
    this.#refuse(what, [
      ...services.map((service) => `the node did ${service}, but nothing was asked of it`),
      ...(isSame ? [] : [`the node made an update: ${JSON.stringify(record)}`]),
    ]);
    await this.#compareTree(what);
  }

  #compareActions(what: string, { plan, from }: Prediction, { status }: MachineConfigNode, done: Done): void {
    const isUpdated = status?.lastUpdate?.startedAt !== this.#record?.startedAt;
    this.#record = status?.lastUpdate;
    const record = isUpdated ? this.#record : undefined;
    const withdrawn = withdrawnBy(this.#state.variants);
    const optsIn = from?.mode !== 'Layered' && status?.mode === 'Layered';
    const cost = costOfRecord({ record, optsIn });
    this.costs.set(cost, (this.costs.get(cost) ?? 0) + 1);
    const given = { plan, label: this.#actionsInLabel(from, status), record, done, optsIn, withdrawn };
    this.#prediction = describe(given);
    this.#refuse(what, differingActions(given));
  }

  /**
   * @returns what the label of the image that the node took says, as builds report it; undefined where it says nothing.
   */
  #actionsInLabel(from: MachineConfigNode['status'], to: MachineConfigNode['status']): string | undefined {
    const { builds } = this.#parts.cluster;
    const image = to?.configImage?.currentImage;
    const build = builds.find(({ status }) => status?.digestedImagePushSpec === image);
    if (from?.mode !== 'Layered' || build === undefined) return undefined;
    const state = formatNodeState({ config: from.configVersion?.current ?? '', base: from.baseImage ?? '' });
    return build.status?.transitions?.find((transition) => transition.from === state)?.actions;
  }

  async #compareTree(what: string): Promise<void> {
    const { node } = this.#parts;
    const { layered, variants } = this.#state;
    const mode: Mode = layered ? 'Layered' : 'Standard';
    const expected = new Map([...this.#stock, ...Object.entries(ownOf(this.#runs))]);
    expected.set('/etc/walk-always', 'file 644 0:0 ""');
    const contents = slots.map(({ variants: all }, index) => all[variants[index] ?? 0]);
    for (const [name, entry] of contents.flatMap((each) => Object.entries(each?.content?.(mode) ?? {}))) {
      if (entry === undefined) expected.delete(name);
      else expected.set(name, entry);
    }
    const kernelArguments = contents.flatMap((each) => each?.spec?.kernelArguments ?? []);
    const found = await node.kernelArguments();
    const wanted = [...this.#stockArguments, ...kernelArguments];
    const object = await node.object();
    const runs = object.status?.configImage?.currentImage ?? object.status?.baseImage;
    const next = await node.nextBoot();
    this.#refuse(what, [
      ...differences(await node.snapshot(DIRECTORIES), expected),
      ...(isDeepStrictEqual(found.toSorted(), wanted.toSorted())
        ? []
        : [`kernel arguments: are ${found.join(' ')}, but should be ${wanted.join(' ')}`]),
      ...(runs === next ? [] : [`next boot: is ${next}, but should be ${runs}`]),
    ]);
  }

  /** @throws BrokenPromise for any problem. */
  #refuse(what: string, found: string | readonly string[]): void {
    const problems = typeof found === 'string' ? [found] : found;
    if (problems.length === 0) return;
    const before = this.#earlier.at(-1);
    throw new BrokenPromise(
      [
        `${what}, base by ${this.#parts.walk.base}:`,
        ...problems.map((problem) => `- ${problem}`),
        `from ${before === undefined ? 'nothing' : formatState(before)}`,
        `to   ${formatState(this.#state)}`,
        ...this.#prediction,
      ].join('\n'),
    );
  }
}

const DIRECTORIES: ReadonlySet<string> = new Set(['/etc/walk-dir', '/var/lib/walk-dir']);

function missing(): never {
  throw new Error('the operator gives each node a spec');
}
