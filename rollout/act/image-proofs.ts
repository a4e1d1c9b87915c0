import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../api/error-message.ts';
import type { ImageProof } from '../pools/image-proof.ts';

/** How the proof of an image ended. */
export type ProofOutcome = ImageProof | { readonly kind: 'unreadable'; readonly why: string };

interface ImageProofsParts {
  /** Called for a pool when there is an outcome that no pass waited for. */
  readonly onOutcome: (pool: string) => void;
  /** ms for which a pass waits. On a base that is known a proof takes less. */
  readonly patienceMs?: number;
}

const PATIENCE = 1_000;
/** ms; the layers of a new base are read once, from a registry that may be slow. */
const LIMIT = 3_600_000;

/**
 * Runs the proofs of images. A pass over a pool doesn't wait while the layers of a new base are read: its nodes have
 * other things to do, and the outcome causes the next pass.
 */
export class ImageProofs {
  readonly #parts: ImageProofsParts;
  readonly #running = new Map<string, Promise<void>>();
  /** Outcomes that no pass has taken yet. */
  readonly #ended = new Map<string, ProofOutcome>();

  constructor(parts: ImageProofsParts) {
    this.#parts = parts;
  }

  /**
   * @param key of the image and what it is to be; equal keys are proven once at a time.
   * @returns undefined while the proof is running. An outcome is returned once: after that, the image is proven again.
   */
  async outcomeOf(
    pool: string,
    key: string,
    prove: (signal: AbortSignal) => Promise<ImageProof>,
    signal: AbortSignal,
  ): Promise<ProofOutcome | undefined> {
    if (!this.#ended.has(key)) await this.#wait(pool, key, prove, signal);
    signal.throwIfAborted();
    const outcome = this.#ended.get(key);
    this.#ended.delete(key);
    return outcome;
  }

  /** Drops the outcomes that no pass will take. @param isNeeded by its key. */
  forget(isNeeded: (key: string) => boolean): void {
    for (const key of this.#ended.keys()) if (!isNeeded(key)) this.#ended.delete(key);
  }

  async #wait(
    pool: string,
    key: string,
    prove: (signal: AbortSignal) => Promise<ImageProof>,
    signal: AbortSignal,
  ): Promise<void> {
    const { onOutcome, patienceMs = PATIENCE } = this.#parts;
    const before = this.#running.get(key);
    if (before !== undefined) return;
    let isAwaited = true;
    const running = this.#run(key, prove, AbortSignal.any([signal, AbortSignal.timeout(LIMIT)])).then(() => {
      if (!isAwaited && !signal.aborted) onOutcome(pool);
    });
    this.#running.set(key, running);
    const over = new AbortController();
    const patience = delay(patienceMs, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([running, patience]);
    isAwaited = false;
    over.abort();
  }

  async #run(
    key: string,
    prove: (signal: AbortSignal) => Promise<ImageProof>,
    signal: AbortSignal,
  ): Promise<void> {
    const outcome = await prove(signal).catch(
      (error: unknown): ProofOutcome => ({
        kind: 'unreadable',
        why: errorMessage(error),
      }),
    );
    this.#running.delete(key);
    this.#ended.set(key, outcome);
  }
}
