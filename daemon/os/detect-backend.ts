import path from 'node:path';
import type { DigestedPullspec } from '../../api/references.ts';
import { isThere } from '../files/tree-entry.ts';
import {
  asksForPackages,
  type FetchedImage,
  type NodeDeployment,
  type OsBackend,
  type OsStatus,
  type StageOptions,
} from './backend.ts';
import { bootcObstacle, bootcStatus } from './bootc/status.ts';
import { dropStagedEntries } from './bootc-composefs/boot-entries.ts';
import { composefsObstacle } from './bootc-composefs/composefs-host.ts';
import { deploymentEtc, isSameDirectory } from './bootc-composefs/deployment-trees.ts';
import { setupRootObstacle } from './bootc-composefs/setup-root.ts';
import { OsCommandError } from './os-command.ts';
import type { OsHost } from './os-host.ts';
import { BACKENDS, type BackendName, type OsTool } from './os-tool.ts';
import { readBootedNote } from './ostree/run-notes.ts';

/** The host has nothing that Shale could keep its operating system by. Nothing was touched. */
export class UnsupportedHostError extends Error {
  override readonly name = 'UnsupportedHostError';
}

interface HostTools extends Pick<OsHost, 'root' | 'run'> {
  /** By the admin's word; found out where there is none. */
  readonly requested?: BackendName | undefined;
  /** Whether it has to install packages, if the host has one that can. */
  readonly forPackages?: boolean;
}

/**
 * Looks which tool keeps the host's operating system.
 *
 * @throws UnsupportedHostError when none does, OsCommandError or another Error when bootc can't say.
 */
export async function detectBackend(host: HostTools, signal: AbortSignal): Promise<DetectedName> {
  const choice = chooseBackend(await findTools(host, signal), host);
  if (choice.kind === 'none') throw new UnsupportedHostError(choice.why);
  return choice.name;
}

/** What a host is kept by: a tool, or bootc where it keeps deployments in composefs and not in ostree. */
export type DetectedName = BackendName | 'bootc-composefs';

async function findTools({ root, run }: HostTools, signal: AbortSignal): Promise<FoundTools> {
  const has = (place: string) => isThere(path.join(root, place));
  const tools = {
    isBootedByOstree: await has('run/ostree-booted'),
    isEtcTransient: (await readBootedNote(root)).isEtcTransient,
    hasRpmOstree: await has('usr/bin/rpm-ostree'),
    hasOstree: await has('usr/bin/ostree'),
  };
  if (!(await has('usr/bin/bootc'))) return tools;
  const host = await statusOrDropped({ root, run }, signal);
  const isOfImage = host.status.type === 'bootcHost';
  const composefs = host.status.booted?.composefs ?? undefined;
  if (composefs === undefined) {
    return { ...tools, bootc: { isOfImage, obstacle: bootcObstacle(host) } };
  }
  const obstacle =
    composefsObstacle(composefs) ??
    (await setupRootObstacle(root)) ??
    (await otherEtc(root, composefs.verity ?? ''));
  return { ...tools, bootc: { isOfImage, isComposefs: true, obstacle } };
}

/** `bootc status`, asked again where entries of an earlier boot may have kept it from answering. */
async function statusOrDropped(
  host: Pick<OsHost, 'root' | 'run'>,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<typeof bootcStatus>>> {
  try {
    return await bootcStatus(host.run, signal);
  } catch (error) {
    if (!(error instanceof OsCommandError) || !(await dropStagedEntries(host, signal))) throw error;
    return await bootcStatus(host.run, signal);
  }
}

/** @returns why what is written to /etc may not be there after the next boot, or is not where bootc merges it. */
async function otherEtc(root: string, verity: string): Promise<string | undefined> {
  const own = deploymentEtc(path.join(root, 'sysroot'), verity);
  if (await isSameDirectory(path.join(root, 'etc'), own)) return undefined;
  return `/etc is not the booted deployment's own (${own}); expected no mount for etc in setup-root-conf.toml`;
}

/** What a host has for keeping its operating system. */
export interface FoundTools {
  /** Whether ostree has booted it (ostree-prepare-root leaves /run/ostree-booted). */
  readonly isBootedByOstree: boolean;
  /** Whether what is written to /etc is gone after a boot (`etc.transient` of ostree-prepare-root(1)). */
  readonly isEtcTransient: boolean;
  /** Present where bootc is installed. */
  readonly bootc?: {
    /** Why it can't manage this host; absent where it can. */
    readonly obstacle?: string | undefined;
    /** Whether the booted deployment is of an image. */
    readonly isOfImage: boolean;
    /** It keeps deployments in composefs and not in ostree. Absent where it doesn't. */
    readonly isComposefs?: true;
  };
  readonly hasRpmOstree: boolean;
  readonly hasOstree: boolean;
}

type BackendChoice =
  | { readonly kind: 'found'; readonly name: DetectedName }
  | { readonly kind: 'none'; readonly why: string };

/**
 * Decides what a host's operating system is kept by. bootc comes first where the host is its own; rpm-ostree where it
 * has layered packages, which bootc refuses, or where no image is booted yet; plain ostree where there is neither.
 *
 * @param requested by the admin; nothing else is tried then.
 * @param forPackages whether it has to install packages: only rpm-ostree can, so it is taken wherever it is.
 */
export function chooseBackend(
  tools: FoundTools,
  {
    requested,
    forPackages = false,
  }: { readonly requested?: BackendName | undefined; readonly forPackages?: boolean } = {},
): BackendChoice {
  const { bootc, hasRpmOstree, hasOstree } = tools;
  if (bootc?.isComposefs === true) return chooseComposefs(bootc.obstacle, requested);
  if (bootc?.obstacle !== undefined && !tools.isBootedByOstree) return none(`bootc: ${bootc.obstacle}`);
  if (!tools.isBootedByOstree) {
    return none('the host was not booted by ostree; expected one of bootc, rpm-ostree or ostree');
  }
  if (tools.isEtcTransient) {
    return none(
      '/etc is transient (etc.transient in prepare-root.conf), so that no boot keeps what is written there; expected an image with a persistent /etc',
    );
  }
  // All three need it: for deployments with given kernel arguments and a merged /etc.
  if (!hasOstree) return none('the program ostree is not installed');
  const canBootc = bootc !== undefined && bootc.obstacle === undefined;
  const usable: Readonly<Record<BackendName, boolean>> = {
    bootc: canBootc,
    'rpm-ostree': hasRpmOstree,
    // Only the tool that pulled the deployments knows their images.
    ostree: requested === 'ostree' || bootc === undefined,
  };
  const order = bootc?.isOfImage === true && !forPackages ? BACKENDS : RPM_OSTREE_FIRST;
  const name = (requested === undefined ? order : [requested]).find((candidate) => usable[candidate]);
  if (name !== undefined) return { kind: 'found', name };
  if (bootc?.obstacle !== undefined) return none(`bootc: ${bootc.obstacle}`);
  return none(`${requested} is not installed`);
}

/** No other tool knows deployments that are not in ostree. */
function chooseComposefs(obstacle: string | undefined, requested: BackendName | undefined): BackendChoice {
  if (obstacle !== undefined) return none(`bootc: ${obstacle}`);
  if (requested === undefined || requested === 'bootc') return { kind: 'found', name: 'bootc-composefs' };
  return none(`bootc keeps its deployments in composefs, which ${requested} does not know; expected bootc`);
}

const RPM_OSTREE_FIRST = ['rpm-ostree', 'bootc', 'ostree'] as const;

function none(why: string): BackendChoice {
  return { kind: 'none', why };
}

/** What a backend is looked for. */
interface BackendNeeds {
  /** Whether it is to install packages, if the host has one that can. */
  readonly packages: boolean;
}

/**
 * A backend that is looked for when it is first needed: a host without one is reported in the node's status, where the
 * admin looks, and looked at again when the daemon tries again.
 */
export class DetectedBackend implements OsBackend {
  readonly #detect: (needs: BackendNeeds, signal: AbortSignal) => Promise<OsBackend>;
  #detected: OsBackend | undefined;
  #forPackages: OsBackend | undefined;

  /** @param detect finds the backend. */
  constructor(detect: (needs: BackendNeeds, signal: AbortSignal) => Promise<OsBackend>) {
    this.#detect = detect;
  }

  async tool(signal: AbortSignal): Promise<OsTool> {
    const tool = await (await this.#backend(signal)).tool(signal);
    if (tool.installsPackages) return tool;
    const { installsPackages } = await (await this.#packagesBackend(signal)).tool(signal);
    return { ...tool, installsPackages };
  }

  async status(signal: AbortSignal): Promise<OsStatus> {
    return (await this.#backend(signal)).status(signal);
  }

  async fetch(image: DigestedPullspec, options: StageOptions): Promise<FetchedImage> {
    return (await this.#backendFor(options)).fetch(image, options);
  }

  async stage(image: DigestedPullspec, options: StageOptions): Promise<NodeDeployment> {
    return (await this.#backendFor(options)).stage(image, options);
  }

  async unstage(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).unstage(signal);
  }

  async finalizeStaged(managed: ReadonlyMap<string, string>, signal: AbortSignal): Promise<NodeDeployment> {
    return (await this.#backend(signal)).finalizeStaged(managed, signal);
  }

  async prepareSoftReboot(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).prepareSoftReboot(signal);
  }

  async rollback(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).rollback(signal);
  }

  async rollbackScript(keep: readonly string[], signal: AbortSignal): Promise<string> {
    return (await this.#backend(signal)).rollbackScript(keep, signal);
  }

  async bootScript(signal: AbortSignal): Promise<string> {
    return (await this.#backend(signal)).bootScript(signal);
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).cleanup(signal);
  }

  async #backendFor({ extraPackages, signal }: StageOptions): Promise<OsBackend> {
    // From then on that one knows best what is staged.
    if (asksForPackages(extraPackages)) this.#detected = await this.#packagesBackend(signal);
    return this.#backend(signal);
  }

  async #packagesBackend(signal: AbortSignal): Promise<OsBackend> {
    this.#forPackages ??= await this.#detect({ packages: true }, signal);
    return this.#forPackages;
  }

  async #backend(signal: AbortSignal): Promise<OsBackend> {
    this.#detected ??= await this.#detect({ packages: false }, signal);
    return this.#detected;
  }
}
