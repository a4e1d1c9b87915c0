import { formatActions } from '../../api/disruption-action.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { PoliciesInForce } from '../../disruption/pool-policies.ts';
import {
  encodeTransitionLabel,
  formatNodeState,
  parseTransitionLabel,
  predictTransitions,
  type TransitionLabel,
} from '../../disruption/transitions.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';

interface LabelledImage {
  readonly config: NodeConfig;
  /** By digest. */
  readonly base: string;
  readonly inForce: PoliciesInForce;
  /** Rendered configs by name. */
  readonly configs: (name: string) => MachineConfig | undefined;
}

/**
 * Computes the transitions of a label again. Which states it lists is the builder's choice: from any other, nodes
 * reboot.
 *
 * @param text the label; undefined if the image has none.
 * @returns why nodes may not go by it.
 */
export function transitionRefusal(
  text: string | undefined,
  { config, base, inForce, configs }: LabelledImage,
): string | undefined {
  const parsed = parseTransitionLabel(text);
  if (!parsed.ok) return parsed.why;
  const { label } = parsed;
  const { policies, policyDigest } = inForce;
  if (label.policyDigest !== policyDigest)
    return `its label has transitions by the disruption policies ${label.policyDigest}; expected ${policyDigest}`;
  const froms: { config: NodeConfig; base: string }[] = [];
  for (const { config: name, base: from } of label.transitions) {
    const rendered = configs(name);
    const before = rendered && parseNodeConfig(rendered);
    if (before?.ok !== true)
      return `its label has a transition from ${name}, which ${rendered === undefined ? 'does not exist' : "can't be read"}, so nobody can check it`;
    froms.push({ config: before.config, base: from });
  }
  const transitions = predictTransitions({ froms, to: { config, base }, policies, layered: true });
  // Of a label that would be too large the causes are left out.
  const expected = [transitions, transitions.map((each) => ({ ...each, causes: [] }))].map((each) =>
    encodeTransitionLabel({ version: 1, policyDigest, transitions: each }),
  );
  return expected.includes(text ?? '') ? undefined : difference(label, transitions);
}

function difference(
  { transitions: found }: TransitionLabel,
  expected: TransitionLabel['transitions'],
): string {
  const byState = new Map(expected.map((each) => [formatNodeState(each), each]));
  for (const { actions, ...state } of found) {
    const name = formatNodeState(state);
    const asked = formatActions(actions);
    const right = formatActions(byState.get(name)?.actions ?? []);
    if (asked !== right) return `its label asks ${asked} of nodes with ${name}; expected ${right}`;
  }
  return 'its label states the transitions in another form than expected';
}
