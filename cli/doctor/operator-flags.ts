import type { Deployment } from '../../api/kubernetes.ts';

/** @returns whether the operator's Deployment sets a flag, with a value or without. */
export function hasFlag(operator: Deployment | undefined, flag: string): boolean {
  return argumentsOf(operator).some((word) => word === flag || word.startsWith(`${flag}=`));
}

/** @returns the values that the operator's Deployment first gives to a flag; empty where it doesn't set it. */
export function flagValues(operator: Deployment | undefined, flag: string): readonly string[] {
  const words = argumentsOf(operator);
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const [first = '', ...rest] = words.slice(at);
  if (at === -1) return [];
  if (first !== flag) return [first.slice(flag.length + 1)];
  const end = rest.findIndex((word) => word.startsWith('--'));
  return end === -1 ? rest : rest.slice(0, end);
}

function argumentsOf(operator: Deployment | undefined): readonly string[] {
  return operator?.spec.template.spec.containers[0]?.args ?? [];
}
