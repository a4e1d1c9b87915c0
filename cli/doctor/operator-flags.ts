import type { Deployment } from '../../api/kubernetes.ts';

/** @returns whether the operator's Deployment sets a flag, with a value or without. */
export function hasFlag(operator: Deployment | undefined, flag: string): boolean {
  return argumentsOf(operator).some((word) => word === flag || word.startsWith(`${flag}=`));
}

/** @returns every value that the operator's Deployment gives to a flag; empty where it doesn't set it. */
export function flagValues(operator: Deployment | undefined, flag: string): readonly string[] {
  const words = argumentsOf(operator);
  return words.flatMap((word, at) => {
    if (word.startsWith(`${flag}=`)) return [word.slice(flag.length + 1)];
    if (word !== flag) return [];
    const rest = words.slice(at + 1);
    const end = rest.findIndex((next) => next.startsWith('--'));
    return end === -1 ? rest : rest.slice(0, end);
  });
}

function argumentsOf(operator: Deployment | undefined): readonly string[] {
  return operator?.spec.template.spec.containers[0]?.args ?? [];
}
