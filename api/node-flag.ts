import type { Node } from './kubernetes.ts';

/** What somebody wrote about a node: each field is '' where it is not given. */
export type Flag = Readonly<Record<'by' | 'reason' | 'since' | 'until', string>>;

/**
 * @param text of the annotation for planned maintenance or for a machine that is powered off.
 * @returns undefined for a value that can't be read; the flag is in effect all the same.
 */
function readFlag(text: string): Flag | undefined {
  let flag: unknown;
  try {
    flag = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof flag !== 'object' || flag === null) return undefined;
  const field = (name: string) => {
    const value = (flag as Readonly<Record<string, unknown>>)[name];
    return typeof value === 'string' ? value : '';
  };
  return { by: field('by'), reason: field('reason'), since: field('since'), until: field('until') };
}

/** @returns undefined without the annotation. */
export function flagOn(
  { metadata }: Node,
  annotation: string,
): { readonly flag: Flag | undefined } | undefined {
  const text = metadata.annotations?.[annotation];
  return text === undefined ? undefined : { flag: readFlag(text) };
}

/** @param flag undefined: it can't be read. */
export function formatFlag(what: string, annotation: string, flag: Flag | undefined): string {
  if (flag === undefined) return `${what} (annotation ${annotation})`;
  const { by, reason } = flag;
  return `${what}${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`;
}
