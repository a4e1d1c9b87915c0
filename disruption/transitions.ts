import { z } from 'zod';
import { DisruptionAction, DisruptionCause, formatActions } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { by } from '../api/order.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { decideActions } from './actions.ts';

/** What a node runs, or will run: a rendered config on a base image by digest. */
export interface ImageState {
  readonly config: string;
  readonly base: string;
}

/** @returns a transition as people and logs see it. */
export function formatTransition(transition: Transition): {
  readonly from: string;
  readonly actions: string;
} {
  return { from: formatNodeState(transition), actions: formatActions(transition.actions) };
}

/** @returns a state as builds report it; equal states give equal text. */
export function formatNodeState({ config, base }: ImageState): string {
  return `${config} on ${base}`;
}

const Transition = z.object({
  config: z.string().max(253),
  base: z.string().max(447),
  actions: z.array(DisruptionAction).max(50),
  /** Empty if all causes together would make the label too large. */
  causes: z.array(DisruptionCause).max(1000),
});
/** The actions that take a node from one state to the image with the label. */
export type Transition = z.infer<typeof Transition>;

const TransitionLabel = z.object({
  version: z.literal(1),
  policyDigest: z.string().regex(/^sha256:[a-f0-9]{64}$/),
  transitions: z.array(Transition).max(1000),
});
/** The content of an image's label `dev.shale.disruption`. */
export type TransitionLabel = z.infer<typeof TransitionLabel>;

/**
 * Registries and engines take labels of any length, but a config blob is read whole by every client, and containerd and
 * CRI-O bound what they read at 4 MiB; a tenth of that is room for hundreds of transitions.
 */
export const MAX_LABEL_BYTES = 400_000;

/**
 * Predicts what nodes have to do to reach a target: the label of an image states it, and the operator writes it on a
 * rendered config before any node is touched.
 *
 * @param froms what each node runs now, in any order, repeated or not.
 * @param to the target. With equal bases on both sides the configs alone are compared.
 * @returns a transition for each state, with the number of nodes that take it, sorted by config and base.
 */
export function predictTransitions({
  froms,
  to,
  policies,
  layered,
}: {
  readonly froms: readonly { readonly config: NodeConfig; readonly base: string }[];
  readonly to: { readonly config: NodeConfig; readonly base: string };
  readonly policies: ClusterPolicies;
  /** Whether images carry the configs. */
  readonly layered: boolean;
}): (Transition & { readonly nodes: number })[] {
  const states = Map.groupBy(froms, ({ config, base }) => canonicalJson([config.name, base]));
  return [...states]
    .sort(by(([state]) => state))
    .flatMap(([, nodes]) => nodes.slice(0, 1).map((from) => ({ ...from, nodes: nodes.length })))
    .map(({ config, base, nodes }) => {
      const { actions, causes } = decideActions({
        from: config,
        to: to.config,
        policies,
        layered,
        fromBase: base,
        toBase: to.base,
      });
      return { config: config.name, base, nodes, actions: [...actions], causes: [...causes] };
    });
}

/**
 * Writes a label's text. Equal labels give equal text.
 *
 * @returns at most MAX_LABEL_BYTES: a label that would be larger loses its causes first, which only explain, and then
 *   its last transitions, whose nodes reboot.
 */
export function encodeTransitionLabel(label: TransitionLabel): string {
  const complete = label.transitions.map(({ config, base, actions, causes }) => ({
    config,
    base,
    actions,
    causes,
  }));
  const whole = canonicalJson({ ...label, transitions: complete });
  if (Buffer.byteLength(whole) <= MAX_LABEL_BYTES) return whole;
  const transitions = complete.map((transition) => ({ ...transition, causes: [] }));
  for (;;) {
    const text = canonicalJson({ ...label, transitions });
    if (Buffer.byteLength(text) <= MAX_LABEL_BYTES || transitions.length === 0) return text;
    transitions.length = Math.floor(transitions.length / 2);
  }
}

export type ParsedLabel =
  | { readonly ok: true; readonly label: TransitionLabel }
  | { readonly ok: false; readonly why: string };

/**
 * Parses and validates a label. It comes from a registry, so it is not trusted.
 *
 * @param text the label's value; undefined if the image has none.
 */
export function parseTransitionLabel(text: string | undefined): ParsedLabel {
  if (text === undefined) return { ok: false, why: 'the image has no transition label' };
  if (Buffer.byteLength(text) > MAX_LABEL_BYTES) {
    return { ok: false, why: `the transition label is larger than ${MAX_LABEL_BYTES} bytes` };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, why: 'the transition label is not JSON' };
  }
  const parsed = TransitionLabel.safeParse(value);
  if (parsed.success) return { ok: true, label: parsed.data };
  const [issue] = parsed.error.issues;
  return {
    ok: false,
    why: `the transition label is invalid: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`,
  };
}

export type FoundTransition =
  | {
      readonly kind: 'known';
      readonly actions: readonly DisruptionAction[];
      readonly causes: readonly DisruptionCause[];
    }
  | { readonly kind: 'reboot'; readonly why: string };

/**
 * Looks up what a node must do.
 *
 * @param label the image's label, parsed.
 * @param state what the node runs.
 * @param policyDigest the policies in force, from the node's spec.
 * @returns the label's actions for a state that it lists, under the policies it was computed with; otherwise Reboot and
 *   why.
 */
export function findTransition(
  label: ParsedLabel,
  state: ImageState,
  policyDigest: string | undefined,
): FoundTransition {
  if (!label.ok) return { kind: 'reboot', why: label.why };
  if (label.label.policyDigest !== policyDigest) {
    return {
      kind: 'reboot',
      why: 'the transition label was computed with other disruption policies than those in force',
    };
  }
  const transition = label.label.transitions.find(
    ({ config, base }) => config === state.config && base === state.base,
  );
  if (transition === undefined) {
    return {
      kind: 'reboot',
      why: `the transition label has no transition from ${state.config || 'a node without a config'} on ${state.base || 'an unknown base image'}`,
    };
  }
  return { kind: 'known', actions: transition.actions, causes: transition.causes };
}
