import type { DigestedPullspec } from '../../api/references.ts';
import type { Deployment, OsBackend, OsStatus, StageOptions } from './backend.ts';
import type { OsTool } from './os-tool.ts';
import { asksForPackages } from './packages-refused.ts';

/** What a backend is looked for. */
export interface BackendNeeds {
  /** Whether it is to install packages, if the host has one that can. */
  readonly packages: boolean;
}

/**
 * A backend that is looked for when it is first needed: a host without one is told of in the node's status, where the
 * admin looks, and looked at again when the daemon tries again.
 */
export class DetectedBackend implements OsBackend {
  readonly #detect: (needs: BackendNeeds, signal: AbortSignal) => Promise<OsBackend>;
  #found: OsBackend | undefined;
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

  async stage(image: DigestedPullspec, options: StageOptions): Promise<Deployment> {
    const { extraPackages, signal } = options;
    // From then on that one knows best what is staged.
    if (asksForPackages(extraPackages)) this.#found = await this.#packagesBackend(signal);
    return (await this.#backend(signal)).stage(image, options);
  }

  async unstage(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).unstage(signal);
  }

  async finalizeStaged(managed: ReadonlyMap<string, string>, signal: AbortSignal): Promise<Deployment> {
    return (await this.#backend(signal)).finalizeStaged(managed, signal);
  }

  async prepareSoftReboot(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).prepareSoftReboot(signal);
  }

  async rollback(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).rollback(signal);
  }

  async wayBack(keep: readonly string[], signal: AbortSignal): Promise<string> {
    return (await this.#backend(signal)).wayBack(keep, signal);
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    return (await this.#backend(signal)).cleanup(signal);
  }

  async #packagesBackend(signal: AbortSignal): Promise<OsBackend> {
    this.#forPackages ??= await this.#detect({ packages: true }, signal);
    return this.#forPackages;
  }

  async #backend(signal: AbortSignal): Promise<OsBackend> {
    this.#found ??= await this.#detect({ packages: false }, signal);
    return this.#found;
  }
}
