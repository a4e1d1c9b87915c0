import { expect, test } from 'vitest';
import type { z } from 'zod';
import { crdDefinitions } from './crd-definitions.ts';

interface Def {
  readonly checks?: readonly {
    readonly _zod: { readonly def: { readonly format?: string; readonly error?: unknown } };
  }[];
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly innerType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

/** @returns the paths of texts with a pattern that don't say what is expected. */
function wordless(schema: z.ZodType, path: string): readonly string[] {
  const { checks = [], shape = {}, element, innerType, valueType, options = [] } = schema._zod.def as Def;
  const own = checks.some(({ _zod: { def } }) => def.format === 'regex' && def.error === undefined);
  const parts = [element, innerType, valueType, ...options].filter((part) => part !== undefined);
  return [
    ...(own ? [path] : []),
    ...Object.entries(shape).flatMap(([name, part]) => wordless(part, `${path}.${name}`)),
    ...parts.flatMap((part) => wordless(part, path)),
  ];
}

test.each(crdDefinitions.map(({ kind, spec }) => [kind.kind, spec] as const))(
  'a %s that is refused shows no regular expression, but what is expected',
  (name, spec) => {
    expect(wordless(spec, name)).toEqual([]);
  },
);
