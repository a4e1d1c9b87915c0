import type { Logger } from 'pino';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import { formatHooks, type HookPhase, hookStep } from '../pools/hooks.ts';

export interface HookParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes'>;
  readonly options: Pick<RolloutOptions, 'reports'>;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** ms since the epoch. */
  readonly now: () => number;
}

/**
 * What a node waits for; a wait never ends by itself, because then a disruption would happen that somebody wanted to
 * prevent.
 */
export interface HookWait {
  readonly note: string;
  /** It exceeds --hook-report-minutes. */
  readonly isOverdue: boolean;
  /** ms after which the next pass is needed. */
  readonly lookAgainAfter?: number;
}

/**
 * Requests the hooks of a phase on a node, and says what it waits for.
 *
 * @param names the pool's hooks of the phase.
 * @returns undefined once all of them are cleared.
 * @throws ApiError, a conflict too: then the node is observed again.
 */
export async function awaitHooks(
  parts: HookParts,
  node: Node,
  phase: HookPhase,
  names: readonly string[],
  signal: AbortSignal,
): Promise<HookWait | undefined> {
  const { client, caches, options, log, now } = parts;
  const { name, resourceVersion } = node.metadata;
  const step = hookStep(node, phase, names, now());
  const reportAfter = options.reports.hookAfterSeconds * 1000;
  switch (step.kind) {
    case 'done':
      return undefined;
    case 'request': {
      const body = { metadata: { resourceVersion, annotations: step.annotations } };
      caches.nodes.remember(await client.patch(Nodes, name, { type: 'merge', body }, { signal }));
      log.info({ node: name, phase, hooks: names }, 'requested hooks');
      const request = { phase, since: now(), pending: names };
      return { note: formatHooks(request), isOverdue: false, lookAgainAfter: reportAfter };
    }
    case 'wait': {
      const left = step.request.since + reportAfter - now();
      const note = formatHooks(step.request);
      return left > 0 ? { note, isOverdue: false, lookAgainAfter: left } : { note, isOverdue: true };
    }
  }
}
