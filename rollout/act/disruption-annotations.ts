import type { Node } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import type { AnnotationsPatch } from '../pools/hooks.ts';

/**
 * Annotations of a Node that keep others from deleting it. medik8s' operators respect the node lease instead, and a
 * MachineHealthCheck of Cluster API an annotation of the Machine (machine-remediation.ts).
 */
const NAMES = [
  // kubernetes/autoscaler, cluster-autoscaler/FAQ.md, on nodes that are not to be scaled down
  'cluster-autoscaler.kubernetes.io/scale-down-disabled',
  // karpenter.sh/docs, "Disruption", node-level controls
  'karpenter.sh/do-not-disrupt',
];
const VALUE = 'true';

/**
 * @returns what is missing on a node to keep others from deleting it, where nobody else set it, with the mark of ours.
 */
export function disruptionBlocked({ metadata }: Pick<Node, 'metadata'>): AnnotationsPatch {
  const on = metadata.annotations ?? {};
  const absent = NAMES.filter((name) => on[name] === undefined);
  if (absent.length === 0) return {};
  const ours = NAMES.filter((name) => absent.includes(name) || marked(on).includes(name));
  return {
    ...Object.fromEntries(absent.map((name) => [name, VALUE])),
    [annotations.disruptionBlocked]: ours.join(','),
  };
}

/** @returns what removes it again; what somebody else has written, or changed since, stays. */
export function disruptionUnblocked({ metadata }: Pick<Node, 'metadata'>): AnnotationsPatch {
  const on = metadata.annotations ?? {};
  if (on[annotations.disruptionBlocked] === undefined) return {};
  const ours = NAMES.filter((name) => marked(on).includes(name) && on[name] === VALUE);
  return {
    ...Object.fromEntries(ours.map((name) => [name, null])),
    [annotations.disruptionBlocked]: null,
  };
}

function marked(on: Readonly<Record<string, string>>): readonly string[] {
  return on[annotations.disruptionBlocked]?.split(',') ?? [];
}
