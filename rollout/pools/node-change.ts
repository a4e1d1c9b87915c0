import type { Node } from '../../api/kubernetes.ts';

/**
 * Whether a changed Node can make a difference to a rollout. Kubelets write heartbeats and image lists all day; with
 * thousands of nodes most events are of that kind.
 */
export function nodeChangeMatters(before: Node | undefined, after: Node): boolean {
  return before === undefined || JSON.stringify(relevant(before)) !== JSON.stringify(relevant(after));
}

function relevant({ metadata, spec, status }: Node): readonly unknown[] {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return [
    metadata.uid,
    metadata.labels,
    metadata.annotations,
    metadata.deletionTimestamp,
    spec?.unschedulable,
    spec?.taints?.map(({ key }) => key),
    // It was down and is back where the watch shows both at once.
    [ready?.status, ready?.lastTransitionTime],
    [status?.nodeInfo?.bootID, status?.nodeInfo?.architecture],
  ];
}
