import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { type Case, formatCase } from './cases.ts';
import {
  deploy,
  install,
  itemsOf,
  layerOf,
  Refused,
  type Rendered,
  renderItems,
  runTmpfiles,
} from './images.ts';
import { againstConfig, comparable } from './judge.ts';
import { type Difference, differences, formatDifference, type Listing, listTree } from './listing.ts';
import { applyImageLive, BrokenPromise, bootFirst, type Node, rebootInto, writeStandard } from './ways.ts';

/** One way that does not make what the others make. */
export interface Failure {
  readonly way: string;
  /** What failures of one cause have in common. */
  readonly kind: string;
  readonly lines: readonly string[];
}

/** What became of a case. */
export interface Verdict {
  readonly failures: readonly Failure[];
  /** Who said no, and why; undefined where the node got the config. */
  readonly refused: Refused | undefined;
}

/** What an image can't carry, whatever the base: docs/reference. */
const IMAGE_ONLY = [
  /is managed by the operating system/,
  /an image can only carry files under/,
  /sets the user or group ID/,
  /is a whiteout in an image/,
  /is a hard link to /,
  // Standard mode follows a link of the config that replaces the file; so roundabout a way no image takes.
  /lies below \S+, which is a file in the base image/,
  /lies below \S+, which is a symbolic link, by links of the base image/,
  // On a host of images /usr is read-only, so standard mode sets no directory there, either.
  /which bootc and rpm-ostree keep/,
];

/**
 * Takes a case every way there is.
 *
 * @param dir an empty directory of its own.
 */
export async function tryCase(dir: string, given: Case): Promise<Verdict> {
  const trial = new Trial(dir, given);
  try {
    return { refused: await trial.run(), failures: trial.failures };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** @returns the verdict as text, from which a person can repeat it; undefined where nothing is wrong. */
export function formatVerdict(given: Case, { failures }: Verdict): string | undefined {
  if (failures.length === 0) return undefined;
  const ways = failures.flatMap(({ way, lines }) => [`${way}:`, ...lines.map((line) => `  ${line}`)]);
  return [formatCase(given), ...ways].join('\n');
}

/** Where a node goes: a config, as standard mode makes it from nothing, and the deployment of its image. */
interface Target {
  readonly config: NodeConfig;
  readonly wanted: Listing;
  readonly image: string;
}

type Steps = readonly (readonly [string, Target])[];

class Trial {
  readonly failures: Failure[] = [];
  readonly #dir: string;
  readonly #given: Case;
  #base: Listing = new Map();
  #baseBooted: Listing | undefined;
  #roots = 0;

  constructor(dir: string, given: Case) {
    mkdirSync(dir);
    this.#dir = dir;
    this.#given = given;
  }

  /** @returns who refused the first config. */
  async run(): Promise<Refused | undefined> {
    const { configs } = this.#given;
    const A = rendered(configs.A);
    if (A instanceof Refused) return A;
    deploy(this.#at('base'), this.#given.layers);
    const standard = this.#installed('standard');
    this.#base = this.#list(standard.root);
    const written = await this.#standard('standard', standard, emptyNodeConfig, A.config);
    const image = await this.#image('image-A', A);
    if (!(written instanceof Refused) && image instanceof Refused && written) {
      this.#requireImageOnly(image);
    }
    if (image instanceof Refused) {
      this.#requireName(image, A.config);
      return image;
    }
    if (written instanceof Refused) {
      await this.#requireRefused(image, written, A.config);
      return written;
    }
    if (!written) return undefined;
    const wanted = this.#listBooted(standard);
    this.#compareWithConfig(standard, A.config);
    const layered = await this.#layered(image, wanted);
    await this.#onward({ config: A.config, wanted, image }, { standard, ...layered });
    return undefined;
  }

  /** @returns the nodes that have what standard mode made. */
  async #layered(
    image: string,
    wanted: Listing,
  ): Promise<{ readonly rebooted?: Node; readonly live?: Node; readonly inTurns?: Node }> {
    const { ways } = this.#given;
    if (ways.includes('first boot')) await this.#firstBoot(image, wanted);
    const rebooted = ways.includes('reboot')
      ? await this.#reboot(this.#installed('layered'), image, 'layered by reboot')
      : undefined;
    const inTurns = ways.includes('in turns')
      ? await this.#reboot(this.#installed('in-turns'), image, 'in turns')
      : undefined;
    const live = ways.includes('live') ? this.#installed('live') : undefined;
    const isLive = live !== undefined && (await this.#live(live, image, 'layered live'));
    return {
      ...(rebooted !== undefined && this.#compare('layered by reboot', wanted, rebooted) && { rebooted }),
      ...(isLive && this.#compare('layered live', wanted, live) && { live }),
      ...(inTurns !== undefined && this.#compare('in turns', wanted, inTurns) && { inTurns }),
    };
  }

  async #firstBoot(image: string, wanted: Listing): Promise<void> {
    const node = this.#installed('first', image);
    const isThere = await this.#promised('first boot', node, () => bootFirst(node).then(() => true));
    if (isThere === true) this.#compare('first boot', wanted, node);
  }

  /** From the first config to the second and back, and to none. */
  async #onward(
    A: Target,
    {
      standard,
      rebooted,
      live,
      inTurns,
    }: {
      readonly standard: Node;
      readonly rebooted?: Node;
      readonly live?: Node;
      readonly inTurns?: Node;
    },
  ): Promise<void> {
    const next = rendered(this.#given.configs.B);
    if (next instanceof Refused) return;
    const scratch = this.#installed('scratch');
    const written = await this.#standard('standard', scratch, emptyNodeConfig, next.config);
    const image = await this.#image('image-B', next);
    if (written !== true || image instanceof Refused) return;
    const B: Target = { config: next.config, wanted: this.#listBooted(scratch), image };
    const isBack = this.#given.ending === 'back';
    const steps = [
      ['A to B', B] as const,
      isBack ? (['B back to A', A] as const) : (['B dropped', await this.#none()] as const),
    ];
    if (this.#given.ways.includes('standard')) await this.#onwardStandard(standard, A.config, steps);
    await this.#onwardByReboot(rebooted, steps);
    await this.#onwardLive(live, steps);
    if (inTurns === undefined) return;
    await this.#onwardLive(inTurns, steps.slice(0, 1));
    if (this.failures.length === 0) await this.#onwardByReboot(inTurns, steps.slice(1));
  }

  async #onwardByReboot(from: Node | undefined, steps: Steps): Promise<void> {
    let node = from;
    for (const [name, { image, wanted }] of steps) {
      if (node === undefined) return;
      node = await this.#reboot(node, image, `by reboot, ${name}`);
      if (node === undefined || !this.#compare(`by reboot, ${name}`, wanted, node)) return;
    }
  }

  async #onwardLive(node: Node | undefined, steps: Steps): Promise<void> {
    if (node === undefined) return;
    for (const [name, { image, wanted }] of steps) {
      if (!(await this.#live(node, image, `live, ${name}`)) || !this.#compare(`live, ${name}`, wanted, node))
        return;
    }
  }

  #bootedBase(): Listing {
    if (!this.#given.tmpfiles) return this.#base;
    this.#baseBooted ??= this.#listBooted(this.#installed('base-booted'));
    return this.#baseBooted;
  }

  #installed(name: string, image = this.#at('base')): Node {
    const root = this.#at(name);
    install(image, root, this.#given);
    // What a first boot is compared with is a machine that has booted the base before.
    const { ways, tmpfiles } = this.#given;
    if (ways.includes('first boot') && tmpfiles && image === this.#at('base')) runTmpfiles(root);
    const { capabilities, runsTmpfiles } = this.#given;
    return { root, booted: image, capabilities, runsTmpfiles, complaints: [] };
  }

  /** @returns whether the node has the config; if not, why, and it is as it was. */
  async #standard(way: string, node: Node, from: NodeConfig, to: NodeConfig): Promise<Refused | boolean> {
    const before = this.#list(node.root);
    try {
      await writeStandard(node, from, to);
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) return this.#broken(way, error);
      const changed = differences(before, this.#list(node.root));
      if (changed.length === 0) return error;
      return this.#broken(
        way,
        new BrokenPromise(`${error.message}, and left: ${changed.map(formatDifference).join('; ')}`),
      );
    }
  }

  async #none(): Promise<Target> {
    const image = await this.#image(
      'image-0',
      renderItems({ files: [], directories: [], links: [], units: [], users: [] }),
    );
    if (image instanceof Refused) throw image;
    return { config: emptyNodeConfig, wanted: this.#bootedBase(), image };
  }

  async #onwardStandard(node: Node, from: NodeConfig, steps: Steps): Promise<void> {
    let current = from;
    for (const [name, { config: next, wanted }] of steps) {
      const way = `standard, ${name}`;
      const written = await this.#standard(way, node, current, next);
      if (written instanceof Refused)
        this.#fail(way, `refused: ${kindOf(written.message)}`, [written.message]);
      if (written !== true || !this.#compare(way, wanted, node)) return;
      current = next;
    }
  }

  async #image(name: string, config: Rendered): Promise<string | Refused> {
    try {
      const layer = itemsOf(await layerOf(config, this.#given.layers));
      deploy(this.#at(name), [...this.#given.layers, layer]);
      return this.#at(name);
    } catch (error) {
      if (error instanceof Refused) return error;
      throw error;
    }
  }

  async #reboot(node: Node, image: string, way: string): Promise<Node | undefined> {
    this.#roots += 1;
    return this.#promised(way, node, () => rebootInto(node, image, this.#at(`root-${this.#roots}`)));
  }

  async #live(node: Node, image: string, way: string): Promise<boolean> {
    return (await this.#promised(way, node, () => applyImageLive(node, image).then(() => true))) === true;
  }

  async #promised<T>(way: string, { complaints }: Node, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#broken(way, error);
      return undefined;
    } finally {
      for (const text of complaints.splice(0)) this.#fail(way, kindOf(text), [text]);
    }
  }

  #broken(way: string, error: unknown): false {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    this.#fail(way, kindOf(text), [text]);
    return false;
  }

  /** What standard mode refuses no layered node takes, either. */
  async #requireRefused(image: string, standard: Refused, config: NodeConfig): Promise<void> {
    const kind = `takes what standard mode refuses: ${kindOf(standard.message)}`;
    // A machine that was installed with an image has nothing in /var that could be in the way.
    const tries = {
      standard: undefined,
      'first boot': undefined,
      reboot: () => rebootInto(this.#installed('layered'), image, this.#at('root')),
      live: () => applyImageLive(this.#installed('live'), image),
      'in turns': undefined,
    };
    for (const way of this.#given.ways) {
      const attempt = tries[way];
      if (attempt === undefined) continue;
      const error = await attempt().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error instanceof Refused) this.#requireName(error, config);
      else this.#fail(`layered (${way})`, kind, [standard.message, String(error ?? 'taken')]);
    }
  }

  #requireImageOnly({ message }: Refused): void {
    if (IMAGE_ONLY.some((pattern) => pattern.test(message))) return;
    this.#fail('layered', `refuses what standard mode takes: ${kindOf(message)}`, [message]);
  }

  #requireName({ message }: Refused, { files, directories, links, units }: NodeConfig): void {
    const names = [files, directories, links, units].flatMap((entries) => [...entries.keys()]);
    if (names.some((name) => message.includes(name))) return;
    this.#fail('layered', 'a refusal names no path', [message]);
  }

  #compareWithConfig(node: Node, config: NodeConfig): void {
    const base = comparable(this.#base, this.#base);
    const listing = comparable(this.#list(node.root), this.#base);
    this.#requireEqual('standard beside the config', againstConfig(listing, base, config));
  }

  /** @returns whether a node has what was expected. */
  #compare(way: string, expected: Listing, node: Node): boolean {
    const found = this.#listBooted(node);
    return this.#requireEqual(
      way,
      differences(comparable(expected, this.#base), comparable(found, this.#base)),
    );
  }

  #requireEqual(way: string, differing: readonly Difference[]): boolean {
    const [first] = differing;
    if (first !== undefined) this.#fail(way, kindOfDifference(first), differing.map(formatDifference));
    return first === undefined;
  }

  /** What a node has after its next boot: the base's own tmpfiles.d has its say in both modes. */
  #listBooted({ root }: Node): Listing {
    if (this.#given.tmpfiles) runTmpfiles(root);
    return this.#list(root);
  }

  #list(root: string): Listing {
    const skip = (name: string) => name === '/usr/etc' || name === nodePaths.state;
    return listTree(root, { skip, capabilities: this.#given.capabilities, countsNames: this.#countsNames });
  }

  /**
   * Two names of one file: those that a config makes. In /usr ostree gives equal files one inode, and those of /etc it
   * copies one by one. A file of the node's own with two names that a config took over comes back as a file of its own,
   * in either mode.
   */
  readonly #countsNames = (name: string): boolean => name.startsWith('/var/') && this.#hardLinked.has(name);

  get #hardLinked(): ReadonlySet<string> {
    const { A, B } = this.#given.configs;
    const links = [...A.links, ...B.links].filter((each) => each['hard'] === true);
    return new Set(links.flatMap((each) => [String(each['path']), String(each['target'])]));
  }

  #at(name: string): string {
    return path.join(this.#dir, name);
  }

  #fail(way: string, kind: string, lines: readonly string[]): void {
    this.failures.push({ way, kind, lines });
  }
}

function rendered(items: Case['configs']['A']): Rendered | Refused {
  try {
    return renderItems(items);
  } catch (error) {
    if (error instanceof Refused) return error;
    throw error;
  }
}

/** A kind without the names of a case. */
function kindOf(message: string): string {
  return message.replaceAll(/"?\/[^\s:;,]*/g, '/…').slice(0, 160);
}

function kindOfDifference({ path: name, expected, found }: Difference): string {
  const area = name.split('/').slice(0, 2).join('/');
  const [was, is] = [expected?.split(' ') ?? ['nothing'], found?.split(' ') ?? ['nothing']];
  if (was[0] !== is[0]) return `${area}: ${is[0]} instead of ${was[0]}`;
  const part = was.findIndex((each, index) => each !== is[index]);
  return `${area}: ${was[0]} with another ${['type', 'mode', 'owner', 'content'][part] ?? 'content'}`;
}
