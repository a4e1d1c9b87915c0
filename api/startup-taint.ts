import type { Taint } from './kubernetes.ts';

/**
 * Taints that a kubelet registers a new node with (`--register-with-taints`), so that no pod is scheduled on it before
 * it runs what its pool runs. The operator removes them. The second name is for cluster-autoscalers whose flags can't
 * be set: they know startup taints by this prefix (kubernetes/autoscaler, cluster-autoscaler/FAQ.md); for the first one
 * they need `--startup-taint`.
 */
export const STARTUP_TAINTS = [
  'shale.dev/not-configured',
  'startup-taint.cluster-autoscaler.kubernetes.io/shale-not-configured',
] as const;

/** @returns whether the taint is one of {@link STARTUP_TAINTS}, with whatever value and effect. */
export function isStartupTaint({ key }: Pick<Taint, 'key'>): boolean {
  return STARTUP_TAINTS.some((name) => name === key);
}

/** For pods without which no node is ever configured: the operator's, the builder's and those of builds. */
export const startupTolerations = STARTUP_TAINTS.map((key) => ({
  key,
  operator: 'Exists',
  effect: 'NoSchedule',
}));
