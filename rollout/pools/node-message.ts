import { formatHooks } from './hooks.ts';
import { type NodeState, stateNameOf } from './node-state.ts';
import type { NodeStep } from './node-step.ts';

/**
 * What a node waits for. The operator composes the pool's condition Updating from it, and `shale status` its line for
 * the node: nobody has to read it back from the condition's message.
 *
 * @param step what the operator does for the node next (node-step.ts); undefined where nothing is under way.
 * @returns a clause that completes "NODE: …"; undefined where there is nothing to report.
 */
export function nodeMessage(node: NodeState, step: NodeStep | undefined): string | undefined {
  const { away } = node.claims;
  const { progress, stage } = node.update;
  // The daemon's words: what fails, and until when.
  if (away === undefined && stateNameOf(node) === 'verifying')
    return `verifying: ${stage?.condition.message}`;
  const waits = step === undefined ? undefined : (hookRemark(node, step) ?? stepRemark(step));
  if (waits !== undefined) return waits;
  if (away !== undefined) return `not waited for: ${away.why}`;
  return progress.kind === 'preparing' ? progress.why : undefined;
}

/** Nothing is done on a node while its hooks are pending, whatever comes next. */
function hookRemark({ work: { hooks } }: NodeState, { kind }: NodeStep): string | undefined {
  const isHeld =
    (kind === 'drain' && hooks?.phase === 'before') || (kind === 'finish' && hooks?.phase === 'after');
  return isHeld && hooks.pending.length > 0 ? formatHooks(hooks) : undefined;
}

function stepRemark(step: NodeStep): string | undefined {
  switch (step.kind) {
    case 'keep-lease':
    case 'suspend':
    case 'back-out':
    case 'let-go':
      return step.why;
    case 'drain':
      return 'is being drained';
    case 'take':
    case 'finish':
    case 'none':
      return undefined;
  }
}
